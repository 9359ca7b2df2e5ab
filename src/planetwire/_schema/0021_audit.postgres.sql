-- Who did what: a row for every write by people, made in the transaction of what it tells. Kept 90 days.
create table audit_log (
    id bigint generated always as identity primary key,
    at timestamptz not null default clock_timestamp(),
    who text not null,
    role text not null,
    address text not null,
    what text not null,
    task_id bigint,
    source text,
    rows_deleted bigint,
    details jsonb not null default '{}' check (jsonb_typeof(details) = 'object' and length(details::text) <= 8192),
    carried text unique
);
create index audit_log_at on audit_log (at);
create index audit_log_task on audit_log (task_id, id) where task_id is not null;
create index audit_log_source on audit_log (source, id) where source is not null;
create index audit_log_who on audit_log (who, id);

-- Rows are added, never changed, and go only when their time is over. Whoever owns the table can take the triggers
-- away; what a statement of ours, or one that slipped into ours, might do by mistake is refused.
create function planet_audit_append_only() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and current_setting('planetwire.audit_prune', true) = 'on' then
        return null;
    end if;
    raise exception 'audit_log is append-only' using errcode = 'insufficient_privilege';
end $$;
create trigger tr_audit_log_append_only before update or delete or truncate on audit_log
    for each statement execute function planet_audit_append_only();

create function planet_prune_audit(kept interval, most integer) returns bigint language plpgsql as $$
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

-- A clear ends in many ways: by its worker, by a cancel, by a rescue, by the ledger itself. Whichever it is, what it
-- deleted is told in the statement that ends it, under the name of who asked for it first.
create function planet_note_cleared() returns trigger language plpgsql as $$
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
create trigger tr_collection_tasks_cleared after update of status on collection_tasks for each row
    when (new.task_type = 'clear_data' and new.status in ('completed', 'failed', 'cancelled')
        and old.status not in ('completed', 'failed', 'cancelled'))
    execute function planet_note_cleared();

-- How many rows of a source a table has: what a clear is about to delete.
create function planet_count_rows(target text, wanted_source text) returns bigint language plpgsql stable as $$
declare
    found_rows bigint;
begin
    execute format('select count(*) from public.%I where source = $1', target) into found_rows using wanted_source;
    return found_rows;
end $$;

-- The last lines of each job, for whoever looks at it while it runs or soon after. Unlogged: a crash of the server
-- may take them, and writing them costs no journal.
create unlogged table job_log_lines (
    id bigint generated always as identity primary key,
    task_id bigint not null,
    at timestamptz not null,
    event text not null,
    line text not null check (length(line) <= 500)
);
create index job_log_lines_task on job_log_lines (task_id, id);
create index job_log_lines_at on job_log_lines (at);
