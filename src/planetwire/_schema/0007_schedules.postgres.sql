-- When a source runs, as an operator set it: ticks of `cron` in `time_zone`, or else every `interval_s`.
-- `misfire`: what becomes of ticks that passed while nothing ran. `tick_at`: the tick that `next_run_at` stands for,
-- before jitter and floor; null between intervals.
alter table datasources
    add column cron text check (cron <> ''),
    add column time_zone text check (time_zone <> ''),
    add column misfire text check (misfire in ('once', 'skip')),
    add column tick_at timestamptz;

-- One row a firing, made in the transaction that submits its job and moves `next_run_at` on. The key is the law: a
-- tick fires once, whatever the number of processes. Kept 7 days.
create table schedule_firings (
    source text not null,
    fire_at timestamptz not null,
    task_id bigint,
    fired_at timestamptz not null default clock_timestamp(),
    primary key (source, fire_at)
);
create index schedule_firings_fired_at on schedule_firings (fired_at);
