-- A copy of the registry of layers, written by whoever relays when it starts: so that SQL can see which pairs of table
-- and source no layer shows. `source` '*': every source of the table that has no line of its own.
create table earth_layer_feeds (
    table_name text not null,
    source text not null,
    layer text not null,
    primary key (table_name, source, layer)
);
