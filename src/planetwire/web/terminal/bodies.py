"""Caches the terminal's snapshots in this process: built once per content, compressed once per requested coding."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import orjson

from planetwire.model import Cursor, Json
from planetwire.model.cache_names import terminal_body
from planetwire.ports import Clock
from planetwire.web.snapshots.encoded import Encoded
from planetwire.web.snapshots.encodings import Encoding
from planetwire.web.snapshots.single_flight import SingleFlight

BODIES_MAX = 128  # cached; the oldest is dropped first
GOOD_FOR_S = 5.0  # without a new event a snapshot changes only with the age of its readings

Build = Callable[[], Awaitable[tuple[Json, Json]]]
"""Builds the content of a snapshot, and its stamp: the fields with the time of its making."""

Generation = Callable[[str], int]
"""Of a name in the cache; see the port `Cache`."""


@dataclass(slots=True)
class _Kept:
    plain: Encoded
    cursor: Cursor
    content_hash: bytes
    checked: tuple[float, int]
    """When, and in which generation it was last compared with the store."""
    forms: dict[Encoding, Encoded] = field(default_factory=dict)


class TerminalBodies:
    """Keeps bodies by name. The same content keeps its bytes, its stamp and so its ETag."""

    def __init__(self, clock: Clock, generation: Generation = lambda name: 0) -> None:
        """`generation` changes when the cache is cleared: then the store is read again before the 5 s are over."""
        self._clock = clock
        self._generation = generation
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._building = SingleFlight[_Kept]()
        self._compressing = SingleFlight[Encoded]()

    async def get(self, name: str, cursor: Cursor, encoding: Encoding, build: Build) -> Encoded:
        """The body of exactly this cursor, compared with the store in the last 5 s; one build for all."""
        kept = self._kept.get(name)
        generation = self._generation(terminal_body(name))  # before the readings
        if kept is None or kept.cursor != cursor or not self._still_good(kept, generation):
            kept = await self._building.share(
                (name, cursor, generation), lambda: self._build(name, cursor, generation, build)
            )
        if encoding == "identity":
            return kept.plain
        return kept.forms.get(encoding) or await self._compressed(kept, encoding)

    def _still_good(self, kept: _Kept, generation: int) -> bool:
        checked_s, in_generation = kept.checked
        return in_generation == generation and self._clock.monotonic() - checked_s < GOOD_FOR_S

    async def _build(self, name: str, cursor: Cursor, generation: int, build: Build) -> _Kept:
        content, stamp = await build()
        content = {**content, "revision": cursor.revision, "epoch": cursor.epoch}
        digest = hashlib.sha256(orjson.dumps(content)).digest()
        checked = self._clock.monotonic(), generation
        kept = self._kept.get(name)
        if kept is not None and kept.content_hash == digest:
            kept.checked = checked
            return kept
        kept = _Kept(Encoded.of(cursor, orjson.dumps({**stamp, **content})), cursor, digest, checked)
        self._keep(name, kept)
        return kept

    def _keep(self, name: str, kept: _Kept) -> None:
        self._kept[name] = kept
        self._kept.move_to_end(name)
        while len(self._kept) > BODIES_MAX:
            self._kept.popitem(last=False)

    async def _compressed(self, kept: _Kept, encoding: Encoding) -> Encoded:
        form = await self._compressing.share((kept.plain.etag, encoding), lambda: kept.plain.compressed(encoding))
        return kept.forms.setdefault(encoding, form)
