"""The layer of satellites: mean elements, turned into positions by the browser."""

from __future__ import annotations

from planetwire.model import LayerAdapter, Provenance

SATELLITES = LayerAdapter(
    id="satellites",
    title="Satellites",
    title_zh="卫星",
    group="space",
    kind="satellite",
    feeds=(("collected_data", "celestrak_gp"),),
    aliases={"celestrak_tle": "celestrak_gp"},
    cache_patterns=("earth:layer:satellites:*", "earth:search:*", "dash:source:celestrak_gp:*"),
    stale_after_s=24 * 3600.0,  # the feed runs every few hours; elements older than a day drift by kilometres
    provenance=Provenance(
        publisher="CelesTrak (celestrak.org), from data of 18th Space Defense Squadron",
        licence="Free to use; credit CelesTrak",
        coverage="Catalogued objects of the group asked for, worldwide",
        limits="Positions are computed by SGP4 from elements of the last hours: good to about a kilometre near the "
        "epoch, worse with age; manoeuvres show only with the next elements",
    ),
)
