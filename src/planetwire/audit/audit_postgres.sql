-- name: note
insert into audit_log (who, role, address, what, task_id, source, rows_deleted, details)
values ($1, $2, $3, $4, $5, $6, $7, $8)

-- name: carry
-- What was kept elsewhere while the database was away, under the time at which it happened; each once.
insert into audit_log (at, carried, who, role, address, what, task_id, source, rows_deleted, details)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict (carried) do nothing

-- name: page
select id, at, who, role, address, what, task_id, source, rows_deleted, details
from audit_log
where ($1::bigint is null or id < $1)
    and ($2::timestamptz is null or at >= $2)
    and ($3::text is null or who = $3)
    and ($4::text is null or source = $4)
    and ($5::bigint is null or task_id = $5)
    and ($6::text is null or what = $6)
order by id desc
limit $7

-- name: prune
select planet_prune_audit(make_interval(secs => $1), $2)
