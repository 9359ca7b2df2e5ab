-- name: get_job
select * from collection_tasks where id = $1

-- name: page
select * from collection_tasks
where ($1::text is null or status = $1) and ($2::text is null or source = $2) and ($3::bigint is null or id < $3)
order by id desc
limit $4

-- name: active
(select * from collection_tasks where status in ('running', 'cancelling') order by id limit $1)
union all
(select * from collection_tasks where status = 'queued' order by id limit $1)
union all
(select * from collection_tasks
 where finished_at > clock_timestamp() - make_interval(secs => $2)
 order by finished_at desc limit $1)
