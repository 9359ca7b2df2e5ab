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

-- name: activity
-- Of each source: rows (counted up to $2), and by its newest ended jobs ($3 at most) the last hour and the last run that
-- collected. A job that stayed within a floor or a cooldown says so: it asked nobody.
select wanted.source, held.rows, hour.rows_hour, hour.requests_hour, last.id as last_job, last.message, last.sample
from unnest($1::text[]) as wanted (source)
cross join lateral (
    select count(*) as rows from (select from collected_data where source = wanted.source limit $2) fact
) held
cross join lateral (
    select coalesce(sum(records_processed), 0)::bigint as rows_hour,
        coalesce(sum(attempts) filter (where message is null
            or message !~ '^(.*kept data applied again; )?cooldown until '), 0)::bigint as requests_hour
    from (select lane, records_processed, attempts, message, finished_at from collection_tasks
          where source = wanted.source and finished_at is not null
          order by id desc limit $3) ended
    where lane = 'fill' and finished_at > clock_timestamp() - interval '1 hour'
) hour
left join lateral (
    select id, message, sample
    from (select id, lane, message, sample from collection_tasks
          where source = wanted.source and finished_at is not null
          order by id desc limit $3) ended
    where lane = 'fill' limit 1
) last on true

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
