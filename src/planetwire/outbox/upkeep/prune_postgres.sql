-- name: prune_changes
delete from earth_data_change_events
where id in (
    select id from earth_data_change_events
    where consumed_at < clock_timestamp() - make_interval(secs => $1)
    order by consumed_at
    limit $2
    for update skip locked
);

-- name: prune_hints
delete from earth_refresh_hints
where id in (
    select id from earth_refresh_hints
    where consumed_at < clock_timestamp() - make_interval(secs => $1)
    order by consumed_at
    limit $2
    for update skip locked
);

-- name: prune_broadcasts
-- The mark is, per layer, the last pruned revision. It moves in the statement that deletes the events.
with gone as (
    delete from earth_broadcasts
    where revision in (
        select revision from earth_broadcasts
        where created_at < clock_timestamp() - make_interval(secs => $1)
        order by created_at
        limit $2
    )
    returning layer, revision
), marked as (
    update earth_layer_heads head
    set pruned_through = greatest(head.pruned_through, newest.revision)
    from (select layer, max(revision) as revision from gone group by layer) newest
    where head.layer = newest.layer
)
select count(*) from gone;
