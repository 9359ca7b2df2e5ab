-- name: pending
-- In the order in which the relay takes them. `state`: due, waiting for its next attempt, or quarantined.
select id, table_name as "table", operation, source, records_processed as records, attempts,
       case
           when next_attempt_at = 'infinity' then 'quarantined'
           when next_attempt_at > clock_timestamp() then 'backing_off'
           else 'pending'
       end as state,
       extract(epoch from clock_timestamp() - occurred_at)::float8 as age_s,
       coalesce(last_error, skipped_reason) as error
from earth_data_change_events
where consumed_at is null
order by id
limit $1;

-- name: quarantined
select id, table_name as "table", operation, source, records_processed as records, attempts, 'quarantined' as state,
       extract(epoch from clock_timestamp() - occurred_at)::float8 as age_s, last_error as error
from earth_data_change_events
where consumed_at is null and next_attempt_at = 'infinity'
order by id
limit $1;

-- name: skipped
select id, table_name as "table", operation, source, records_processed as records, attempts, 'unmapped' as state,
       extract(epoch from clock_timestamp() - occurred_at)::float8 as age_s, skipped_reason as error
from earth_data_change_events
where skipped_reason is not null
order by id desc
limit $1;

-- name: retry
update earth_data_change_events
set attempts = 0, next_attempt_at = null
where consumed_at is null and next_attempt_at is not null and ($1::bigint[] is null or id = any ($1::bigint[]))
returning id;

-- name: retry_hints
update earth_refresh_hints
set attempts = 0, next_attempt_at = null
where consumed_at is null and next_attempt_at is not null
returning id;
