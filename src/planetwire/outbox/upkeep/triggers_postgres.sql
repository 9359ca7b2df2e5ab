-- name: trees
-- Every watched table with its partitions and children, and the fault of each trigger; `lacks` is null without one.
select named.reported, tree.relation::text as relation, tree.relation <> named.root as is_leaf,
       event.name as event, public.planet_trigger_name(tree.relation, event.name) as trigger,
       case
           when trigger.tgname is null then 'missing'
           when trigger.tgenabled <> 'A' then 'disabled'
           when not public.planet_is_watched(tree.relation, named.reported, event.name) then 'wrong'
       end as lacks
from (select reported, to_regclass('public.' || quote_ident(reported)) as root from unnest($1::text[]) reported) named
cross join lateral public.planet_tree(named.root) tree
cross join unnest($2::text[]) as event (name)
left join pg_trigger trigger
    on trigger.tgrelid = tree.relation and trigger.tgname = public.planet_trigger_name(tree.relation, event.name)
order by named.reported, is_leaf, relation, event
limit $3;

-- name: hooks
select count(*) from pg_event_trigger where evtname in ('planet_follow_tables', 'planet_follow_drops')
    and evtenabled = 'A';

-- name: watch_tree
select public.planet_watch_tree(to_regclass('public.' || quote_ident($1::text)));

-- name: install_hooks
select public.planet_install_hooks();
