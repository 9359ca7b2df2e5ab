-- Sources that are declared as data, and one revision of them all: whoever runs follows it (decision 32).
create table declared_sources (
    name text primary key check (name ~ '^[a-z][a-z0-9_]{0,62}$'),
    text text not null check (octet_length(text) between 1 and 32768),
    enabled boolean not null default true,
    origin text not null default 'store' check (length(origin) <= 100), -- 'store', or 'file:' and whose folder
    -- What follows is set by trigger, whoever writes.
    revision bigint not null,
    changed_at timestamptz not null,
    changed_by text not null,
    sha256 text not null -- of the text
);

create table declared_sources_head (
    one boolean primary key default true check (one),
    revision bigint not null default 0,
    sources integer not null default 0 constraint declared_sources_number check (sources between 0 and 500)
);
insert into declared_sources_head default values;

-- The head is locked until the commit, so the order of revisions is that of commits, and none is left out.
create function planet_declared_stamp() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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

-- A text that changed means other facts of the same body: what is remembered of the body is void, and it is due now.
create function planet_declared_changed() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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

create trigger tr_declared_sources_stamp before insert or update on declared_sources
    for each row execute function planet_declared_stamp();
create trigger tr_declared_sources_changed after insert or update or delete or truncate on declared_sources
    for each statement execute function planet_declared_changed();
alter table declared_sources enable always trigger tr_declared_sources_stamp;
alter table declared_sources enable always trigger tr_declared_sources_changed;
