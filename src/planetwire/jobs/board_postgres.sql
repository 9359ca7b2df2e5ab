-- name: get_job
select * from collection_tasks where id = $1

-- name: page
select * from planet_job_page($1, $2, $3, $4)

-- name: active
-- Each part by its own index, so that neither a backlog nor a long history makes it slow.
(select * from collection_tasks where status in ('running', 'cancelling') order by id limit $1)
union all
(select waiting.* from (
    (select * from collection_tasks
     where status = 'queued' and parked is null and task_type in ('collect', 'clear_data')
     order by priority, id limit $1)
    union all
    (select * from collection_tasks
     where status = 'queued' and parked is distinct from 'time' and task_type in ('clear_cache', 'earth_refresh')
     order by priority, id limit $1)
    union all
    (select parked.* from (
        (select source from collection_tasks where status in ('running', 'cancelling') order by id limit $1)
        union
        (select source from paused_sources limit $1)
     ) busy
     cross join lateral (
        select * from collection_tasks
        where source = busy.source and status = 'queued' and parked is distinct from 'time' and parked is not null
            and task_type in ('collect', 'clear_data')
        order by priority, id limit $1
     ) parked
     limit $1)
    union all
    (select * from collection_tasks where status = 'queued' and parked = 'time' order by scheduled_at limit $1)
 ) waiting
 order by waiting.parked is not distinct from 'time', waiting.priority, waiting.id limit $1)
union all
(select * from collection_tasks
 where finished_at > now() - make_interval(secs => $2)
 order by finished_at desc limit $1)

-- name: dead
select * from planet_job_page('failed', $1, $2, $3, true)

-- name: set_retried
update collection_tasks set retried_as = $2 where id = $1

-- name: counts
-- Bounded: more than the limit is said to be at least that.
select
    (select count(*) from (
        select from collection_tasks where status in ('running', 'cancelling') limit $1) as capped) as running,
    (select count(*) from (select from collection_tasks where status = 'queued' limit $1) as capped) as queued,
    (select count(*) from (
        select from collection_tasks where status = 'failed' and retried_as is null limit $1) as capped) as dead
