-- name: create_stage
-- Lives as long as its connection, is empty after each commit. Filled by binary COPY. No sequential scans: the plan is
-- cached, and one made while a table held five rows would scan it for each of thousands of lookups.
create temporary table if not exists fact_stage (
    external_key text, kind text, title text, data jsonb,
    lat double precision, lon double precision, observed_at timestamptz, valid_until timestamptz
) on commit delete rows;
set local enable_seqscan = off

-- name: merge_stage
-- Unchanged rows are left out before the insert: a conflicting insert would lock, and so write, each. In key order, so
-- that two merges of one source cannot deadlock. Each is looked up by its key: a join would read and hash all rows of
-- the source for every small batch.
with changed as (
    select l.* from fact_stage l
    left join lateral (
        select * from collected_data old where old.source = $1 and old.external_key = l.external_key offset 0) f on true
    where f.id is null
        or (f.kind, f.title, f.data, f.lat, f.lon, f.observed_at, f.valid_until) is distinct from
            (l.kind, l.title, l.data, l.lat, l.lon, l.observed_at, l.valid_until)
    order by l.external_key
), merged as (
    insert into collected_data as f
        (source, external_key, kind, title, data, lat, lon, observed_at, valid_until, task_id)
    select $1, external_key, kind, title, data, lat, lon, observed_at, valid_until, $2 from changed
    on conflict (source, external_key) do update set
        kind = excluded.kind, title = excluded.title, data = excluded.data, lat = excluded.lat, lon = excluded.lon,
        observed_at = excluded.observed_at, valid_until = excluded.valid_until, task_id = excluded.task_id,
        collected_at = clock_timestamp()
    where (f.kind, f.title, f.data, f.lat, f.lon, f.observed_at, f.valid_until) is distinct from
        (excluded.kind, excluded.title, excluded.data, excluded.lat, excluded.lon, excluded.observed_at,
         excluded.valid_until)
    returning f.xmax = 0 as inserted, f.external_key
)
select count(*) filter (where inserted) as inserted, count(*) filter (where not inserted) as updated,
    coalesce(array_agg(external_key), '{}') as keys
from merged

-- name: name_deriving
-- Whether this transaction writes the derived rows of its facts itself.
select set_config('planetwire.derives', $1, true)

-- name: count_before_run
-- The source's rows from before the job: those that the job itself inserted do not count.
select count(*) from collected_data
where source = $1
    and created_at < coalesce((select started_at from collection_tasks where id = $2), clock_timestamp())

-- name: name_sweep
select set_config('planetwire.sweep', $1, true)

-- name: sweep
delete from collected_data f
where f.source = $1 and not exists (select from unnest($2::text[]) as kept (key) where kept.key = f.external_key)

-- name: delete_keys
delete from collected_data where source = $1 and external_key = any ($2::text[])

-- name: store_state
-- Facts deleted while the job ran may be among those it had already written: then the state stays void.
insert into datasources as d
    (source, etag, last_modified, body_sha256, fetched_at, cooldown_until, last_success_at, rows_last_run)
values ($1, $2, $3, $4, $5, $6, case when $8 then clock_timestamp() end, $9)
on conflict (source) do update set
    etag = excluded.etag, last_modified = excluded.last_modified, body_sha256 = excluded.body_sha256,
    fetched_at = excluded.fetched_at, cooldown_until = excluded.cooldown_until,
    last_success_at = case when $8 or excluded.fetched_at > coalesce(d.fetched_at, '-infinity')
        then clock_timestamp() else d.last_success_at end,
    rows_last_run = coalesce($9, d.rows_last_run),
    facts_deleted_at = case
        when $8 and d.facts_deleted_at <= coalesce((select started_at from collection_tasks where id = $7), now())
        then null else d.facts_deleted_at end

-- name: note_success
insert into datasources (source, last_success_at, rows_last_run) values ($1, clock_timestamp(), $2)
on conflict (source) do update set last_success_at = excluded.last_success_at, rows_last_run = excluded.rows_last_run

-- name: clear_chunk
select planet_clear_chunk($1, $2, $3)

-- name: count_rows
select name, planet_count_rows(name, $2) as found from unnest($1::text[]) as name

-- name: features
-- A place corrected by hand or resolved by name replaces the fact's own. Hand-typed values may be NaN, infinite or of a
-- year that clients cannot represent: null, since JSON has none of them. `data` is an object.
select '{"id":' || to_json(f.source || ':' || f.external_key)::text
    || ',"source":' || to_json(f.source)::text
    || ',"kind":' || to_json(f.kind)::text
    || ',"title":' || to_json(f.title)::text
    || ',"lat":' || coalesce(to_json(coalesce(place.lat, case when f.lat between -90 and 90 then f.lat end))::text, 'null')
    || ',"lon":' || coalesce(to_json(coalesce(place.lon, case when f.lon between -360 and 360 then f.lon end))::text, 'null')
    || ',"observed_at":' || coalesce(
        case when f.observed_at between '0001-01-02Z' and '9999-12-30Z' then
            to_char(f.observed_at at time zone 'utc', '"\""YYYY-MM-DD"T"HH24:MI:SS.US"Z\""') end, 'null')
    || ',"data":' || case when jsonb_typeof(f.data) = 'object' then f.data::text else '{}' end || '}' as feature
from collected_data f
left join resolved_locations place on place.source = f.source and place.fact_key = f.external_key
where f.source = any ($1::text[])
order by f.observed_at desc nulls last, f.id desc
limit $2

-- name: count_facts
select count(*) from collected_data where source = any ($1::text[])

-- name: fetch_state
select etag, last_modified, body_sha256, fetched_at, cooldown_until, facts_deleted_at is not null as void
from datasources
where source = $1 and (fetched_at is not null or cooldown_until is not null or facts_deleted_at is not null)

-- name: last_success
select source, last_success_at from datasources
where source = any ($1::text[]) and last_success_at is not null
