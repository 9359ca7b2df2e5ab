-- name: head
select coalesce(max(seq), 0) from sqlite_sequence where name = 'observation_patch_events';

-- name: known_cities
select
    wanted.value,
    max(
        coalesce((select max(revision) from observation_patch_events where city = wanted.value), 0),
        coalesce((select pruned_through from observation_patch_pruned where city = wanted.value), 0)
    ),
    coalesce((
        select max(obs_time_ms)
        from observation_latest
        where city = wanted.value and series_key in (select value from json_each(:headline))
    ), 0)
from json_each(:cities) as wanted;

-- name: known_keys
select content_hash, revision, accepted_ms
from observation_keys
where city = ? and source = ? and series_key = ? and obs_time_ms = ?;

-- name: forget
delete from observation_keys where city = ? and source = ? and series_key = ? and obs_time_ms = ?;

-- name: add_key
insert into observation_keys (city, source, series_key, obs_time_ms, content_hash, revision, accepted_ms)
values (?, ?, ?, ?, ?, ?, ?);

-- name: add_event
insert into observation_patch_events
    (revision, schema_type, schema_version, city, source, obs_time, payload_json, created_at, prev_revision)
values (?, ?, ?, ?, ?, ?, cast(? as text), ?, ?);

-- name: put_reading
insert into observations (city, series_key, source, obs_time_ms, temp_c, max_so_far_c, revision)
values (?, ?, ?, ?, ?, ?, ?)
on conflict do update set
    temp_c = excluded.temp_c, max_so_far_c = excluded.max_so_far_c, revision = excluded.revision;

-- name: put_latest
insert into observation_latest
    (city, series_key, source, obs_time_ms, temp_c, max_so_far_c, revision, station_code, station_label)
values (?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict do update set
    obs_time_ms = excluded.obs_time_ms, temp_c = excluded.temp_c, max_so_far_c = excluded.max_so_far_c,
    station_code = excluded.station_code, station_label = excluded.station_label, revision = excluded.revision
where excluded.obs_time_ms >= observation_latest.obs_time_ms;
