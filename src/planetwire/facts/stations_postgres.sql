-- name: cursor
select epoch, revision from log_consumers where consumer = $1

-- name: written_ago
-- A hand-typed time more than a year off counts as not written lately.
select external_key, greatest(0, extract(epoch from clock_timestamp() - collected_at))::float8 as ago_s
from collected_data
where source = $1 and collected_at between clock_timestamp() - interval '1 year' and clock_timestamp() + interval '1 year'

-- name: hold
-- Does not wait: a clear job that holds one of them may want another of ours (deadlock). The bridge retries later.
select id from collected_data where source = $1 and external_key = any ($2::text[]) for update nowait

-- name: move_cursor
insert into log_consumers as c (consumer, epoch, revision) values ($1, $2, $3)
on conflict (consumer) do update set
    epoch = excluded.epoch, revision = excluded.revision, moved_at = excluded.moved_at
where (c.epoch, c.revision) is distinct from (excluded.epoch, excluded.revision)

-- name: age
-- Only facts with limits of their age, numbers of any size; locked ones are left for the next time.
with bounds as (
    select id, case when isfinite(observed_at) then extract(epoch from clock_timestamp() - observed_at) end as age_s,
        case when jsonb_typeof(data -> 'fresh_s') = 'number' then (data ->> 'fresh_s')::numeric end as fresh_s,
        case when jsonb_typeof(data -> 'wait_s') = 'number' then (data ->> 'wait_s')::numeric end as wait_s,
        case when jsonb_typeof(data -> 'stale_s') = 'number' then (data ->> 'stale_s')::numeric end as stale_s
    from collected_data
    where source = $1 and external_key <> all ($2::text[])
    for update skip locked
), states as (
    select id, to_jsonb(case
        when age_s <= fresh_s then 'fresh' when age_s <= wait_s then 'expected_wait'
        when age_s <= stale_s then 'delayed' else 'stale' end) as freshness
    from bounds
    where age_s is not null and fresh_s is not null and wait_s is not null and stale_s is not null
)
update collected_data f set data = jsonb_set(f.data, '{freshness}', s.freshness)
from states s
where f.id = s.id and f.data -> 'freshness' is distinct from s.freshness
returning f.external_key
