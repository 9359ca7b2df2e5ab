"""The layer of earthquakes: points with magnitude and depth."""

from __future__ import annotations

from planetwire.model import LayerAdapter, Provenance

EARTHQUAKES = LayerAdapter(
    id="earthquakes",
    title="Earthquakes",
    title_zh="地震",
    group="hazards",
    kind="point",
    feeds=(("collected_data", "usgs_quakes"),),
    cache_patterns=("earth:layer:earthquakes:*", "earth:search:*", "dash:source:usgs_quakes:*"),
    stale_after_s=1800.0,  # the feed is rebuilt every minute
    provenance=Provenance(
        publisher="U.S. Geological Survey, Earthquake Hazards Program",
        licence="Public domain",
        coverage="Worldwide; small events mainly where the seismic networks are dense, above all in the USA",
        limits="First solutions are automatic: magnitude, depth and place may be revised for weeks, and an event may "
        "be withdrawn",
    ),
)
