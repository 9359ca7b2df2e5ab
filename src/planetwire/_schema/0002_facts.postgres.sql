-- Facts, and what is remembered of each source.
-- Every fact and derived table has `id` as its primary key: the change triggers compare old and new rows by it.
create table collected_data (
    id bigint generated always as identity primary key,
    source text not null,
    external_key text not null,
    kind text not null,
    title text not null default '',
    data jsonb not null default '{}',
    lat double precision,
    lon double precision,
    observed_at timestamptz,
    collected_at timestamptz not null default clock_timestamp(),
    valid_until timestamptz,
    task_id bigint,
    unique (source, external_key)
);
create index collected_data_source_id on collected_data (source, id);
create index collected_data_source_observed on collected_data (source, observed_at desc);

-- One row a source: what the operator set, when it runs next, how the last run ended, and the validators of
-- the last verified body. `facts_deleted_at` is set by the delete trigger unless the feed's own sweep deletes.
create table datasources (
    source text primary key,
    enabled boolean,
    interval_s double precision,
    next_run_at timestamptz,
    last_run_at timestamptz,
    last_success_at timestamptz,
    last_error_code text,
    last_error text,
    rejects bigint not null default 0,
    rows_last_run bigint,
    etag text,
    last_modified text,
    body_sha256 text,
    fetched_at timestamptz,
    cooldown_until timestamptz,
    facts_deleted_at timestamptz
);
