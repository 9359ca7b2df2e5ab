"""Every dataset by itself: its folder, its examples, and what of it the rest of the program may know."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import planetwire
from planetwire.datasets.dataset import Dataset
from planetwire.datasets.registry import shipped
from planetwire.model import Fact
from planetwire.testing import ExamplesContract, bodies_in

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
FEEDS = [(one, feed) for one in shipped() for feed in (*one.fact_feeds, *one.observation_feeds)]
# Values that the page works out of a satellite's elements (draw/kind_satellite.ts).
COMPUTED = {
    "satellite": ("altitude_km", "regime", "inclination_deg", "period_min", "perigee_km", "apogee_km"),
}

# Tests that a dataset without a feed of facts has not.
OF_FACTS = [
    name for name, test in vars(ExamplesContract).items() if "fact_feed" in getattr(test, "__annotations__", ())
]


def contract(of: type[ExamplesContract], one: Dataset) -> type:
    """A class of tests of a shipped dataset; `computed`: what the page works out for its kind."""
    folder = files("planetwire.datasets") / one.layer.id / "examples"
    told = {"dataset": one, "examples": folder, "plugin": False, "computed": COMPUTED.get(one.layer.kind, ())}
    return type(f"Test_{one.layer.id}", (of,), told | ({} if one.fact_feeds else dict.fromkeys(OF_FACTS)))


globals().update({f"Test_{one.layer.id}": contract(ExamplesContract, one) for one in shipped()})


def facts() -> Iterator[tuple[str, Any, Fact]]:
    for one in shipped():
        for feed in one.fact_feeds:
            bodies = bodies_in(files("planetwire.datasets") / one.layer.id / "examples" / feed.source)
            for which in ("full", "minimal"):
                for fact in feed.parse(bodies[which], AT).rows:
                    assert isinstance(fact, Fact)
                    yield one.layer.id, one.layer, fact


def test_what_a_dataset_derives_of_its_examples_fits_the_tables_that_it_declares() -> None:
    seen = 0
    for name, layer, fact in facts():
        made = layer.derive(fact)
        widths = {table.name: len(table.columns) for table in layer.tables}
        assert {table: len(row) for table, row in made.rows.items()}.items() <= widths.items(), name
        seen += len(made.rows)
    assert seen > 0


def test_ranks_are_the_order_of_the_page_and_no_two_are_alike() -> None:
    ranks = [one.rank for one in shipped()]
    assert ranks == sorted(set(ranks))


PACKAGE = Path(planetwire.__file__).parent
ELSEWHERE = ("_schema", "demo")  # history, and a separate program that stands in for the providers
# What may be named all the same: where, what, and why.
ALLOWED = {
    ("collect/push/ingest.py", "runway_obs"): "a key of the body that is pushed, as its senders call it",
    ("collect/push/runway.py", "runway_obs"): "a key of the body that is pushed, as its senders call it",
}
# Below the datasets, and all that a folder may ask of it.
MAY_IMPORT = (
    *("planetwire.collect.", "planetwire.layers.values", "planetwire.layers.places", "planetwire.datasets.dataset"),
    *("planetwire.model", "planetwire.ports", "planetwire.errors", "planetwire.text", "planetwire.geometry"),
    *("planetwire.cities", "planetwire.observing"),
)


def rest_of_the_program() -> Iterator[tuple[str, str]]:
    """(path inside the package, text) of every file that is no dataset's own."""
    own = {one.layer.id for one in shipped()}
    for file in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.sql")]):
        parts = file.relative_to(PACKAGE).parts
        if parts[0] not in ELSEWHERE and not (parts[0] == "datasets" and parts[1] in own):
            yield "/".join(parts), file.read_text(encoding="utf-8")


def test_sources_and_tables_of_a_dataset_are_named_in_its_folder_and_nowhere_else() -> None:
    """S72, S75: in code, statements and comments; the names are those of the declarations."""
    names = {feed.source for _, feed in FEEDS}
    names |= {name for one in shipped() for name in (*one.layer.sources, *one.layer.aliases, *one.layer.readings_of)}
    names |= {table.name for one in shipped() for table in one.layer.tables}
    assert {"celestrak_gp", "celestrak_tle", "awc_metar", "city_observation", "satellite_orbits"} <= names
    word = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, names))})(?!\w)")
    found = {(path, name) for path, text in rest_of_the_program() for name in word.findall(text)}
    assert found == set(ALLOWED)


def test_no_branch_and_no_import_of_the_rest_names_a_dataset() -> None:
    """S72, S74: a word of a comment may; what is run may not."""
    own = {one.layer.id for one in shipped()}
    seen = 0
    for path, text in rest_of_the_program():
        if path.endswith(".py"):
            seen += 1
            tree = ast.parse(text)
            assert not {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)} & own, path
            imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
            assert not {name for name in imported for one in own if f".datasets.{one}" in name}, path
    assert seen > 250


@pytest.mark.parametrize("name", [one.layer.id for one in shipped()])
def test_a_dataset_asks_for_formats_values_and_frozen_types_only(name: str) -> None:
    files_of_it = sorted((PACKAGE / "datasets" / name).glob("*.py"))
    assert {"__init__.py", "declaration.py", "derive.py"} < {file.name for file in files_of_it}
    for file in files_of_it:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("planetwire"):
                assert str(node.module).startswith((*MAY_IMPORT, f"planetwire.datasets.{name}.")), (
                    file.name,
                    node.module,
                )
