-- The observation store: a replayable log of patch events, and the history behind the intraday curves.
-- Tables and columns are those of the SQLite file. Whoever appends holds the one row of `observation_log_head` from
-- drawing revisions to the commit, so revision order is commit order whatever the number of writing processes.
create table observation_log_head (
    only_row boolean primary key default true check (only_row),
    epoch text not null default substr(md5(gen_random_uuid()::text), 1, 12) check (epoch ~ '^[a-z0-9]{12}$'),
    revision bigint not null default 0
) with (fillfactor = 50);
insert into observation_log_head default values;

-- Texts hold what the SQLite columns hold: ISO 8601 in UTC, of one width, so that they sort as times do.
create table observation_patch_events (
    revision bigint primary key,
    schema_type text not null,
    schema_version integer not null,
    city text not null,
    source text not null,
    obs_time text,
    payload_json text not null,
    created_at text collate "C" not null,
    prev_revision bigint not null default 0
);
create index idx_observation_patch_events_city_revision on observation_patch_events (city, revision);
create index idx_observation_patch_events_created_at on observation_patch_events (created_at);

-- Highest deleted revision of each city. A cursor below it cannot be served from the log.
create table observation_patch_pruned (
    city text primary key,
    pruned_through bigint not null
) with (fillfactor = 50);

-- What was accepted already. `obs_time_ms` 0: the sender gave no time; then only the latest content is kept.
create table observation_keys (
    city text not null,
    source text not null,
    series_key text not null,
    obs_time_ms bigint not null,
    content_hash bytea not null,
    revision bigint not null,
    accepted_ms bigint not null,
    primary key (city, source, series_key, obs_time_ms, content_hash)
);
create index observation_keys_accepted on observation_keys (accepted_ms);

-- One row a city, series, source and observation time; a correction replaces the value.
create table observations (
    city text not null,
    series_key text not null,
    source text not null,
    obs_time_ms bigint not null,
    temp_c double precision not null,
    max_so_far_c double precision,
    revision bigint not null,
    obs_time timestamptz not null generated always as (to_timestamp(obs_time_ms / 1000.0)) stored,
    primary key (city, obs_time_ms, series_key, source)
);
create index observations_time on observations (obs_time_ms);

-- Newest reading of each series, so that the list of all cities reads one small table.
create table observation_latest (
    city text not null,
    series_key text not null,
    source text not null,
    obs_time_ms bigint not null,
    temp_c double precision not null,
    max_so_far_c double precision,
    station_code text,
    station_label text,
    revision bigint not null,
    primary key (city, series_key, source)
) with (fillfactor = 70);
