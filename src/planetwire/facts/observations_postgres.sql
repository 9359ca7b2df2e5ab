-- name: lock_head
-- Held until the commit: whoever appends waits here, so revisions are committed in the order in which they are drawn.
select revision, epoch from observation_log_head for update;

-- name: epoch
select epoch from observation_log_head;

-- name: now
select clock_timestamp();

-- name: known_keys
select city, source, series_key, obs_time_ms, content_hash, revision, accepted_ms
from observation_keys
join unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) as wanted (city, source, series_key, obs_time_ms)
    using (city, source, series_key, obs_time_ms);

-- name: known_cities
-- The time is read once the lock is held: what is accepted later carries a later one.
select wanted.city,
       greatest(
           (select max(revision) from observation_patch_events event where event.city = wanted.city),
           (select pruned_through from observation_patch_pruned pruned where pruned.city = wanted.city),
           0
       ) as previous,
       (
           select coalesce(max(obs_time_ms), 0)
           from observation_latest latest
           where latest.city = wanted.city and latest.series_key = any ($2::text[])
       ) as newest_ms,
       clock_timestamp() as now
from unnest($1::text[]) as wanted (city);

-- name: add_events
insert into observation_patch_events
    (revision, schema_type, schema_version, city, source, obs_time, payload_json, created_at, prev_revision)
select revision, $7, $8, city, source, obs_time, body, $9, prev_revision
from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[])
    as event (revision, city, source, obs_time, body, prev_revision);

-- name: move_head
update observation_log_head set revision = $1;

-- name: forget_keys
delete from observation_keys
where (city, source, series_key, obs_time_ms) in (
    select city, source, series_key, obs_time_ms
    from unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) as slot (city, source, series_key, obs_time_ms)
);

-- name: add_keys
insert into observation_keys (city, source, series_key, obs_time_ms, content_hash, revision, accepted_ms)
select city, source, series_key, obs_time_ms, content_hash, revision, $7
from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bytea[], $6::bigint[])
    as key (city, source, series_key, obs_time_ms, content_hash, revision);

-- name: put_readings
insert into observations (city, series_key, source, obs_time_ms, temp_c, max_so_far_c, revision)
select *
from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::float8[], $6::float8[], $7::bigint[])
on conflict (city, obs_time_ms, series_key, source) do update set
    temp_c = excluded.temp_c, max_so_far_c = excluded.max_so_far_c, revision = excluded.revision;

-- name: put_latest
insert into observation_latest
    (city, series_key, source, obs_time_ms, temp_c, max_so_far_c, revision, station_code, station_label)
select *
from unnest(
    $1::text[], $2::text[], $3::text[], $4::bigint[], $5::float8[], $6::float8[], $7::bigint[], $8::text[], $9::text[]
)
on conflict (city, series_key, source) do update set
    obs_time_ms = excluded.obs_time_ms, temp_c = excluded.temp_c, max_so_far_c = excluded.max_so_far_c,
    station_code = excluded.station_code, station_label = excluded.station_label, revision = excluded.revision
where excluded.obs_time_ms >= observation_latest.obs_time_ms;

-- name: history
select series_key, source, obs_time_ms, temp_c
from observations
where city = $1 and obs_time_ms >= $2
order by obs_time_ms;

-- name: latest
-- Cities null: all of them.
select city, series_key, source, obs_time_ms, temp_c, max_so_far_c, station_code, station_label, revision
from observation_latest
where $1::text[] is null or city = any ($1::text[])
order by city, series_key, source;

-- name: highs
select wanted.city, high.high_c, high.obs_time_ms
from unnest($1::text[], $2::bigint[]) as wanted (city, since_ms)
cross join lateral (
    select greatest(temp_c, max_so_far_c) as high_c, obs_time_ms
    from observations reading
    where reading.city = wanted.city and reading.obs_time_ms >= wanted.since_ms
        and reading.series_key = any ($3::text[])
    order by high_c desc, obs_time_ms
    limit 1
) high;

-- name: alone
-- One process prunes at a time: the marks of two would wait for each other.
select pg_try_advisory_xact_lock(hashtext('observation_patch_pruned'));

-- name: prune_events
with old as (
    select revision, city from observation_patch_events where created_at < $1 order by created_at, revision limit $2
), gone as (
    delete from observation_patch_events event using old where event.revision = old.revision
), marked as (
    insert into observation_patch_pruned (city, pruned_through)
    select city, max(revision) from old group by city
    on conflict (city) do update set
        pruned_through = greatest(observation_patch_pruned.pruned_through, excluded.pruned_through)
)
select count(*) from old;

-- name: prune_history
delete from observations
where (city, obs_time_ms, series_key, source) in (
    select city, obs_time_ms, series_key, source from observations where obs_time_ms < $1 limit $2
);

-- name: prune_keys
delete from observation_keys
where (city, source, series_key, obs_time_ms, content_hash) in (
    select city, source, series_key, obs_time_ms, content_hash from observation_keys where accepted_ms < $1 limit $2
);
