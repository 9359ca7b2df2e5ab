-- name: add_outlet
-- Starts at the present heads: older events are not sent.
with added as (
    insert into change_outlets (outlet) values ($1)
    on conflict (outlet) do nothing
    returning outlet
)
insert into change_outlet_cursors (outlet, layer, epoch, revision)
select added.outlet, head.layer, log.epoch, head.revision
from added cross join earth_layer_heads head cross join earth_log_head log;

-- name: lead
update change_outlets
set term = term + (case when holder = $2 then 0 else 1 end),
    holder = $2,
    expires_at = clock_timestamp() + make_interval(secs => $3)
where outlet = $1 and (holder is null or holder = $2 or expires_at <= clock_timestamp())
returning term;

-- name: resign
update change_outlets
set holder = null, expires_at = null
where outlet = $1 and holder = $2 and term = $3;

-- name: positions
-- `wait_s`: time until the next attempt, by the server's clock.
select head.layer, log.epoch as log_epoch, head.revision as head, head.pruned_through,
       coalesce(place.epoch, log.epoch) as epoch, coalesce(place.revision, 0) as revision,
       coalesce(place.attempts, 0) as attempts, place.paused_at is not null as paused,
       coalesce(greatest(0, extract(epoch from place.next_attempt_at - clock_timestamp())), 0)::float8 as wait_s
from earth_layer_heads head
cross join earth_log_head log
left join change_outlet_cursors place on place.outlet = $1 and place.layer = head.layer
where head.layer = any ($2::text[])
order by head.layer;

-- name: advance
insert into change_outlet_cursors (outlet, layer, epoch, revision, sent_at)
select outlet, $3, $4, $5, clock_timestamp()
from change_outlets
where outlet = $1 and term = $2
on conflict (outlet, layer) do update
set epoch = excluded.epoch, revision = excluded.revision, sent_at = excluded.sent_at,
    attempts = 0, next_attempt_at = null, paused_at = null, last_error = null;

-- name: defer
insert into change_outlet_cursors (outlet, layer, epoch, revision, attempts, next_attempt_at, paused_at, last_error)
select outlet, $3, $4, $5, 1, clock_timestamp() + make_interval(secs => $6),
       case when $7 then clock_timestamp() end, $8
from change_outlets
where outlet = $1 and term = $2
on conflict (outlet, layer) do update
set attempts = change_outlet_cursors.attempts + 1, next_attempt_at = excluded.next_attempt_at,
    paused_at = case when $7 then coalesce(change_outlet_cursors.paused_at, excluded.paused_at) end,
    last_error = excluded.last_error;

-- name: standing
-- For the diagnostic: who sends, what waits and since when. Counted up to a bound.
select outlet.outlet, coalesce(outlet.expires_at > clock_timestamp(), false) as held,
       coalesce(
           array_agg(place.layer order by place.layer) filter (where place.paused_at is not null), '{}'
       ) as paused,
       max(place.last_error) filter (where place.paused_at is not null) as paused_error,
       max(place.last_error) as last_error,
       (
           select coalesce(extract(epoch from clock_timestamp() - min(waiting.created_at)), 0)::float8
           from change_outlet_cursors behind
           cross join lateral (
               select created_at from earth_broadcasts
               where layer = behind.layer and revision > behind.revision
               order by revision
               limit 1
           ) waiting
           where behind.outlet = outlet.outlet
       ) as oldest_age_s
from change_outlets outlet
left join change_outlet_cursors place on place.outlet = outlet.outlet
group by outlet.outlet
order by outlet.outlet;
