-- name: size
select coalesce(max(id), 0) from observation_recent;

-- name: add
insert or fail into observation_recent
    (city, series_key, source, obs_time_ms, temp_c, max_so_far_c, revision, station_code, station_label, content_hash)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: move_history
insert into observation_history
    (city, series_key, source, obs_time_ms, temp_c, max_so_far_c, revision, content_hash)
select city, series_key, source, obs_time_ms, temp_c, max_so_far_c, revision, content_hash
from observation_recent
order by id;

-- name: move_latest
insert into observation_latest
    (city, series_key, source, obs_time_ms, temp_c, max_so_far_c, revision, station_code, station_label)
select
    city, series_key, source, max(obs_time_ms), temp_c, max_so_far_c, revision, station_code, station_label
from observation_recent
where true
group by city, series_key, source
on conflict do update set
    obs_time_ms = excluded.obs_time_ms, temp_c = excluded.temp_c, max_so_far_c = excluded.max_so_far_c,
    station_code = excluded.station_code, station_label = excluded.station_label, revision = excluded.revision
where excluded.obs_time_ms >= observation_latest.obs_time_ms;

-- name: clear
delete from observation_recent;
