-- name: insert_hint
insert into earth_refresh_hints (layer, source, action) values ($1, $2, $3)
