-- The job ledger. A plain `insert into collection_tasks (task_type, source)` is a runnable job.
create table collection_tasks (
    id bigint generated always as identity primary key,
    task_type text not null check (task_type in ('collect', 'clear_data', 'clear_cache', 'earth_refresh')),
    source text check (source <> ''),
    status text not null default 'queued'
        check (status in ('queued', 'running', 'cancelling', 'completed', 'failed', 'cancelled')),
    priority integer not null default 100,
    payload jsonb not null default '{}' check (jsonb_typeof(payload) = 'object'),
    progress double precision not null default 0 check (progress between 0 and 1),
    records_processed bigint not null default 0 check (records_processed >= 0),
    records_total bigint check (records_total >= 0),
    message text,
    error_code text,
    error text,
    attempts integer not null default 0 check (attempts >= 0),
    max_attempts integer not null default 3 check (max_attempts >= 1),
    idempotency_key text,
    worker_id text,
    lease_seq bigint not null default 0,
    lease_until timestamptz,
    heartbeat_at timestamptz,
    scheduled_at timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    started_at timestamptz,
    cancel_requested_at timestamptz,
    finished_at timestamptz,
    constraint collection_tasks_write_has_source
        check (source is not null or task_type in ('clear_cache', 'earth_refresh')),
    constraint collection_tasks_running_has_lease
        check (lease_until is not null or status not in ('running', 'cancelling'))
) with (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_cost_delay = 0
);

-- The law: one running write job a source. The claim never meets it in practice; whoever else writes does.
create unique index collection_tasks_one_write on collection_tasks (source)
    where status in ('running', 'cancelling') and task_type in ('collect', 'clear_data');
-- `lease_until` is in no index, so that heartbeats and progress stay HOT updates.
create index collection_tasks_running on collection_tasks (id) where status in ('running', 'cancelling');
create index collection_tasks_claim on collection_tasks (priority, id)
    where status = 'queued' and task_type in ('collect', 'clear_data');
create index collection_tasks_heads on collection_tasks (source, priority, id)
    where status = 'queued' and task_type in ('collect', 'clear_data');
create index collection_tasks_keyless on collection_tasks (priority, id)
    where status = 'queued' and task_type in ('clear_cache', 'earth_refresh');
create unique index collection_tasks_idempotency on collection_tasks (idempotency_key)
    where idempotency_key is not null;
create index collection_tasks_finished on collection_tasks (finished_at) where finished_at is not null;
create index collection_tasks_by_status on collection_tasks (status, id);
create index collection_tasks_by_source on collection_tasks (source, id);

-- Doorbells. NOTIFY takes a lock that every committing transaction of the server shares, so writers ring only
-- while somebody idle has asked for it by opening the channel's gate.
create table wakeup_gates (
    channel text primary key,
    open_until timestamptz not null
);

