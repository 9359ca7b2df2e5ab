-- The outbox: one row per statement, table and source, written by triggers in the transaction of the rows.
create table earth_data_change_events (
    id bigint generated always as identity primary key,
    table_name text not null,
    operation text not null check (operation in ('INSERT', 'UPDATE', 'DELETE')),
    source text, -- null: every source of the table
    records_processed bigint not null default 0 check (records_processed >= 0),
    row_ids jsonb, -- only where a layer can be changed row by row
    occurred_at timestamptz not null default clock_timestamp(),
    consumed_at timestamptz,
    attempts integer not null default 0,
    next_attempt_at timestamptz, -- null: at once; infinity: waits until retried by hand
    last_error text,
    skipped_reason text
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
create index earth_data_change_events_pending on earth_data_change_events (id) where consumed_at is null;
create index earth_data_change_events_consumed on earth_data_change_events (consumed_at)
    where consumed_at is not null;
create index earth_data_change_events_skipped on earth_data_change_events (table_name, source)
    where skipped_reason is not null;

-- Refreshes that no row change caused; read by the relay like the outbox. Layer and source null: everything.
create table earth_refresh_hints (
    id bigint generated always as identity primary key,
    layer text,
    source text,
    action text not null check (action in ('cache_cleared', 'manual_refresh')),
    created_at timestamptz not null default clock_timestamp(),
    consumed_at timestamptz,
    attempts integer not null default 0,
    next_attempt_at timestamptz,
    last_error text
);
create index earth_refresh_hints_pending on earth_refresh_hints (id) where consumed_at is null;
create index earth_refresh_hints_consumed on earth_refresh_hints (consumed_at) where consumed_at is not null;

-- The trigger functions run as their owner, so that a repair script of any role is recorded; their search path is
-- fixed, so that nobody's objects are called. The argument is the name to report: a partition reports its parent.
create function planet_note_insert() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    insert into public.earth_data_change_events (table_name, operation, source, records_processed)
    select tg_argv[0], 'INSERT', r.source, count(*) from new_rows r group by r.source;
    if found then
        perform public.planet_ring('planet_earth_data_changes');
    end if;
    return null;
end $$;

-- Rows are compared, so that an update which changed no value is no change. A row whose source changed counts for
-- the old source and for the new one.
create function planet_note_update() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    insert into public.earth_data_change_events (table_name, operation, source, records_processed)
    with changed as (
        select o.source as old_source, n.source as new_source
        from old_rows o full join new_rows n on n.id = o.id
        where o is distinct from n
    )
    select tg_argv[0], 'UPDATE', touched.source, count(*)
    from (
        select old_source as source from changed where old_source is not null
        union all
        select new_source from changed where new_source is distinct from old_source and new_source is not null
    ) touched
    group by touched.source;
    if found then
        perform public.planet_ring('planet_earth_data_changes');
    end if;
    return null;
end $$;

create function planet_note_delete() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    insert into public.earth_data_change_events (table_name, operation, source, records_processed)
    select tg_argv[0], 'DELETE', r.source, count(*) from old_rows r group by r.source;
    if found then
        perform public.planet_ring('planet_earth_data_changes');
    end if;
    return null;
end $$;

-- TRUNCATE has no transition table and fires while its exclusive lock is held: count first, at most a million.
-- Outside READ COMMITTED our snapshot may not see what the TRUNCATE removes, so there it is always recorded.
create function planet_note_truncate() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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

create function planet_note_hint() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform public.planet_ring('planet_earth_data_changes');
    return null;
end $$;
create trigger earth_refresh_hints_added after insert on earth_refresh_hints
    for each statement execute function planet_note_hint();
alter table earth_refresh_hints enable always trigger earth_refresh_hints_added;

-- Made by planetwire.outbox.tables.statements for each table of its list.
create trigger tr_planet_collected_data_changed_insert after insert on public.collected_data
    referencing new table as new_rows
    for each statement execute function public.planet_note_insert('collected_data');
alter table public.collected_data enable always trigger tr_planet_collected_data_changed_insert;
create trigger tr_planet_collected_data_changed_update after update on public.collected_data
    referencing old table as old_rows new table as new_rows
    for each statement execute function public.planet_note_update('collected_data');
alter table public.collected_data enable always trigger tr_planet_collected_data_changed_update;
create trigger tr_planet_collected_data_changed_delete after delete on public.collected_data
    referencing old table as old_rows
    for each statement execute function public.planet_note_delete('collected_data');
alter table public.collected_data enable always trigger tr_planet_collected_data_changed_delete;
create trigger tr_planet_collected_data_changed_truncate before truncate on public.collected_data
    for each statement execute function public.planet_note_truncate('collected_data');
alter table public.collected_data enable always trigger tr_planet_collected_data_changed_truncate;
