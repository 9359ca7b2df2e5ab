-- name: put_interactables
-- Rows that are there with the same values are left out before the insert: a conflict would lock, and so write, each.
with wanted as (
    select $1 || ':' || $2 || ':' || n.fact_key as id, n.*
    from unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::float8[], $8::float8[], $9::float8[],
        $10::jsonb[], $11::float8[], $12::timestamptz[])
        as n (fact_key, kind, title, subtitle, lat, lon, alt_m, properties, severity, valid_until)
), changed as (
    select n.* from wanted n
    left join earth_interactables o on o.id = n.id
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

-- name: put_orbits
-- Elements of changed facts have nearly all changed: no look beforehand.
insert into satellite_orbits as o
    (source, fact_key, norad_id, name, epoch, inclination, raan, ecc, argp, mean_anomaly, mean_motion, bstar,
     period_min, apogee_km, perigee_km, regime)
select $1, n.*
from unnest($2::text[], $3::bigint[], $4::text[], $5::timestamptz[], $6::float8[], $7::float8[], $8::float8[],
    $9::float8[], $10::float8[], $11::float8[], $12::float8[], $13::float8[], $14::float8[], $15::float8[],
    $16::text[])
    as n (fact_key, norad_id, name, epoch, inclination, raan, ecc, argp, mean_anomaly, mean_motion, bstar,
        period_min, apogee_km, perigee_km, regime)
order by n.fact_key
on conflict (source, fact_key) do update set
    norad_id = excluded.norad_id, name = excluded.name, epoch = excluded.epoch, inclination = excluded.inclination,
    raan = excluded.raan, ecc = excluded.ecc, argp = excluded.argp, mean_anomaly = excluded.mean_anomaly,
    mean_motion = excluded.mean_motion, bstar = excluded.bstar, period_min = excluded.period_min,
    apogee_km = excluded.apogee_km, perigee_km = excluded.perigee_km, regime = excluded.regime
where (o.norad_id, o.name, o.epoch, o.inclination, o.raan, o.ecc, o.argp, o.mean_anomaly, o.mean_motion, o.bstar,
    o.period_min, o.apogee_km, o.perigee_km, o.regime)
    is distinct from
    (excluded.norad_id, excluded.name, excluded.epoch, excluded.inclination, excluded.raan, excluded.ecc,
     excluded.argp, excluded.mean_anomaly, excluded.mean_motion, excluded.bstar, excluded.period_min,
     excluded.apogee_km, excluded.perigee_km, excluded.regime)

-- name: drop_orbits
-- Of facts whose elements say nothing any more.
delete from satellite_orbits where source = $1 and fact_key = any ($2::text[])

-- name: not_yet_projected
-- Locked against change and delete, so that no derived row is older than its fact or outlives it. Those that somebody
-- holds are left: who changes a fact past the jobs notes it in `derived_pending`.
select external_key, kind, title, data, lat, lon, observed_at, valid_until from collected_data f
where f.source = $1 and not exists (
    select from earth_interactables i where i.source = f.source and i.fact_key = f.external_key and i.layer = $2)
order by f.external_key
limit $3
for share of f skip locked
