-- name: epoch
select epoch from earth_log_head;

-- name: head
select revision from earth_log_head;

-- name: layer_heads
select layer, revision from earth_layer_heads where layer = any ($1::text[]);

-- name: state_after
-- Layers null: all of them. Counting stops one above the limit.
select head.revision as head,
       (
           select coalesce(max(pruned_through), 0)
           from earth_layer_heads
           where $1::text[] is null or layer = any ($1::text[])
       ) as pruned_through,
       (
           select count(*)
           from (
               select from earth_broadcasts
               where revision > $2 and ($1::text[] is null or layer = any ($1::text[]))
               order by revision
               limit $3 + 1
           ) newer
       ) as newer
from earth_log_head head;

-- name: page_all
select layer, revision, prev_revision, message::text as body
from earth_broadcasts
where revision > $1
order by revision
limit $2;

-- name: page_layers
select layer, revision, prev_revision, message::text as body
from earth_broadcasts
where layer = any ($3::text[]) and revision > $1
order by revision
limit $2;
