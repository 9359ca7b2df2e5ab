"""What is shipped passes the contract that authors of plug-ins are given, and what breaks it is told so in words."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.resources import files
from itertools import count

import pytest

from planetwire.collect.formats.json_records import json_records
from planetwire.collect.formats.pieces import Piece, all_at_once, in_pieces
from planetwire.collect.http.client import FetchRules
from planetwire.datasets.registry import shipped
from planetwire.errors import FeedError
from planetwire.model import Fact, Parsed
from planetwire.supervise.embedded_postgres import EmbeddedPostgres
from planetwire.testing import DatasetContract, check_feed
from planetwire.testing.cases import CASES
from planetwire.testing.databases import Databases
from planetwire.testing.feeds import run_case
from plugin_points import Beacons


@pytest.fixture(scope="session")
def databases(self: object, pg_cluster: EmbeddedPostgres) -> Databases:
    """Those of the other tests, in place of a cluster more."""
    return Databases(pg_cluster)


def contract(one: object) -> type:
    """Only what needs a server: the rest is `tests/unit/test_datasets.py`."""
    folder = files("planetwire.datasets") / one.layer.id / "examples"  # type: ignore[attr-defined]
    told = {"dataset": one, "examples": folder, "plugin": False, "databases": databases}
    twice = {name: None for base in DatasetContract.__mro__[1:-1] for name in vars(base) if name.startswith("test_")}
    return type(f"Test_{one.layer.id}", (DatasetContract,), told | twice)  # type: ignore[attr-defined]


globals().update({f"Test_{one.layer.id}": contract(one) for one in shipped() if one.fact_feeds})

BODIES = {
    "full": json.dumps([{"id": str(n), "lat": n, "lon": n, "range": n} for n in range(5)]).encode(),
    "minimal": b'[{"id": "one", "lat": 1, "lon": 2}]',
    "empty": b"[]",
}


def test_a_feed_that_keeps_the_contract_passes_each_case(pg_cluster: EmbeddedPostgres) -> None:
    check_feed(Beacons(), BODIES, databases=Databases(pg_cluster))


class TakesAnythingForWhole(Beacons):
    """Half a list is a list, and so is a sentence."""

    def parse(self, body: bytes, at: datetime) -> Parsed:
        return all_at_once(self.pieces(body, at, sys.maxsize))

    def pieces(self, body: bytes, at: datetime, rows: int) -> Iterator[Piece | None]:
        try:
            records = json_records(body)
            facts = [Fact(one["id"], "beacon", one["id"], {}, 1.0, 2.0) for _, one in records.items()]
        except FeedError:
            facts = []
        yield from in_pieces(facts, rows, whole=True, total=facts.__len__, end=lambda rest: Parsed(rest, (), True))


class NeverWhole(Beacons):
    def pieces(self, body: bytes, at: datetime, rows: int) -> Iterator[Piece | None]:
        facts = list(Beacons().parse(body, at).rows)
        yield from in_pieces(facts, rows, whole=False, total=facts.__len__, end=lambda rest: Parsed(rest, (), False))  # type: ignore[arg-type]


class NotPure(Beacons):
    def pieces(self, body: bytes, at: datetime, rows: int) -> Iterator[Piece | None]:
        facts = [
            Fact(one.external_key, one.kind, one.title, {"read_at": datetime.now(UTC).isoformat()})
            for one in Beacons().parse(body, at).rows
            if isinstance(one, Fact)
        ]
        yield from in_pieces(facts, rows, whole=True, total=facts.__len__, end=lambda rest: Parsed(rest, (), True))


class AllInOnePiece(Beacons):
    def pieces(self, body: bytes, at: datetime, rows: int) -> Iterator[Piece | None]:
        yield from Beacons().pieces(body, at, sys.maxsize)


class Raises(Beacons):
    def parse(self, body: bytes, at: datetime) -> Parsed:
        if body != BODIES["full"]:
            raise KeyError("id")
        return Beacons().parse(body, at)

    def pieces(self, body: bytes, at: datetime, rows: int) -> Iterator[Piece | None]:
        if body != BODIES["full"]:
            raise KeyError("id")
        yield from Beacons().pieces(body, at, rows)


@dataclass(frozen=True)
class SweepsAWindow(Beacons):
    """Numbers its keys anew with each body."""

    numbers: count[int] = field(default_factory=count)

    def pieces(self, body: bytes, at: datetime, rows: int) -> Iterator[Piece | None]:
        start = next(self.numbers) * 100
        facts = [Fact(str(start + n), "beacon", "x", {}) for n, _ in enumerate(Beacons().parse(body, at).rows)]
        yield from in_pieces(facts, rows, whole=True, total=facts.__len__, end=lambda rest: Parsed(rest, (), True))


@pytest.mark.parametrize(
    ("feed", "case", "words"),
    [
        (
            TakesAnythingForWhole(rules=FetchRules()),
            "truncated",
            "are read as a complete body: `complete` is True only when the end",
        ),
        (
            TakesAnythingForWhole(rules=FetchRules()),
            "html",
            "b'Service temporarily unav'… with status 200 was taken for data",
        ),
        (NeverWhole(), "not_modified", "a body that was read to its end has `complete=True`"),
        (
            NeverWhole(),
            "changed",
            "after another body these differ: one; `sweeps` is True, which says whether a body lists",
        ),
        (NotPure(), "duplicate", "the same body, read again, is other facts: 0, 1, 2, 3, 4; `parse` is pure"),
        (AllInOnePiece(), "cancelled", "the body came in too few batches: `pieces(body, at, rows)` gives pieces"),
        (Raises(), "truncated", "the feed raised KeyError: 'id'; a feed raises FeedError for a body"),
        (Raises(), "shrunk", "a feed raises FeedError"),
        (SweepsAWindow(), "fresh", "`parse` gives facts that are not stored"),
    ],
    ids=lambda value: value if isinstance(value, str) and value in CASES else type(value).__name__,
)
def test_a_feed_that_breaks_it_is_told_what_to_do(
    feed: Beacons, case: str, words: str, pg_cluster: EmbeddedPostgres
) -> None:
    with pytest.raises(AssertionError) as told:
        run_case(case, feed, BODIES, databases=Databases(pg_cluster))
    assert words in str(told.value)


def test_all_failures_of_a_feed_are_told_at_once_by_name(pg_cluster: EmbeddedPostgres) -> None:
    with pytest.raises(AssertionError, match=r"^my_beacons fails 2 of 10 cases") as told:
        check_feed(TakesAnythingForWhole(rules=FetchRules()), BODIES, databases=Databases(pg_cluster))
    assert [line.partition(":")[0] for line in str(told.value).splitlines()[1:]] == ["truncated", "html"]
