"""A small dataset as a plug-in would bring it, and real entry points that lead to modules of a test's own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.metadata import EntryPoint, PathDistribution
from pathlib import Path
from types import ModuleType
from typing import Any

from planetwire.collect.formats.json_records import json_records
from planetwire.collect.formats.pieces import Piece, all_at_once, in_pieces
from planetwire.collect.http.client import FetchRules
from planetwire.datasets.dataset import Dataset
from planetwire.datasets.plugins import GROUP
from planetwire.model import Derived, Fact, LayerAdapter, Parsed, Provenance

RULES = FetchRules(first_bytes=b"[")


@dataclass(frozen=True)
class Beacons:
    """A list of records with a key and a place."""

    source: str = "my_beacons"
    kind: str = "beacon"
    default_url: str = "https://beacons.example/all.json"
    interval_s: float = 600.0
    floor_s: float = 60.0
    sweeps: bool = True
    rules: FetchRules = RULES

    def parse(self, body: bytes, at: datetime) -> Parsed:
        return all_at_once(self.pieces(body, at, sys.maxsize))

    def pieces(self, body: bytes, at: datetime, rows: int) -> Iterator[Piece | None]:
        records = json_records(body, None, most=1_000)
        facts = [Fact(str(one["id"]), self.kind, str(one["id"]), {"range": one.get("range")}, one["lat"], one["lon"])
                 for _, one in records.items()]  # fmt: skip
        whole = records.complete
        yield from in_pieces(facts, rows, whole=whole, total=facts.__len__, end=lambda rest: Parsed(rest, (), whole))


def derive(fact: Fact) -> Derived:
    return Derived(subtitle="", properties={})


def beacons(name: str = "my_beacons", feed: Any = None, **changes: Any) -> Dataset:
    source = name if feed is None else feed.source
    zh = Provenance("某机构", "公有领域", "全球", "无")
    layer = LayerAdapter(
        id=name,
        title="Beacons",
        title_zh="航标",
        group="infrastructure",
        kind="point",
        feeds=(("collected_data", source), ("resolved_locations", source)),
        owned_tables=("resolved_locations", "earth_interactables"),
        derive=derive,
        cache_patterns=(f"earth:layer:{name}:*",),
        provenance=Provenance("Somebody", "Public domain", "Worldwide", "None", zh=zh),
    )
    return Dataset(replace(layer, **changes), rank=500, fact_feeds=(feed or Beacons(source),))


def distribution(folder: Path, package: str, metadata: str = "License-Expression: MIT") -> PathDistribution:
    """The metadata of an installed package, as pip writes it."""
    home = folder / f"{package.replace('-', '_')}-1.2.dist-info"
    home.mkdir()
    (home / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {package}\nVersion: 1.2\n{metadata}\n")
    return PathDistribution(home)


def point(name: str, given: object, dist: PathDistribution | None = None) -> EntryPoint:
    """An entry point to a module that holds this as `DATASET`; a text is the module's source."""
    module = f"plugin_of_a_test_{name}"
    made = ModuleType(module)
    if not isinstance(given, str):
        made.__dict__["DATASET"] = given
        sys.modules[module] = made
    found = EntryPoint(name, f"{module if not isinstance(given, str) else given}:DATASET", GROUP)
    return found if dist is None else found._for(dist)  # type: ignore[attr-defined,no-any-return]
