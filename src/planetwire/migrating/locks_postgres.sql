-- name: blockers
-- The sessions that block this one, with their last query.
select a.pid, a.application_name as application, a.state, left(a.query, 200) as query,
    coalesce(extract(epoch from clock_timestamp() - a.xact_start), 0)::float8 as open_s
from pg_stat_activity a
where a.pid = any (pg_blocking_pids($1))
order by a.xact_start
limit 5;

-- name: migrator
-- Who holds the lock of migrations.
select a.pid, a.application_name as application, a.state, left(a.query, 200) as query,
    coalesce(extract(epoch from clock_timestamp() - a.xact_start), 0)::float8 as open_s
from pg_stat_activity a
join pg_locks l on l.pid = a.pid
where l.locktype = 'advisory' and l.granted and l.objsubid = 1 and a.datname = current_database()
    and (l.classid::bigint << 32) + l.objid::bigint = $1
limit 1;

-- name: table_sizes
-- A partitioned table has the rows and bytes of its partitions.
select c.relname as name, greatest(sum(leaf.reltuples), 0)::bigint as rows,
    coalesce(sum(pg_total_relation_size(leaf.oid)), 0)::bigint as bytes
from pg_class c
cross join lateral (
    select c.oid, c.reltuples where c.relkind = 'r'
    union all
    select part.oid, part.reltuples
    from pg_partition_tree(c.oid) tree join pg_class part on part.oid = tree.relid
    where c.relkind = 'p' and tree.isleaf
) leaf
where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
group by c.relname;
