-- name: any_waits
select exists (select from derived_pending)

-- name: facts
-- Skips facts that are being changed now. Shared locks: writers of these facts wait until the derived rows are written.
-- This statement waits for no lock, so it cannot deadlock, whatever order others lock facts in.
select external_key, kind, title, data, lat, lon,
    case when observed_at between '0001-01-02Z' and '9999-12-30Z' then observed_at end as observed_at,
    case when valid_until between '0001-01-02Z' and '9999-12-30Z' then valid_until end as valid_until
from collected_data
where source = $1 and external_key = any ($2::text[])
order by external_key
for share skip locked

-- name: existing
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

-- name: drop_other_notes
-- A load of many statements notes its source with each; one pass that begins now covers them all. Notes that are not
-- yet committed are invisible here and stay.
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

-- name: note_singly
-- Facts of a source that are being changed now: each is noted by itself, for later.
insert into derived_pending (source, fact_key) select $1, unnest($2::text[])

-- name: advance
update derived_pending set through_key = $2 where id = $1
