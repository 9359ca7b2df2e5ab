"""Bodies of the terminal: when the store is asked again, and who is given which bytes."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from datetime import UTC, datetime

import orjson

from planetwire.model import Cursor, Json
from planetwire.model.cache_names import terminal_body
from planetwire.runtime.clock import ManualClock
from planetwire.web.snapshots.encoded import Encoded
from planetwire.web.snapshots.encodings import Encoding
from planetwire.web.terminal.bodies import BODIES_MAX, GOOD_FOR_S, TerminalBodies

EPOCH = "abcdef012345"


class Made:
    """Bodies over a store that counts how often it is asked."""

    def __init__(self) -> None:
        self.clock = ManualClock(datetime(2026, 5, 26, 10, 0, tzinfo=UTC))
        self.generations: dict[str, int] = defaultdict(int)
        self.reads = 0
        self.temp = 20.0
        self.bodies = TerminalBodies(self.clock, lambda name: self.generations[name])

    async def get(self, revision: int = 1, encoding: Encoding = "identity", name: str = "scan") -> Encoded:
        return await self.bodies.get(name, Cursor(EPOCH, revision), encoding, self._build)

    async def _build(self) -> tuple[Json, Json]:
        self.reads += 1
        return {"temp": self.temp}, {"generated_at": self.clock.now().isoformat()}

    async def temp_shown(self) -> float:
        return float(orjson.loads((await self.get()).body)["temp"])


async def test_what_was_typed_into_the_store_is_seen_after_five_seconds() -> None:
    """No event tells of it."""
    made = Made()
    assert await made.temp_shown() == 20.0
    made.temp = 21.0
    made.clock.advance(GOOD_FOR_S - 0.1)
    assert await made.temp_shown() == 20.0
    made.clock.advance(0.1)
    assert await made.temp_shown() == 21.0


async def test_and_at_once_after_the_cache_was_cleared() -> None:
    """S27, S42: `clear_cache` is for the dashboard's snapshots too, and a pattern may mean some of them."""
    made = Made()
    assert await made.temp_shown() == 20.0
    made.temp = 21.0
    made.generations[terminal_body("detail shanghai")] += 1
    assert await made.temp_shown() == 20.0
    made.generations[terminal_body("scan")] += 1
    assert await made.temp_shown() == 21.0
    assert (await made.temp_shown(), made.reads) == (21.0, 2)


async def test_what_is_the_same_when_looked_at_again_keeps_its_bytes_in_every_coding() -> None:
    """S101: only the stamp would differ."""
    made = Made()
    codings: tuple[Encoding, ...] = ("identity", "gzip", "zstd")
    before = [await made.get(encoding=encoding) for encoding in codings]
    made.clock.advance(60)
    made.generations[terminal_body("scan")] += 1
    assert [await made.get(encoding=encoding) for encoding in codings] == before
    assert made.reads == 2
    assert [await made.get(2, encoding) for encoding in codings] != before


async def test_a_cursor_is_never_given_the_body_of_another() -> None:
    """Also when the older one's reader ends last."""
    made = Made()
    older, newer = await asyncio.gather(made.get(1), made.get(2))
    assert (older.cursor, newer.cursor) == (Cursor(EPOCH, 1), Cursor(EPOCH, 2))
    assert (await made.get(1)).cursor == Cursor(EPOCH, 1)
    assert (await made.get(2)).cursor == Cursor(EPOCH, 2)


async def test_what_is_remembered_is_bounded() -> None:
    """The oldest goes first."""
    made = Made()
    for n in range(BODIES_MAX + 1):
        await made.get(name=str(n))
    await made.get(name=str(BODIES_MAX))
    assert made.reads == BODIES_MAX + 1
    await made.get(name="0")
    assert made.reads == BODIES_MAX + 2
