-- How far each consumer of another store's log has come: moved in the transaction that holds what it made of it.
create table log_consumers (
    consumer text primary key,
    epoch text not null,
    revision bigint not null,
    moved_at timestamptz not null default clock_timestamp()
);
