-- name: draw_epoch
insert into observation_meta (name, value) values ('epoch', ?) on conflict (name) do nothing;

-- name: epoch
select value from observation_meta where name = 'epoch';

-- name: history
select series_key, source, obs_time_ms, temp_c
from observation_history
where city = :city and obs_time_ms >= :since
union all
select series_key, source, obs_time_ms, temp_c
from observation_recent
where city = :city and obs_time_ms >= :since
order by obs_time_ms;

-- name: latest_all
select city, series_key, source, obs_time_ms, temp_c, max_so_far_c, station_code, station_label, revision
from observation_latest;

-- name: latest_of
select city, series_key, source, obs_time_ms, temp_c, max_so_far_c, station_code, station_label, revision
from observation_latest
where city in (select value from json_each(?));

-- name: recent
select city, series_key, source, obs_time_ms, temp_c, max_so_far_c, station_code, station_label, revision
from observation_recent
order by id;

-- name: high
select max(temp_c, coalesce(max_so_far_c, temp_c)) as high_c, obs_time_ms
from observation_history
where city = ? and obs_time_ms >= ? and series_key in (select value from json_each(?))
order by high_c desc, obs_time_ms
limit 1;

-- name: recent_highs
select city, max(temp_c, coalesce(max_so_far_c, temp_c)), obs_time_ms
from observation_recent
where series_key in (select value from json_each(?));

-- name: mark_pruned
insert into observation_patch_pruned (city, pruned_through)
select city, max(revision)
from (select city, revision from observation_patch_events where created_at < ? order by created_at, revision limit ?)
where true
group by city
on conflict (city) do update set pruned_through = max(pruned_through, excluded.pruned_through);

-- name: prune_events
delete from observation_patch_events
where revision in (
    select revision from observation_patch_events where created_at < ? order by created_at, revision limit ?
);

-- name: prune_history
delete from observation_history
where (city, obs_time_ms, series_key, source) in (
    select reading.city, reading.obs_time_ms, reading.series_key, reading.source
    from (select distinct city from observation_latest) as known
    cross join observation_history as reading on reading.city = known.city and reading.obs_time_ms < ?
    limit ?
);

-- name: prune_keys
delete from observation_keys
where (city, source, series_key, obs_time_ms, content_hash) in (
    select city, source, series_key, obs_time_ms, content_hash from observation_keys where accepted_ms < ? limit ?
);
