-- name: newest_facts
select known.source, c.facts, c.newest_at, d.last_error_code, d.last_error, d.last_success_at
from (
    select source from datasources
    union
    select distinct source from (
        select source from collected_data order by id desc limit 1000
    ) recent
) known
left join datasources d on d.source = known.source
cross join lateral (
    select count(*) as facts,
        max(collected_at) filter (where collected_at between '0001-01-02Z' and '9999-12-30Z') as newest_at
    from (select collected_at from collected_data where source = known.source limit $1) counted
) c
order by known.source
limit $2;

-- name: failed_collects
-- Sources whose latest finished collect failed, also one whose worker died before it could report.
select d.source, newest.error_code, newest.error
from datasources d
cross join lateral (
    select status, error_code, error, finished_at from collection_tasks
    where source = d.source and finished_at is not null and lane = 'fill'
    order by id desc
    limit 1
) newest
where newest.status = 'failed' and newest.finished_at > coalesce(d.last_success_at, '-infinity')
order by d.source
limit $1;

-- name: oldest_underived
select extract(epoch from clock_timestamp() - written_at)::float8 from derived_pending order by id limit 1;

-- name: unmapped_now
-- Unmapped pairs that are still relevant: the registry does not know them, and their facts exist or, for a table where
-- that cannot be queried, something wrote them in the last minutes.
select skipped.table_name as "table", skipped.source, skipped.changes
from (
    select change.table_name, change.source, count(*) as changes, max(change.consumed_at) as newest_at
    from earth_data_change_events change
    where change.skipped_reason is not null
    group by change.table_name, change.source
) skipped
where not exists (
        select from earth_layer_feeds feed
        where feed.table_name = skipped.table_name and (skipped.source is null or feed.source in (skipped.source, '*')))
    and case
        when skipped.table_name = 'collected_data' and skipped.source is not null
        then exists (select from collected_data fact where fact.source = skipped.source)
        else skipped.newest_at > clock_timestamp() - make_interval(secs => $2)
    end
order by skipped.changes desc, skipped.table_name, skipped.source
limit $1;

-- name: listeners
-- A listener tests itself every few seconds. The times of another role's session are hidden: taken for alive.
select pid, application_name, extract(epoch from clock_timestamp() - query_start)::float8 as silent_s
from pg_stat_activity
where datname = current_database() and application_name = 'planetwire listen'
order by pid
limit 100;

-- name: gate
select extract(epoch from open_until - clock_timestamp())::float8 from wakeup_gates where channel = $1;

-- name: term_age
select extract(epoch from clock_timestamp() - leader_since)::float8 from earth_log_head;

-- name: hints_quarantined
select count(*) from (
    select from earth_refresh_hints where consumed_at is null and next_attempt_at = 'infinity' limit 1000
) waiting;
