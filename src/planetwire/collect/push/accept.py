"""Accepts pushed observations: normalise, store with a revision, and only then notify the stream.

The store calls the stream itself, in revision order, before an append returns; nothing is broadcast before it is on
disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

import orjson

from planetwire.collect.push.ingest import normalise
from planetwire.errors import InputError, TooLarge
from planetwire.log import get_logger
from planetwire.model import Json, ObservationPatch
from planetwire.model.wire import PATCH_MAX_BYTES
from planetwire.observing import Sources
from planetwire.ports import Clock, ObservationStore

log = get_logger()

INLINE_MAX = 16  # larger batches are parsed in a thread, so that the loop is not blocked


class Ingest:
    """The entry to the observation store, for the HTTP route and for feeds of this process."""

    def __init__(
        self, store: ObservationStore, clock: Clock, sources: Sources, *, admit: Callable[[], None] = lambda: None
    ) -> None:
        """`admit` raises BackendError while nothing may be accepted."""
        self._store = store
        self._clock = clock
        self._sources = sources
        self._admit = admit

    async def accept(self, raws: Sequence[object]) -> Sequence[Json]:
        """One result per patch, in order: `{revision, duplicate}`, or `{code, error}` if it was refused.

        The valid ones are stored together, all or none. Raises BackendError; then nothing was stored or sent.
        """
        self._admit()
        now = self._clock.now()
        if len(raws) > INLINE_MAX:
            read = await asyncio.to_thread(_read_all, self._sources, raws, now)
        else:
            read = _read_all(self._sources, raws, now)
        stored = iter(await self._store.append([patch for patch in read if isinstance(patch, ObservationPatch)]))
        results: list[Json] = []
        for patch in read:
            if isinstance(patch, InputError):
                results.append({"code": patch.code, "error": patch.message})
            else:
                appended = next(stored)
                results.append({"revision": appended.revision, "duplicate": appended.duplicate})
        return results


def _read_all(sources: Sources, raws: Sequence[object], now: datetime) -> list[ObservationPatch | InputError]:
    return [_read(sources, raw, now) for raw in raws]


def _read(sources: Sources, raw: object, now: datetime) -> ObservationPatch | InputError:
    try:
        _check_size(raw)
        patch = normalise(sources, raw, now)
    except InputError as error:
        log.warning("collect.patch.refused", code=error.code, error=error.message)
        return error
    _note_dropped(raw, patch)
    return patch


def _note_dropped(raw: object, patch: ObservationPatch) -> None:
    """Some senders add hourly forecasts to their readings; these are no observations and are not stored."""
    inner = isinstance(raw, dict) and (raw.get("changes") or raw.get("payload"))
    if isinstance(inner, dict) and "hourly" in inner:
        log.debug("collect.patch.hourly_dropped", city=patch.city, source=patch.source)


def _check_size(raw: object) -> None:
    try:
        size = len(orjson.dumps(raw))
    except TypeError as error:  # nested too deeply, or not JSON
        raise InputError(f"not a patch: {error}", code="bad_patch") from error
    if size > PATCH_MAX_BYTES:
        raise TooLarge(f"a patch has at most {PATCH_MAX_BYTES} bytes, this one {size}")
