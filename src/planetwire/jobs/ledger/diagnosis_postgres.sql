-- name: expired
select count(*) as jobs, coalesce(max(extract(epoch from clock_timestamp() - lease_until)), 0)::float8 as oldest_s
from (
    select lease_until from collection_tasks
    where status in ('running', 'cancelling') and lease_until < clock_timestamp()
    limit $1
) expired;

-- name: running
select count(*) from (
    select from collection_tasks where status in ('running', 'cancelling') limit $1
) running;

-- name: waiting
-- The front of the queue: jobs that nothing but the lack of a worker keeps from running.
select count(*) as jobs, coalesce(extract(epoch from clock_timestamp() - min(since)), 0)::float8 as oldest_s
from (
    select coalesce(scheduled_at, created_at) as since from collection_tasks
    where status = 'queued' and parked is null and lane <> 'free'
    order by priority, id
    limit $1
) front;

-- name: waiting_keyless
select count(*) as jobs, coalesce(extract(epoch from clock_timestamp() - min(since)), 0)::float8 as oldest_s
from (
    select coalesce(scheduled_at, created_at) as since from collection_tasks
    where status = 'queued' and lane = 'free' and parked is distinct from 'time'
    order by priority, id
    limit $1
) front;

-- name: dead
select count(*) from (
    select from collection_tasks where status = 'failed' and retried_as is null limit $1
) dead;

-- name: paused
select count(*) from (select from paused_sources limit $1) paused;

-- name: unseen
select mended from planet_sweep_jobs('', $1);
