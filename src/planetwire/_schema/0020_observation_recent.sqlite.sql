-- A reading that is newer than its whole curve is appended to `observation_recent`; many together are then moved to
-- `observation_history`, where they lie as they are read. In each commit it would be a page a city.
-- `observations` is both, so that what was committed is there at once.
alter table observations rename to observation_history;
create table observation_recent (
    id integer primary key,
    city text not null,
    series_key text not null,
    source text not null,
    obs_time_ms integer not null,
    temp_c real not null,
    max_so_far_c real,
    revision integer not null,
    station_code text,
    station_label text,
    content_hash blob
);
create view observations as
select city, series_key, source, obs_time_ms, temp_c, max_so_far_c, revision, obs_time
from observation_history
union all
select
    city, series_key, source, obs_time_ms, temp_c, max_so_far_c, revision,
    strftime('%Y-%m-%dT%H:%M:%fZ', obs_time_ms / 1000.0, 'unixepoch')
from observation_recent;
