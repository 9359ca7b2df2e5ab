-- name: mark_pruned
insert into observation_patch_pruned (city, pruned_through)
select city, max(revision) from observation_patch_events group by city
on conflict (city) do update set pruned_through = max(pruned_through, excluded.pruned_through);

-- name: drop_events
delete from observation_patch_events;

-- name: set_epoch
update observation_meta set value = ? where name = 'epoch';
