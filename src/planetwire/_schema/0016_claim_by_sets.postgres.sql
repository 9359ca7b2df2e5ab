-- A claim looks at the sources of its front in one statement and no longer in a loop of three: a third less work for
-- the server where each job has a source. Its plans, and those of what ends jobs, are made once a connection: making
-- them anew took longer than a claim. Statistics that change make them anew, as do changed tables.

-- Claims up to `most` jobs for one worker: the heads of free sources, and jobs without a key, by (priority, id).
-- `deadlines` holds the longest run of each of `types`. `floor_*`: nothing waits before this place; while an old
-- transaction keeps dead index entries alive, they are not stepped over again at every claim.
--
-- Right because: a claimer holds the source's advisory lock from before it reads the head until it commits, and
-- each statement of the function has its own snapshot, so the head is read after every earlier claim of the source
-- is visible. A head that somebody has locked is left alone together with its source: the next in line must not
-- pass it. Only the front of the queue is looked at, and if that is full of busy sources each of the waiting sources
-- if they are `few`; else whoever gets nothing parks what stands in the way.
create or replace function planet_claim_jobs(
    worker text, types text[], deadlines double precision[], most integer, lease interval,
    floor_priority integer, floor_id bigint, few integer
) returns setof collection_tasks
language plpgsql
    -- The ledger grows faster than its statistics: a plan made for an empty table must not outlive it.
    set search_path = pg_catalog, pg_temp
    set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
    set plan_cache_mode = force_generic_plan as $$
declare
    front_most constant integer := least(1000, greatest(64, 2 * most));
    span integer := least(front_most, greatest(8, 2 * most));  -- usually enough
    at constant timestamptz := clock_timestamp();  -- a value, so that an index can be asked for it
    looked integer := 0;
    seen text[] := '{}';
    taken text[] := '{}';
    picked bigint[];
    taken_at timestamptz;  -- one value for the row: no job was heard of before it started
begin
    if exists (
        select from public.collection_tasks task
        where task.status = 'queued' and task.parked = 'time' and task.scheduled_at <= at
    ) then
        update public.collection_tasks task set parked = null
        from (
            select due.id from public.collection_tasks due
            where due.status = 'queued' and due.parked = 'time' and due.scheduled_at <= at
            order by due.scheduled_at
            limit 1000
            for update skip locked
        ) due
        where task.id = due.id;
    end if;

    loop
        -- In the order of places, as `names` is read. `case`: the lock is asked for last; `limit` ends the search.
        with front as materialized (
            select task.source from public.collection_tasks task
            where task.status = 'queued' and task.parked is null and task.task_type in ('collect', 'clear_data')
                and (task.priority, task.id) >= (coalesce(floor_priority, -2147483648), coalesce(floor_id, 0))
            order by task.priority, task.id
            limit span
        ), names as materialized (
            select place.source
            from (select front.source, row_number() over () as nth from front) place
            group by place.source order by min(place.nth)
        )
        select
            array(
                select names.source from names
                where case
                    when (select true from public.collection_tasks busy
                        where busy.source = names.source and busy.status in ('running', 'cancelling')
                            and busy.task_type in ('collect', 'clear_data') limit 1) is null
                        and (select true from public.paused_sources pause
                            where pause.source = names.source limit 1) is null
                    then pg_try_advisory_xact_lock(hashtextextended('planet_source:' || names.source, 0))
                end
                limit most),
            array(select names.source from names),
            (select count(*) from front)
        into taken, seen, looked;
        exit when cardinality(taken) >= most or looked < span or span = front_most;
        span := front_most;  -- what is locked already is locked again, which is harmless
    end loop;

    if cardinality(taken) < most and looked = span then
        taken := taken || array(
            select head.source
            from (
                select names.source
                from unnest(public.planet_waiting_sources(few)) as names (source)
                cross join lateral (
                    select task.priority, task.id from public.collection_tasks task
                    where task.source = names.source and task.status = 'queued'
                        and task.parked is distinct from 'time' and task.task_type in ('collect', 'clear_data')
                    order by task.priority, task.id limit 1
                ) head
                where names.source <> all (seen)
                    and (select true from public.collection_tasks busy
                        where busy.source = names.source and busy.status in ('running', 'cancelling')
                            and busy.task_type in ('collect', 'clear_data') limit 1) is null
                    and (select true from public.paused_sources pause
                        where pause.source = names.source limit 1) is null
                order by head.priority, head.id
                offset 0
            ) head
            where pg_try_advisory_xact_lock(hashtextextended('planet_source:' || head.source, 0))
            limit most - cardinality(taken));
    end if;

    with heads as (
        select task.id, task.priority
        from unnest(taken) as free (source)
        cross join lateral (
            select head.id, head.task_type from public.collection_tasks head
            where head.source = free.source and head.status = 'queued' and head.parked is distinct from 'time'
                and head.task_type in ('collect', 'clear_data')
            order by head.priority, head.id limit 1
        ) head
        join public.collection_tasks task on task.id = head.id
        where head.task_type = any (types) and task.status = 'queued'
            -- Asked source by source: as an anti join it would read all that runs, the dead included.
            and (select true from public.collection_tasks busy
                where busy.source = free.source and busy.status in ('running', 'cancelling')
                    and busy.task_type in ('collect', 'clear_data') limit 1) is null
        for update of task skip locked
    ), keyless as (
        select task.id, task.priority from public.collection_tasks task
        where task.status = 'queued' and task.parked is distinct from 'time'
            and task.task_type in ('clear_cache', 'earth_refresh') and task.task_type = any (types)
        order by task.priority, task.id
        limit most
        for update skip locked
    )
    select array(
        select candidate.id from (select * from heads union all select * from keyless) candidate
        order by candidate.priority, candidate.id
        limit most
    ) into picked;

    taken_at := clock_timestamp();
    return query
    update public.collection_tasks task set
        status = 'running',
        parked = null,
        worker_id = worker,
        attempts = task.attempts + 1,
        lease_seq = task.lease_seq + 1,
        lease_until = taken_at + lease,
        heartbeat_at = taken_at,
        started_at = taken_at,
        deadline_at = taken_at
            + make_interval(secs => deadlines[array_position(types, task.task_type)]),
        finished_at = null,
        message = null,
        phase = case task.task_type when 'collect' then 'fetch' when 'clear_data' then 'clear' else 'hint' end,
        sample = null,
        -- A clearing goes on where it was; a collection starts over.
        progress = case task.task_type when 'clear_data' then task.progress else 0 end,
        records_processed = case task.task_type when 'clear_data' then task.records_processed else 0 end,
        records_total = case task.task_type when 'clear_data' then task.records_total end,
        batches = case task.task_type when 'clear_data' then task.batches else 0 end,
        rejects = 0
    where task.id = any (picked)
    returning task.*;
end $$;

alter function planet_waiting_sources(integer) set plan_cache_mode = force_generic_plan;
alter function planet_wake_sources(text[]) set plan_cache_mode = force_generic_plan;
alter function planet_complete_jobs(bigint[], bigint[]) set plan_cache_mode = force_generic_plan;
alter function planet_end_jobs(
    bigint[], bigint[], text[], text[], text[], text[], text[], boolean[], double precision[],
    double precision, double precision
) set plan_cache_mode = force_generic_plan;
