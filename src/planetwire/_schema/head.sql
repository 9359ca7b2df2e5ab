-- What the migrations of PostgreSQL add up to. Written by `make schema`; a test compares.

CREATE FUNCTION public.facts_void_state() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if tg_op = 'TRUNCATE' then
        update public.datasources set facts_deleted_at = clock_timestamp();
    else
        with hit as (
            select state.source from public.datasources state
            where state.source in (select distinct old_rows.source from old_rows)
                and state.source is distinct from current_setting('planetwire.sweep', true)
            order by state.source
            for update
        )
        update public.datasources state set facts_deleted_at = clock_timestamp()
        from hit where state.source = hit.source;
    end if;
    return null;
end $$;

CREATE FUNCTION public.planet_audit_append_only() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    if tg_op = 'DELETE' and current_setting('planetwire.audit_prune', true) = 'on' then
        return null;
    end if;
    raise exception 'audit_log is append-only' using errcode = 'insufficient_privilege';
end $$;

CREATE FUNCTION public.planet_beat_jobs(ids bigint[], seqs bigint[], lease interval, deadline_grace interval, cancel_grace interval) RETURNS TABLE(task_id bigint, status text)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
begin
    -- A beat that a crash of the server forgets costs nothing, so its commit waits for no disk.
    perform set_config('synchronous_commit', 'off', true);
    return query
    update public.collection_tasks task set
        lease_until = least(clock_timestamp() + lease, task.deadline_at + deadline_grace,
            case when task.status = 'cancelling' then task.cancel_requested_at + cancel_grace end),
        heartbeat_at = clock_timestamp()
    where task.id = any (ids) and task.lease_seq = seqs[array_position(ids, task.id)]
        and task.status || '' in ('running', 'cancelling')
    returning task.id, task.status;
end $$;

CREATE FUNCTION public.planet_task_lane(task_type text) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN CASE task_type WHEN 'collect'::text THEN 'fill'::text WHEN 'clear_data'::text THEN 'clear'::text WHEN 'clear_cache'::text THEN 'free'::text WHEN 'earth_refresh'::text THEN 'free'::text ELSE NULL::text END;

CREATE TABLE public.collection_tasks (
    id bigint NOT NULL,
    task_type text NOT NULL,
    source text,
    status text DEFAULT 'queued'::text NOT NULL,
    priority integer DEFAULT 100 NOT NULL,
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    progress double precision DEFAULT 0 NOT NULL,
    records_processed bigint DEFAULT 0 NOT NULL,
    records_total bigint,
    message text,
    error_code text,
    error text,
    attempts integer DEFAULT 0 NOT NULL,
    max_attempts integer DEFAULT 3 NOT NULL,
    idempotency_key text,
    worker_id text,
    lease_seq bigint DEFAULT 0 NOT NULL,
    lease_until timestamp with time zone,
    heartbeat_at timestamp with time zone,
    scheduled_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    started_at timestamp with time zone,
    cancel_requested_at timestamp with time zone,
    finished_at timestamp with time zone,
    parked text,
    phase text,
    batches integer DEFAULT 0 NOT NULL,
    rejects bigint DEFAULT 0 NOT NULL,
    sample text,
    deadline_at timestamp with time zone,
    retried_as bigint,
    lane text GENERATED ALWAYS AS (public.planet_task_lane(task_type)) STORED,
    CONSTRAINT collection_tasks_attempts_check CHECK ((attempts >= 0)),
    CONSTRAINT collection_tasks_batches_check CHECK ((batches >= 0)),
    CONSTRAINT collection_tasks_max_attempts_check CHECK ((max_attempts >= 1)),
    CONSTRAINT collection_tasks_parked_check CHECK ((parked = ANY (ARRAY['source'::text, 'time'::text]))),
    CONSTRAINT collection_tasks_payload_check CHECK ((jsonb_typeof(payload) = 'object'::text)),
    CONSTRAINT collection_tasks_progress_check CHECK (((progress >= (0)::double precision) AND (progress <= (1)::double precision))),
    CONSTRAINT collection_tasks_records_processed_check CHECK ((records_processed >= 0)),
    CONSTRAINT collection_tasks_records_total_check CHECK ((records_total >= 0)),
    CONSTRAINT collection_tasks_rejects_check CHECK ((rejects >= 0)),
    CONSTRAINT collection_tasks_running_has_lease CHECK (((lease_until IS NOT NULL) OR (status <> ALL (ARRAY['running'::text, 'cancelling'::text])))),
    CONSTRAINT collection_tasks_source_check CHECK ((source <> ''::text)),
    CONSTRAINT collection_tasks_source_is_named CHECK (((source IS NOT NULL) OR (lane = 'free'::text))),
    CONSTRAINT collection_tasks_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'running'::text, 'cancelling'::text, 'completed'::text, 'failed'::text, 'cancelled'::text]))),
    CONSTRAINT collection_tasks_type_is_known CHECK ((lane IS NOT NULL))
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.01', autovacuum_analyze_scale_factor='0.02', autovacuum_vacuum_cost_delay='0');

CREATE FUNCTION public.planet_claim_jobs(worker text, types text[], deadlines double precision[], most integer, lease interval, floor_priority integer, floor_id bigint, few integer) RETURNS SETOF public.collection_tasks
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
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

CREATE FUNCTION public.planet_clear_chunk(target text, wanted_source text, most integer) RETURNS bigint
    LANGUAGE plpgsql
    AS $_$
declare
    edge text;
    gone bigint;
begin
    loop
        execute format(
            'select max(id)::text from (select id from public.%I where source = $1 order by id limit $2) head', target)
            into edge using wanted_source, most;
        if edge is null then
            return 0;
        end if;
        execute format('delete from public.%I where source = $1 and id <= %L', target, edge) using wanted_source;
        get diagnostics gone = row_count;
        -- Somebody else deleted the same rows between the two statements: look again.
        if gone > 0 then
            return gone;
        end if;
    end loop;
end $_$;

CREATE FUNCTION public.planet_complete_jobs(ids bigint[], seqs bigint[]) RETURNS TABLE(task_id bigint, seq bigint)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
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

CREATE FUNCTION public.planet_count_rows(target text, wanted_source text) RETURNS bigint
    LANGUAGE plpgsql STABLE
    AS $_$
declare
    found_rows bigint;
begin
    execute format('select count(*) from public.%I where source = $1', target) into found_rows using wanted_source;
    return found_rows;
end $_$;

CREATE FUNCTION public.planet_declared_changed() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    before bigint;
    counted integer;
    known integer;
begin
    select head.revision, head.sources into before, counted from public.declared_sources_head head for update;
    select count(*) into known from public.declared_sources;
    if known = counted and not exists (select from public.declared_sources where revision > before) then
        return null;
    end if;
    update public.declared_sources_head set revision = before + 1, sources = known;
    insert into public.datasources (source, facts_deleted_at)
    select name, clock_timestamp() from public.declared_sources where revision > before order by name
    on conflict (source) do update set
        facts_deleted_at = excluded.facts_deleted_at, next_run_at = null, tick_at = null, retry_at = null, failures = 0;
    perform pg_notify('planet_declared_sources', '');
    return null;
end $$;

