-- name: due
-- After a transient failure the time of the retry replaces that of the schedule.
select d.source, at.now, d.next_run_at as due_at, d.tick_at, d.retry_at, d.answered_at,
    coalesce(d.interval_s, k.interval_s) as interval_s, k.floor_s,
    d.cron, d.time_zone, coalesce(d.misfire, 'once') as misfire
from (select clock_timestamp() as now) at
cross join unnest($1::text[], $2::double precision[], $3::double precision[], $4::boolean[])
    as k (source, interval_s, floor_s, enabled)
join datasources d on d.source = k.source
where coalesce(d.enabled, k.enabled)
    and coalesce(d.retry_at, d.next_run_at, at.now) <= at.now
    and (d.answered_at is null or d.answered_at + make_interval(secs => k.floor_s) <= at.now)
order by d.source

-- name: move_on
-- Compare and swap on the state that was read: if another process moved it, that one fired it; a changed schedule is read
-- again. A locked row is left for the next poll. A job that never reported its result counts as another failure.
update datasources set
    next_run_at = $6, tick_at = $7,
    retry_at = case when retry_at is not null then clock_timestamp() + make_interval(secs => $9) end
where source = (
    select source from datasources
    where source = $1 and next_run_at is not distinct from $2
        and (cron, time_zone) is not distinct from ($3::text, $4::text) and coalesce(enabled, $5)
        and retry_at is not distinct from $8
    for update skip locked)
returning source

-- name: note_firing
insert into schedule_firings (source, fire_at) values ($1, $2) on conflict do nothing returning source

-- name: name_job
update schedule_firings set task_id = $3 where source = $1 and fire_at = $2

-- name: prune_firings
delete from schedule_firings
where (source, fire_at) in (
    select source, fire_at from schedule_firings
    where fired_at < clock_timestamp() - make_interval(secs => $1)
    order by fired_at
    limit $2
    for update skip locked)
