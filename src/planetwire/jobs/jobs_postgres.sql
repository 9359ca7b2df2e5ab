-- name: lock_submit
select pg_advisory_xact_lock(hashtextextended($1, 0))

-- name: by_key
select * from collection_tasks where idempotency_key = $1

-- name: adopt_twin
-- A person's wish brings a twin that waits for its time forward; the schedule's does not.
update collection_tasks set
    scheduled_at = case when $4 then scheduled_at end,
    payload = case when $4 then payload else payload - 'scheduled' end
where status = 'queued' and id = (
    select id from collection_tasks
    where status = 'queued' and task_type = $1 and source is not distinct from $2
        and payload -> 'layer' is not distinct from $3::jsonb -> 'layer'
    order by priority, id limit 1)
returning *

-- name: insert_job
insert into collection_tasks (task_type, source, payload, priority, idempotency_key)
values ($1, $2, $3, $4, $5)
returning *

-- name: claim
select * from planet_claim_jobs($1, $2, $3, make_interval(secs => $4)) order by priority, id

-- name: heartbeat
update collection_tasks task set
    lease_until = clock_timestamp() + make_interval(secs => $3),
    heartbeat_at = clock_timestamp()
from unnest($1::bigint[], $2::bigint[]) as mine (id, seq)
where task.id = mine.id and task.lease_seq = mine.seq and task.status in ('running', 'cancelling')
returning task.id, task.status

-- name: look
select task.id, task.status
from collection_tasks task
join unnest($1::bigint[], $2::bigint[]) as mine (id, seq) on task.id = mine.id and task.lease_seq = mine.seq
where task.status in ('running', 'cancelling')

-- name: fence
-- The last statement of every batch: it holds the row only until the commit, so a cancel waits milliseconds.
update collection_tasks set
    records_processed = records_processed + $3,
    records_total = greatest(coalesce($4, records_total), case when coalesce($4, records_total) is not null
        then records_processed + $3 end),
    progress = case when coalesce($4, records_total) > 0
        then least(1.0, (records_processed + $3)::double precision / coalesce($4, records_total)) else progress end,
    message = coalesce($5, message),
    lease_until = clock_timestamp() + make_interval(secs => $6),
    heartbeat_at = clock_timestamp()
where id = $1 and lease_seq = $2 and status = 'running'
returning id

-- name: finish
with ending as (
    select id, attempts, case
            when $3 = 'failed' and status = 'cancelling' then 'cancelled'
            when $3 = 'failed' and $7 and attempts < max_attempts then 'queued'
            else $3
        end as status
    from collection_tasks
    where id = $1 and lease_seq = $2 and status in ('running', 'cancelling')
    for update
)
update collection_tasks task set
    status = ending.status,
    progress = case ending.status when 'completed' then 1 else task.progress end,
    message = coalesce($4, task.message),
    error_code = case when ending.status in ('failed', 'queued') then $5 end,
    error = case when ending.status in ('failed', 'queued') then $6 end,
    worker_id = case when ending.status <> 'queued' then task.worker_id end,
    lease_until = null,
    scheduled_at = case when ending.status = 'queued' then clock_timestamp() + make_interval(secs => greatest($8,
        least($10::double precision, $9::double precision * power(2, least(ending.attempts - 1, 30)))
        * (0.75 + random() * 0.5))) else task.scheduled_at end,
    finished_at = case when ending.status <> 'queued' then clock_timestamp() end
from ending
where task.id = ending.id
returning task.status

-- name: was_finished
-- Leaving a lease by rescue or release raises lease_seq; by finish it does not.
select id from collection_tasks where id = $1 and lease_seq = $2 and status not in ('running', 'cancelling')

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
    where status in ('running', 'cancelling') and lease_until < clock_timestamp()
    order by lease_until
    limit $1
    for update skip locked
)
update collection_tasks task set
    status = case
        when task.status = 'cancelling' then 'cancelled'
        when task.attempts >= task.max_attempts then 'failed'
        else 'queued' end,
    error_code = case when task.status = 'running' then 'worker_lost' end,
    error = case when task.status = 'running' then 'the worker stopped answering while it ran this job' end,
    lease_seq = task.lease_seq + 1,
    lease_until = null,
    worker_id = case when task.status = 'running' and task.attempts < task.max_attempts then null
        else task.worker_id end,
    scheduled_at = case when task.status = 'running' and task.attempts < task.max_attempts
        then clock_timestamp() + make_interval(secs => $2::double precision * power(4, least(task.attempts - 1, 10)))
        else task.scheduled_at end,
    finished_at = case when task.status = 'cancelling' or task.attempts >= task.max_attempts
        then clock_timestamp() end
from lost
where task.id = lost.id
returning task.id, task.status

-- name: release
update collection_tasks task set
    status = case task.status when 'cancelling' then 'cancelled' else 'queued' end,
    attempts = case task.status when 'cancelling' then task.attempts else greatest(task.attempts - 1, 0) end,
    lease_seq = task.lease_seq + 1,
    lease_until = null,
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
