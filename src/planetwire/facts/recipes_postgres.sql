-- name: note_recipes
-- One statement: a recipe is never stored before its facts are noted. A source already noted as a whole is not noted
-- twice.
with recursive changed as (
    insert into derivation_recipes as known (source, layer, recipe)
    select * from unnest($1::text[], $2::text[], $3::text[])
    on conflict (source, layer) do update set recipe = excluded.recipe, noted_at = clock_timestamp()
    where known.recipe is distinct from excluded.recipe
    returning known.source
), names as (
    (select source from collected_data order by source limit 1)
    union all
    select (select next.source from collected_data next where next.source > names.source order by next.source limit 1)
    from names where names.source is not null
)
insert into derived_pending (source)
select name.source
from names name
where name.source is not null
    and (name.source in (select source from changed) or exists (select from changed where source = '*'))
    and not exists (
        select from derived_pending waits
        where waits.source = name.source and waits.fact_key is null and waits.through_key is null
    )
returning source
