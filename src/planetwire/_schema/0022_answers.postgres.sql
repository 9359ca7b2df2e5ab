-- The floor of a source counts from the last request that its provider answered: one that never got through asked
-- nobody for anything. `failures`: jobs in a row that failed in passing; `retry_at`: when the next comes, instead of
-- `next_run_at`, until one succeeds.
alter table datasources
    add column answered_at timestamptz,
    add column failures integer not null default 0 check (failures >= 0),
    add column retry_at timestamptz;
update datasources set answered_at = last_run_at where last_run_at is not null;
