-- One page of the ledger, newest first, each filter by its own index: the plan is made for the values at hand.
create function planet_job_page(
    wanted_status text, wanted_source text, before_id bigint, most integer, unretried boolean default false
) returns setof collection_tasks
language plpgsql stable
    -- In the order of an index, never all of a filter's rows to be sorted for a page of them.
    set search_path = pg_catalog, pg_temp set plan_cache_mode = force_custom_plan
    set enable_sort = off set enable_bitmapscan = off set enable_seqscan = off as $$
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
                    and task.parked is distinct from 'time' and task.task_type in ('collect', 'clear_data')
                union all
                select task.* from public.collection_tasks task
                where task.source = wanted_source and task.status = 'queued'
                    and not (task.parked is distinct from 'time') and task.task_type in ('collect', 'clear_data')
                union all
                select task.* from public.collection_tasks task
                where task.source = wanted_source and task.status = 'queued'
                    and task.task_type in ('clear_cache', 'earth_refresh')
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

-- How many run, wait and are dead, each counted up to `most`: by their indexes, not through a long history.
create function planet_job_counts(most integer, out running bigint, out queued bigint, out dead bigint)
language plpgsql stable
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
begin
    select count(*) into running from (
        select from public.collection_tasks
        where status in ('running', 'cancelling') and lease_seq >= 0 limit most) capped;
    select count(*) into queued from (
        (select from public.collection_tasks
         where status = 'queued' and task_type in ('collect', 'clear_data') limit most)
        union all
        (select from public.collection_tasks
         where status = 'queued' and task_type in ('clear_cache', 'earth_refresh') limit most)
        limit most) capped;
    select count(*) into dead from (
        select from public.collection_tasks where status = 'failed' and retried_as is null limit most) capped;
end $$;
