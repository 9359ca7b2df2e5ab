-- name: head
select coalesce(max(seq), 0), (select coalesce(max(id), 0) from observation_recent)
from sqlite_sequence
where name = 'observation_patch_events';

-- name: data_version
pragma data_version;

-- name: previous
select
    wanted.value,
    max(
        coalesce((select max(revision) from observation_patch_events where city = wanted.value), 0),
        coalesce((select pruned_through from observation_patch_pruned where city = wanted.value), 0)
    )
from json_each(?) as wanted;

-- name: newest
with wanted as (select value as city from json_each(?))
select city, series_key, source, obs_time_ms from observation_latest where city in (select city from wanted)
union all
select city, series_key, source, obs_time_ms from observation_recent where city in (select city from wanted);

-- name: keys
select content_hash, revision, accepted_ms
from observation_keys
where city = ? and source = ? and series_key = ? and obs_time_ms = ?;

-- name: held
select content_hash, revision
from observation_history
where city = ? and source = ? and series_key = ? and obs_time_ms = ? and content_hash is not null;
