-- name: any_waits
select exists (select from derived_pending)

-- name: facts
-- Of these keys, those that nobody is changing now. Shared locks: whoever would change them waits until the derived
-- rows are there. Nobody is waited for here, so whatever order others lock facts in, none can block another.
select external_key, kind, title, data, lat, lon,
    case when observed_at between '0001-01-02Z' and '9999-12-30Z' then observed_at end as observed_at,
    case when valid_until between '0001-01-02Z' and '9999-12-30Z' then valid_until end as valid_until
from collected_data
where source = $1 and external_key = any ($2::text[])
order by external_key
for share skip locked

-- name: there_still
select external_key from collected_data where source = $1 and external_key = any ($2::text[])

-- name: take_keys
select id, source, fact_key from derived_pending
where id > $1 and fact_key is not null
order by id
limit $2
for update skip locked

-- name: done
delete from derived_pending where id = any ($1::bigint[])

-- name: take_source
select id, source, through_key from derived_pending
where fact_key is null
order by id
limit 1
for update skip locked

-- name: same_again
-- A load of many statements notes its source with each: a pass that begins now does for all of them. What is not committed
-- yet cannot be seen here, and keeps its own.
delete from derived_pending where id in (
    select id from derived_pending
    where source = $1 and fact_key is null and through_key is null and id <> $2
    for update skip locked
)

-- name: next_keys
select external_key from collected_data
where source = $1 and ($2::text is null or external_key > $2)
order by external_key
limit $3

-- name: put_off
-- Facts of a source that somebody is changing now: looked at again one by one.
insert into derived_pending (source, fact_key) select $1, unnest($2::text[])

-- name: move_on
update derived_pending set through_key = $2 where id = $1
