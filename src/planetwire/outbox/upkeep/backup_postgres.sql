-- name: is_empty
select not exists (
    select from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'public'
);

-- name: forget_broadcasts
delete from earth_broadcasts;

-- name: renew_log
-- The leader of the old database loses its term.
update earth_log_head set epoch = $1, leader_holder = null, leader_expires_at = null;

-- name: forget_heads
update earth_layer_heads set pruned_through = revision;

-- name: mark_observations_pruned
insert into observation_patch_pruned as p (city, pruned_through)
select city, max(revision) from observation_patch_events group by city
on conflict (city) do update set pruned_through = greatest(p.pruned_through, excluded.pruned_through);

-- name: forget_observation_events
delete from observation_patch_events;

-- name: renew_observation_log
update observation_log_head set epoch = $1;
