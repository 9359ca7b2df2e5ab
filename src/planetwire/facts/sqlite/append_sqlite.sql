-- name: forget
delete from observation_keys where city = ? and source = ? and series_key = ? and obs_time_ms = ?;

-- name: add_key
insert into observation_keys (city, source, series_key, obs_time_ms, content_hash, revision, accepted_ms)
values (?, ?, ?, ?, ?, ?, ?)
on conflict do update set revision = excluded.revision, accepted_ms = excluded.accepted_ms;

-- name: add_event
insert or fail into observation_patch_events
    (revision, schema_type, schema_version, city, source, obs_time, payload_json, created_at, prev_revision)
values (?, ?, ?, ?, ?, ?, cast(? as text), ?, ?);

-- name: put_reading
insert into observation_history (city, series_key, source, obs_time_ms, temp_c, max_so_far_c, revision, content_hash)
values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict do update set
    temp_c = excluded.temp_c, max_so_far_c = excluded.max_so_far_c, revision = excluded.revision,
    content_hash = excluded.content_hash;

-- name: put_latest
insert into observation_latest
    (city, series_key, source, obs_time_ms, temp_c, max_so_far_c, revision, station_code, station_label)
values (?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict do update set
    obs_time_ms = excluded.obs_time_ms, temp_c = excluded.temp_c, max_so_far_c = excluded.max_so_far_c,
    station_code = excluded.station_code, station_label = excluded.station_label, revision = excluded.revision
where excluded.obs_time_ms >= observation_latest.obs_time_ms;
