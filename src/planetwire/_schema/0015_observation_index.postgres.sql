-- The day's highs of all cities read 70,000 readings. Each city's lie in one stretch of this index and need no visit to
-- the table; an index by time alone invited the planner to read every city's readings for each city.
alter table observations
    drop constraint observations_pkey,
    add primary key (city, obs_time_ms, series_key, source) include (temp_c, max_so_far_c),
    set (autovacuum_vacuum_insert_scale_factor = 0.02);
drop index observations_time;
