-- Facts that an earlier version wrote have none of the derived rows that came since. A worker makes them, source by
-- source, as it does for facts written past the jobs; rows that are there already stay as they are.
insert into derived_pending (source)
with recursive names as (
    (select source from collected_data order by source limit 1)
    union all
    select (select next.source from collected_data next where next.source > names.source order by next.source limit 1)
    from names where names.source is not null
)
select source from names where source is not null;
