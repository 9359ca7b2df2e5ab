"""Datasets of installed packages: which are used, which are left out and why, and that nothing ends for one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from planetwire.catalogue.catalogue import Catalogue
from planetwire.catalogue.compose import check_name
from planetwire.datasets import registry
from planetwire.datasets.dataset import Dataset
from planetwire.datasets.plugins import Plugins, discover, recipe
from planetwire.datasets.plugins import installed as installed_points
from planetwire.declared.faults import DeclarationFaults
from planetwire.declared.read import read
from planetwire.errors import InputError, SetupError
from planetwire.facts.refused_postgres import DATA_FAULTS
from planetwire.model import Derived, Fact, Strategy
from planetwire.settings import FeedSettings, Settings
from planetwire.wiring import facts as wiring_facts
from planetwire.wiring import plugins as wiring_plugins
from planetwire.wiring.catalogue import check_feeds, defaults_of
from plugin_points import Beacons, beacons, derive, distribution, point

CACHED = (registry.plugins, registry.datasets, wiring_plugins.tell_plugins)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The process as if it had started with these entry points."""

    def install(*points: Any) -> Plugins:
        monkeypatch.setattr(registry, "installed", lambda: points)
        for made in CACHED:
            made.cache_clear()
        return registry.plugins()

    yield install
    monkeypatch.undo()
    for made in CACHED:
        made.cache_clear()


def why(name: str, given: object, *others: Any) -> str:
    found = discover(registry.shipped(), [*others, point(name, given)])
    [left] = found.left_out
    assert left.name == name
    return left.why


def test_a_dataset_of_a_package_is_used_like_a_shipped_one(installed: Any, tmp_path: Path) -> None:
    """S71."""
    shipped = [one.layer.id for one in registry.shipped()]
    found = installed(point("my_beacons", beacons(), distribution(tmp_path, "planetwire-beacons")))
    [plugin], left_out = found.used, found.left_out
    assert left_out == ()
    assert (plugin.origin.package, plugin.origin.version, plugin.origin.licence) == ("planetwire-beacons", "1.2", "MIT")
    assert [one.layer.id for one in registry.datasets()] == [*shipped, "my_beacons"]
    catalogue = Catalogue()
    assert catalogue.fact_feeds["my_beacons"] is plugin.dataset.fact_feeds[0]
    assert catalogue.registry.layers_of("collected_data", "my_beacons") == ("my_beacons",)
    record = wiring_plugins.with_plugin({}, "my_beacons")["plugin"]
    assert record == {"name": "my_beacons", "package": "planetwire-beacons", "version": "1.2", "licence": "MIT"}
    assert wiring_plugins.with_plugin({}, shipped[0])["plugin"] is None
    assert "plug-in my_beacons: planetwire-beacons 1.2, licence MIT" in wiring_plugins.with_plugins("table")


@pytest.mark.parametrize(
    ("metadata", "licence"),
    [
        ("License: BSD-3-Clause", "BSD-3-Clause"),
        ("License-Expression: MIT\nLicense: other", "MIT"),
        ("Classifier: License :: OSI Approved :: Apache Software License", "Apache Software License"),
        ("Summary: x", "?"),
    ],
)
def test_the_licence_is_what_the_package_says(metadata: str, licence: str, tmp_path: Path) -> None:
    found = discover((), [point("my_beacons", beacons(), distribution(tmp_path, "x", metadata))])
    assert found.used[0].origin.licence == licence


@pytest.mark.parametrize("text", ["no_such_module_at_all", "planetwire.model", "json"])
def test_a_module_that_fails_or_has_no_dataset_is_left_out_by_name(text: str) -> None:
    found = discover(registry.shipped(), [point("lava", text), point("my_beacons", beacons())])
    assert [one.name for one in found.used] == ["my_beacons"]
    assert "it cannot be imported" in found.left_out[0].why


def test_a_module_that_ends_the_process_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ends_all.py").write_text("import sys\nsys.exit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "SystemExit: 3" in why("lava", "ends_all")


class NoFeed:
    source = "lava"


def fed(**changes: Any) -> Dataset:
    return beacons("lava", replace(Beacons("lava"), **changes))


