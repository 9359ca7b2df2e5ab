-- name: complete
-- The usual result, without message or sample. Array literals: see the caller.
select task_id, seq from planet_complete_jobs($1::text::bigint[], $2::text::bigint[])

-- name: finish
select task_id, seq from planet_end_jobs($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)

-- name: were_finished
-- Leaving a lease by rescue or release raises lease_seq; by finish it does not.
select task.id, task.lease_seq
from collection_tasks task
join unnest($1::text::bigint[], $2::text::bigint[]) as mine (id, seq) on task.id = mine.id and task.lease_seq = mine.seq
where task.status not in ('running', 'cancelling')
