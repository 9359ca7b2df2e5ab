-- Derived rows: computed from facts, in the transaction of the facts, and gone with them.
-- (source, fact_key) names the fact in collected_data (source, external_key). No foreign key holds them together:
-- it would refuse a plain TRUNCATE of the facts, be silent in a session that runs as a replica, and check and delete
-- row by row. The three triggers at the end do, for a whole statement at a time.
create table satellite_orbits (
    id bigint generated always as identity primary key,
    source text not null,
    fact_key text not null,
    norad_id bigint not null,
    name text not null default '',
    epoch timestamptz,
    inclination double precision, -- degrees, as the next four angles
    raan double precision,
    ecc double precision,
    argp double precision,
    mean_anomaly double precision,
    mean_motion double precision, -- revolutions a day
    bstar double precision,
    period_min double precision,
    apogee_km double precision, -- heights over the equator's radius
    perigee_km double precision,
    regime text check (regime in ('LEO', 'MEO', 'GEO', 'HEO')),
    unique (source, fact_key)
) with (fillfactor = 50); -- each run of the feed moves every row: there is room for the next ones beside them

-- A place that is not the fact's own: found by name, or put right by hand. Layers show it instead of the fact's.
create table resolved_locations (
    id bigint generated always as identity primary key,
    source text not null,
    fact_key text not null,
    method text not null check (method in ('given', 'geocode', 'manual')),
    lat double precision not null check (lat between -90 and 90),
    lon double precision not null check (lon between -180 and 180),
    precision_m double precision,
    confidence double precision check (confidence between 0 and 1),
    resolver text,
    locked boolean not null default false, -- no resolver may replace it
    unique (source, fact_key)
);

-- The words of a text and of a question, in small letters. By hand: the text search parser would take `X-1234` for a
-- word and a negative number, and costs twice as much. Bounded, since no word may be longer than 2,046 bytes.
create function planet_words(value text) returns text[] language sql immutable parallel safe
return array_remove(
    string_to_array(lower(regexp_replace(left(value, 500), '[^[:alnum:]]+', ' ', 'g')), ' '), '');

-- Everything that can be found and opened: what it is called, where it is, and the words it is found by. Identity
-- rather than measurements, so that a feed's new figures leave the row as it is.
create table earth_interactables (
    id text collate "C" primary key, -- layer:source:key
    layer text not null,
    source text not null,
    fact_key text not null,
    kind text not null default '',
    title text not null default '',
    subtitle text not null default '',
    lat double precision,
    lon double precision,
    alt_m double precision,
    properties jsonb not null default '{}',
    severity double precision,
    search tsvector not null generated always as (
        array_to_tsvector(planet_words(fact_key || ' ' || title || ' ' || subtitle))) stored,
    valid_until timestamptz,
    updated_at timestamptz not null default clock_timestamp()
);
create index earth_interactables_fact on earth_interactables (source, fact_key);
create index earth_interactables_search on earth_interactables using gin (search);

-- Rows of earth_interactables are known to browsers by id: their changes carry the ids, up to 500 a statement and
-- source. Everything else in the two for inserts and deletes is as before.
create or replace function planet_note_insert() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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

-- Which of many updated rows changed. Rows are compared by their bytes: what a browser is shown may differ where
-- the types call two values equal (1.0 and 1.00 in jsonb), and a type without an equality (json) can be compared.

-- Of many rows, carrying both versions of each through a join is most of what the trigger costs. So the first few are
-- asked which column differs in every one of them; null when there is none. Reads the transition tables of its caller.
create function planet_telling_query(target oid) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
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
$$;

-- A row whose id changed is gone under the old one: an upsert of the new id would leave it standing in browsers.
-- For statements of 1,000 rows and more: if the telling column differs in all of them, and no row got
-- another id or source, all are counted without a look at the rest of them. Not where ids are to be told: up to 500 rows
-- of earth_interactables a source.
create or replace function planet_note_update() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
set enable_mergejoin to off as $$ -- two sorts cost more than one hash table
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
end $$;

create or replace function planet_note_delete() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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

-- Ids may be numbers or text: compared as what they are.
create or replace function planet_clear_chunk(target text, wanted_source text, most integer) returns bigint
language plpgsql as $$
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
end $$;

-- Derived rows go with their facts, whoever deletes those. Index by index: a plan made for thousands of old rows is
-- kept for the single one, and reading a whole table for it would be dear.
create function planet_derived_follow() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
set enable_hashjoin to off set enable_mergejoin to off as $$
begin
    delete from public.satellite_orbits d using old_rows o where d.source = o.source and d.fact_key = o.external_key;
    delete from public.resolved_locations d using old_rows o where d.source = o.source and d.fact_key = o.external_key;
    delete from public.earth_interactables d using old_rows o where d.source = o.source and d.fact_key = o.external_key;
    return null;
