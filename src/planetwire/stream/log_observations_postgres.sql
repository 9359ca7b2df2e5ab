-- name: epoch
select epoch from observation_log_head;

-- name: head
select revision from observation_log_head;

-- name: heads
select wanted.city, greatest(
    (select max(revision) from observation_patch_events event where event.city = wanted.city),
    (select pruned_through from observation_patch_pruned pruned where pruned.city = wanted.city),
    0
) as revision
from unnest($1::text[]) as wanted (city);

-- name: state_after
-- Counting stops one above the limit.
select head.revision as head,
       (
           select coalesce(max(pruned_through), 0) from observation_patch_pruned where city = any ($1::text[])
       ) as pruned_through,
       (
           select count(*)
           from (
               select from observation_patch_events
               where city = any ($1::text[]) and revision > $2
               limit $3 + 1
           ) newer
       ) as newer
from observation_log_head head;

-- name: page
-- One statement reads one snapshot, so `pruned_through` matches the events returned.
select mark.pruned_through, event.city, event.revision, event.prev_revision, event.payload_json
from (
    select coalesce(max(pruned_through), 0) as pruned_through
    from observation_patch_pruned
    where city = any ($1::text[])
) mark
left join lateral (
    select city, revision, prev_revision, payload_json
    from observation_patch_events
    where city = any ($1::text[]) and revision > $2
    order by revision
    limit $3
) event on true
order by event.revision;
