-- name: keepalives
set tcp_keepalives_idle = 30; set tcp_keepalives_interval = 10; set tcp_keepalives_count = 3;

-- name: alone
select pg_try_advisory_lock(hashtext('observation_log_head'));

-- name: together
select pg_try_advisory_lock_shared(hashtext('observation_log_head'));
