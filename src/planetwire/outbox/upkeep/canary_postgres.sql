-- name: layer_head
select coalesce((select revision from earth_layer_heads where layer = $1), 0);

-- name: name_deriving
-- No rows are derived from it.
select set_config('planetwire.derives', 'on', true);

-- name: put
insert into collected_data (source, external_key, kind) values ($1, $2, 'canary') returning statement_timestamp();

-- name: change
update collected_data set title = 'canary' where source = $1 and external_key = $2;

-- name: take
delete from collected_data where source = $1 and external_key = $2;

-- name: written
-- Rows of this transaction, not those of another canary. Only the newest rows are read, however long the backlog.
select newest.id, newest.operation, (extract(epoch from newest.occurred_at - $2) * 1000)::float8 as after_ms
from (
    select id, operation, source, occurred_at, xmin as written_by
    from earth_data_change_events
    where consumed_at is null
    order by id desc
    limit 1000
) newest
where newest.source = $1 and newest.written_by = pg_current_xact_id()::xid
order by newest.id;

-- name: clock
select clock_timestamp();

-- name: progress
select count(*) filter (where consumed_at is null) as waiting,
       (extract(epoch from max(consumed_at) - $2) * 1000)::float8 as after_ms,
       max(skipped_reason) as skipped, max(last_error) as error
from earth_data_change_events
where id = any ($1::bigint[]);

-- name: event
select revision from earth_broadcasts where layer = $1 and revision > $2 order by revision limit 1;
