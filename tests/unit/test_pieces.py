"""A body in pieces gives what it gives at once, and nothing of it goes on when the reader stops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import aclosing
from datetime import UTC, datetime
from itertools import count
from typing import Any

import orjson
import pytest

from planetwire.collect.formats.pieces import SLICE_RECORDS, Piece, in_pieces, prefetched
from planetwire.datasets.earthquakes.feed import UsgsQuakes
from planetwire.datasets.satellites.feed import CelestrakGp
from planetwire.errors import FeedError
from planetwire.model import Fact, Parsed

AT = datetime(2026, 11, 29, 12, tzinfo=UTC)
RECORD: dict[str, Any] = {
    "OBJECT_NAME": "ONE", "OBJECT_ID": "1998-067A", "EPOCH": "2026-11-29T04:10:11.123456", "MEAN_MOTION": 15.49,
    "ECCENTRICITY": 0.0004, "INCLINATION": 51.63, "RA_OF_ASC_NODE": 12.5, "ARG_OF_PERICENTER": 90.0,
    "MEAN_ANOMALY": 270.0, "NORAD_CAT_ID": 1,
}  # fmt: skip
OLDER, BROKEN = {"EPOCH": "2026-11-28T00:00:00.000000"}, {"EPOCH": "never"}


def body_of(*records: Any) -> bytes:
    """A number is a sound record of that satellite."""
    return orjson.dumps([RECORD | {"NORAD_CAT_ID": one} if isinstance(one, int) else one for one in records])


def satellite(number: object, changes: dict[str, Any]) -> dict[str, Any]:
    return RECORD | {"NORAD_CAT_ID": number} | changes


def pieces_of(body: bytes, rows: int) -> list[Piece]:
    return [piece for piece in CelestrakGp().pieces(body, AT, rows) if piece is not None]


def keys_of(pieces: list[Piece]) -> list[list[str]]:
    return [[fact.external_key for fact in piece.facts] for piece in pieces]


def end_of(pieces: list[Piece]) -> Parsed:
    assert [piece.end is None for piece in pieces] == [True] * (len(pieces) - 1) + [False]
    assert pieces[-1].end is not None
    return pieces[-1].end


def fact(number: int) -> Fact:
    return Fact(str(number), "thing", "", {})


@pytest.mark.parametrize(("records", "sizes"), [(0, [0]), (1, [1]), (3, [3]), (4, [3, 1]), (6, [3, 3]), (7, [3, 3, 1])])
def test_every_piece_but_the_last_is_full_and_none_is_empty_beside_others(records: int, sizes: list[int]) -> None:
    """S40."""
    pieces = pieces_of(body_of(*range(1, records + 1)), 3)
    assert [len(piece.facts) for piece in pieces] == sizes
    assert {(piece.total, piece.whole) for piece in pieces} == {(records, True)}
    assert end_of(pieces).complete


def test_an_object_whose_records_lie_in_different_pieces_is_given_once_at_last_and_newest() -> None:
    """Also when its number is spelt in two ways."""
    body = body_of(satellite(7, OLDER), 1, 2, 3, satellite("0007", {}), 4, satellite(7, OLDER), 5)
    pieces = pieces_of(body, 2)
    assert keys_of(pieces) == [["1", "2"], ["3", "4"], ["5", "7"]]
    assert pieces[-1].facts[-1].data["EPOCH"] == RECORD["EPOCH"]
    assert end_of(pieces).notes == {"duplicates": 2}
    assert [piece.total for piece in pieces] == [8, 6, 6]


def test_an_object_of_which_one_record_is_sound_is_given_by_that_one() -> None:
    pieces = pieces_of(body_of(satellite(7, BROKEN), 1, 2, satellite(7, OLDER)), 2)
    assert keys_of(pieces) == [["1", "2"], ["7"]]
    end = end_of(pieces)
    assert (end.notes, [one.offset for one in end.rejects], end.refused_keys) == ({}, [0], {"7"})


def test_rejects_and_the_exact_total_come_with_the_last_piece() -> None:
    body = body_of(1, satellite(2, BROKEN), 3, None, 5, satellite(6, BROKEN))
    pieces = pieces_of(body, 2)
    assert keys_of(pieces) == [["1", "3"], ["5"]]
    assert pieces[-1].total == 3
    end = end_of(pieces)
    assert ([one.offset for one in end.rejects], end.refused_keys) == ([1, 3, 5], {"2", "6"})


def test_a_body_of_which_all_is_refused_has_one_empty_piece() -> None:
    pieces = pieces_of(body_of(*(satellite(number, BROKEN) for number in range(1, 8))), 2)
    assert [(piece.facts, piece.total) for piece in pieces] == [([], 0)]
    assert len(end_of(pieces).rejects) == 7


def test_every_piece_of_a_body_that_was_cut_says_so() -> None:
    """Report 75."""
    pieces = pieces_of(body_of(1, 2, 3, 4, 5)[:-9], 2)
    assert keys_of(pieces) == [["1", "2"], ["3", "4"]]
    assert [piece.whole for piece in pieces] == [False, False]
    assert (end_of(pieces).complete, len(end_of(pieces).rejects)) == (False, 1)


def test_a_bad_body_fails_before_the_first_piece() -> None:
    for feed in (CelestrakGp(), UsgsQuakes()):
        with pytest.raises(FeedError):
            next(feed.pieces(b"<html>busy</html>", AT, 2))


@pytest.mark.parametrize("rows", [1, 2, 3, 1_000])
def test_pieces_of_any_size_hold_what_parse_gives(rows: int) -> None:
    body = body_of(satellite(3, OLDER), 1, satellite(9, BROKEN), 2, 3, *range(10, 500), satellite("11", OLDER))
    parsed, pieces = CelestrakGp().parse(body, AT), pieces_of(body, rows)
    assert [fact for piece in pieces for fact in piece.facts] == list(parsed.rows)
    end = end_of(pieces)
    assert (end.rejects, end.notes, end.refused_keys) == (parsed.rejects, parsed.notes, parsed.refused_keys)


def test_quakes_come_in_pieces_with_their_tombstones_at_last() -> None:
    features = [
        {"type": "Feature", "id": f"us{number}", "geometry": None,
         "properties": {"time": 1_779_789_720_000, "status": "deleted" if number == 2 else "automatic"}}
        for number in range(6)
    ]  # fmt: skip
    pieces = list(UsgsQuakes().pieces(orjson.dumps({"features": features}), AT, 2))
    made = [piece for piece in pieces if piece is not None]
    assert keys_of(made) == [["us0", "us1"], ["us3", "us4"], ["us5"]]
    assert end_of(made).tombstones == {"us2"}


def test_others_get_their_turn_every_few_records_refused_ones_too() -> None:
    steps = in_pieces([None] * (3 * SLICE_RECORDS), 10, whole=True, total=int, end=lambda rows: Parsed(rows, (), True))
    assert [piece is None for piece in steps] == [True, True, True, False]


def endless(made: list[int], rows: int = SLICE_RECORDS) -> Iterator[Piece | None]:
    """Pieces for ever; counts the facts that were made."""

    def facts() -> Iterator[Fact]:
        for number in count():
            made.append(number)
            yield fact(number)

    return in_pieces(facts(), rows, whole=True, total=int, end=lambda rows: Parsed(rows, (), True))


async def test_the_next_piece_is_made_while_the_present_one_is_worked_on() -> None:
    made: list[int] = []
    async with aclosing(prefetched(endless(made))) as pieces:
        first = await anext(pieces)
        assert len(first.facts) == SLICE_RECORDS
        async with asyncio.timeout(60):
            while len(made) < 2 * SLICE_RECORDS:
                await asyncio.sleep(0)


async def test_closing_between_two_pieces_ends_all_work() -> None:
    """S48: a cancel leaves nothing behind."""
    made: list[int] = []
    pieces = prefetched(endless(made, rows=10_000))
    async with aclosing(pieces):
        await anext(pieces)
        await asyncio.sleep(0)
    left = len(made)
    assert left < 20_000
    assert asyncio.all_tasks() == {asyncio.current_task()}
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(made) == left


async def test_a_cancel_while_the_body_is_read_leaves_only_after_the_reading_thread() -> None:
    reading, go_on, left = threading.Event(), threading.Event(), threading.Event()

    def slow() -> Iterator[Piece | None]:
        reading.set()
        assert go_on.wait(20)
        left.set()
        yield None

    task = asyncio.ensure_future(anext(prefetched(slow())))
    assert await asyncio.to_thread(reading.wait, 20)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert left.is_set()


async def test_a_failure_in_the_next_piece_comes_after_the_present_one() -> None:
    def broken() -> Iterator[Piece | None]:
        yield Piece([fact(1)], 2, True)
        raise ValueError("broken")

    got: list[Piece] = []
    with pytest.raises(ValueError, match="broken"):
        async with aclosing(prefetched(broken())) as pieces:
            async for piece in pieces:
                got.append(piece)
    assert len(got) == 1
