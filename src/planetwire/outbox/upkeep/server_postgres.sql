-- name: long_transactions
-- A prepared transaction holds rows without any process.
select pid, application_name as who, coalesce(state, '') as state,
       extract(epoch from clock_timestamp() - xact_start)::float8 as age_s
from pg_stat_activity
where datname = current_database() and xact_start < clock_timestamp() - make_interval(secs => $1)
    and pid <> pg_backend_pid()
union all
select null, gid, 'prepared', extract(epoch from clock_timestamp() - prepared)::float8
from pg_prepared_xacts
where database = current_database() and prepared < clock_timestamp() - make_interval(secs => $1)
order by age_s desc
limit $2;

-- name: oldest_xmin
-- What holds back vacuum, and its age in transactions: sessions, prepared transactions, replication.
select age(held.xmin) as transactions, held.who
from (
    select backend_xmin as xmin, format('pid %s, %s', pid, application_name) as who from pg_stat_activity
    where backend_xmin is not null and pid <> pg_backend_pid()
    union all
    select transaction, 'prepared ' || gid from pg_prepared_xacts
    union all
    select xmin, 'slot ' || slot_name from pg_replication_slots where xmin is not null
    union all
    select catalog_xmin, 'slot ' || slot_name from pg_replication_slots where catalog_xmin is not null
) held
order by age(held.xmin) desc
limit 1;

-- name: invalid_indexes
-- An index that is still being built is not valid either, and no fault.
select index.indexrelid::regclass::text as name
from pg_index index join pg_class class on class.oid = index.indexrelid
where not index.indisvalid and class.relkind = 'i'
    and not exists (select from pg_stat_progress_create_index building where building.index_relid = index.indexrelid)
order by name
limit $1;

-- name: notify_queue
select pg_notification_queue_usage()::float8;
