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

-- As before, but for statements of 1,000 rows and more: if the telling column differs in all of them, and no row got
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
