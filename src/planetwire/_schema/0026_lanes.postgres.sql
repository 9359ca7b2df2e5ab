-- What of a job's type matters to the ledger, said once: to add a type is a line here, and what follows asks for lanes.
--
--   fill   writes facts of its source, one job of a source at a time; a new try starts over
--   clear  deletes them, in turn with those; a new try goes on where the last one was, and what it deleted is audited
--   free   touches no facts, needs no source and waits for no job
--
-- To add a type changes no row that is there. To move one to another lane would: a row keeps its lane until it is
-- written again.
create function planet_task_lane(task_type text) returns text
language sql immutable
return case task_type
    when 'collect' then 'fill'
    when 'clear_data' then 'clear'
    when 'clear_cache' then 'free'
    when 'earth_refresh' then 'free'
end;

-- By a function, not by a `case` in the column: that could not be changed without writing the table anew once more.
alter table collection_tasks
    add column lane text generated always as (planet_task_lane(task_type)) stored
        constraint collection_tasks_type_is_known check (lane is not null)
        constraint collection_tasks_source_is_named check (source is not null or lane = 'free'),
    drop constraint collection_tasks_task_type_check,
    drop constraint collection_tasks_write_has_source;

-- In place of those that name types. `_one_write` stays: it is the law of one running job of the previous version too,
-- and a second unique index beside it would refuse what that version has to see refused by the first.
drop index collection_tasks_claim, collection_tasks_heads, collection_tasks_keyless;
create index collection_tasks_front on collection_tasks (priority, id) include (source)
    where status = 'queued' and parked is null and lane <> 'free';
create index collection_tasks_next on collection_tasks (source, (parked is distinct from 'time'), priority, id)
    where status = 'queued' and lane <> 'free';
create index collection_tasks_free on collection_tasks ((parked is distinct from 'time'), priority, id)
    where status = 'queued' and lane = 'free';
create index collection_tasks_busy on collection_tasks (source)
    where status in ('running', 'cancelling') and lane <> 'free';

-- From here on: functions and triggers as they were, by lane instead of by type.

