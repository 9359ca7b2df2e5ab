-- name: epoch
select value from observation_meta where name = 'epoch';

-- name: head
select coalesce(max(seq), 0) from sqlite_sequence where name = 'observation_patch_events';

-- name: heads
select wanted.value, max(
    coalesce((select max(revision) from observation_patch_events where city = wanted.value), 0),
    coalesce((select pruned_through from observation_patch_pruned where city = wanted.value), 0)
)
from json_each(?) as wanted;

-- name: pruned_through
select coalesce(max(pruned_through), 0)
from observation_patch_pruned
where city in (select value from json_each(?));

-- name: count_after
select count(*) from (
    select 1 from observation_patch_events where city in (select value from json_each(?)) and revision > ? limit ?
);

-- name: page
select city, revision, prev_revision, cast(payload_json as blob)
from observation_patch_events
where city in (select value from json_each(?)) and revision > ?
order by revision
limit ?;