OWNED = next(table for one in registry.shipped() for table in one.layer.tables)
REFUSED: dict[str, tuple[object, str]] = {
    "no dataset": ({"layer": "lava"}, "it is a dict"),
    "no layer": (Dataset(None, 1, (Beacons("lava"),)), "no LayerAdapter"),  # type: ignore[arg-type]
    "no feed": (replace(beacons("lava"), fact_feeds=()), "a feed of facts has source"),
    "half a feed": (replace(beacons("lava"), fact_feeds=(NoFeed(),)), "a feed of facts has source"),  # type: ignore[arg-type]
    "other name": (beacons("ash"), "its layer is 'ash'"),
    "bad name": (beacons("lava", Beacons("../lava")), "'../lava' is no name"),
    "long name": (beacons("lava", Beacons("l" * 33)), "is no name"),
    "own tables": (
        beacons(
            "lava",
            feeds=(("collected_data", "lava"), (OWNED.name, "lava")),
            owned_tables=("earth_interactables", OWNED.name),
            tables=(OWNED,),
        ),
        f"it declares tables of its own ({OWNED.name}): those need migrations in our order",
    ),
    "foreign table": (beacons("lava", feeds=(("collected_data", "lava"), ("pets", "*"))), "fed by (pets, *)"),
    "foreign source": (beacons("lava", feeds=(("collected_data", "lava"), ("collected_data", "ash"))), "fed by"),
    "unfed": (beacons("lava", feeds=(("resolved_locations", "lava"),)), "feeds lack (collected_data, lava)"),
    "clears others": (beacons("lava", owned_tables=("earth_interactables", "audit_log")), "not audit_log"),
    "no search": (beacons("lava", derive=None), "a layer with `derive`"),
    "derive is a word": (beacons("lava", derive="x"), "`derive` cannot be called"),
    "own kind": (beacons("lava", kind="satellite"), "the page draws point, line, area"),
    "stale page": (beacons("lava", cache_patterns=("earth:layer:ash:*",)), "cache_patterns"),
    "delta": (beacons("lava", default_strategy=Strategy.DELTA), "delta"),
    "readings": (beacons("lava", readings_of=("lava",)), "readings of cities are declared as data"),
    "triples": (beacons("lava", feeds=((1, 2, 3),)), "its declaration cannot be read: ValueError"),
    "no floor": (fed(floor_s=0.0), "floor_s is above 0"),
    "below its floor": (fed(interval_s=30.0), "floor_s is above 0"),
    "two of one source": (replace(beacons("lava"), fact_feeds=(Beacons("lava"), Beacons("lava"))), "have one source"),
    "shadows the diagnostic": (beacons("canary"), "canary is a name of Planetwire itself"),
    "shadows search": (beacons("interactables"), "interactables is a name of Planetwire itself"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_plugin_may_not_be_is_said_in_words(case: str) -> None:
    """S71."""
    given, words = REFUSED[case]
    name = given.layer.id if "shadows" in case and isinstance(given, Dataset) else "lava"
    assert words in why(name, given)


def test_what_is_shipped_wins_under_each_of_its_names() -> None:
    """S71."""
    for one in registry.shipped():
        for taken in {one.layer.id, *one.layer.sources, *one.layer.aliases, *one.layer.readings_of}:
            assert f"{taken} is a name of Planetwire itself" in why("lava", beacons("lava", Beacons(taken)))


def test_of_two_plugins_of_one_name_the_first_by_name_and_package_is_used_whatever_the_order(tmp_path: Path) -> None:
    first = point("my_beacons", beacons(), distribution(tmp_path, "a-beacons"))
    second = point("my_beacons", beacons(), distribution(tmp_path, "b-beacons"))
    other = point("z_layer", beacons("z_layer", Beacons("my_beacons")), distribution(tmp_path, "c"))
    for order in ([first, second, other], [other, second, first]):
        found = discover(registry.shipped(), order)
        assert [one.origin.package for one in found.used] == ["a-beacons"]
        assert [one.origin.package for one in found.left_out] == ["b-beacons", "c"]
        for left in found.left_out:
            assert "my_beacons is a name of the plug-in my_beacons (a-beacons 1.2)" in left.why


def test_a_plugin_wins_over_what_is_declared(installed: Any) -> None:
    installed(point("my_beacons", beacons()))
    with pytest.raises(InputError, match=r"a name of the plug-in my_beacons") as refused:
        check_name("my_beacons")
    assert refused.value.code == "name_taken"
    with pytest.raises(DeclarationFaults) as faulty:
        read("source: my_beacons\nkind: http_json\n" + DECLARED)
    assert "name_taken" in [one.code for one in faulty.value.faults]


def test_a_declared_source_may_join_the_layer_of_a_plugin_while_it_is_there(installed: Any) -> None:
    joining = "source: more_beacons\nkind: http_json\n" + DECLARED.replace(
        "{title: Beacons, title_zh: 航标}", "my_beacons"
    )
    installed(point("my_beacons", beacons()))
    layer = read(joining).dataset.layer
    assert (layer.id, layer.sources) == ("my_beacons", ("my_beacons", "more_beacons"))
    installed()
    with pytest.raises(DeclarationFaults) as faulty:
        read(joining)
    assert [one.code for one in faulty.value.faults] == ["unknown_layer"]


DECLARED = """url: https://beacons.example/all.json
interval: 10 min
records: $[*]
key: [id]
title: '{id}'
place: {lat: lat, lon: lon}
fields: {id: $.id, lat: {path: $.lat, type: degrees}, lon: {path: $.lon, type: degrees}}
layer: {title: Beacons, title_zh: 航标}
"""


def test_what_is_left_out_is_told_once_and_named_by_the_diagnostic(installed: Any) -> None:
    installed(point("lava", "no_such_module_at_all"), point("my_beacons", beacons()))
    with capture_logs() as logs:
        wiring_plugins.tell_plugins()
        wiring_plugins.tell_plugins()
    assert [(one["event"], one["log_level"]) for one in logs] == [
        ("datasets.plugin.used", "info"),
        ("datasets.plugin.left_out", "warning"),
    ]
    [step] = wiring_plugins.plugins_step()
    assert step["ok"] and [one["code"] for one in step["findings"]] == ["plugin_left_out"]
    assert "lava (? ?): it cannot be imported: ModuleNotFoundError" in step["detail"]
    assert wiring_plugins.left_out_lines() == [f"plug-in left out: {registry.plugins().left_out[0]}"]


def test_without_plugins_nothing_is_said(installed: Any) -> None:
    installed()
    assert wiring_plugins.plugins_step() == []
    assert wiring_plugins.with_plugins("table") == "table"


def test_settings_of_a_plugin_that_is_left_out_stop_no_start(installed: Any) -> None:
    settings = Settings(feeds={"lava": FeedSettings(enabled=False)})
    installed()
    with pytest.raises(SetupError, match="LAVA"):
        check_feeds(settings, Catalogue().current)
    installed(point("lava", "no_such_module_at_all"))
    check_feeds(settings, Catalogue().current)


@pytest.mark.parametrize(
    ("own", "on"),
    [({}, False), ({"url": "http://127.0.0.1:9/lights"}, True), ({"enabled": True}, True), ({"floor_s": 9.0}, False)],
)
def test_a_demo_asks_no_provider_of_a_plugin_unless_told_to(installed: Any, own: dict[str, Any], on: bool) -> None:
    """It runs without a network, and what is real would be shown as simulated."""
    installed(point("my_beacons", beacons()))
    real = Settings(feeds={"my_beacons": FeedSettings(**own)})
    simulated = real.model_copy(update={"simulated": True})
    for settings, expected in ((real, True), (simulated, on)):
        defaults = {one.source: one.enabled for one in defaults_of(settings, Catalogue())}
        assert defaults.pop("my_beacons") is expected
        assert set(defaults.values()) == {True}


def ends(fact: Fact) -> Derived:
    raise AssertionError("never so")


@pytest.mark.parametrize(("made", "words"), [(ends, "AssertionError: never so"), (lambda _: {}, "gave a dict")])
def test_a_derive_that_fails_in_any_way_costs_the_fact_alone(installed: Any, made: Any, words: str) -> None:
    """The fact store puts a fact aside for a ValueError and goes on."""
    [plugin] = installed(point("my_beacons", beacons(derive=made))).used
    assert plugin.dataset.layer.derive is not None
    with pytest.raises(DATA_FAULTS, match=words):
        plugin.dataset.layer.derive(Fact("1", "beacon", "One", {}))


def test_rows_are_derived_anew_when_the_release_or_the_module_of_derive_changes(installed: Any, tmp_path: Path) -> None:
    def made() -> dict[tuple[str, str], str]:
        return {
            pair: one for pair, one in wiring_facts.recipes(Catalogue().registry).items() if pair[0] == "my_beacons"
        }

    [plugin] = installed(point("my_beacons", beacons(), distribution(tmp_path, "x"))).used
    first = made()
    assert first.keys() == {("my_beacons", "my_beacons")}
    assert derive.__name__ in recipe(plugin)
    assert recipe(replace(plugin, origin=replace(plugin.origin, version="2"))) != recipe(plugin)
    installed(point("my_beacons", beacons(derive=lambda fact: None), distribution(tmp_path, "y")))
    assert made() != first


def test_the_reason_is_one_bounded_line_whatever_a_module_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "talks_much.py").write_text("raise RuntimeError('one\\ntwo ' * 1000)\n")
    monkeypatch.syspath_prepend(tmp_path)
    said = why("lava", "talks_much")
    assert "RuntimeError: one two one two" in said and len(said) == 300


def test_a_package_whose_metadata_cannot_be_read_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package, text in (("good", "[planetwire.datasets]\nlava = json:x\n"), ("bad", "\xff".encode("latin-1"))):
        file = distribution(tmp_path, package)._path / "entry_points.txt"  # type: ignore[attr-defined]
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    monkeypatch.syspath_prepend(tmp_path)
    assert "lava" in [one.name for one in installed_points()]
