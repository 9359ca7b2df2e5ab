-- name: ring
-- Not in the transaction that appends: NOTIFY takes a lock that every committing transaction shares.
select pg_notify($1, '');