CREATE FUNCTION public.planet_declared_stamp() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if tg_op = 'UPDATE' then
        if new.name <> old.name then
            raise exception 'a declared source keeps its name' using errcode = 'check_violation',
                hint = 'insert it under the other name and delete this one';
        end if;
        if (new.text, new.enabled, new.origin) is not distinct from (old.text, old.enabled, old.origin) then
            return old;
        end if;
    end if;
    select head.revision + 1 into new.revision from public.declared_sources_head head for update;
    new.changed_at := clock_timestamp();
    new.changed_by := left(coalesce(nullif(current_setting('planetwire.who', true), ''), session_user), 200);
    new.sha256 := encode(sha256(convert_to(new.text, 'UTF8')), 'hex');
    return new;
end $$;

CREATE FUNCTION public.planet_derive_inserted() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if (select count(*) from (select from new_rows limit 501) counted) <= 500 then
        insert into public.derived_pending (source, fact_key) select n.source, n.external_key from new_rows n;
    else
        insert into public.derived_pending (source) select distinct n.source from new_rows n;
    end if;
    return null;
end $$;

CREATE FUNCTION public.planet_derive_updated() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if (select count(*) from (select from new_rows limit 501) counted) <= 500 then
        insert into public.derived_pending (source, fact_key)
        select n.source, n.external_key
        from new_rows n left join old_rows o on o.id = n.id
        where (o.source, o.external_key, o.kind, o.title, o.data, o.lat, o.lon, o.observed_at, o.valid_until)
            is distinct from
            (n.source, n.external_key, n.kind, n.title, n.data, n.lat, n.lon, n.observed_at, n.valid_until);
    else
        insert into public.derived_pending (source) select distinct n.source from new_rows n;
    end if;
    return null;
end $$;

CREATE FUNCTION public.planet_derived_follow() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
begin
    delete from public.satellite_orbits d using old_rows o where d.source = o.source and d.fact_key = o.external_key;
    delete from public.resolved_locations d using old_rows o where d.source = o.source and d.fact_key = o.external_key;
    delete from public.earth_interactables d using old_rows o where d.source = o.source and d.fact_key = o.external_key;
    return null;
end $$;

CREATE FUNCTION public.planet_derived_rename() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    delete from public.satellite_orbits d where d.source = old.source and d.fact_key = old.external_key;
    delete from public.resolved_locations d where d.source = old.source and d.fact_key = old.external_key;
    delete from public.earth_interactables d where d.source = old.source and d.fact_key = old.external_key;
    return null;
end $$;

CREATE FUNCTION public.planet_derived_truncate() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    derived text;
    filled boolean;
begin
    foreach derived in array array['satellite_orbits', 'resolved_locations', 'earth_interactables'] loop
        execute format('select exists (select from public.%I)', derived) into filled;
        if filled then
            execute format('truncate public.%I', derived);
        end if;
    end loop;
    return null;
end $$;

CREATE FUNCTION public.planet_end_jobs(ids bigint[], seqs bigint[], wishes text[], messages text[], codes text[], texts text[], samples text[], again boolean[], least_s double precision[], retry_s double precision, retry_max_s double precision) RETURNS TABLE(task_id bigint, seq bigint)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
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

CREATE FUNCTION public.planet_end_status(wanted text, again boolean, status text, attempts integer, max_attempts integer) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    select case
        when wanted = 'failed' and status = 'cancelling' then 'cancelled'
        when wanted = 'failed' and again and attempts < max_attempts then 'queued'
        else wanted
    end
$$;

CREATE FUNCTION public.planet_follow_drops() RETURNS event_trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if not exists (
        select from public.earth_watched_relations known
        join pg_event_trigger_dropped_objects() dropped on dropped.objid = known.relation::oid
        where dropped.classid = 'pg_class'::regclass)
    then
        return;
    end if;
    with gone as (
        delete from public.earth_watched_relations known
        using pg_event_trigger_dropped_objects() dropped
        where dropped.classid = 'pg_class'::regclass and dropped.objid = known.relation::oid
        returning known.reported
    )
    insert into public.earth_data_change_events (table_name, operation, source, records_processed)
    select distinct gone.reported, 'DELETE', null::text, 0 from gone;
    if found then
        perform public.planet_ring('planet_earth_data_changes');
    end if;
exception when others then
    raise warning 'planetwire could not follow a dropped table, see `planetwire doctor`: %', sqlerrm;
end $$;

CREATE FUNCTION public.planet_follow_tables() RETURNS event_trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    found_one record;
    event text;
begin
    for found_one in
        select tree.relation, tree.kind, roots.reported, tree.relation = roots.root as is_root
        from public.planet_watched_roots() roots cross join public.planet_tree(roots.root) tree
        where not exists (select from public.earth_watched_relations known where known.relation = tree.relation)
    loop
        if found_one.is_root then -- whoever puts triggers on a table may not be through with it
            insert into public.earth_watched_relations values (found_one.relation, found_one.reported)
            on conflict do nothing;
            continue;
        end if;
        perform public.planet_watch_relation(found_one.relation, found_one.reported);
        if found_one.kind = 'r' then
            perform public.planet_note_relation(found_one.relation, found_one.reported, 'INSERT');
        end if;
    end loop;
    for found_one in
        select known.relation, known.reported, class.relkind as kind
        from public.earth_watched_relations known join pg_class class on class.oid = known.relation
        where class.relname <> known.reported and not exists (
            select from public.planet_watched_roots() roots cross join public.planet_tree(roots.root) tree
            where roots.reported = known.reported and tree.relation = known.relation)
    loop
        delete from public.earth_watched_relations known where known.relation = found_one.relation;
        foreach event in array array['insert', 'update', 'delete', 'truncate'] loop
            execute format('drop trigger if exists %I on %s',
                public.planet_trigger_name(found_one.relation, event), found_one.relation);
        end loop;
        if found_one.kind = 'r' then
            perform public.planet_note_relation(found_one.relation, found_one.reported, 'DELETE');
        end if;
    end loop;
exception when others then
    raise warning 'planetwire could not follow a change of tables, see `planetwire doctor`: %', sqlerrm;
end $$;

CREATE FUNCTION public.planet_install_hooks() RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if not exists (select from pg_event_trigger where evtname = 'planet_follow_tables') then
        create event trigger planet_follow_tables on ddl_command_end
            when tag in ('CREATE TABLE', 'ALTER TABLE') execute function public.planet_follow_tables();
    end if;
    if not exists (select from pg_event_trigger where evtname = 'planet_follow_drops') then
        create event trigger planet_follow_drops on sql_drop
            when tag in ('DROP TABLE', 'DROP SCHEMA', 'DROP OWNED') execute function public.planet_follow_drops();
    end if;
    alter event trigger planet_follow_tables enable always;
    alter event trigger planet_follow_drops enable always;
    insert into public.earth_watched_relations select root, reported from public.planet_watched_roots()
    on conflict do nothing;
    return true;
exception when insufficient_privilege then
    return false;
end $$;

CREATE FUNCTION public.planet_is_watched(target regclass, reported text, event text) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select exists (
        select from pg_trigger
        where tgrelid = target and tgname = public.planet_trigger_name(target, event) and tgenabled = 'A'
            and tgfoid = to_regprocedure('public.planet_note_' || event || '()')
            and tgargs = convert_to(reported, getdatabaseencoding()) || '\x00'::bytea)
$$;

CREATE FUNCTION public.planet_job_counts(most integer, OUT running bigint, OUT queued bigint, OUT dead bigint) RETURNS record
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
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

