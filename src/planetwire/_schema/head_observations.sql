-- What the migrations of SQLite add up to. Written by `make schema`; a test compares.

CREATE VIEW observations as
select city, series_key, source, obs_time_ms, temp_c, max_so_far_c, revision, obs_time
from observation_history
union all
select
    city, series_key, source, obs_time_ms, temp_c, max_so_far_c, revision,
    strftime('%Y-%m-%dT%H:%M:%fZ', obs_time_ms / 1000.0, 'unixepoch')
from observation_recent;

CREATE TABLE "observation_history" (
    city text not null,
    series_key text not null,
    source text not null,
    obs_time_ms integer not null,
    temp_c real not null,
    max_so_far_c real,
    revision integer not null,
    obs_time text generated always as (strftime('%Y-%m-%dT%H:%M:%fZ', obs_time_ms / 1000.0, 'unixepoch')) virtual, content_hash blob,
    primary key (city, obs_time_ms, series_key, source)
) without rowid;

CREATE TABLE observation_keys (
    city text not null,
    source text not null,
    series_key text not null,
    obs_time_ms integer not null,
    content_hash blob not null,
    revision integer not null,
    accepted_ms integer not null,
    primary key (city, source, series_key, obs_time_ms, content_hash)
) without rowid;

CREATE TABLE observation_latest (
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

CREATE TABLE observation_meta (
    name text primary key,
    value text not null
) without rowid;

CREATE TABLE observation_patch_events (
    revision integer primary key autoincrement,
    schema_type text not null,
    schema_version integer not null,
    city text not null,
    source text not null,
    obs_time text,
    payload_json text not null,
    created_at text not null
, prev_revision integer not null default 0);

CREATE TABLE observation_patch_pruned (
    city text primary key,
    pruned_through integer not null
) without rowid;

CREATE TABLE observation_recent (
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

CREATE TABLE planetwire_migrations (
    name text primary key, checksum text not null, applied_at text not null default current_timestamp);

CREATE TABLE sqlite_sequence(name,seq);

CREATE INDEX idx_observation_patch_events_city_revision on observation_patch_events (city, revision);

CREATE INDEX idx_observation_patch_events_created_at on observation_patch_events (created_at);

CREATE INDEX observation_keys_accepted on observation_keys (accepted_ms);
