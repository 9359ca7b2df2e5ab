-- name: create_stage
-- Lives as long as its connection, is empty after each commit. Filled by binary COPY, which costs the client half as
-- much as arrays. No sequential scans: as for facts.
create temporary table if not exists interactables_stage (
    fact_key text, kind text, title text, subtitle text, lat double precision, lon double precision,
    alt_m double precision, properties jsonb, severity double precision, valid_until timestamptz
) on commit delete rows;
delete from interactables_stage; -- what an earlier layer of the same transaction left
set local enable_seqscan = off

-- name: put_interactables
-- Unchanged rows are left out before the insert: a conflict would lock, and so write, each. Looked up one by one: the
-- plan is cached, and one made for thousands would read the whole table for a single row.
with wanted as (
    select $1 || ':' || $2 || ':' || n.fact_key as id, n.* from interactables_stage n
), changed as (
    select n.* from wanted n
    left join lateral (select * from earth_interactables old where old.id = n.id offset 0) o on true
    where o.id is null
        or (o.kind, o.title, o.subtitle, o.lat, o.lon, o.alt_m, o.properties, o.severity, o.valid_until)
            is distinct from
            (n.kind, n.title, n.subtitle, n.lat, n.lon, n.alt_m, n.properties, n.severity, n.valid_until)
    order by n.id
)
insert into earth_interactables as o
    (id, layer, source, fact_key, kind, title, subtitle, lat, lon, alt_m, properties, severity, valid_until)
select id, $1, $2, fact_key, kind, title, subtitle, lat, lon, alt_m, properties, severity, valid_until from changed
on conflict (id) do update set
    layer = excluded.layer, source = excluded.source, fact_key = excluded.fact_key, kind = excluded.kind,
    title = excluded.title, subtitle = excluded.subtitle, lat = excluded.lat, lon = excluded.lon,
    alt_m = excluded.alt_m, properties = excluded.properties, severity = excluded.severity,
    valid_until = excluded.valid_until, updated_at = clock_timestamp()

-- name: put_places
-- Unchanged rows are not written. Rows corrected or locked by a person, or resolved by another program, are not
-- touched.
with wanted as (
    select * from unnest($2::text[], $3::text[], $4::float8[], $5::float8[], $6::float8[], $7::float8[], $8::text[])
        as w (fact_key, method, lat, lon, precision_m, confidence, resolver)
), changed as (
    select w.* from wanted w
    left join lateral (
        select * from resolved_locations old where old.source = $1 and old.fact_key = w.fact_key offset 0) o on true
    where o.id is null
        or (not o.locked and o.method <> 'manual' and o.resolver = any ($9::text[])
            and (o.method, o.lat, o.lon, o.precision_m, o.confidence, o.resolver)
                is distinct from (w.method, w.lat, w.lon, w.precision_m, w.confidence, w.resolver))
    order by w.fact_key
)
insert into resolved_locations as o (source, fact_key, method, lat, lon, precision_m, confidence, resolver)
select $1, fact_key, method, lat, lon, precision_m, confidence, resolver from changed
on conflict (source, fact_key) do update set
    method = excluded.method, lat = excluded.lat, lon = excluded.lon, precision_m = excluded.precision_m,
    confidence = excluded.confidence, resolver = excluded.resolver
where not o.locked and o.method <> 'manual' and o.resolver = any ($9::text[])

-- name: places_of_ours
-- Most sources have none: then the lookups of single facts are skipped.
select exists (
    select from resolved_locations
    where source = $1 and resolver = any ($2::text[]) and not locked and method <> 'manual')

-- name: move_places
-- Of facts that now have coordinates of their own.
update resolved_locations o set
    method = w.method, lat = w.lat, lon = w.lon, precision_m = w.precision_m, confidence = w.confidence,
    resolver = w.resolver
from unnest($2::text[], $3::text[], $4::float8[], $5::float8[], $6::float8[], $7::float8[], $8::text[])
    as w (fact_key, method, lat, lon, precision_m, confidence, resolver)
where o.source = $1 and o.fact_key = w.fact_key
    and not o.locked and o.method <> 'manual' and o.resolver = any ($9::text[])
    and (o.method, o.lat, o.lon, o.precision_m, o.confidence, o.resolver)
        is distinct from (w.method, w.lat, w.lon, w.precision_m, w.confidence, w.resolver)

-- name: drop_places
-- Of facts whose place can no longer be resolved.
delete from resolved_locations
where source = $1 and fact_key = any ($2::text[])
    and resolver = any ($3::text[]) and not locked and method <> 'manual'

-- name: not_yet_projected
-- Locked against update and delete, so that no derived row is older than its fact or outlives it. Locked facts are
-- skipped: a change from outside the jobs is noted in `derived_pending`. A time outside the years that clients can
-- represent is null.
select external_key, kind, title, data, lat, lon,
    case when observed_at between '0001-01-02Z' and '9999-12-30Z' then observed_at end as observed_at,
    case when valid_until between '0001-01-02Z' and '9999-12-30Z' then valid_until end as valid_until
from collected_data f
where f.source = $1 and f.external_key >= $4 and (f.external_key > $4 or $4 = '') and not exists (
    select from earth_interactables i where i.source = f.source and i.fact_key = f.external_key and i.layer = $2)
order by f.external_key
limit $3
for share of f skip locked
