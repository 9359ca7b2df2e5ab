-- name: set_retried
update collection_tasks set retried_as = $2 where id = any ($1::bigint[])
