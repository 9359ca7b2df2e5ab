-- name: ensure
insert into datasources (source) select unnest($1::text[]) on conflict do nothing

-- name: list_sources
select source, enabled, interval_s, cron, time_zone, misfire, next_run_at, last_run_at, last_success_at,
    last_error_code, last_error, rejects, rejects_last_run, rows_last_run, cooldown_until,
    failures, retry_at, answered_at, at.now,
    exists (select from paused_sources pause where pause.source = datasources.source) as paused
from datasources, (select clock_timestamp() as now) at
where source = any ($1::text[])
order by source

-- name: lock_source
-- The clock is read while the row is held: no plan made from an older time can follow.
select enabled, interval_s, cron, time_zone, misfire, next_run_at, tick_at, last_run_at, clock_timestamp() as now
from datasources
where source = $1
for update

-- name: change_source
update datasources set
    enabled = $2, interval_s = $3, cron = $4, time_zone = $5, misfire = $6, next_run_at = $7, tick_at = $8
where source = $1

-- name: report
-- $6: whether the next job comes after the pause that belongs to so many failures; null leaves that as it is.
update datasources set
    last_run_at = clock_timestamp(), rejects = rejects + $2, rejects_last_run = $2,
    last_error_code = $3, last_error = $4,
    answered_at = case when $5 then clock_timestamp() else answered_at end,
    failures = case when $6 then failures + 1 when not $6 then 0 else failures end,
    retry_at = case
        when $6 then clock_timestamp() + make_interval(secs => ($7::float8[])[least(failures + 1, cardinality($7))])
        when $6 is null then retry_at end
where source = $1
