-- The event log of `earth_updates`. Its one writer is the relay that holds the term in `earth_log_head`.
create table earth_log_head (
    only_row boolean primary key default true check (only_row),
    epoch text not null default substr(md5(gen_random_uuid()::text), 1, 12) check (epoch ~ '^[a-z0-9]{12}$'),
    revision bigint not null default 0,
    leader_term bigint not null default 0,
    leader_holder text,
    leader_expires_at timestamptz
) with (fillfactor = 50);
insert into earth_log_head default values;

-- Kept for ever: the last revision of each layer, and up to where its events were pruned.
create table earth_layer_heads (
    layer text primary key,
    revision bigint not null,
    pruned_through bigint not null default 0
) with (fillfactor = 50);

create table earth_broadcasts (
    revision bigint primary key,
    epoch text not null,
    prev_revision bigint not null,
    layer text not null,
    message jsonb not null,
    created_at timestamptz not null default clock_timestamp()
);
create index earth_broadcasts_layer_revision on earth_broadcasts (layer, revision);
create index earth_broadcasts_created_at on earth_broadcasts (created_at);
