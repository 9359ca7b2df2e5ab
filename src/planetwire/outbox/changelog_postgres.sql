-- name: lead
update earth_log_head
set leader_term = leader_term + (case when leader_holder = $1 then 0 else 1 end),
    leader_since = case when leader_holder = $1 then leader_since else clock_timestamp() end,
    leader_holder = $1,
    leader_expires_at = clock_timestamp() + make_interval(secs => $2)
where leader_holder is null or leader_holder = $1 or leader_expires_at <= clock_timestamp()
returning leader_term;

-- name: resign
update earth_log_head
set leader_holder = null, leader_expires_at = null
where leader_holder = $1 and leader_term = $2;

-- name: pending_changes
-- `not in` is a hashed filter, which keeps the index order; a join would sort the backlog.
-- Rows that differ only in their counts are added up. Not merged: rows that failed before, so that the bad one is found,
-- and rows with ids, as long as these are few enough to be sent to browsers.
with due as (
    select id, table_name, operation, source, records_processed, row_ids, occurred_at, attempts
    from earth_data_change_events
    where consumed_at is null
      and id > $5
      and (next_attempt_at is null or next_attempt_at <= clock_timestamp())
      and id not in (select unnest($2::bigint[]))
    order by id
    limit $1
), told as (
    select coalesce(sum(case jsonb_typeof(row_ids) when 'array' then jsonb_array_length(row_ids) end), 0) <= $4 as ids
    from due
    where row_ids is not null
), marked as (
    select due.*, case when $3 or attempts > 0 or (row_ids is not null and told.ids) then id end as alone
    from due, told
)
select min(id) as id, table_name, operation, source,
    least(sum(records_processed), 9223372036854775807)::bigint as records_processed,
    case when alone is not null then (array_agg(row_ids))[1] end as row_ids,
    max(occurred_at) as occurred_at, max(attempts) as attempts, array_agg(id) as ids
from marked
group by table_name, operation, source, alone
order by id;

-- name: pending_hints
select id, layer, source, action, created_at
from earth_refresh_hints
where consumed_at is null
  and (next_attempt_at is null or next_attempt_at <= clock_timestamp())
  and id not in (select unnest($2::bigint[]))
order by id
limit $1;

-- name: take_revisions
-- The fence: a relay whose term is over gets no row, and with it no revision. The row lock, held to the commit,
-- makes revision order commit order. The server ends the transaction of a relay that hangs: soon if it waits for
-- the next statement, else (17 and newer) after a time that no regular commit takes.
update earth_log_head
set revision = revision + $2
where leader_term = $1
returning epoch, revision, set_config('idle_in_transaction_session_timeout', '5s', true),
    case when current_setting('server_version_num')::int >= 170000
        then set_config('transaction_timeout', '20s', true) end;

-- name: layer_heads
select layer, revision from earth_layer_heads where layer = any ($1::text[]);

-- name: append
insert into earth_broadcasts (epoch, revision, prev_revision, layer, message)
select $1, new.revision, new.prev_revision, new.layer, new.message::jsonb
from unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[]) as new (revision, prev_revision, layer, message)
order by new.revision
returning revision, prev_revision, layer, message::text as body;

-- name: move_heads
insert into earth_layer_heads (layer, revision)
select new.layer, max(new.revision)
from unnest($1::text[], $2::bigint[]) as new (layer, revision)
group by new.layer
on conflict (layer) do update set revision = excluded.revision;

-- name: consume_changes
update earth_data_change_events
set consumed_at = clock_timestamp()
where id = any ($1::bigint[]) and consumed_at is null;

-- name: skip_changes
update earth_data_change_events change
set consumed_at = clock_timestamp(), skipped_reason = skip.reason
from unnest($1::bigint[], $2::text[]) as skip (id, reason)
where change.id = skip.id and change.consumed_at is null;

-- name: consume_hints
update earth_refresh_hints
set consumed_at = clock_timestamp()
where id = any ($1::bigint[]) and consumed_at is null;

-- name: defer_changes
update earth_data_change_events
set attempts = attempts + 1,
    last_error = $2,
    next_attempt_at = case
        when attempts + 1 >= $3 then 'infinity'::timestamptz
        else clock_timestamp() + make_interval(secs => least($5::float8, $4::float8 * 2 ^ attempts))
    end
where id = any ($1::bigint[]) and consumed_at is null;

-- name: defer_hints
update earth_refresh_hints
set attempts = attempts + 1,
    last_error = $2,
    next_attempt_at = case
        when attempts + 1 >= $3 then 'infinity'::timestamptz
        else clock_timestamp() + make_interval(secs => least($5::float8, $4::float8 * 2 ^ attempts))
    end
where id = any ($1::bigint[]) and consumed_at is null;

-- name: retry
update earth_data_change_events
set attempts = 0, next_attempt_at = null
where consumed_at is null and next_attempt_at is not null and ($1::bigint[] is null or id = any ($1::bigint[]));

-- name: backlog
select count(*) as pending,
       coalesce(extract(epoch from clock_timestamp() - min(occurred_at)), 0)::float8 as oldest_age_s,
       count(*) filter (where next_attempt_at = 'infinity') as quarantined
from (
    select occurred_at, next_attempt_at
    from earth_data_change_events
    where consumed_at is null
    order by id
    limit $1
) oldest;

-- name: unmapped
select table_name as "table", source, count(*) as changes
from earth_data_change_events
where skipped_reason is not null
group by table_name, source
order by changes desc, table_name, source
limit $1;

-- name: leader
select epoch, revision, leader_term as term, leader_holder as holder,
       coalesce(leader_expires_at > clock_timestamp(), false) as held
from earth_log_head;

-- name: open_gate
insert into wakeup_gates (channel, open_until)
values ($1, clock_timestamp() + make_interval(secs => $2))
on conflict (channel) do update set open_until = excluded.open_until;

-- name: announce
select pg_notify($1, '');
