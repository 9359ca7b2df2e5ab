-- name: get_job
select * from collection_tasks where id = $1

-- name: page
select * from planet_job_page($1, $2, $3, $4)

-- name: active
-- Each part by its own index, so that neither a backlog nor a long history makes it slow.
(select * from collection_tasks
     where status in ('running', 'cancelling') and lease_seq >= 0 order by id limit $1)
union all
(select waiting.* from (
    (select * from collection_tasks
     where status = 'queued' and parked is null and lane <> 'free'
     order by priority, id limit $1)
    union all
    (select * from collection_tasks
     where status = 'queued' and parked is distinct from 'time' and lane = 'free'
     order by priority, id limit $1)
    union all
    (select parked.* from (
        (select source from collection_tasks
     where status in ('running', 'cancelling') and lease_seq >= 0 order by id limit $1)
        union
        (select source from paused_sources limit $1)
     ) busy
     cross join lateral (
        select * from collection_tasks
        where source = busy.source and status = 'queued' and parked is distinct from 'time' and parked is not null
            and lane <> 'free'
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

-- name: counts
select running, queued, dead from planet_job_counts($1)

-- name: standing
-- Per source: the write job that runs, the next in line, the pause. A row without a source for the clock alone.
select clock.now, key.source, run.id as running_id, head.id as head_id, pause.paused_at
from (select clock_timestamp() as now) clock
left join unnest($1::text[]) as key (source) on true
left join lateral (
    select task.id from collection_tasks task
    where task.source = key.source and task.status in ('running', 'cancelling')
        and task.lane <> 'free'
) run on true
left join lateral (
    select task.id from collection_tasks task
    where task.source = key.source and task.status = 'queued' and task.parked is distinct from 'time'
        and task.lane <> 'free'
    order by task.priority, task.id limit 1
) head on true
left join paused_sources pause on pause.source = key.source
