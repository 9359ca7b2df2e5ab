-- name: ensure
insert into datasources (source) select unnest($1::text[]) on conflict do nothing

-- name: list_sources
select source, enabled, interval_s, next_run_at, last_run_at, last_success_at, last_error_code, last_error,
    rejects, rejects_last_run, rows_last_run, cooldown_until
from datasources
where source = any ($1::text[])
order by source

-- name: change_source
-- A shorter interval takes effect at once, counted from the last run.
update datasources set
    enabled = coalesce($2, enabled),
    interval_s = coalesce($3, interval_s),
    next_run_at = case when $3 is null or next_run_at is null then next_run_at
        else least(next_run_at, coalesce(last_run_at, clock_timestamp()) + make_interval(secs => $3)) end
where source = $1
returning source

-- name: take_due
-- Two processes that ask at once: the second waits for the first one's row and then finds the new time in it.
-- Jitter only lengthens an interval, so that it never falls below a provider's floor.
update datasources d set
    next_run_at = clock_timestamp()
        + make_interval(secs => coalesce(d.interval_s, k.interval_s) * (1 + random() * $4::double precision))
from unnest($1::text[], $2::double precision[], $3::boolean[]) as k (source, interval_s, enabled)
where d.source = k.source and coalesce(d.enabled, k.enabled)
    and (d.next_run_at is null or d.next_run_at <= clock_timestamp())
returning d.source

-- name: report
update datasources set
    last_run_at = clock_timestamp(), rejects = rejects + $2, rejects_last_run = $2,
    last_error_code = $3, last_error = $4
where source = $1
