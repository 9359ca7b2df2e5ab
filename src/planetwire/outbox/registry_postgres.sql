-- name: write_feeds
-- Existing rows are not touched: a start that changes nothing writes nothing.
with wanted as (
    select * from unnest($1::text[], $2::text[], $3::text[]) as feed (table_name, source, layer)
), gone as (
    delete from earth_layer_feeds feed
    where (feed.table_name, feed.source, feed.layer) not in (select table_name, source, layer from wanted)
)
insert into earth_layer_feeds (table_name, source, layer)
select table_name, source, layer from wanted
on conflict do nothing
