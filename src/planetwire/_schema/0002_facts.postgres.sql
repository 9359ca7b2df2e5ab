-- Facts, and what is remembered of each source.
-- Every fact and derived table has `id` as its primary key: the change triggers compare old and new rows by it.
create table collected_data (
    id bigint generated always as identity primary key,
    source text not null,
    external_key text not null,
    kind text not null,
    title text not null default '',
    data jsonb not null default '{}',
    lat double precision,
    lon double precision,
    observed_at timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    collected_at timestamptz not null default clock_timestamp(),
    valid_until timestamptz,
    task_id bigint,
    unique (source, external_key)
);
create index collected_data_source_id on collected_data (source, id);
create index collected_data_source_observed on collected_data (source, observed_at desc);

-- One row a source: what the operator set, when it runs next, how the last run ended, and the validators of
-- the last verified body. `facts_deleted_at` is set by the delete trigger unless the feed's own sweep deletes.
create table datasources (
    source text primary key,
    enabled boolean,
    interval_s double precision,
    next_run_at timestamptz,
    last_run_at timestamptz,
    last_success_at timestamptz,
    last_error_code text,
    last_error text,
    rejects bigint not null default 0,
    rejects_last_run bigint not null default 0,
    rows_last_run bigint,
    etag text,
    last_modified text,
    body_sha256 text,
    fetched_at timestamptz,
    cooldown_until timestamptz,
    facts_deleted_at timestamptz
);

-- What is remembered of a feed's last body is void once somebody else deleted facts of it: the next collect must
-- bring them back even if the feed says "not modified". The feed's own sweep names its source in a setting that
-- lives as long as its transaction. ALWAYS: also in a session that runs as a replica.
create function facts_void_state() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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

create trigger facts_void_state_delete after delete on collected_data
    referencing old table as old_rows for each statement execute function facts_void_state();
create trigger facts_void_state_truncate after truncate on collected_data
    for each statement execute function facts_void_state();
alter table collected_data enable always trigger facts_void_state_delete;
alter table collected_data enable always trigger facts_void_state_truncate;

-- Deletes up to `most` rows of the source from a fact or derived table, lowest ids first; 0 when none is left.
-- By key range: each chunk starts where live rows start, instead of stepping over the dead ones of the last chunk.
create function planet_clear_chunk(target text, wanted_source text, most integer) returns bigint
language plpgsql as $$
declare
    edge bigint;
    gone bigint;
begin
    loop
        execute format(
            'select max(id) from (select id from public.%I where source = $1 order by id limit $2) head', target)
            into edge using wanted_source, most;
        if edge is null then
            return 0;
        end if;
        execute format('delete from public.%I where source = $1 and id <= $2', target) using wanted_source, edge;
        get diagnostics gone = row_count;
        -- Somebody else deleted the same rows between the two statements: look again.
        if gone > 0 then
            return gone;
        end if;
    end loop;
end $$;
