-- Facts without coordinates that earlier versions wrote: a worker looks up where they lie, source by source, as it does
-- for facts written past the jobs. Rows that are there already stay as they are.
insert into derived_pending (source)
with recursive names as (
    (select source from collected_data order by source limit 1)
    union all
    select (select next.source from collected_data next where next.source > names.source order by next.source limit 1)
    from names where names.source is not null
)
select source from names
where source is not null
    and exists (select from collected_data f where f.source = names.source and (f.lat is null or f.lon is null))
    and not exists (select from satellite_orbits o where o.source = names.source); -- these move
