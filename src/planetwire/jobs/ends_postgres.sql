-- name: complete
-- The usual end, of many at once.
update collection_tasks task set
    status = 'completed',
    progress = 1,
    error_code = null,
    error = null,
    lease_until = null,
    deadline_at = null,
    finished_at = clock_timestamp()
from unnest($1::text::bigint[], $2::text::bigint[]) as ending (id, seq)
where task.id = ending.id and task.lease_seq = ending.seq and task.status in ('running', 'cancelling')
returning task.id, task.lease_seq

-- name: finish
update collection_tasks task set
    status = planet_end_status(ending.status, ending.again, task.status, task.attempts, task.max_attempts),
    progress = case when ending.status = 'completed' then 1 else task.progress end,
    message = coalesce(ending.message, task.message),
    error_code = case when ending.status = 'failed' and task.status = 'running' then ending.code end,
    error = case when ending.status = 'failed' and task.status = 'running' then ending.error end,
    sample = coalesce(ending.sample, task.sample),
    lease_until = null,
    deadline_at = null,
    worker_id = case planet_end_status(ending.status, ending.again, task.status, task.attempts, task.max_attempts)
        when 'queued' then null else task.worker_id end,
    scheduled_at = case planet_end_status(ending.status, ending.again, task.status, task.attempts, task.max_attempts)
        when 'queued' then clock_timestamp() + make_interval(secs => greatest(ending.least_s,
            least($11::double precision, $10::double precision * power(2, least(task.attempts - 1, 30)))
            * (0.75 + random() * 0.5)))
        else task.scheduled_at end,
    finished_at = case planet_end_status(ending.status, ending.again, task.status, task.attempts, task.max_attempts)
        when 'queued' then null else clock_timestamp() end
from unnest(
    $1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::boolean[],
    $9::double precision[]
) as ending (id, seq, status, message, code, error, sample, again, least_s)
where task.id = ending.id and task.lease_seq = ending.seq and task.status in ('running', 'cancelling')
returning task.id, task.lease_seq

-- name: were_finished
-- Leaving a lease by rescue or release raises lease_seq; by finish it does not.
select task.id, task.lease_seq
from collection_tasks task
join unnest($1::text::bigint[], $2::text::bigint[]) as mine (id, seq) on task.id = mine.id and task.lease_seq = mine.seq
where task.status not in ('running', 'cancelling')
