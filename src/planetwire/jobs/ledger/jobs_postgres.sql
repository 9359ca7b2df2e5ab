-- name: lock_submit
select pg_advisory_xact_lock(hashtextextended($1, 0))

-- name: by_key
select * from collection_tasks where idempotency_key = $1

-- name: adopt_twin
-- A request by a person makes a deferred twin due at once; one by the schedule does not. Each part uses its own index.
update collection_tasks set
    scheduled_at = case when $4 then scheduled_at end,
    payload = case when $4 then payload else payload - 'scheduled' end
where status = 'queued' and id = (
    select twin.id from (
        (select id, priority from collection_tasks
         where status = 'queued' and parked is distinct from 'time' and lane <> 'free'
            and source = $2 and task_type = $1 and payload -> 'layer' is not distinct from $3::jsonb -> 'layer'
         order by priority, id limit 1)
        union all
        (select id, priority from collection_tasks
         where status = 'queued' and not (parked is distinct from 'time') and lane <> 'free'
            and source = $2 and task_type = $1 and payload -> 'layer' is not distinct from $3::jsonb -> 'layer'
         order by priority, id limit 1)
        union all
        (select id, priority from collection_tasks
         where status = 'queued' and parked is distinct from 'time' and lane = 'free'
            and source is not distinct from $2 and task_type = $1
            and payload -> 'layer' is not distinct from $3::jsonb -> 'layer'
         order by priority, id limit 1)
        union all
        (select id, priority from collection_tasks
         where status = 'queued' and not (parked is distinct from 'time') and lane = 'free'
            and source is not distinct from $2 and task_type = $1
            and payload -> 'layer' is not distinct from $3::jsonb -> 'layer'
         order by priority, id limit 1)
    ) twin
    order by twin.priority, twin.id limit 1)
returning *

-- name: insert_job
insert into collection_tasks (task_type, source, payload, priority, idempotency_key)
values ($1, $2, $3, $4, $5)
returning *

-- name: claim
-- Few columns, and the payload as text: to read whole rows took the worker as long as everything else it does for a job.
select id, task_type, source, priority, payload::text as payload, records_processed, attempts, max_attempts, lease_seq
from planet_claim_jobs($1, $2, $3, $4, make_interval(secs => $5), $6, $7, $8)

-- name: park
select planet_park_jobs($1, $2)

-- name: first_waiting
select priority, id from collection_tasks
where status = 'queued' and parked is null and lane <> 'free'
order by priority, id limit 1

-- name: look
select task.id, task.status
from collection_tasks task
join unnest($1::bigint[], $2::bigint[]) as mine (id, seq) on task.id = mine.id and task.lease_seq = mine.seq
where task.status || '' in ('running', 'cancelling')

-- name: heartbeat
select task_id as id, status from planet_beat_jobs(
    $1, $2, make_interval(secs => $3), make_interval(secs => $4), make_interval(secs => $5))

-- name: not_silent_for
select set_config('idle_in_transaction_session_timeout', $1, true)

-- name: fence
-- The last statement of every batch: it holds the row only until the commit, so a cancel waits milliseconds.
update collection_tasks set
    records_processed = records_processed + $3,
    records_total = greatest(coalesce($4, records_total), case when coalesce($4, records_total) is not null
        then records_processed + $3 end),
    progress = case when coalesce($4, records_total) > 0
        then least(1.0, (records_processed + $3)::double precision / coalesce($4, records_total)) else progress end,
    message = coalesce($5, message),
    phase = coalesce($6, phase),
    batches = batches + 1,
    rejects = rejects + $7,
    sample = coalesce(sample, $8),
    lease_until = least(clock_timestamp() + make_interval(secs => $9), deadline_at + make_interval(secs => $10)),
    heartbeat_at = clock_timestamp()
where id = $1 and lease_seq = $2 and status = 'running'
returning id

-- name: cancel
update collection_tasks set
    cancel_requested_at = clock_timestamp(),
    finished_at = case status when 'queued' then clock_timestamp() end,
    status = case status when 'queued' then 'cancelled' else 'cancelling' end
where id = $1 and status in ('queued', 'running')
returning *

-- name: get_job
select * from collection_tasks where id = $1

-- name: rescue
with lost as (
    select id from collection_tasks
    where status in ('running', 'cancelling') and lease_seq >= 0 and lease_until < clock_timestamp()
    order by lease_until
    limit $1
    for update skip locked
)
update collection_tasks task set
    status = case
        when task.status = 'cancelling' then 'cancelled'
        when task.attempts >= task.max_attempts then 'failed'
        else 'queued' end,
    error_code = case when task.status = 'running' then
        case when task.deadline_at <= clock_timestamp() then 'deadline_exceeded' else 'worker_lost' end end,
    error = case when task.status = 'running' then
        case when task.deadline_at <= clock_timestamp() then 'the job ran longer than its type may'
            else 'the worker stopped answering while it ran this job' end end,
    message = case when task.status = 'cancelling' then coalesce(task.message, $3) else task.message end,
    lease_seq = task.lease_seq + 1,
    lease_until = null,
    deadline_at = null,
    worker_id = case when task.status = 'running' and task.attempts < task.max_attempts then null
        else task.worker_id end,
    scheduled_at = case when task.status = 'running' and task.attempts < task.max_attempts
        then clock_timestamp() + make_interval(secs => $2::double precision * power(4, least(task.attempts - 1, 10)))
        else task.scheduled_at end,
    finished_at = case when task.status = 'cancelling' or task.attempts >= task.max_attempts
        then clock_timestamp() end
from lost
where task.id = lost.id
returning task.id, task.status, task.error_code

-- name: end_leases_of
-- Before all others, so that a rescue of as many finds these. It waits for locked rows: the lock can only
-- be that of the dead worker's last commit, which the server has not finished.
with held as (
    select id from collection_tasks
    where status in ('running', 'cancelling') and lease_seq >= 0 and worker_id = any ($1::text[])
    order by id
    limit $2
    for update
)
update collection_tasks task set lease_until = '-infinity' from held where task.id = held.id
returning task.id

-- name: release
update collection_tasks task set
    status = case task.status when 'cancelling' then 'cancelled' else 'queued' end,
    attempts = case task.status when 'cancelling' then task.attempts else greatest(task.attempts - 1, 0) end,
    lease_seq = task.lease_seq + 1,
    lease_until = null,
    deadline_at = null,
    worker_id = case task.status when 'cancelling' then task.worker_id end,
    started_at = case task.status when 'cancelling' then task.started_at end,
    finished_at = case task.status when 'cancelling' then clock_timestamp() end
from unnest($1::bigint[], $2::bigint[]) as mine (id, seq)
where task.id = mine.id and task.lease_seq = mine.seq and task.status in ('running', 'cancelling')
returning task.id

-- name: open_gate
insert into wakeup_gates (channel, open_until)
values ($1, clock_timestamp() + make_interval(secs => $2))
on conflict (channel) do update set open_until = excluded.open_until
where wakeup_gates.open_until < excluded.open_until

-- name: pause
insert into paused_sources (source) values ($1) on conflict do nothing

-- name: resume
delete from paused_sources where source = $1

-- name: sweep
select last_source, mended from planet_sweep_jobs($1, $2)

-- name: prune
-- Oldest first and a few at a time, so that no other statement waits for a long delete.
delete from collection_tasks task
using (
    select id from collection_tasks
    where finished_at < now() - make_interval(secs => $1)
    order by finished_at
    limit $2
    for update skip locked
) old
where task.id = old.id
