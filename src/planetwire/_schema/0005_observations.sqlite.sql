-- The observation store: a replayable log of patch events, and the history behind the intraday curves.
-- Both are written in one transaction by one thread, so a stream and a snapshot cannot disagree.
create table if not exists observation_patch_events (
    revision integer primary key autoincrement,
    schema_type text not null,
    schema_version integer not null,
    city text not null,
    source text not null,
    obs_time text,
    payload_json text not null,
    created_at text not null
);
create index if not exists idx_observation_patch_events_city_revision on observation_patch_events (city, revision);
create index if not exists idx_observation_patch_events_created_at on observation_patch_events (created_at);

-- The revision before this one of the same city: what a subscriber of some cities detects a gap by.
alter table observation_patch_events add column prev_revision integer not null default 0;

-- Highest deleted revision of each city. A cursor below it cannot be served from the log.
create table observation_patch_pruned (
    city text primary key,
    pruned_through integer not null
) without rowid;

-- A file of an older program may hold events in another shape: they are not replayed, and that is marked.
insert into observation_patch_pruned (city, pruned_through)
select city, max(revision) from observation_patch_events group by city;
delete from observation_patch_events;

-- `epoch`: the life of this log, drawn once; a cursor of another life means nothing here.
create table observation_meta (
    name text primary key,
    value text not null
) without rowid;

-- What was accepted already. `obs_time_ms` 0: the sender gave no time; then only the latest content is kept.
create table observation_keys (
    city text not null,
    source text not null,
    series_key text not null,
    obs_time_ms integer not null,
    content_hash blob not null,
    revision integer not null,
    accepted_ms integer not null,
    primary key (city, source, series_key, obs_time_ms, content_hash)
) without rowid;
create index observation_keys_accepted on observation_keys (accepted_ms);

-- One row a city, series, source and observation time; a correction replaces the value. Times are UTC.
create table observations (
    city text not null,
    series_key text not null,
    source text not null,
    obs_time_ms integer not null,
    temp_c real not null,
    max_so_far_c real,
    revision integer not null,
    obs_time text generated always as (strftime('%Y-%m-%dT%H:%M:%fZ', obs_time_ms / 1000.0, 'unixepoch')) virtual,
    primary key (city, obs_time_ms, series_key, source)
) without rowid;
create index observations_time on observations (obs_time_ms);

-- Newest reading of each series, so that the list of all cities reads one small table.
create table observation_latest (
    city text not null,
    series_key text not null,
    source text not null,
    obs_time_ms integer not null,
    temp_c real not null,
    max_so_far_c real,
    station_code text,
    station_label text,
    revision integer not null,
    primary key (city, series_key, source)
) without rowid;