CREATE FUNCTION public.planet_job_page(wanted_status text, wanted_source text, before_id bigint, most integer, unretried boolean DEFAULT false) RETURNS SETOF public.collection_tasks
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    SET enable_sort TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
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

CREATE FUNCTION public.planet_note_cleared() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into public.audit_log (who, role, address, what, task_id, source, rows_deleted, details)
    select coalesce(asked.who, 'database'), coalesce(asked.role, 'admin'), coalesce(asked.address, ''),
        'data.cleared', new.id, new.source, new.records_processed, jsonb_build_object('status', new.status)
    from (select) as one
    left join lateral (
        select who, role, address from public.audit_log where task_id = new.id and what = 'job.submitted' order by id limit 1
    ) asked on true;
    return null;
end $$;

CREATE FUNCTION public.planet_note_delete() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if tg_argv[0] = 'earth_interactables' then
        insert into public.earth_data_change_events (table_name, operation, source, records_processed, row_ids)
        select tg_argv[0], 'DELETE', touched.source, touched.n,
            case when touched.n <= 500 then
                (select jsonb_agg(r.id order by r.id) from old_rows r where r.source = touched.source) end
        from (select r.source, count(*) as n from old_rows r group by r.source) touched;
    else
        insert into public.earth_data_change_events (table_name, operation, source, records_processed)
        select tg_argv[0], 'DELETE', r.source, count(*) from old_rows r group by r.source;
    end if;
    if found then
        perform public.planet_ring('planet_earth_data_changes');
    end if;
    return null;
end $$;

CREATE FUNCTION public.planet_note_hint() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    perform public.planet_ring('planet_earth_data_changes');
    return null;
end $$;

CREATE FUNCTION public.planet_note_insert() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if tg_argv[0] = 'earth_interactables' then
        insert into public.earth_data_change_events (table_name, operation, source, records_processed, row_ids)
        select tg_argv[0], 'INSERT', touched.source, touched.n,
            case when touched.n <= 500 then
                (select jsonb_agg(r.id order by r.id) from new_rows r where r.source = touched.source) end
        from (select r.source, count(*) as n from new_rows r group by r.source) touched;
    else
        insert into public.earth_data_change_events (table_name, operation, source, records_processed)
        select tg_argv[0], 'INSERT', r.source, count(*) from new_rows r group by r.source;
    end if;
    if found then
        perform public.planet_ring('planet_earth_data_changes');
    end if;
    return null;
end $$;

