-- name: revision
select revision from declared_sources_head

-- name: read_all
-- One statement, hence one moment: the revision is that of exactly these rows.
select head.revision as of, source.*
from declared_sources_head head left join declared_sources source on true
order by source.name

-- name: read_one
select * from declared_sources where name = $1

-- name: lock_one
select * from declared_sources where name = $1 for update

-- name: name_person
select set_config('planetwire.who', $1, true)

-- name: insert_one
-- Nothing comes back when somebody else was first. What is null here is set by trigger.
insert into declared_sources (name, text, enabled, origin) values ($1, $2, $3, $4)
on conflict (name) do nothing
returning *

-- name: update_one
update declared_sources set text = $2, enabled = $3, origin = $4 where name = $1 returning *

-- name: delete_one
delete from declared_sources where name = $1