end $$;

create function planet_derived_truncate() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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

-- A fact that got another key or source is another fact. Row by row, and only for statements that name one of the
-- two columns: the upserts of a collect do not.
create function planet_derived_rename() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    delete from public.satellite_orbits d where d.source = old.source and d.fact_key = old.external_key;
    delete from public.resolved_locations d where d.source = old.source and d.fact_key = old.external_key;
    delete from public.earth_interactables d where d.source = old.source and d.fact_key = old.external_key;
    return null;
end $$;

create trigger planet_derived_follow after delete on collected_data
    referencing old table as old_rows for each statement execute function planet_derived_follow();
create trigger planet_derived_truncate after truncate on collected_data
    for each statement execute function planet_derived_truncate();
create trigger planet_derived_rename after update of source, external_key on collected_data
    for each row when ((old.source, old.external_key) is distinct from (new.source, new.external_key))
    execute function planet_derived_rename();
alter table collected_data enable always trigger planet_derived_follow;
alter table collected_data enable always trigger planet_derived_truncate;
alter table collected_data enable always trigger planet_derived_rename;

-- Made by planetwire.outbox.tables.statements for each of the new tables.
create trigger tr_planet_satellite_orbits_changed_insert after insert on public.satellite_orbits
    referencing new table as new_rows
    for each statement execute function public.planet_note_insert('satellite_orbits');
alter table public.satellite_orbits enable always trigger tr_planet_satellite_orbits_changed_insert;
create trigger tr_planet_satellite_orbits_changed_update after update on public.satellite_orbits
    referencing old table as old_rows new table as new_rows
    for each statement execute function public.planet_note_update('satellite_orbits');
alter table public.satellite_orbits enable always trigger tr_planet_satellite_orbits_changed_update;
create trigger tr_planet_satellite_orbits_changed_delete after delete on public.satellite_orbits
    referencing old table as old_rows
    for each statement execute function public.planet_note_delete('satellite_orbits');
alter table public.satellite_orbits enable always trigger tr_planet_satellite_orbits_changed_delete;
create trigger tr_planet_satellite_orbits_changed_truncate before truncate on public.satellite_orbits
    for each statement execute function public.planet_note_truncate('satellite_orbits');
alter table public.satellite_orbits enable always trigger tr_planet_satellite_orbits_changed_truncate;
create trigger tr_planet_resolved_locations_changed_insert after insert on public.resolved_locations
    referencing new table as new_rows
    for each statement execute function public.planet_note_insert('resolved_locations');
alter table public.resolved_locations enable always trigger tr_planet_resolved_locations_changed_insert;
create trigger tr_planet_resolved_locations_changed_update after update on public.resolved_locations
    referencing old table as old_rows new table as new_rows
    for each statement execute function public.planet_note_update('resolved_locations');
alter table public.resolved_locations enable always trigger tr_planet_resolved_locations_changed_update;
create trigger tr_planet_resolved_locations_changed_delete after delete on public.resolved_locations
    referencing old table as old_rows
    for each statement execute function public.planet_note_delete('resolved_locations');
alter table public.resolved_locations enable always trigger tr_planet_resolved_locations_changed_delete;
create trigger tr_planet_resolved_locations_changed_truncate before truncate on public.resolved_locations
    for each statement execute function public.planet_note_truncate('resolved_locations');
alter table public.resolved_locations enable always trigger tr_planet_resolved_locations_changed_truncate;
create trigger tr_planet_earth_interactables_changed_insert after insert on public.earth_interactables
    referencing new table as new_rows
    for each statement execute function public.planet_note_insert('earth_interactables');
alter table public.earth_interactables enable always trigger tr_planet_earth_interactables_changed_insert;
create trigger tr_planet_earth_interactables_changed_update after update on public.earth_interactables
    referencing old table as old_rows new table as new_rows
    for each statement execute function public.planet_note_update('earth_interactables');
alter table public.earth_interactables enable always trigger tr_planet_earth_interactables_changed_update;
create trigger tr_planet_earth_interactables_changed_delete after delete on public.earth_interactables
    referencing old table as old_rows
    for each statement execute function public.planet_note_delete('earth_interactables');
alter table public.earth_interactables enable always trigger tr_planet_earth_interactables_changed_delete;
create trigger tr_planet_earth_interactables_changed_truncate before truncate on public.earth_interactables
    for each statement execute function public.planet_note_truncate('earth_interactables');
alter table public.earth_interactables enable always trigger tr_planet_earth_interactables_changed_truncate;
