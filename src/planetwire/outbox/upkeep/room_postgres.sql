-- name: size
select pg_total_relation_size($1::text::regclass);