CREATE FUNCTION public.planet_note_relation(target regclass, reported text, operation text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    n bigint;
begin
    execute format('select count(*) from (select from only %s limit 1000000) counted', target) into n;
    if n > 0 then
        insert into public.earth_data_change_events (table_name, operation, source, records_processed)
        values (reported, operation, null, n);
        perform public.planet_ring('planet_earth_data_changes');
    end if;
end $$;

CREATE FUNCTION public.planet_note_truncate() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    n bigint;
begin
    execute format('select count(*) from (select from %I.%I limit 1000000) counted', tg_table_schema, tg_table_name)
        into n;
    if n = 0 and current_setting('transaction_isolation') = 'read committed' then
        return null;
    end if;
    insert into public.earth_data_change_events (table_name, operation, source, records_processed)
    values (tg_argv[0], 'DELETE', null, n);
    perform public.planet_ring('planet_earth_data_changes');
    return null;
end $$;

CREATE FUNCTION public.planet_note_update() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_mergejoin TO 'off'
    AS $_$ -- two sorts cost more than one hash table
declare
    telling text;
    noted bigint := 0;
begin
    if exists (select from new_rows offset 999) then
        execute public.planet_telling_query(tg_relid) into telling;
    end if;
    if telling is not null then
        execute format(
            'insert into public.earth_data_change_events (table_name, operation, source, records_processed)'
            ' with counted as ('
            ' select n.source, count(*) as n,'
            ' count(*) filter (where o.%1$I is distinct from n.%1$I and o.source = n.source) as told'
            ' from old_rows o full join new_rows n on n.id = o.id group by n.source)'
            ' select $1, ''UPDATE'', source, n from counted'
            ' where (select bool_and(told = n and n > $2) from counted)', telling)
            using tg_argv[0], case tg_argv[0] when 'earth_interactables' then 500 else 0 end;
        get diagnostics noted = row_count;
    end if;
    if noted = 0 and tg_argv[0] = 'earth_interactables' then
        insert into public.earth_data_change_events (table_name, operation, source, records_processed, row_ids)
        with changed as (
            select o.id::text as old_id, n.id::text as new_id, o.source as old_source, n.source as new_source
            from old_rows o full join new_rows n on n.id = o.id
            where o.id is null or n.id is null or o *<> n
        ), touched as (
            select 'DELETE' as operation, old_source as source, old_id as id from changed where new_id is null
            union all
            select 'UPDATE', old_source, old_id from changed where new_source is distinct from old_source
                and old_source is not null and new_id is not null
            union all
            select 'UPDATE', new_source, new_id from changed where new_id is not null
        ), counted as (
            select operation, source, count(*) as n from touched group by operation, source
        )
        select tg_argv[0], counted.operation, counted.source, counted.n,
            case when counted.n <= 500 then (
                select jsonb_agg(t.id order by t.id) from touched t
                where t.source = counted.source and t.operation = counted.operation) end
        from counted
        order by counted.operation; -- an id that came back later wins over its removal
        get diagnostics noted = row_count;
    elsif noted = 0 then
        insert into public.earth_data_change_events (table_name, operation, source, records_processed)
        with changed as (
            select o.source as old_source, n.source as new_source
            from old_rows o full join new_rows n on n.id = o.id
            where o.id is null or n.id is null or o *<> n
        )
        select tg_argv[0], 'UPDATE', touched.source, count(*)
        from (
            select old_source as source from changed where old_source is not null
            union all
            select new_source from changed where new_source is distinct from old_source and new_source is not null
        ) touched
        group by touched.source;
        get diagnostics noted = row_count;
    end if;
    if noted > 0 then
        perform public.planet_ring('planet_earth_data_changes');
    end if;
    return null;
end $_$;

CREATE FUNCTION public.planet_park_jobs(span integer, few integer) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
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

CREATE FUNCTION public.planet_park_until_due() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    new.parked := case when new.scheduled_at > clock_timestamp() then 'time' end;
    return new;
end $$;

CREATE FUNCTION public.planet_prune_audit(kept interval, most integer) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
declare
    gone bigint;
begin
    perform set_config('planetwire.audit_prune', 'on', true);
    delete from public.audit_log where id in (
        select id from public.audit_log where at < clock_timestamp() - kept order by at limit most for update skip locked);
    get diagnostics gone = row_count;
    perform set_config('planetwire.audit_prune', '', true);
    return gone;
end $$;

CREATE FUNCTION public.planet_refresh_view(target regclass) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    n bigint;
begin
    execute format('refresh materialized view %s', target);
    execute format('select count(*) from (select from %s limit 1000000) counted', target) into n;
    insert into public.earth_data_change_events (table_name, operation, source, records_processed)
    select relname, 'UPDATE', null, n from pg_class where oid = target;
    perform public.planet_ring('planet_earth_data_changes');
end $$;

CREATE FUNCTION public.planet_ring(channel text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if exists (
        select from public.wakeup_gates gate
        where gate.channel = planet_ring.channel and gate.open_until > clock_timestamp()
    ) then
        perform pg_notify(planet_ring.channel, '');
    end if;
end $$;

CREATE FUNCTION public.planet_ring_tasks() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    perform public.planet_ring('planet_task_control');
    return null;
end $$;

CREATE FUNCTION public.planet_sweep_jobs(beyond text, most integer, OUT last_source text, OUT mended integer) RETURNS record
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
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

CREATE FUNCTION public.planet_telling_query(target oid) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
    select coalesce('select coalesce(' || string_agg(
            format('case when bool_and(o.%1$I is distinct from n.%1$I) then %1$L end', attname),
            ', ' order by attlen < 0, attnum)
        || ', null) from (select * from old_rows limit 10) o'
        || ' full join (select * from new_rows limit 10) n on n.id = o.id', 'select null::text')
    from pg_attribute
    where attrelid = target and attnum > 0 and not attisdropped and attgenerated = ''
        and attname not in ('id', 'source')
        and atttypid = any (array['bool', 'int2', 'int4', 'int8', 'float4', 'float8', 'numeric', 'date', 'timestamp',
            'timestamptz', 'text', 'varchar', 'uuid', 'jsonb']::regtype[])
$_$;

CREATE FUNCTION public.planet_tree(root regclass) RETURNS TABLE(relation regclass, kind "char")
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    with recursive tree as (
        select root::oid as oid
        union
        select child.inhrelid from pg_inherits child join tree on tree.oid = child.inhparent
    )
    select tree.oid::regclass, class.relkind
    from tree join pg_class class on class.oid = tree.oid
    where class.relkind in ('r', 'p')
$$;

CREATE FUNCTION public.planet_trigger_name(target regclass, event text) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    label text;
begin
    select relname into label from pg_class where oid = target;
    -- A name has 63 bytes, of which the words around the label take 27.
    while octet_length(label) > 36 loop
        label := left(label, -1);
    end loop;
    return format('tr_planet_%s_changed_%s', label, event);
end $$;

CREATE FUNCTION public.planet_unpark() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    new.parked := null;
    return new;
end $$;

CREATE FUNCTION public.planet_waiting_sources(few integer) RETURNS text[]
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
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

CREATE FUNCTION public.planet_wake_after() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    perform public.planet_wake_sources(array[old.source]);
    return null;
end $$;

CREATE FUNCTION public.planet_wake_sources(keys text[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
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

CREATE FUNCTION public.planet_watch_relation(target regclass, reported text) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    event text;
    name text;
    made integer := 0;
begin
    insert into public.earth_watched_relations values (target, planet_watch_relation.reported)
    on conflict (relation) do update set reported = excluded.reported
    where earth_watched_relations.reported <> excluded.reported;
    foreach event in array array['insert', 'update', 'delete', 'truncate'] loop
        continue when public.planet_is_watched(target, reported, event);
        name := public.planet_trigger_name(target, event);
        execute format(
            'create or replace trigger %I %s on %s %s for each statement execute function public.planet_note_%s(%L)',
            name, case event when 'truncate' then 'before truncate' else 'after ' || event end, target,
            case event
                when 'insert' then 'referencing new table as new_rows'
                when 'update' then 'referencing old table as old_rows new table as new_rows'
                when 'delete' then 'referencing old table as old_rows'
                else ''
            end, event, reported);
        execute format('alter table %s enable always trigger %I', target, name);
        made := made + 1;
    end loop;
    return made;
end $$;

CREATE FUNCTION public.planet_watch_tree(root regclass) RETURNS integer
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select coalesce(sum(public.planet_watch_relation(tree.relation, class.relname)), 0)::integer
    from pg_class class cross join public.planet_tree(root) tree
    where class.oid = root
$$;

CREATE FUNCTION public.planet_watched_roots() RETURNS TABLE(root regclass, reported text)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select class.oid::regclass, class.relname::text
    from pg_trigger join pg_class class on class.oid = tgrelid
    where tgfoid = 'public.planet_note_insert()'::regprocedure
        and tgargs = convert_to(class.relname, getdatabaseencoding()) || '\x00'::bytea
$$;

CREATE FUNCTION public.planet_words(value text) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN array_remove(string_to_array(lower(regexp_replace("left"(value, 500), '[^[:alnum:]]+'::text, ' '::text, 'g'::text)), ' '::text), ''::text);

CREATE TABLE public.audit_log (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    who text NOT NULL,
    role text NOT NULL,
    address text NOT NULL,
    what text NOT NULL,
    task_id bigint,
    source text,
    rows_deleted bigint,
    details jsonb DEFAULT '{}'::jsonb NOT NULL,
    carried text,
    CONSTRAINT audit_log_details_check CHECK (((jsonb_typeof(details) = 'object'::text) AND (length((details)::text) <= 8192)))
);

ALTER TABLE public.audit_log ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.audit_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.change_outlet_cursors (
    outlet text NOT NULL,
    layer text NOT NULL,
    epoch text NOT NULL,
    revision bigint NOT NULL,
    sent_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    next_attempt_at timestamp with time zone,
    paused_at timestamp with time zone,
    last_error text
)
WITH (fillfactor='50');

CREATE TABLE public.change_outlets (
    outlet text NOT NULL,
    term bigint DEFAULT 0 NOT NULL,
    holder text,
    expires_at timestamp with time zone
)
WITH (fillfactor='50');

CREATE TABLE public.collected_data (
    id bigint NOT NULL,
    source text NOT NULL,
    external_key text NOT NULL,
    kind text NOT NULL,
    title text DEFAULT ''::text NOT NULL,
    data jsonb DEFAULT '{}'::jsonb NOT NULL,
    lat double precision,
    lon double precision,
    observed_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    collected_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    valid_until timestamp with time zone,
    task_id bigint
);

ALTER TABLE public.collected_data ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.collected_data_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE public.collection_tasks ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.collection_tasks_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.datasources (
    source text NOT NULL,
    enabled boolean,
    interval_s double precision,
    next_run_at timestamp with time zone,
    last_run_at timestamp with time zone,
    last_success_at timestamp with time zone,
    last_error_code text,
    last_error text,
    rejects bigint DEFAULT 0 NOT NULL,
    rejects_last_run bigint DEFAULT 0 NOT NULL,
    rows_last_run bigint,
    etag text,
    last_modified text,
    body_sha256 text,
    fetched_at timestamp with time zone,
    cooldown_until timestamp with time zone,
    facts_deleted_at timestamp with time zone,
    cron text,
    time_zone text,
    misfire text,
    tick_at timestamp with time zone,
    answered_at timestamp with time zone,
    failures integer DEFAULT 0 NOT NULL,
    retry_at timestamp with time zone,
    CONSTRAINT datasources_cron_check CHECK ((cron <> ''::text)),
    CONSTRAINT datasources_failures_check CHECK ((failures >= 0)),
    CONSTRAINT datasources_misfire_check CHECK ((misfire = ANY (ARRAY['once'::text, 'skip'::text]))),
    CONSTRAINT datasources_time_zone_check CHECK ((time_zone <> ''::text))
);

CREATE TABLE public.declared_sources (
    name text NOT NULL,
    text text NOT NULL,
    enabled boolean DEFAULT true NOT NULL,
    origin text DEFAULT 'store'::text NOT NULL,
    revision bigint NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    changed_by text NOT NULL,
    sha256 text NOT NULL,
    CONSTRAINT declared_sources_name_check CHECK ((name ~ '^[a-z][a-z0-9_]{0,62}$'::text)),
    CONSTRAINT declared_sources_origin_check CHECK ((length(origin) <= 100)),
    CONSTRAINT declared_sources_text_check CHECK (((octet_length(text) >= 1) AND (octet_length(text) <= 32768)))
);

CREATE TABLE public.declared_sources_head (
    one boolean DEFAULT true NOT NULL,
    revision bigint DEFAULT 0 NOT NULL,
    sources integer DEFAULT 0 NOT NULL,
    CONSTRAINT declared_sources_head_one_check CHECK (one),
    CONSTRAINT declared_sources_number CHECK (((sources >= 0) AND (sources <= 500)))
);

CREATE TABLE public.derivation_recipes (
    source text NOT NULL,
    layer text NOT NULL,
    recipe text NOT NULL,
    noted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.derived_pending (
    id bigint NOT NULL,
    source text NOT NULL,
    fact_key text,
    through_key text,
    written_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE public.derived_pending ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.derived_pending_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.earth_broadcasts (
    revision bigint NOT NULL,
    epoch text NOT NULL,
    prev_revision bigint NOT NULL,
    layer text NOT NULL,
    message jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.earth_data_change_events (
    id bigint NOT NULL,
    table_name text NOT NULL,
    operation text NOT NULL,
    source text,
    records_processed bigint DEFAULT 0 NOT NULL,
    row_ids jsonb,
    occurred_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    consumed_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    next_attempt_at timestamp with time zone,
    last_error text,
    skipped_reason text,
    CONSTRAINT earth_data_change_events_operation_check CHECK ((operation = ANY (ARRAY['INSERT'::text, 'UPDATE'::text, 'DELETE'::text]))),
    CONSTRAINT earth_data_change_events_records_processed_check CHECK ((records_processed >= 0))
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_analyze_scale_factor='0.05');

ALTER TABLE public.earth_data_change_events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.earth_data_change_events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.earth_interactables (
    id text NOT NULL COLLATE pg_catalog."C",
    layer text NOT NULL,
    source text NOT NULL,
    fact_key text NOT NULL,
    kind text DEFAULT ''::text NOT NULL,
    title text DEFAULT ''::text NOT NULL,
    subtitle text DEFAULT ''::text NOT NULL,
    lat double precision,
    lon double precision,
    alt_m double precision,
    properties jsonb DEFAULT '{}'::jsonb NOT NULL,
    severity double precision,
    search tsvector GENERATED ALWAYS AS (array_to_tsvector(public.planet_words(((((fact_key || ' '::text) || title) || ' '::text) || subtitle)))) STORED NOT NULL,
    valid_until timestamp with time zone,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.earth_layer_feeds (
    table_name text NOT NULL,
    source text NOT NULL,
    layer text NOT NULL
);

CREATE TABLE public.earth_layer_heads (
    layer text NOT NULL,
    revision bigint NOT NULL,
    pruned_through bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE public.earth_log_head (
    only_row boolean DEFAULT true NOT NULL,
    epoch text DEFAULT substr(md5((gen_random_uuid())::text), 1, 12) NOT NULL,
    revision bigint DEFAULT 0 NOT NULL,
    leader_term bigint DEFAULT 0 NOT NULL,
    leader_holder text,
    leader_expires_at timestamp with time zone,
    leader_since timestamp with time zone,
    CONSTRAINT earth_log_head_epoch_check CHECK ((epoch ~ '^[a-z0-9]{12}$'::text)),
    CONSTRAINT earth_log_head_only_row_check CHECK (only_row)
)
WITH (fillfactor='50');

CREATE TABLE public.earth_refresh_hints (
    id bigint NOT NULL,
    layer text,
    source text,
    action text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    consumed_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    next_attempt_at timestamp with time zone,
    last_error text,
    CONSTRAINT earth_refresh_hints_action_check CHECK ((action = ANY (ARRAY['cache_cleared'::text, 'manual_refresh'::text])))
);

ALTER TABLE public.earth_refresh_hints ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.earth_refresh_hints_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.earth_watched_relations (
    relation regclass NOT NULL,
    reported text NOT NULL
);

CREATE UNLOGGED TABLE public.job_log_lines (
    id bigint NOT NULL,
    task_id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    event text NOT NULL,
    line text NOT NULL,
    CONSTRAINT job_log_lines_line_check CHECK ((length(line) <= 500))
);

ALTER TABLE public.job_log_lines ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.job_log_lines_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.log_consumers (
    consumer text NOT NULL,
    epoch text NOT NULL,
    revision bigint NOT NULL,
    moved_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.observation_keys (
    city text NOT NULL,
    source text NOT NULL,
    series_key text NOT NULL,
    obs_time_ms bigint NOT NULL,
    content_hash bytea NOT NULL,
    revision bigint NOT NULL,
    accepted_ms bigint NOT NULL
);

CREATE TABLE public.observation_latest (
    city text NOT NULL,
    series_key text NOT NULL,
    source text NOT NULL,
    obs_time_ms bigint NOT NULL,
    temp_c double precision NOT NULL,
    max_so_far_c double precision,
    station_code text,
    station_label text,
    revision bigint NOT NULL
)
WITH (fillfactor='70');

CREATE TABLE public.observation_log_head (
    only_row boolean DEFAULT true NOT NULL,
    epoch text DEFAULT substr(md5((gen_random_uuid())::text), 1, 12) NOT NULL,
    revision bigint DEFAULT 0 NOT NULL,
    CONSTRAINT observation_log_head_epoch_check CHECK ((epoch ~ '^[a-z0-9]{12}$'::text)),
    CONSTRAINT observation_log_head_only_row_check CHECK (only_row)
)
WITH (fillfactor='50');

CREATE TABLE public.observation_patch_events (
    revision bigint NOT NULL,
    schema_type text NOT NULL,
    schema_version integer NOT NULL,
    city text NOT NULL,
    source text NOT NULL,
    obs_time text,
    payload_json text NOT NULL,
    created_at text NOT NULL COLLATE pg_catalog."C",
    prev_revision bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.observation_patch_pruned (
    city text NOT NULL,
    pruned_through bigint NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE public.observations (
    city text NOT NULL,
    series_key text NOT NULL,
    source text NOT NULL,
    obs_time_ms bigint NOT NULL,
    temp_c double precision NOT NULL,
    max_so_far_c double precision,
    revision bigint NOT NULL,
    obs_time timestamp with time zone GENERATED ALWAYS AS (to_timestamp((((obs_time_ms)::numeric / 1000.0))::double precision)) STORED NOT NULL
)
WITH (autovacuum_vacuum_insert_scale_factor='0.02');

CREATE TABLE public.paused_sources (
    source text NOT NULL,
    paused_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT paused_sources_source_check CHECK ((source <> ''::text))
);

CREATE TABLE public.planetwire_migrations (
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at text DEFAULT CURRENT_TIMESTAMP NOT NULL
);

CREATE TABLE public.resolved_locations (
    id bigint NOT NULL,
    source text NOT NULL,
    fact_key text NOT NULL,
    method text NOT NULL,
    lat double precision NOT NULL,
    lon double precision NOT NULL,
    precision_m double precision,
    confidence double precision,
    resolver text,
    locked boolean DEFAULT false NOT NULL,
    CONSTRAINT resolved_locations_confidence_check CHECK (((confidence >= (0)::double precision) AND (confidence <= (1)::double precision))),
    CONSTRAINT resolved_locations_lat_check CHECK (((lat >= ('-90'::integer)::double precision) AND (lat <= (90)::double precision))),
    CONSTRAINT resolved_locations_lon_check CHECK (((lon >= ('-180'::integer)::double precision) AND (lon <= (180)::double precision))),
    CONSTRAINT resolved_locations_method_check CHECK ((method = ANY (ARRAY['given'::text, 'geocode'::text, 'manual'::text])))
);

ALTER TABLE public.resolved_locations ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.resolved_locations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.satellite_orbits (
    id bigint NOT NULL,
    source text NOT NULL,
    fact_key text NOT NULL,
    norad_id bigint NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    epoch timestamp with time zone,
    inclination double precision,
    raan double precision,
    ecc double precision,
    argp double precision,
    mean_anomaly double precision,
    mean_motion double precision,
    bstar double precision,
    period_min double precision,
    apogee_km double precision,
    perigee_km double precision,
    regime text,
    CONSTRAINT satellite_orbits_regime_check CHECK ((regime = ANY (ARRAY['LEO'::text, 'MEO'::text, 'GEO'::text, 'HEO'::text])))
)
WITH (fillfactor='50');

ALTER TABLE public.satellite_orbits ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.satellite_orbits_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.schedule_firings (
    source text NOT NULL,
    fire_at timestamp with time zone NOT NULL,
    task_id bigint,
    fired_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.wakeup_gates (
    channel text NOT NULL,
    open_until timestamp with time zone NOT NULL
);

ALTER TABLE ONLY public.audit_log
    ADD CONSTRAINT audit_log_carried_key UNIQUE (carried);

ALTER TABLE ONLY public.audit_log
    ADD CONSTRAINT audit_log_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.change_outlet_cursors
    ADD CONSTRAINT change_outlet_cursors_pkey PRIMARY KEY (outlet, layer);

ALTER TABLE ONLY public.change_outlets
    ADD CONSTRAINT change_outlets_pkey PRIMARY KEY (outlet);

ALTER TABLE ONLY public.collected_data
    ADD CONSTRAINT collected_data_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.collected_data
    ADD CONSTRAINT collected_data_source_external_key_key UNIQUE (source, external_key);

ALTER TABLE ONLY public.collection_tasks
    ADD CONSTRAINT collection_tasks_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.datasources
    ADD CONSTRAINT datasources_pkey PRIMARY KEY (source);

ALTER TABLE ONLY public.declared_sources_head
    ADD CONSTRAINT declared_sources_head_pkey PRIMARY KEY (one);

ALTER TABLE ONLY public.declared_sources
    ADD CONSTRAINT declared_sources_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.derivation_recipes
    ADD CONSTRAINT derivation_recipes_pkey PRIMARY KEY (source, layer);

ALTER TABLE ONLY public.derived_pending
    ADD CONSTRAINT derived_pending_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.earth_broadcasts
    ADD CONSTRAINT earth_broadcasts_pkey PRIMARY KEY (revision);

ALTER TABLE ONLY public.earth_data_change_events
    ADD CONSTRAINT earth_data_change_events_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.earth_interactables
    ADD CONSTRAINT earth_interactables_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.earth_layer_feeds
    ADD CONSTRAINT earth_layer_feeds_pkey PRIMARY KEY (table_name, source, layer);

ALTER TABLE ONLY public.earth_layer_heads
    ADD CONSTRAINT earth_layer_heads_pkey PRIMARY KEY (layer);

ALTER TABLE ONLY public.earth_log_head
    ADD CONSTRAINT earth_log_head_pkey PRIMARY KEY (only_row);

ALTER TABLE ONLY public.earth_refresh_hints
    ADD CONSTRAINT earth_refresh_hints_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.earth_watched_relations
    ADD CONSTRAINT earth_watched_relations_pkey PRIMARY KEY (relation);

ALTER TABLE ONLY public.job_log_lines
    ADD CONSTRAINT job_log_lines_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.log_consumers
    ADD CONSTRAINT log_consumers_pkey PRIMARY KEY (consumer);

ALTER TABLE ONLY public.observation_keys
    ADD CONSTRAINT observation_keys_pkey PRIMARY KEY (city, source, series_key, obs_time_ms, content_hash);

ALTER TABLE ONLY public.observation_latest
    ADD CONSTRAINT observation_latest_pkey PRIMARY KEY (city, series_key, source);

ALTER TABLE ONLY public.observation_log_head
    ADD CONSTRAINT observation_log_head_pkey PRIMARY KEY (only_row);

ALTER TABLE ONLY public.observation_patch_events
    ADD CONSTRAINT observation_patch_events_pkey PRIMARY KEY (revision);

ALTER TABLE ONLY public.observation_patch_pruned
    ADD CONSTRAINT observation_patch_pruned_pkey PRIMARY KEY (city);

ALTER TABLE ONLY public.observations
    ADD CONSTRAINT observations_pkey PRIMARY KEY (city, obs_time_ms, series_key, source) INCLUDE (temp_c, max_so_far_c);

ALTER TABLE ONLY public.paused_sources
    ADD CONSTRAINT paused_sources_pkey PRIMARY KEY (source);

ALTER TABLE ONLY public.planetwire_migrations
    ADD CONSTRAINT planetwire_migrations_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.resolved_locations
    ADD CONSTRAINT resolved_locations_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.resolved_locations
    ADD CONSTRAINT resolved_locations_source_fact_key_key UNIQUE (source, fact_key);

ALTER TABLE ONLY public.satellite_orbits
    ADD CONSTRAINT satellite_orbits_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.satellite_orbits
    ADD CONSTRAINT satellite_orbits_source_fact_key_key UNIQUE (source, fact_key);

ALTER TABLE ONLY public.schedule_firings
    ADD CONSTRAINT schedule_firings_pkey PRIMARY KEY (source, fire_at);

ALTER TABLE ONLY public.wakeup_gates
    ADD CONSTRAINT wakeup_gates_pkey PRIMARY KEY (channel);

CREATE INDEX audit_log_at ON public.audit_log USING btree (at);

CREATE INDEX audit_log_source ON public.audit_log USING btree (source, id) WHERE (source IS NOT NULL);

CREATE INDEX audit_log_task ON public.audit_log USING btree (task_id, id) WHERE (task_id IS NOT NULL);

CREATE INDEX audit_log_who ON public.audit_log USING btree (who, id);

CREATE INDEX collected_data_source_id ON public.collected_data USING btree (source, id);

CREATE INDEX collected_data_source_observed ON public.collected_data USING btree (source, observed_at DESC);

CREATE UNIQUE INDEX collection_tasks_busy ON public.collection_tasks USING btree (source) WHERE ((status = ANY (ARRAY['running'::text, 'cancelling'::text])) AND (lane <> 'free'::text));

CREATE INDEX collection_tasks_due ON public.collection_tasks USING btree (scheduled_at) WHERE ((status = 'queued'::text) AND (parked = 'time'::text));

CREATE INDEX collection_tasks_ended_source ON public.collection_tasks USING btree (source, id) WHERE ((finished_at IS NOT NULL) AND (source IS NOT NULL));

CREATE INDEX collection_tasks_finished ON public.collection_tasks USING btree (finished_at) WHERE (finished_at IS NOT NULL);

CREATE INDEX collection_tasks_free ON public.collection_tasks USING btree (((parked IS DISTINCT FROM 'time'::text)), priority, id) WHERE ((status = 'queued'::text) AND (lane = 'free'::text));

CREATE INDEX collection_tasks_front ON public.collection_tasks USING btree (priority, id) INCLUDE (source) WHERE ((status = 'queued'::text) AND (parked IS NULL) AND (lane <> 'free'::text));

CREATE UNIQUE INDEX collection_tasks_idempotency ON public.collection_tasks USING btree (idempotency_key) WHERE (idempotency_key IS NOT NULL);

CREATE INDEX collection_tasks_next ON public.collection_tasks USING btree (source, ((parked IS DISTINCT FROM 'time'::text)), priority, id) WHERE ((status = 'queued'::text) AND (lane <> 'free'::text));

CREATE INDEX collection_tasks_running ON public.collection_tasks USING btree (id) WHERE ((status = ANY (ARRAY['running'::text, 'cancelling'::text])) AND (lease_seq >= 0));

CREATE INDEX collection_tasks_unlucky ON public.collection_tasks USING btree (status, id) WHERE (status = ANY (ARRAY['failed'::text, 'cancelled'::text]));

CREATE INDEX earth_broadcasts_created_at ON public.earth_broadcasts USING btree (created_at);

CREATE INDEX earth_broadcasts_layer_revision ON public.earth_broadcasts USING btree (layer, revision);

CREATE INDEX earth_data_change_events_consumed ON public.earth_data_change_events USING btree (consumed_at) WHERE (consumed_at IS NOT NULL);

CREATE INDEX earth_data_change_events_pending ON public.earth_data_change_events USING btree (id) WHERE (consumed_at IS NULL);

CREATE INDEX earth_data_change_events_skipped ON public.earth_data_change_events USING btree (table_name, source) WHERE (skipped_reason IS NOT NULL);

CREATE INDEX earth_interactables_fact ON public.earth_interactables USING btree (source, fact_key);

CREATE INDEX earth_interactables_search ON public.earth_interactables USING gin (search);

CREATE INDEX earth_refresh_hints_consumed ON public.earth_refresh_hints USING btree (consumed_at) WHERE (consumed_at IS NOT NULL);

CREATE INDEX earth_refresh_hints_pending ON public.earth_refresh_hints USING btree (id) WHERE (consumed_at IS NULL);

CREATE INDEX idx_observation_patch_events_city_revision ON public.observation_patch_events USING btree (city, revision);

CREATE INDEX idx_observation_patch_events_created_at ON public.observation_patch_events USING btree (created_at);

CREATE INDEX job_log_lines_at ON public.job_log_lines USING btree (at);

CREATE INDEX job_log_lines_task ON public.job_log_lines USING btree (task_id, id);

CREATE INDEX observation_keys_accepted ON public.observation_keys USING btree (accepted_ms);

CREATE INDEX schedule_firings_fired_at ON public.schedule_firings USING btree (fired_at);

CREATE TRIGGER collection_tasks_ring_cancel AFTER UPDATE OF cancel_requested_at ON public.collection_tasks FOR EACH STATEMENT EXECUTE FUNCTION public.planet_ring_tasks();

CREATE TRIGGER collection_tasks_ring_new AFTER INSERT ON public.collection_tasks FOR EACH STATEMENT EXECUTE FUNCTION public.planet_ring_tasks();

CREATE TRIGGER collection_tasks_scheduled BEFORE UPDATE OF scheduled_at ON public.collection_tasks FOR EACH ROW WHEN ((new.scheduled_at IS DISTINCT FROM old.scheduled_at)) EXECUTE FUNCTION public.planet_park_until_due();

CREATE TRIGGER collection_tasks_scheduled_new BEFORE INSERT ON public.collection_tasks FOR EACH ROW WHEN (((new.scheduled_at IS NOT NULL) OR (new.parked IS NOT NULL))) EXECUTE FUNCTION public.planet_park_until_due();

CREATE TRIGGER collection_tasks_touched BEFORE UPDATE ON public.collection_tasks FOR EACH ROW WHEN (((old.parked = 'source'::text) AND (new.parked = 'source'::text))) EXECUTE FUNCTION public.planet_unpark();

CREATE TRIGGER collection_tasks_wake_changed AFTER UPDATE OF status, source, task_type, scheduled_at ON public.collection_tasks FOR EACH ROW WHEN (((old.lane <> 'free'::text) AND (((old.status = ANY (ARRAY['running'::text, 'cancelling'::text])) AND (new.status <> ALL (ARRAY['running'::text, 'cancelling'::text])) AND (current_setting('planetwire.wakes'::text, true) IS DISTINCT FROM 'together'::text)) OR ((old.status = 'queued'::text) AND ((new.status <> ALL (ARRAY['queued'::text, 'running'::text])) OR (new.source IS DISTINCT FROM old.source) OR (new.task_type IS DISTINCT FROM old.task_type) OR (new.parked = 'time'::text)))))) EXECUTE FUNCTION public.planet_wake_after();

CREATE TRIGGER collection_tasks_wake_deleted AFTER DELETE ON public.collection_tasks FOR EACH ROW WHEN (((old.lane <> 'free'::text) AND (old.status = ANY (ARRAY['queued'::text, 'running'::text, 'cancelling'::text])))) EXECUTE FUNCTION public.planet_wake_after();

CREATE TRIGGER earth_refresh_hints_added AFTER INSERT ON public.earth_refresh_hints FOR EACH STATEMENT EXECUTE FUNCTION public.planet_note_hint();

ALTER TABLE public.earth_refresh_hints ENABLE ALWAYS TRIGGER earth_refresh_hints_added;

CREATE TRIGGER facts_void_state_delete AFTER DELETE ON public.collected_data REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.facts_void_state();

ALTER TABLE public.collected_data ENABLE ALWAYS TRIGGER facts_void_state_delete;

CREATE TRIGGER facts_void_state_truncate AFTER TRUNCATE ON public.collected_data FOR EACH STATEMENT EXECUTE FUNCTION public.facts_void_state();

ALTER TABLE public.collected_data ENABLE ALWAYS TRIGGER facts_void_state_truncate;

CREATE TRIGGER paused_sources_ring AFTER DELETE ON public.paused_sources FOR EACH STATEMENT EXECUTE FUNCTION public.planet_ring_tasks();

CREATE TRIGGER paused_sources_wake AFTER DELETE ON public.paused_sources FOR EACH ROW EXECUTE FUNCTION public.planet_wake_after();

CREATE TRIGGER planet_derive_inserted AFTER INSERT ON public.collected_data REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN ((current_setting('planetwire.derives'::text, true) IS DISTINCT FROM 'on'::text)) EXECUTE FUNCTION public.planet_derive_inserted();

ALTER TABLE public.collected_data ENABLE ALWAYS TRIGGER planet_derive_inserted;

CREATE TRIGGER planet_derive_updated AFTER UPDATE ON public.collected_data REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN ((current_setting('planetwire.derives'::text, true) IS DISTINCT FROM 'on'::text)) EXECUTE FUNCTION public.planet_derive_updated();

ALTER TABLE public.collected_data ENABLE ALWAYS TRIGGER planet_derive_updated;

CREATE TRIGGER planet_derived_follow AFTER DELETE ON public.collected_data REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.planet_derived_follow();

ALTER TABLE public.collected_data ENABLE ALWAYS TRIGGER planet_derived_follow;

CREATE TRIGGER planet_derived_rename AFTER UPDATE OF source, external_key ON public.collected_data FOR EACH ROW WHEN (((old.source IS DISTINCT FROM new.source) OR (old.external_key IS DISTINCT FROM new.external_key))) EXECUTE FUNCTION public.planet_derived_rename();

ALTER TABLE public.collected_data ENABLE ALWAYS TRIGGER planet_derived_rename;

CREATE TRIGGER planet_derived_truncate AFTER TRUNCATE ON public.collected_data FOR EACH STATEMENT EXECUTE FUNCTION public.planet_derived_truncate();

ALTER TABLE public.collected_data ENABLE ALWAYS TRIGGER planet_derived_truncate;

CREATE TRIGGER tr_audit_log_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.audit_log FOR EACH STATEMENT EXECUTE FUNCTION public.planet_audit_append_only();

CREATE TRIGGER tr_collection_tasks_cleared AFTER UPDATE OF status ON public.collection_tasks FOR EACH ROW WHEN (((new.lane = 'clear'::text) AND (new.status = ANY (ARRAY['completed'::text, 'failed'::text, 'cancelled'::text])) AND (old.status <> ALL (ARRAY['completed'::text, 'failed'::text, 'cancelled'::text])))) EXECUTE FUNCTION public.planet_note_cleared();

CREATE TRIGGER tr_declared_sources_changed AFTER INSERT OR DELETE OR UPDATE OR TRUNCATE ON public.declared_sources FOR EACH STATEMENT EXECUTE FUNCTION public.planet_declared_changed();

ALTER TABLE public.declared_sources ENABLE ALWAYS TRIGGER tr_declared_sources_changed;

CREATE TRIGGER tr_declared_sources_stamp BEFORE INSERT OR UPDATE ON public.declared_sources FOR EACH ROW EXECUTE FUNCTION public.planet_declared_stamp();

ALTER TABLE public.declared_sources ENABLE ALWAYS TRIGGER tr_declared_sources_stamp;

CREATE TRIGGER tr_planet_collected_data_changed_delete AFTER DELETE ON public.collected_data REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.planet_note_delete('collected_data');

ALTER TABLE public.collected_data ENABLE ALWAYS TRIGGER tr_planet_collected_data_changed_delete;

CREATE TRIGGER tr_planet_collected_data_changed_insert AFTER INSERT ON public.collected_data REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.planet_note_insert('collected_data');

ALTER TABLE public.collected_data ENABLE ALWAYS TRIGGER tr_planet_collected_data_changed_insert;

CREATE TRIGGER tr_planet_collected_data_changed_truncate BEFORE TRUNCATE ON public.collected_data FOR EACH STATEMENT EXECUTE FUNCTION public.planet_note_truncate('collected_data');

ALTER TABLE public.collected_data ENABLE ALWAYS TRIGGER tr_planet_collected_data_changed_truncate;

CREATE TRIGGER tr_planet_collected_data_changed_update AFTER UPDATE ON public.collected_data REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.planet_note_update('collected_data');

ALTER TABLE public.collected_data ENABLE ALWAYS TRIGGER tr_planet_collected_data_changed_update;

CREATE TRIGGER tr_planet_earth_interactables_changed_delete AFTER DELETE ON public.earth_interactables REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.planet_note_delete('earth_interactables');

ALTER TABLE public.earth_interactables ENABLE ALWAYS TRIGGER tr_planet_earth_interactables_changed_delete;

CREATE TRIGGER tr_planet_earth_interactables_changed_insert AFTER INSERT ON public.earth_interactables REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.planet_note_insert('earth_interactables');

ALTER TABLE public.earth_interactables ENABLE ALWAYS TRIGGER tr_planet_earth_interactables_changed_insert;

CREATE TRIGGER tr_planet_earth_interactables_changed_truncate BEFORE TRUNCATE ON public.earth_interactables FOR EACH STATEMENT EXECUTE FUNCTION public.planet_note_truncate('earth_interactables');

ALTER TABLE public.earth_interactables ENABLE ALWAYS TRIGGER tr_planet_earth_interactables_changed_truncate;

CREATE TRIGGER tr_planet_earth_interactables_changed_update AFTER UPDATE ON public.earth_interactables REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.planet_note_update('earth_interactables');

ALTER TABLE public.earth_interactables ENABLE ALWAYS TRIGGER tr_planet_earth_interactables_changed_update;

CREATE TRIGGER tr_planet_resolved_locations_changed_delete AFTER DELETE ON public.resolved_locations REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.planet_note_delete('resolved_locations');

ALTER TABLE public.resolved_locations ENABLE ALWAYS TRIGGER tr_planet_resolved_locations_changed_delete;

CREATE TRIGGER tr_planet_resolved_locations_changed_insert AFTER INSERT ON public.resolved_locations REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.planet_note_insert('resolved_locations');

ALTER TABLE public.resolved_locations ENABLE ALWAYS TRIGGER tr_planet_resolved_locations_changed_insert;

CREATE TRIGGER tr_planet_resolved_locations_changed_truncate BEFORE TRUNCATE ON public.resolved_locations FOR EACH STATEMENT EXECUTE FUNCTION public.planet_note_truncate('resolved_locations');

ALTER TABLE public.resolved_locations ENABLE ALWAYS TRIGGER tr_planet_resolved_locations_changed_truncate;

CREATE TRIGGER tr_planet_resolved_locations_changed_update AFTER UPDATE ON public.resolved_locations REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.planet_note_update('resolved_locations');

ALTER TABLE public.resolved_locations ENABLE ALWAYS TRIGGER tr_planet_resolved_locations_changed_update;

CREATE TRIGGER tr_planet_satellite_orbits_changed_delete AFTER DELETE ON public.satellite_orbits REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.planet_note_delete('satellite_orbits');

ALTER TABLE public.satellite_orbits ENABLE ALWAYS TRIGGER tr_planet_satellite_orbits_changed_delete;

CREATE TRIGGER tr_planet_satellite_orbits_changed_insert AFTER INSERT ON public.satellite_orbits REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.planet_note_insert('satellite_orbits');

ALTER TABLE public.satellite_orbits ENABLE ALWAYS TRIGGER tr_planet_satellite_orbits_changed_insert;

CREATE TRIGGER tr_planet_satellite_orbits_changed_truncate BEFORE TRUNCATE ON public.satellite_orbits FOR EACH STATEMENT EXECUTE FUNCTION public.planet_note_truncate('satellite_orbits');

ALTER TABLE public.satellite_orbits ENABLE ALWAYS TRIGGER tr_planet_satellite_orbits_changed_truncate;

CREATE TRIGGER tr_planet_satellite_orbits_changed_update AFTER UPDATE ON public.satellite_orbits REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.planet_note_update('satellite_orbits');

ALTER TABLE public.satellite_orbits ENABLE ALWAYS TRIGGER tr_planet_satellite_orbits_changed_update;

ALTER TABLE ONLY public.change_outlet_cursors
    ADD CONSTRAINT change_outlet_cursors_outlet_fkey FOREIGN KEY (outlet) REFERENCES public.change_outlets(outlet) ON DELETE CASCADE;
