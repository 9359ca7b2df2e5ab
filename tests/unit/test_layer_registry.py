"""The registry: what feeds a layer, other spellings, owned tables; and declarations that contradict each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planetwire.collect.feeds import observation_feeds
from planetwire.errors import NotFound
from planetwire.layers.registry import LAYERS, EarthLayerAdapterRegistry
from planetwire.model import LayerAdapter, Strategy
from planetwire.model.cache_names import is_meant, layer_body, terminal_body
from planetwire.outbox.tables import WATCHED

REGISTRY = EarthLayerAdapterRegistry()
CABLES = replace(
    LAYERS[0],
    id="cables",
    feeds=(("collected_data", "cable_map"), ("cable_segments", "*")),
    owned_tables=("cable_segments", "cable_points"),
    aliases={},
)


def test_the_shipped_sources_feed_their_layers_under_either_name() -> None:
    """S25, S55, S73."""
    assert REGISTRY.layers_of("collected_data", "celestrak_gp") == ("satellites",)
    assert REGISTRY.layers_of("collected_data", "celestrak_tle") == ("satellites",)
    assert REGISTRY.layers_of("collected_data", "usgs_quakes") == ("earthquakes",)
    assert REGISTRY.layers_of("collected_data", None) == ("satellites", "earthquakes", "weather_stations")
    assert REGISTRY.layers_of("satellite_orbits", "celestrak_tle") == ("satellites",)
    assert REGISTRY.layers_of("resolved_locations", "usgs_quakes") == ("earthquakes",)
    assert REGISTRY.layers_of("collected_data", "city_observation") == ("weather_stations",)
    assert REGISTRY.layers_of("earth_interactables", "whatever") == ("interactables",)
    assert REGISTRY.layers_of("collected_data", "unknown") == ()
    assert REGISTRY.sources_of("satellites") == ("celestrak_gp", "celestrak_tle")


@pytest.mark.parametrize("adapter", LAYERS, ids=lambda adapter: adapter.id)
def test_every_declaration_is_complete(adapter: LayerAdapter) -> None:
    """S71, S73-S76."""
    assert adapter.feeds
    assert adapter.sources or adapter.kind == "meta"
    kept = [*(layer_body(one.id, "live|gzip|") for one in LAYERS), terminal_body("scan"), terminal_body("detail paris")]
    assert is_meant(layer_body(adapter.id, "live|gzip|"), adapter.cache_patterns)
    for pattern in adapter.cache_patterns:
        assert any(is_meant(name, [pattern]) for name in kept), f"{pattern} means nothing that is kept"
    about = adapter.provenance
    assert about.zh is not None, "the Chinese page says it too"
    told = [text for one in (about, about.zh) for text in (one.publisher, one.licence, one.coverage, one.limits)]
    words = (*told, adapter.title, adapter.title_zh)
    assert all(words) and "…" not in words, "left as `make new-layer` wrote it"
    # Rows are known by id in one table only, and only its layer may be changed row by row.
    by_id = all(table == "earth_interactables" for table, _ in adapter.feeds)
    assert (adapter.default_strategy is Strategy.DELTA) == by_id
    assert (adapter.derive is not None) == ("earth_interactables" in adapter.owned_tables)
    # The snapshot of any source shows a place that was put right by hand, so a change of one reaches its layer.
    for source in adapter.sources:
        assert ("resolved_locations", source) in adapter.feeds and "resolved_locations" in adapter.owned_tables
    watched = {table.name for table in WATCHED}
    assert {table for table, _ in adapter.feeds} | set(adapter.owned_tables) <= watched


def test_a_layer_is_added_by_one_declaration() -> None:
    """S72, S75, S92."""
    registry = EarthLayerAdapterRegistry([*LAYERS, CABLES])
    shipped = [adapter.id for adapter in LAYERS]
    assert [adapter.id for adapter in registry.all()] == [*shipped, "cables"]
    assert registry.layers_of("cable_segments", "whatever") == ("cables",)
    assert registry.layers_of_source("cable_map") == ("cables",)
    assert registry.layers_of_source(None) == (*shipped, "cables")
    assert registry.owned_tables("cable_map") == ("cable_segments", "cable_points")
    assert registry.owned_tables("celestrak_gp") == ("satellite_orbits", "resolved_locations", "earth_interactables")
    assert registry.owned_tables("usgs_quakes") == ("resolved_locations", "earth_interactables")
    assert registry.owned_tables("nobody") == ()


def test_a_refresh_of_a_source_of_readings_is_one_of_the_layer_they_reach() -> None:
    """S27, S42: and every source of readings reaches one. Its rows are not that source's to clear; what the dashboard
    keeps of its readings is.
    """
    assert is_meant(terminal_body("scan"), REGISTRY.adapter("weather_stations").cache_patterns)
    for source in observation_feeds():
        assert REGISTRY.layers_of_source(source) == ("weather_stations",)
        assert REGISTRY.owned_tables(source) == ()


def test_an_unknown_layer_is_not_found() -> None:
    """S67."""
    with pytest.raises(NotFound) as refused:
        REGISTRY.adapter("moons")
    assert refused.value.code == "unknown_layer"


def test_declarations_that_contradict_each_other_do_not_load() -> None:
    """S71."""
    with pytest.raises(ValueError, match="twice"):
        EarthLayerAdapterRegistry([*LAYERS, LAYERS[0]])
    with pytest.raises(ValueError, match="celestrak_tle"):
        EarthLayerAdapterRegistry([*LAYERS, replace(CABLES, aliases={"celestrak_tle": "cable_map"})])
