-- name: draw_epoch
insert into observation_meta (name, value) values ('epoch', ?) on conflict (name) do nothing;

-- name: epoch
select value from observation_meta where name = 'epoch';

-- name: head
select coalesce(max(seq), 0) from sqlite_sequence where name = 'observation_patch_events';

-- name: previous_revision
select max(
    coalesce((select max(revision) from observation_patch_events where city = :city), 0),
    coalesce((select pruned_through from observation_patch_pruned where city = :city), 0)
);

-- name: find_key
select revision, accepted_ms
from observation_keys
where city = ? and source = ? and series_key = ? and obs_time_ms = ? and content_hash = ?;

-- name: forget_untimed
delete from observation_keys where city = ? and source = ? and series_key = ? and obs_time_ms = 0;

-- name: add_key
insert into observation_keys (city, source, series_key, obs_time_ms, content_hash, revision, accepted_ms)
values (?, ?, ?, ?, ?, ?, ?);

-- name: newest_headline
select coalesce(max(obs_time_ms), 0)
from observation_latest
where city = ? and series_key in (select value from json_each(?));

-- name: add_event
insert into observation_patch_events
    (revision, schema_type, schema_version, city, source, obs_time, payload_json, created_at, prev_revision)
values (?, ?, ?, ?, ?, ?, cast(? as text), ?, ?);

-- name: put_reading
insert into observations (city, series_key, source, obs_time_ms, temp_c, max_so_far_c, revision)
values (:city, :series_key, :source, :obs_time_ms, :temp_c, :max_so_far_c, :revision)
on conflict do update set
    temp_c = excluded.temp_c, max_so_far_c = excluded.max_so_far_c, revision = excluded.revision;

-- name: put_latest
insert into observation_latest
    (city, series_key, source, obs_time_ms, temp_c, max_so_far_c, station_code, station_label, revision)
values
    (:city, :series_key, :source, :obs_time_ms, :temp_c, :max_so_far_c, :station_code, :station_label, :revision)
on conflict do update set
    obs_time_ms = excluded.obs_time_ms, temp_c = excluded.temp_c, max_so_far_c = excluded.max_so_far_c,
    station_code = excluded.station_code, station_label = excluded.station_label, revision = excluded.revision
where excluded.obs_time_ms >= observation_latest.obs_time_ms;

-- name: history
select series_key, source, obs_time_ms, temp_c
from observations
where city = ? and obs_time_ms >= ?
order by obs_time_ms;

-- name: latest_all
select city, series_key, source, obs_time_ms, temp_c, max_so_far_c, station_code, station_label, revision
from observation_latest
order by city, series_key, source;

-- name: latest_of
select city, series_key, source, obs_time_ms, temp_c, max_so_far_c, station_code, station_label, revision
from observation_latest
where city in (select value from json_each(?))
order by city, series_key, source;

-- name: high
select max(temp_c, coalesce(max_so_far_c, temp_c)) as high_c, obs_time_ms
from observations
where city = ? and obs_time_ms >= ? and series_key in (select value from json_each(?))
order by high_c desc, obs_time_ms
limit 1;

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
delete from observations
where (city, obs_time_ms, series_key, source) in (
    select city, obs_time_ms, series_key, source from observations where obs_time_ms < ? limit ?
);

-- name: prune_keys
delete from observation_keys
where (city, source, series_key, obs_time_ms, content_hash) in (
    select city, source, series_key, obs_time_ms, content_hash from observation_keys where accepted_ms < ? limit ?
);