-- Lets the next in line of each source be seen again. Any row of the source will do, since a claim always takes the
-- true head; rows that somebody else holds are passed, so that two wakers cannot wait for each other.
create or replace function planet_wake_sources(keys text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
    set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
    set plan_cache_mode = force_generic_plan as $$
begin
    update public.collection_tasks task set parked = null
    where task.parked = 'source' and task.status = 'queued' and task.id = any (array(
        select head.id from unnest(keys) as freed (source)
        cross join lateral (
            select next.parked from public.collection_tasks next
            where next.source = freed.source and next.status = 'queued'
                and next.parked is distinct from 'time' and next.lane <> 'free'
            order by next.priority, next.id
            limit 1
        ) next
        cross join lateral (
            select waiting.id from public.collection_tasks waiting
            where next.parked = 'source' and waiting.source = freed.source and waiting.status = 'queued'
                and waiting.parked is distinct from 'time' and waiting.lane <> 'free'
            order by waiting.priority, waiting.id
            limit 1
            for update skip locked
        ) head));
end $$;

create or replace trigger collection_tasks_wake_changed after update of status, source, task_type, scheduled_at
    on collection_tasks for each row
    when (old.lane <> 'free' and (
        old.status in ('running', 'cancelling') and new.status not in ('running', 'cancelling')
            and current_setting('planetwire.wakes', true) is distinct from 'together'
        or old.status = 'queued' and (
            new.status not in ('queued', 'running')
            or new.source is distinct from old.source
            or new.task_type is distinct from old.task_type
            or new.parked = 'time')))
    execute function planet_wake_after();

create or replace trigger collection_tasks_wake_deleted after delete on collection_tasks for each row
    when (old.lane <> 'free' and old.status in ('queued', 'running', 'cancelling'))
    execute function planet_wake_after();

create or replace trigger tr_collection_tasks_cleared after update of status on collection_tasks for each row
    when (new.lane = 'clear' and new.status in ('completed', 'failed', 'cancelled')
        and old.status not in ('completed', 'failed', 'cancelled'))
    execute function planet_note_cleared();

-- The sources that have write jobs waiting, if they are `few` at most, else null: looked up source by source.
create or replace function planet_waiting_sources(few integer) returns text[]
language plpgsql stable set search_path = pg_catalog, pg_temp
    set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
declare
    found text[] := array(
        with recursive names as (
            (select task.source from public.collection_tasks task
             where task.status = 'queued' and task.lane <> 'free'
             order by task.source limit 1)
            union all
            select (
                select task.source from public.collection_tasks task
                where task.status = 'queued' and task.lane <> 'free'
                    and task.source > names.source
                order by task.source limit 1)
            from names where names.source is not null
        )
        select names.source from names where names.source is not null limit few + 1);
begin
    return case when cardinality(found) <= few then found end;
end $$;

-- Takes up to `span` rows at the front out of the claim's index, those whose source is busy or paused; how many. None
-- while `few` sources wait: then a claim looks at each of them, which costs less than to park and wake every job.
-- The running (or pausing) row is held meanwhile: whoever ends it waits, and then finds what was parked here.
create or replace function planet_park_jobs(span integer, few integer) returns integer
language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    parked_now integer;
begin
    if public.planet_waiting_sources(few) is not null then
        return 0;
    end if;
    with front as materialized (
        select task.id, task.source from public.collection_tasks task
        where task.status = 'queued' and task.parked is null and task.lane <> 'free'
        order by task.priority, task.id
        limit span
    ), names as materialized (
        select distinct front.source from front
    ), busy as materialized (
        select run.source from names join public.collection_tasks run on run.source = names.source
        where run.status in ('running', 'cancelling') and run.lane <> 'free'
        for share of run skip locked
    ), paused as materialized (
        select pause.source from names join public.paused_sources pause on pause.source = names.source
        for share of pause skip locked
    ), held as materialized (
        select busy.source from busy union select paused.source from paused
    ), chosen as (
        select task.id from front
        join held on held.source = front.source
        join public.collection_tasks task on task.id = front.id
        where task.status = 'queued' and task.parked is null
        for update of task skip locked
    )
    update public.collection_tasks task set parked = 'source'
    from chosen where task.id = chosen.id;
    get diagnostics parked_now = row_count;
    return parked_now;
end $$;

-- Belt and braces: lets the head of every free source be seen again that nobody sees. Looks at up to `most` sources
-- after `beyond`; gives the last one looked at and how many were mended, which must be 0.
create or replace function planet_sweep_jobs(beyond text, most integer, out last_source text, out mended integer)
language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    key text := coalesce(beyond, '');
begin
    mended := 0;
    for step in 1 .. most loop
        select task.source into key from public.collection_tasks task
        where task.source > key and task.status = 'queued' and task.parked is distinct from 'time'
            and task.lane <> 'free'
        order by task.source limit 1;
        last_source := key;  -- null at the end: the next sweep begins anew
        exit when key is null;
        continue when exists (
            select from public.collection_tasks run
            where run.source = key and run.status in ('running', 'cancelling')
                and run.lane <> 'free');
        continue when exists (select from public.paused_sources pause where pause.source = key);
        continue when exists (
            select from public.collection_tasks seen
            where seen.source = key and seen.status = 'queued' and seen.parked is null
                and seen.lane <> 'free');
        if pg_try_advisory_xact_lock(hashtextextended('planet_source:' || key, 0)) then
            -- Once more, since a claim of the source may have committed between the looks above.
            if not exists (
                select from public.collection_tasks task
                where task.source = key and task.lane <> 'free'
                    and (task.status in ('running', 'cancelling') or task.status = 'queued' and task.parked is null))
            then
                perform public.planet_wake_sources(array[key]);
                mended := mended + 1;
            end if;
        end if;
    end loop;
end $$;

-- The two ways jobs end, many at once, and the heartbeat. Each row is found by its id whatever the statistics say
-- (`|| ''`: not by the index of what runs): that is full of dead entries while an old transaction is open. Sources
-- that get free are woken together at the end.
create or replace function planet_complete_jobs(ids bigint[], seqs bigint[]) returns table (task_id bigint, seq bigint)
language plpgsql set search_path = pg_catalog, pg_temp
    set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
    set plan_cache_mode = force_generic_plan as $$
begin
    perform set_config('planetwire.wakes', 'together', true);
    return query
    update public.collection_tasks task set
        status = 'completed',
        progress = 1,
        error_code = null,
        error = null,
        lease_until = null,
        deadline_at = null,
        finished_at = clock_timestamp()
    where task.id = any (ids) and task.lease_seq = seqs[array_position(ids, task.id)]
        and task.status || '' in ('running', 'cancelling')
    returning task.id, task.lease_seq;
    perform set_config('planetwire.wakes', '', true);
    perform public.planet_wake_sources(array(
        select distinct task.source from public.collection_tasks task
        where task.id = any (ids) and task.lane <> 'free'));
end $$;

create or replace function planet_end_jobs(
    ids bigint[], seqs bigint[], wishes text[], messages text[], codes text[], texts text[], samples text[],
    again boolean[], least_s double precision[], retry_s double precision, retry_max_s double precision
) returns table (task_id bigint, seq bigint)
language plpgsql set search_path = pg_catalog, pg_temp
    set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
    set plan_cache_mode = force_generic_plan as $$
begin
    perform set_config('planetwire.wakes', 'together', true);
    return query
    update public.collection_tasks task set
        status = public.planet_end_status(ending.wish, ending.again, task.status, task.attempts, task.max_attempts),
        progress = case when ending.wish = 'completed' then 1 else task.progress end,
        message = coalesce(ending.message, task.message),
        error_code = case when ending.wish = 'failed' and task.status = 'running' then ending.code end,
        error = case when ending.wish = 'failed' and task.status = 'running' then ending.error end,
        sample = coalesce(ending.sample, task.sample),
        lease_until = null,
        deadline_at = null,
        worker_id = case public.planet_end_status(ending.wish, ending.again, task.status, task.attempts, task.max_attempts)
            when 'queued' then null else task.worker_id end,
        scheduled_at = case public.planet_end_status(ending.wish, ending.again, task.status, task.attempts, task.max_attempts)
            when 'queued' then clock_timestamp() + make_interval(secs => greatest(ending.least_s,
                least(retry_max_s, retry_s * power(2, least(task.attempts - 1, 30)))
                * (0.75 + random() * 0.5)))
            else task.scheduled_at end,
        finished_at = case public.planet_end_status(ending.wish, ending.again, task.status, task.attempts, task.max_attempts)
            when 'queued' then null else clock_timestamp() end
    from unnest(
        ids, seqs, wishes, messages, codes, texts, samples, again, least_s
    ) as ending (id, seq, wish, message, code, error, sample, again, least_s)
    where task.id = any (ids) and task.id = ending.id and task.lease_seq = ending.seq
        and task.status || '' in ('running', 'cancelling')
    returning task.id, task.lease_seq;
    perform set_config('planetwire.wakes', '', true);
    perform public.planet_wake_sources(array(
        select distinct task.source from public.collection_tasks task
        where task.id = any (ids) and task.lane <> 'free'));
end $$;

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
    -- The ledger grows faster than its statistics: a plan made for an empty table must not outlive it. But a plan is kept
    -- (here and above) until statistics or tables change: to make it anew took longer than a claim.
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
            where task.status = 'queued' and task.parked is null and task.lane <> 'free'
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
                            and busy.lane <> 'free' limit 1) is null
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
                        and task.parked is distinct from 'time' and task.lane <> 'free'
                    order by task.priority, task.id limit 1
                ) head
                where names.source <> all (seen)
                    and (select true from public.collection_tasks busy
                        where busy.source = names.source and busy.status in ('running', 'cancelling')
                            and busy.lane <> 'free' limit 1) is null
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
                and head.lane <> 'free'
            order by head.priority, head.id limit 1
        ) head
        join public.collection_tasks task on task.id = head.id
        where head.task_type = any (types) and task.status = 'queued'
            -- Asked source by source: as an anti join it would read all that runs, the dead included.
            and (select true from public.collection_tasks busy
                where busy.source = free.source and busy.status in ('running', 'cancelling')
                    and busy.lane <> 'free' limit 1) is null
        for update of task skip locked
    ), keyless as (
        select task.id, task.priority from public.collection_tasks task
        where task.status = 'queued' and task.parked is distinct from 'time'
            and task.lane = 'free' and task.task_type = any (types)
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
        phase = case task.lane when 'fill' then 'fetch' when 'clear' then 'clear' else 'hint' end,
        sample = null,
        -- A clearing goes on where it was; a collection starts over.
        progress = case task.lane when 'clear' then task.progress else 0 end,
        records_processed = case task.lane when 'clear' then task.records_processed else 0 end,
        records_total = case task.lane when 'clear' then task.records_total end,
        batches = case task.lane when 'clear' then task.batches else 0 end,
        rejects = 0
    where task.id = any (picked)
    returning task.*;
end $$;

-- One page of the ledger, newest first, each filter by its own index: the plan is made for the values at hand.
create or replace function planet_job_page(
    wanted_status text, wanted_source text, before_id bigint, most integer, unretried boolean default false
) returns setof collection_tasks
language plpgsql stable
    -- In the order of an index, never all of a filter's rows to be sorted for a page of them.
    set search_path = pg_catalog, pg_temp set plan_cache_mode = force_custom_plan
    set enable_sort = off set enable_bitmapscan = off set enable_seqscan = off as $$
begin
    if wanted_source is not null and (wanted_status is null or wanted_status in ('queued', 'running', 'cancelling')) then
        return query
        select page.* from (
            (select task.* from public.collection_tasks task
             where task.source = wanted_source and task.finished_at is not null and wanted_status is null
                and (before_id is null or task.id < before_id)
             order by task.id desc limit most)
            union all
            (select task.* from public.collection_tasks task
             where task.source = wanted_source and task.status in ('running', 'cancelling') and task.lease_seq >= 0
                and (wanted_status is null or task.status = wanted_status)
                and (before_id is null or task.id < before_id)
             order by task.id desc limit most)
            union all
            -- `+ 0`: what the source has waiting is found by the source, and then sorted.
            (select waiting.* from (
                select task.* from public.collection_tasks task
                where task.source = wanted_source and task.status = 'queued'
                    and task.parked is distinct from 'time' and task.lane <> 'free'
                union all
                select task.* from public.collection_tasks task
                where task.source = wanted_source and task.status = 'queued'
                    and not (task.parked is distinct from 'time') and task.lane <> 'free'
                union all
                select task.* from public.collection_tasks task
                where task.source = wanted_source and task.status = 'queued'
                    and task.lane = 'free'
             ) waiting
             where (wanted_status is null or wanted_status = 'queued') and (before_id is null or waiting.id < before_id)
             order by waiting.id + 0 desc limit most)
        ) page
        order by page.id desc limit most;
    else
        return query
        select task.* from public.collection_tasks task
        where (wanted_status is null or task.status = wanted_status)
            and (wanted_source is null or task.source = wanted_source)
            and (wanted_status is null or wanted_status not in ('completed', 'failed', 'cancelled')
                or task.finished_at is not null)
            and (wanted_status is null or wanted_status not in ('running', 'cancelling') or task.lease_seq >= 0)
            and (not unretried or task.retried_as is null)
            and (before_id is null or task.id < before_id)
        order by task.id desc limit most;
    end if;
end $$;

-- How many run, wait and are dead, each counted up to `most`: by their indexes, not through a long history.
create or replace function planet_job_counts(most integer, out running bigint, out queued bigint, out dead bigint)
language plpgsql stable
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
begin
    select count(*) into running from (
        select from public.collection_tasks
        where status in ('running', 'cancelling') and lease_seq >= 0 limit most) capped;
    select count(*) into queued from (
        (select from public.collection_tasks
         where status = 'queued' and lane <> 'free' limit most)
        union all
        (select from public.collection_tasks
         where status = 'queued' and lane = 'free' limit most)
        limit most) capped;
    select count(*) into dead from (
        select from public.collection_tasks where status = 'failed' and retried_as is null limit most) capped;
end $$;
