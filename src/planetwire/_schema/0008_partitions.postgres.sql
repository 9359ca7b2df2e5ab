-- Partitions and children of watched tables. A statement that names a partition fires only the partition's own
-- triggers, so each carries all four; and rows that come or go with ATTACH, DETACH and DROP fire none at all.

-- What carries change triggers, and under which name its changes are reported: so that a drop can still tell.
create table earth_watched_relations (
    relation regclass primary key,
    reported text not null
);
grant select on earth_watched_relations to public; -- read whenever anybody makes or drops a table

-- Since when the present leader leads.
alter table earth_log_head add column leader_since timestamptz;

create function planet_trigger_name(target regclass, event text) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
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

-- Whether the trigger is there, fires always, and calls the right function with the right name to report.
create function planet_is_watched(target regclass, reported text, event text) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
    select exists (
        select from pg_trigger
        where tgrelid = target and tgname = public.planet_trigger_name(target, event) and tgenabled = 'A'
            and tgfoid = to_regprocedure('public.planet_note_' || event || '()')
            and tgargs = convert_to(reported, getdatabaseencoding()) || '\x00'::bytea)
$$;

-- Puts the four triggers on one relation; those that are right stay. How many were made.
create function planet_watch_relation(target regclass, reported text) returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $$
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

-- A watched table with all its partitions and children, however deep. Foreign tables take no such triggers.
create function planet_tree(root regclass) returns table (relation regclass, kind "char")
language sql stable set search_path = pg_catalog, pg_temp as $$
    with recursive tree as (
        select root::oid as oid
        union
        select child.inhrelid from pg_inherits child join tree on tree.oid = child.inhparent
    )
    select tree.oid::regclass, class.relkind
    from tree join pg_class class on class.oid = tree.oid
    where class.relkind in ('r', 'p')
$$;

create function planet_watch_tree(root regclass) returns integer
language sql set search_path = pg_catalog, pg_temp as $$
    select coalesce(sum(public.planet_watch_relation(tree.relation, class.relname)), 0)::integer
    from pg_class class cross join public.planet_tree(root) tree
    where class.oid = root
$$;

-- Tables that report changes under their own name.
create function planet_watched_roots() returns table (root regclass, reported text)
language sql stable set search_path = pg_catalog, pg_temp as $$
    select class.oid::regclass, class.relname::text
    from pg_trigger join pg_class class on class.oid = tgrelid
    where tgfoid = 'public.planet_note_insert()'::regprocedure
        and tgargs = convert_to(class.relname, getdatabaseencoding()) || '\x00'::bytea
$$;

-- Rows came to or left a watched table with a whole relation. Counted like a TRUNCATE, at most a million.
create function planet_note_relation(target regclass, reported text, operation text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
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

-- After CREATE TABLE and ALTER TABLE: new partitions are watched, detached ones no longer. Each is noted before it is
-- changed, since that comes back here. A fault of ours must not stop anybody's DDL: `planetwire doctor` finds it.
-- Nothing is written for a table that is not ours: its owner may have no right to.
create function planet_follow_tables() returns event_trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
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

-- How many rows went with a dropped table nobody can count any more.
create function planet_follow_drops() returns event_trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
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

-- Only a superuser may make event triggers. Where that is not us, new partitions are found by `planetwire doctor` and
-- watched by `planetwire migrate --repair`. Whether both are in place now.
create function planet_install_hooks() returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
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

-- A materialised view takes no triggers: refreshed through here, its layers hear of it in the same commit.
create function planet_refresh_view(target regclass) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    n bigint;
begin
    execute format('refresh materialized view %s', target);
    execute format('select count(*) from (select from %s limit 1000000) counted', target) into n;
    insert into public.earth_data_change_events (table_name, operation, source, records_processed)
    select relname, 'UPDATE', null, n from pg_class where oid = target;
    perform public.planet_ring('planet_earth_data_changes');
end $$;

select planet_watch_tree(root) from planet_watched_roots();
select planet_install_hooks();
