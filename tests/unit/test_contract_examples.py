"""The part of the contract that needs no server: each check fails in words that say what a dataset has to do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from planetwire.collect.formats.pieces import Piece
from planetwire.model import Derived, Fact, Parsed, Reject
from planetwire.model.presentation import CardRow, GrowingSize, Look, Scale, ScaleClass
from planetwire.testing import examples as checks
from plugin_points import Beacons, beacons

GOOD = [{"id": str(n), "lat": n, "lon": n, "range": n} for n in range(3)]


class Careful(Beacons):
    """Counts a record without an id as a reject."""

    def parse(self, body: bytes, at: datetime) -> Parsed:
        records = json.loads(body)
        facts = [Fact(one["id"], "beacon", one["id"], {"range": one.get("range")}, one["lat"], one["lon"])
                 for one in records if "id" in one]  # fmt: skip
        rejects = [Reject("no id", "", at, "broken") for at, one in enumerate(records) if "id" not in one]
        return Parsed(facts, rejects, True)

    def pieces(self, body: bytes, at: datetime, rows: int) -> Iterator[Piece | None]:
        whole = self.parse(body, at)
        for n, fact in enumerate(whole.rows):
            assert isinstance(fact, Fact)
            yield Piece([fact], len(whole.rows), True, whole if n == len(whole.rows) - 1 else None)
        if not whole.rows:
            yield Piece([], 0, True, whole)


BODIES = {
    "full": json.dumps(GOOD).encode(),
    "minimal": json.dumps(GOOD[:1]).encode(),
    "empty": b"[]",
    "broken": json.dumps([*GOOD, {"lat": 1}]).encode(),
}
FEED = Careful()
LAYER = beacons(card=(CardRow("range", "Range", "射程", ("range",), "number"),)).layer
FACTS = [fact for fact in FEED.parse(BODIES["full"], checks.AT).rows if isinstance(fact, Fact)]


def test_a_good_dataset_passes_them_all() -> None:
    checks.check_examples(FEED, BODIES)
    checks.check_pieces(FEED, BODIES)
    checks.check_keys(FEED, BODIES)
    checks.check_texts(LAYER)
    checks.check_look_and_card(LAYER)
    checks.check_derive(LAYER, FACTS)
    checks.check_card_values(LAYER, FACTS)


class Strict(Careful):
    def parse(self, body: bytes, at: datetime) -> Parsed:
        for one in json.loads(body):
            one["id"]
        return super().parse(body, at)


class HalfRead(Careful):
    def parse(self, body: bytes, at: datetime) -> Parsed:
        return replace(super().parse(body, at), complete=False)


class Forgetful(Careful):
    def pieces(self, body: bytes, at: datetime, rows: int) -> Iterator[Piece | None]:
        yield from list(super().pieces(body, at, rows))[1:]


class Endless(Careful):
    def pieces(self, body: bytes, at: datetime, rows: int) -> Iterator[Piece | None]:
        yield from (None if piece is None else replace(piece, end=None) for piece in super().pieces(body, at, rows))


def body(*records: Any) -> bytes:
    return json.dumps(records).encode()


TWICE = {**BODIES, "full": body(*GOOD, GOOD[0])}
OFF = {**BODIES, "minimal": body({"id": "x", "lat": 91, "lon": 0})}


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (
            lambda: checks.check_examples(FEED, {"full": b"[]"}),
            "the examples are broken, empty, full, minimal, not full",
        ),
        (lambda: checks.check_examples(FEED, {**BODIES, "full": b"[]"}), "gives 0 rows, more than 1 are needed"),
        (lambda: checks.check_examples(FEED, {**BODIES, "minimal": BODIES["full"]}), "minimal: gives 3 rows, not 1"),
        (lambda: checks.check_examples(FEED, {**BODIES, "empty": BODIES["full"]}), "empty: gives 3 rows"),
        (lambda: checks.check_examples(FEED, {**BODIES, "broken": BODIES["full"]}), "broken: no record is refused"),
        (lambda: checks.check_examples(FEED, {**BODIES, "broken": body(GOOD[0], {})}), "costs itself and nothing else"),
        (lambda: checks.check_examples(FEED, {**BODIES, "full": BODIES["broken"]}), "these are refused: no id"),
        (lambda: checks.check_examples(HalfRead(), BODIES), "full: is read to its end, so `complete` is True"),
        (
            lambda: checks.check_examples(Strict(), BODIES),
            "the feed raised KeyError: 'id'; a feed raises FeedError for",
        ),
        (lambda: checks.check_pieces(Forgetful(), BODIES), "`pieces` gives other facts than `parse`"),
        (lambda: checks.check_pieces(Endless(), BODIES), "the last piece alone has an `end`"),
        (lambda: checks.check_keys(FEED, TWICE), "two facts have one key: 0"),
        (lambda: checks.check_keys(FEED, OFF), "91, 0 is not on the Earth"),
        (lambda: checks.check_texts(replace(LAYER, title_zh=" ")), "title_zh: empty, or left as …"),
        (lambda: checks.check_texts(replace(LAYER, provenance=replace(LAYER.provenance, zh=None))), "zh` is missing"),
        (
            lambda: checks.check_texts(replace(LAYER, provenance=replace(LAYER.provenance, limits="…"))),
            "provenance.limits: empty",
        ),
        (lambda: checks.check_look_and_card(replace(LAYER, card=())), "its card has no row"),
        (lambda: checks.check_derive(LAYER, []), "its examples give no fact"),
        (
            lambda: checks.check_derive(
                replace(LAYER, derive=lambda fact: Derived(subtitle=str(fact.data["range"]))), FACTS
            ),
            "derive raised KeyError: 'range'",
        ),
        (
            lambda: checks.check_derive(
                replace(LAYER, derive=lambda f: Derived(severity=float(f.data.get("range", 0)))), FACTS
            ),
            "derive raised TypeError",
        ),
        (
            lambda: checks.check_card_values(replace(LAYER, card=(replace(LAYER.card[0], values=("rnage",)),)), FACTS),
            "card row range: no fact of the examples has rnage",
        ),
        (
            lambda: checks.check_card_values(
                replace(LAYER, look=Look(size=GrowingSize("height", 3.0, 1.1, 3.0, 9.0, 3.0))), FACTS
            ),
            "look: no fact of the examples has the value of size by height",
        ),
        (
            lambda: checks.check_card_values(
                replace(
                    LAYER, look=Look(Scale("value", (ScaleClass("a", "a", "甲", "#ffffff", below=1.0),), value="depth"))
                ),
                FACTS,
            ),
            "color by depth",
        ),
    ],
)
def test_what_is_wrong_is_said_in_words(check: Callable[[], None], words: str) -> None:
    with pytest.raises(AssertionError) as told:
        check()
    assert words in str(told.value)


def test_what_the_page_works_out_itself_may_be_on_a_card() -> None:
    layer = replace(LAYER, card=(replace(LAYER.card[0], values=("altitude",)),))
    checks.check_card_values(layer, FACTS, ("altitude",))
