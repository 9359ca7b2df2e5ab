-- name: search
-- Every word of the query is a prefix of a word of the object. Ranked: the key itself, the whole title, its beginning,
-- whole words; then by severity, then the shortest title. Facts are joined for the best rows only, one by one. A
-- corrected place is where the map shows the object.
with asked as materialized (
    select string_agg(format('%L:*', word), ' & ')::tsquery as begun,
        string_agg(format('%L', word), ' & ')::tsquery as whole
    from unnest((planet_words($1))[:$5]) word
)
select best.id, layer, best.source, best.fact_key as key, best.source || ':' || best.fact_key as feature, kind, title,
    subtitle, coalesce(place.lat, case when best.lat between -90 and 90 then best.lat end) as lat,
    coalesce(place.lon, case when best.lon between -360 and 360 then best.lon end) as lon, alt_m, severity
from (
    select i.*, case
            when lower(i.fact_key) = $2 then 0
            when lower(i.title) = $2 then 1
            when starts_with(lower(i.title), $2) then 2
            when i.search @@ (select whole from asked) then 3
            else 4
        end as rank
    from earth_interactables i
    where i.search @@ (select begun from asked) and ($3::text is null or i.layer = $3)
    order by rank, nullif(i.severity, 'NaN') desc nulls last, length(i.title), i.title, i.id
    limit $4 + 100
) best
left join resolved_locations place on place.source = best.source and place.fact_key = best.fact_key
where (select true from collected_data f where f.source = best.source and f.external_key = best.fact_key)
order by rank, nullif(severity, 'NaN') desc nulls last, length(title), title, best.id
limit $4

-- name: card
-- By the object's row if there is one, else by the fact that its id names: a hand-typed fact has a card too, and may
-- hold times and places that clients cannot represent.
with named as (
    select coalesce(i.source, $3) as source, coalesce(i.fact_key, $4) as key
    from (select) one left join earth_interactables i on i.id = $1
)
select $1 as id, coalesce(i.layer, $2) as layer, f.source, f.external_key as key,
    f.source || ':' || f.external_key as feature, f.kind, f.title, coalesce(i.subtitle, '') as subtitle,
    coalesce(r.lat, case when f.lat between -90 and 90 then f.lat end) as lat,
    coalesce(r.lon, case when f.lon between -360 and 360 then f.lon end) as lon, i.alt_m, i.severity,
    coalesce(i.properties, '{}') as properties, f.data,
    r.method as place_method, r.precision_m as place_precision_m, r.confidence as place_confidence,
    r.resolver as place_resolver,
    case when f.observed_at between '0001-01-02Z' and '9999-12-30Z' then f.observed_at end as observed_at,
    case when f.collected_at between '0001-01-02Z' and '9999-12-30Z' then f.collected_at end as collected_at,
    case when f.valid_until between '0001-01-02Z' and '9999-12-30Z' then f.valid_until end as valid_until,
    case when i.updated_at between '0001-01-02Z' and '9999-12-30Z' then i.updated_at end as updated_at
from named
join collected_data f on f.source = named.source and f.external_key = named.key
left join earth_interactables i on i.id = $1
left join resolved_locations r on r.source = f.source and r.fact_key = f.external_key

-- name: features
-- Without ids, all objects. In the form of a layer's features, but without the time of the last observation: that
-- changes without an event, so the list would differ at one revision. None without its fact. Facts come first in the
-- query, and so are locked first: a TRUNCATE locks the tables in this order too, so the two cannot deadlock.
select '{"id":' || to_json(i.id)::text
    || ',"layer":' || to_json(i.layer)::text
    || ',"source":' || to_json(i.source)::text
    || ',"kind":' || to_json(i.kind)::text
    || ',"title":' || to_json(i.title)::text
    || ',"subtitle":' || to_json(i.subtitle)::text
    || ',"lat":' || coalesce(to_json(case when i.lat between -90 and 90 then i.lat end)::text, 'null')
    || ',"lon":' || coalesce(to_json(case when i.lon between -360 and 360 then i.lon end)::text, 'null')
    || ',"observed_at":null,"data":'
    || case when jsonb_typeof(i.properties) = 'object' then i.properties::text else '{}' end || '}' as feature
from collected_data f
join earth_interactables i on i.source = f.source and i.fact_key = f.external_key
where $1::text[] is null or i.id = any ($1)
order by i.id
limit $2

-- name: count_features
select count(*) from collected_data f
join earth_interactables i on i.source = f.source and i.fact_key = f.external_key
