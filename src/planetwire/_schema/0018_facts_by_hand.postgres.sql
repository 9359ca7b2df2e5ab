-- Facts that were written past the jobs, by psql or another program, and whose derived rows are still to be made: a
-- worker makes them within a moment, so that search follows a repair as the map does. A job makes its own in the
-- transaction of its facts, and says so there: planetwire.derives = on.
create table derived_pending (
    id bigint generated always as identity primary key,
    source text not null,
    fact_key text, -- null: every fact of the source …
    through_key text, -- … of which those up to here are done
    written_at timestamptz not null default clock_timestamp()
);

-- By key up to 500 facts a statement, else by source: a load of a million rows must not write a million more.
create function planet_derive_inserted() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if (select count(*) from (select from new_rows limit 501) counted) <= 500 then
        insert into public.derived_pending (source, fact_key) select n.source, n.external_key from new_rows n;
    else
        insert into public.derived_pending (source) select distinct n.source from new_rows n;
    end if;
    return null;
end $$;

create function planet_derive_updated() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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

create trigger planet_derive_inserted after insert on collected_data
    referencing new table as new_rows for each statement
    when (current_setting('planetwire.derives', true) is distinct from 'on')
    execute function planet_derive_inserted();
create trigger planet_derive_updated after update on collected_data
    referencing old table as old_rows new table as new_rows for each statement
    when (current_setting('planetwire.derives', true) is distinct from 'on')
    execute function planet_derive_updated();
alter table collected_data enable always trigger planet_derive_inserted;
alter table collected_data enable always trigger planet_derive_updated;
