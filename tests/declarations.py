"""Declarations of sources, as tests write them: a whole one, and the same with some of it otherwise."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from planetwire.collect.feeds import FactFeed
from planetwire.declared.faults import DeclarationFaults
from planetwire.declared.read import Declared, read
from planetwire.model import Fact, Json, Parsed

AT = datetime(2026, 12, 1, 12, tzinfo=UTC)
WHO = {"publisher": "Somebody", "licence": "CC0", "coverage": "Here", "limits": "None"}
SMALLEST: Json = {
    "source": "city_bikes",
    "kind": "http_json",
    "url": "https://example.org/bikes.json",
    "fields": {
        "id": "$.id",
        "lat": {"path": "$.lat", "type": "degrees"},
        "lon": {"path": "$.lon", "type": "degrees"},
    },
    "key": ["id"],
    "place": {"lat": "lat", "lon": "lon"},
    "layer": {"title": "Bikes", "title_zh": "单车"},
    "provenance": {**WHO, "zh": WHO},
}


def declared(**other: Any) -> Declared:
    """The smallest declaration, with these parts otherwise; None leaves one out. JSON is YAML."""
    given = {name: value for name, value in {**SMALLEST, **other}.items() if value is not None}
    return read(json.dumps(given, ensure_ascii=False, indent=1))


def feed_of(**other: Any) -> FactFeed:
    """Its feed of facts."""
    return declared(**other).dataset.fact_feeds[0]


def field(path: str | list[str] = "$.x", **other: Any) -> FactFeed:
    """A feed whose field `x` is declared so."""
    return feed_of(fields={"id": "$.id", "x": {"path": path, **other}}, place=None)


def value(raw: Any, path: str | list[str] = "$.x", **other: Any) -> Any:
    """What such a field makes of a value; KeyError when the record gave no fact."""
    body = json.dumps([{"id": 1, "x": raw}]).encode()
    return {row.external_key: row.data["x"] for row in facts(field(path, **other).parse(body, AT))}["1"]


def facts(parsed: Parsed) -> list[Fact]:
    """Its rows."""
    return [row for row in parsed.rows if isinstance(row, Fact)]


def faults_of(text: str) -> DeclarationFaults:
    """What is wrong with it."""
    try:
        read(text, name="x.yaml")
    except DeclarationFaults as faults:
        return faults
    raise AssertionError("nothing is wrong with it")
