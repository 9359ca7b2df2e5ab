-- name: triggers_enabled
select tgname as name, tgenabled::text = 'A' as always
from pg_trigger
where tgname like 'tr_planet_%_changed_%';

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
    select count(*) as facts, max(collected_at) as newest_at
    from (select collected_at from collected_data where source = known.source limit $1) counted
) c
order by known.source;

-- name: listeners
select count(*) from pg_stat_activity where datname = current_database() and application_name = 'planetwire listen';

-- name: long_transactions
select pid, application_name, extract(epoch from clock_timestamp() - xact_start)::float8 as age_s
from pg_stat_activity
where datname = current_database() and xact_start < clock_timestamp() - make_interval(secs => $1)
order by xact_start
limit 5;
