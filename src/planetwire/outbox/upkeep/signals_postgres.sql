-- name: backlog
select count(*)::float8 as pending,
       coalesce(extract(epoch from clock_timestamp() - min(occurred_at)), 0)::float8 as oldest_age_seconds
from (select occurred_at from earth_data_change_events where consumed_at is null order by id limit $1) oldest;

-- name: tables
-- Estimates that the server keeps anyway; partitions count for their parent.
select named.name as "table", sum(greatest(c.reltuples, 0))::float8 as rows,
       sum(pg_total_relation_size(c.oid))::float8 as bytes,
       sum(coalesce(s.n_tup_ins + s.n_tup_upd + s.n_tup_del, 0))::float8 as written
from unnest($1::text[]) as named (name)
cross join lateral planet_tree(to_regclass('public.' || quote_ident(named.name))) tree
join pg_class c on c.oid = tree.relation
left join pg_stat_user_tables s on s.relid = c.oid
group by named.name
order by named.name;

-- name: database
select pg_database_size(current_database())::float8 as bytes,
       coalesce((
           select extract(epoch from clock_timestamp() - min(xact_start))
           from pg_stat_activity
           where datname = current_database() and backend_type = 'client backend'
       ), 0)::float8 as longest_transaction_seconds;