create function planet_ring(channel text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if exists (
        select from public.wakeup_gates gate
        where gate.channel = planet_ring.channel and gate.open_until > clock_timestamp()
    ) then
        perform pg_notify(planet_ring.channel, '');
    end if;
end $$;

create function planet_ring_tasks() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform public.planet_ring('planet_task_control');
    return null;
end $$;

create trigger collection_tasks_ring_new after insert on collection_tasks
    for each statement execute function planet_ring_tasks();
-- A column trigger: heartbeats and progress do not name the column, a cancel does.
create trigger collection_tasks_ring_cancel after update of cancel_requested_at on collection_tasks
    for each statement execute function planet_ring_tasks();

-- Claims up to `most` jobs for one worker: the heads of free sources, and jobs without a key, by (priority, id).
--
-- Right because: a claimer holds the source's advisory lock from before it reads the head until it commits, and
-- each statement of the function has its own snapshot, so the head is read after every earlier claim of the source
-- is visible. A head that somebody has locked is left alone together with its source: the next in line must not
-- pass it. The first `span` waiting rows are looked at; only if busy sources fill them, each waiting source is
-- visited once by its head.
create function planet_claim_jobs(worker text, types text[], most integer, lease interval)
returns setof collection_tasks
language plpgsql
    -- The ledger grows faster than its statistics: a plan made for an empty table must not outlive it.
    set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    span constant integer := 64;
    at constant timestamptz := clock_timestamp();
    waiting record;
    looked integer := 0;
    seen text[] := '{}';
    taken text[] := '{}';
begin
    for waiting in
        select task.source from public.collection_tasks task
        where task.status = 'queued' and task.task_type in ('collect', 'clear_data')
            and (task.scheduled_at is null or task.scheduled_at <= at)
        order by task.priority, task.id
        limit span
    loop
        exit when cardinality(taken) >= most;
        looked := looked + 1;
        continue when waiting.source = any (seen);
        seen := seen || waiting.source;
        continue when exists (
            select from public.collection_tasks busy
            where busy.source = waiting.source and busy.status in ('running', 'cancelling')
                and busy.task_type in ('collect', 'clear_data')
        );
        if pg_try_advisory_xact_lock(hashtextextended('planet_source:' || waiting.source, 0)) then
            taken := taken || waiting.source;
        end if;
    end loop;

    if cardinality(taken) < most and looked = span then
        for waiting in
            with recursive sources as (
                (select task.source from public.collection_tasks task
                 where task.status = 'queued' and task.task_type in ('collect', 'clear_data')
                 order by task.source limit 1)
                union all
                select (
                    select task.source from public.collection_tasks task
                    where task.status = 'queued' and task.task_type in ('collect', 'clear_data')
                        and task.source > sources.source
                    order by task.source limit 1)
                from sources where sources.source is not null
            )
            select sources.source from sources
            cross join lateral (
                select task.priority, task.id from public.collection_tasks task
                where task.source = sources.source and task.status = 'queued'
                    and task.task_type in ('collect', 'clear_data')
                    and (task.scheduled_at is null or task.scheduled_at <= at)
                order by task.priority, task.id limit 1
            ) head
            where sources.source <> all (seen)
                and not exists (
                    select from public.collection_tasks busy
                    where busy.source = sources.source and busy.status in ('running', 'cancelling')
                        and busy.task_type in ('collect', 'clear_data'))
            order by head.priority, head.id
        loop
            exit when cardinality(taken) >= most;
            if pg_try_advisory_xact_lock(hashtextextended('planet_source:' || waiting.source, 0)) then
                taken := taken || waiting.source;
            end if;
        end loop;
    end if;

    return query
    with heads as (
        select head.id, head.priority
        from unnest(taken) as free (source)
        cross join lateral (
            select task.id, task.priority, task.task_type from public.collection_tasks task
            where task.source = free.source and task.status = 'queued'
                and task.task_type in ('collect', 'clear_data')
                and (task.scheduled_at is null or task.scheduled_at <= at)
            order by task.priority, task.id limit 1
        ) head
        where head.task_type = any (types)
            and not exists (
                select from public.collection_tasks busy
                where busy.source = free.source and busy.status in ('running', 'cancelling')
                    and busy.task_type in ('collect', 'clear_data'))
    ), keyless as (
        select task.id, task.priority from public.collection_tasks task
        where task.status = 'queued' and task.task_type in ('clear_cache', 'earth_refresh')
            and task.task_type = any (types)
            and (task.scheduled_at is null or task.scheduled_at <= at)
        order by task.priority, task.id
        limit most
        for update skip locked
    ), picked as (
        select task.id from public.collection_tasks task
        where task.status = 'queued' and task.id in (
            select candidate.id
            from (select * from heads union all select * from keyless) candidate
            order by candidate.priority, candidate.id
            limit most)
        for update skip locked
    )
    update public.collection_tasks task set
        status = 'running',
        worker_id = worker,
        attempts = task.attempts + 1,
        lease_seq = task.lease_seq + 1,
        lease_until = clock_timestamp() + lease,
        heartbeat_at = clock_timestamp(),
        started_at = clock_timestamp(),
        finished_at = null,
        message = null,
        -- A clearing goes on where it was; a collection starts over.
        progress = case task.task_type when 'clear_data' then task.progress else 0 end,
        records_processed = case task.task_type when 'clear_data' then task.records_processed else 0 end,
        records_total = case task.task_type when 'clear_data' then task.records_total end
    from picked
    where task.id = picked.id
    returning task.*;
end $$;
