"""A body's facts in pieces, so that the database writes one piece while the next one is parsed.

Invariant: only the last piece has an `end`; every other one is full.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from planetwire.model import Fact, Parsed

SLICE_RECORDS = 100  # parsed on the event loop without a yield: about a millisecond of work


@dataclass(frozen=True, slots=True)
class Piece:
    """Some facts of a body. `end`: the result known only after the body's last record; its rows are the piece's.

    `total`: the estimated number of facts in the whole body; exact with the last piece.
    `whole`: whether the body was read to its end, as `Parsed.complete`; the same for every piece.
    """

    facts: Sequence[Fact]
    total: int
    whole: bool
    end: Parsed | None = None


def in_pieces(
    facts: Iterable[Fact | None],
    rows: int,
    *,
    whole: bool,
    total: Callable[[], int],
    end: Callable[[list[Fact]], Parsed],
) -> Iterator[Piece | None]:
    """Pieces of `rows` facts, the last of 1 … `rows`, or empty if there are no facts at all.

    A None among the facts is a record without one. A None among the pieces, every `SLICE_RECORDS` records, lets the
    caller yield the thread. `total` is called with each piece but the last; `end` once, after the last record, with
    the facts of the last piece.
    """
    given = 0
    piece: list[Fact] = []
    for count, fact in enumerate(facts, 1):
        if fact is not None:
            if len(piece) == rows:
                yield Piece(piece, total(), whole)
                given += rows
                piece = []
            piece.append(fact)
        if not count % SLICE_RECORDS:
            yield None
    yield Piece(piece, given + len(piece), whole, end(piece))


def all_at_once(pieces: Iterator[Piece | None]) -> Parsed:
    """The result; the first piece must be the last."""
    return next(piece.end for piece in pieces if piece is not None and piece.end is not None)


async def prefetched(pieces: Iterator[Piece | None]) -> AsyncGenerator[Piece, None]:
    """The pieces; while the caller awaits the processing of one, the next is parsed, a slice at a time.

    The first step, which reads the body, runs in a thread. Closing ends all work.
    """
    making = asyncio.ensure_future(_made(pieces, await _read(pieces)))
    try:
        while True:
            piece = await making
            if piece.end is not None:
                break
            making = asyncio.ensure_future(_made(pieces, None))
            yield piece
        yield piece
    finally:
        making.cancel()
        await asyncio.gather(making, return_exceptions=True)


async def _read(pieces: Iterator[Piece | None]) -> Piece | None:
    """A thread cannot be cancelled: if we are, we return after it."""
    reading = asyncio.ensure_future(asyncio.to_thread(next, pieces))
    try:
        return await asyncio.shield(reading)
    finally:
        await asyncio.gather(reading, return_exceptions=True)


async def _made(pieces: Iterator[Piece | None], piece: Piece | None) -> Piece:
    while piece is None:
        await asyncio.sleep(0)
        piece = next(pieces)
    return piece
