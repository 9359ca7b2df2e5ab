-- name: blockers
-- Whom the session waits for, with what they said last.
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
