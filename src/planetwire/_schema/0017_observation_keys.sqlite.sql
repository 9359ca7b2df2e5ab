-- What was accepted is remembered in the reading's own row: one tree less to write a commit, and no second index.
-- `observation_keys` keeps what has no such row: readings without a time, contents that a correction replaced, patches of
-- runways alone.
alter table observations add column content_hash blob;
update observations set content_hash = (
    select kept.content_hash
    from observation_keys as kept
    where kept.city = observations.city and kept.source = observations.source
        and kept.series_key = observations.series_key and kept.obs_time_ms = observations.obs_time_ms
        and kept.revision = observations.revision
);
delete from observation_keys
where exists (
    select 1
    from observations as reading
    where reading.city = observation_keys.city and reading.obs_time_ms = observation_keys.obs_time_ms
        and reading.series_key = observation_keys.series_key and reading.source = observation_keys.source
        and reading.content_hash = observation_keys.content_hash
);

-- Old readings are found city by city, in the order in which they lie.
drop index observations_time;
