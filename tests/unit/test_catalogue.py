"""The catalogue: snapshots that never change, views that always show the present one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from declared_tools import quakes
from planetwire.catalogue.catalogue import SHIPPED, Catalogue, Snapshot
from planetwire.catalogue.compose import Composer
from planetwire.datasets.registry import fact_feeds, layers
from planetwire.errors import BackendError, NotFound
from planetwire.model.facts import STORE, Declaration, Declarations
from planetwire.settings import Settings
from planetwire.wiring.catalogue import reader

ROOT = Path(__file__).resolve().parents[2]


def stored(revision: int, **texts: str) -> Declarations:
    at = datetime(2026, 3, 20, tzinfo=UTC)
    rows = [Declaration(name, text, True, STORE, revision, at, "ann", text) for name, text in sorted(texts.items())]
    return Declarations(revision, rows)


@pytest.fixture
def compose() -> Composer:
    return Composer(reader(Settings()))


def test_without_a_store_it_is_what_is_shipped() -> None:
    catalogue = Catalogue()
    assert catalogue.current.revision == SHIPPED
    assert dict(catalogue.fact_feeds) == fact_feeds()
    assert list(catalogue.layer_ids) == [layer.id for layer in layers()]


def test_every_view_shows_the_swapped_snapshot_and_the_old_one_stays_as_it_was(compose: Composer) -> None:
    catalogue = Catalogue()
    before, views = catalogue.current, catalogue.registry
    relay = catalogue.relay_registry()
    catalogue.swap(compose(stored(1, my_quakes=quakes())))
    assert "my_quakes" in catalogue.fact_feeds and "my_quakes" in catalogue.layer_ids
    assert views.layers_of("collected_data", "my_quakes") == relay.layers_of("collected_data", "my_quakes")
    assert views.layers_of("collected_data", "my_quakes") == ("my_quakes",)
    assert "my_quakes" not in before.fact_feeds and "my_quakes" not in before.index.adapters
    held = catalogue.fact_feeds["my_quakes"]
    catalogue.swap(compose(stored(2, my_quakes=quakes(title="Other"))))
    assert catalogue.fact_feeds["my_quakes"] is not held
    assert views.adapter("my_quakes").title == "Other"


def test_a_layer_that_has_gone_is_known_to_the_relay_alone(compose: Composer) -> None:
    catalogue = Catalogue()
    relay = catalogue.relay_registry()
    catalogue.swap(compose(stored(1, my_quakes=quakes())))
    catalogue.swap(compose(stored(2)))
    assert relay.adapter("my_quakes").id == "my_quakes"
    assert relay.layers_of("collected_data", "my_quakes") == ()
    with pytest.raises(NotFound):
        catalogue.registry.adapter("my_quakes")
    catalogue.swap(compose(stored(3, my_quakes=quakes(title="Again"))))
    assert relay.adapter("my_quakes").title == "Again"


def test_a_source_that_joins_a_layer_adds_to_it_and_takes_nothing(compose: Composer) -> None:
    before = Snapshot(0)
    after = compose(stored(1, mine=quakes("mine", layer="earthquakes"), yours=quakes("yours", layer="earthquakes")))
    layer = after.index.adapters["earthquakes"]
    assert set(layer.sources) == {"usgs_quakes", "mine", "yours"}
    assert [one.id for one in after.layers] == [one.id for one in before.layers]
    assert layer.look == before.index.adapters["earthquakes"].look


def test_readings_of_cities_join_the_layer_that_shows_them(compose: Composer) -> None:
    text = (ROOT / "spec" / "sources" / "series.v1.yaml").read_text(encoding="utf-8")
    name = text.partition("source:")[2].split()[0]
    before, after = Snapshot(0), compose(stored(1, **{name: text}))
    assert after.observation_feeds.keys() - before.observation_feeds.keys() == {name}
    changed = [one.id for one in after.layers if before.index.adapters[one.id] != one]
    assert [name in after.index.adapters[one].readings_of for one in changed] == [True]


def test_of_two_that_contradict_each_other_the_first_by_name_stays(compose: Composer) -> None:
    snapshot = compose(stored(1, my_quakes=quakes(), zz_broken="nonsense: [", usgs_quakes=quakes("usgs_quakes")))
    assert set(snapshot.declared) == {"my_quakes"}
    assert set(snapshot.faults) == {"zz_broken", "usgs_quakes"}


def test_a_text_is_read_once(compose: Composer) -> None:
    asked: list[str] = []
    read = compose.read

    def counted(text: str, *, name: str | None = None) -> object:
        asked.append(str(name))
        return read(text, name=name)

    compose.read = counted  # type: ignore[assignment]
    compose(stored(1, one=quakes("one"), two=quakes("two")))
    compose(stored(2, one=quakes("one"), two=quakes("two", title="Other")))
    assert asked == ["one", "two", "two"]


def test_a_reader_that_crashes_costs_its_source_alone(compose: Composer) -> None:
    read = compose.read

    def crashing(text: str, *, name: str | None = None) -> object:
        if name == "one":
            raise BackendError("as no reader may")
        if name == "two":
            raise KeyError("a bug")
        return read(text, name=name)

    compose.read = crashing  # type: ignore[assignment]
    snapshot = compose(stored(1, one=quakes("one"), two=quakes("two"), three=quakes("three")))
    assert set(snapshot.declared) == {"three"} and set(snapshot.faults) == {"one", "two"}
