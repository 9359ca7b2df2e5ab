-- name: append
insert into job_log_lines (task_id, at, event, line)
select added.task_id, added.at, added.event, added.line
from unnest($1::bigint[], $2::timestamptz[], $3::text[], $4::text[]) with ordinality as added (task_id, at, event, line, n)
order by added.n

-- name: trim
delete from job_log_lines old
using (
    select task.id as task_id, edge.id
    from unnest($1::bigint[]) as task (id)
    cross join lateral (
        select id from job_log_lines where task_id = task.id order by id desc offset $2 limit 1
    ) edge
) past
where old.task_id = past.task_id and old.id <= past.id

-- name: read
select at, event, line from job_log_lines
where task_id = $1 and at > clock_timestamp() - make_interval(secs => $2)
order by id desc
limit $3

-- name: prune
-- Past their time, or more than all jobs together may have: ids are given out one by one.
delete from job_log_lines where id in (
    (select id from job_log_lines where at < clock_timestamp() - make_interval(secs => $1) order by at limit $2)
    union all
    (select id from job_log_lines where id <= (select max(id) from job_log_lines) - $3::bigint order by id limit $2))
