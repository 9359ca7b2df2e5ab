-- Appending takes four round trips: `begin`, `known`, `write`, `commit`.

-- name: begin
-- The lock is held until the commit: other appends wait here, so revisions are committed in the order in which they
-- are drawn. The next statement sees what the previous holder committed.
begin; select from observation_log_head for update;

-- name: epoch
select epoch from observation_log_head;

-- name: now
select clock_timestamp();

-- name: known
-- $1 to $4: slots, as columns; $5: cities; $6: the series of a headline.
select head.revision,
       head.epoch,
       clock_timestamp() as now,
       array(
           select (city, source, series_key, obs_time_ms, content_hash, key.revision, accepted_ms)
           from observation_keys key
           join unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
               as slot (city, source, series_key, obs_time_ms) using (city, source, series_key, obs_time_ms)
       ) as keys,
       array(
           select (
               wanted.city,
               greatest(
                   (select max(revision) from observation_patch_events event where event.city = wanted.city),
                   (select pruned_through from observation_patch_pruned pruned where pruned.city = wanted.city),
                   0
               ),
               (
                   select coalesce(max(obs_time_ms), 0)
                   from observation_latest latest
                   where latest.city = wanted.city and latest.series_key = any ($6::text[])
               )
           )
           from unnest($5::text[]) as wanted (city)
       ) as cities
from observation_log_head head;

-- name: write
-- One statement: its parts touch no row twice, so their order does not matter. A key that is written is not among those
-- that are forgotten.
with new_event as (
    insert into observation_patch_events
        (revision, schema_type, schema_version, city, source, obs_time, payload_json, created_at, prev_revision)
    select revision, $7, $8, city, source, obs_time, body, $6, prev_revision
    from jsonb_to_recordset($1) as event
        (revision bigint, city text, source text, obs_time text, body text, prev_revision bigint)
), new_key as (
    select city, source, series_key, obs_time_ms, decode(content, 'hex') as content_hash, revision
    from jsonb_to_recordset($2) as key
        (city text, source text, series_key text, obs_time_ms bigint, content text, revision bigint)
), forgotten as (
    delete from observation_keys old
    using jsonb_to_recordset($3) as slot (city text, source text, series_key text, obs_time_ms bigint)
    where (old.city, old.source, old.series_key, old.obs_time_ms)
        = (slot.city, slot.source, slot.series_key, slot.obs_time_ms)
        and not exists (
            select from new_key
            where (new_key.city, new_key.source, new_key.series_key, new_key.obs_time_ms, new_key.content_hash)
                = (old.city, old.source, old.series_key, old.obs_time_ms, old.content_hash)
        )
), kept_key as (
    insert into observation_keys (city, source, series_key, obs_time_ms, content_hash, revision, accepted_ms)
    select city, source, series_key, obs_time_ms, content_hash, revision, $9
    from new_key
    on conflict (city, source, series_key, obs_time_ms, content_hash) do update set
        revision = excluded.revision, accepted_ms = excluded.accepted_ms
), reading as (
    insert into observations (city, series_key, source, obs_time_ms, temp_c, max_so_far_c, revision)
    select city, series_key, source, obs_time_ms, temp_c, max_so_far_c, revision
    from jsonb_to_recordset($4) as reading (
        city text, series_key text, source text, obs_time_ms bigint, temp_c float8, max_so_far_c float8, revision bigint
    )
    on conflict (city, obs_time_ms, series_key, source) do update set
        temp_c = excluded.temp_c, max_so_far_c = excluded.max_so_far_c, revision = excluded.revision
), newest as (
    insert into observation_latest
        (city, series_key, source, obs_time_ms, temp_c, max_so_far_c, station_code, station_label, revision)
    select city, series_key, source, obs_time_ms, temp_c, max_so_far_c, station_code, station_label, revision
    from jsonb_to_recordset($5) as reading (
        city text, series_key text, source text, obs_time_ms bigint, temp_c float8, max_so_far_c float8,
        station_code text, station_label text, revision bigint
    )
    on conflict (city, series_key, source) do update set
        obs_time_ms = excluded.obs_time_ms, temp_c = excluded.temp_c, max_so_far_c = excluded.max_so_far_c,
        station_code = excluded.station_code, station_label = excluded.station_label, revision = excluded.revision
    where excluded.obs_time_ms >= observation_latest.obs_time_ms
)
update observation_log_head set revision = $10;

-- name: commit
commit;

-- name: rollback
rollback;

-- name: history
select series_key, source, obs_time_ms, temp_c
from observations
where city = $1 and obs_time_ms >= $2
order by obs_time_ms;

-- name: latest
-- Cities null: all.
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
-- One process prunes at a time: two would deadlock on the marks.
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
-- City by city: the only index begins with the city.
delete from observations old
using (
    select reading.*
    from (select distinct city from observation_latest) known
    cross join lateral (
        select city, obs_time_ms, series_key, source
        from observations
        where city = known.city and obs_time_ms < $1
        limit $2
    ) reading
    limit $2
) past
where (old.city, old.obs_time_ms, old.series_key, old.source)
    = (past.city, past.obs_time_ms, past.series_key, past.source);

-- name: prune_keys
delete from observation_keys
where (city, source, series_key, obs_time_ms, content_hash) in (
    select city, source, series_key, obs_time_ms, content_hash from observation_keys where accepted_ms < $1 limit $2
);
