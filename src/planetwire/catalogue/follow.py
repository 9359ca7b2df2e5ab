"""Follows the store's declarations: every process sees a new revision within 2 s, told of it or not.

The revision decides; what rings is a hint. Whatever must not act upon old declarations asks `look` first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias

from planetwire.catalogue.catalogue import SHIPPED, Catalogue, Snapshot
from planetwire.catalogue.compose import Composer
from planetwire.log import get_logger
from planetwire.model.facts import Declarations
from planetwire.ports import Clock, Wakeup
from planetwire.runtime.backoff import Backoff
from planetwire.runtime.forever import run_forever

log = get_logger()

LOOK_S = 1.0  # without a ring: half of what is promised, the other half is for reading them
RETRY_S = 0.5  # after the database could not be reached …
RETRY_MAX_S = 5.0  # … doubling up to this
ERROR_CHARS = 300

Prepare: TypeAlias = Callable[[Snapshot], Awaitable[object]]
Changed: TypeAlias = Callable[[Snapshot, Snapshot], Awaitable[object]]


class StoredDeclarations(Protocol):
    """What is followed. Each raises BackendError."""

    async def revision(self) -> int:
        """Rises with each change; never decreases."""

    async def read(self) -> Declarations:
        """All at one revision."""


class Follower:
    """`prepare`: what the store needs before the new sources are used; if one of these fails nothing is swapped, and it
    is tried again. `changed`: told of the snapshots before and after, once they are swapped.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        store: StoredDeclarations,
        composer: Composer,
        clock: Clock,
        *,
        prepare: Sequence[Prepare] = (),
    ) -> None:
        self.catalogue = catalogue
        self.changed: list[Changed] = []
        self._store = store
        self._composer = composer
        self._clock = clock
        self._prepare = prepare
        self._looking = asyncio.Lock()

    async def look(self) -> bool:
        """Whether there was a newer revision; it is the current one then. Raises BackendError."""
        if await self._store.revision() == self.catalogue.current.revision:
            return False
        async with self._looking:
            return await self._renew()

    async def _renew(self) -> bool:
        stored = await self._store.read()
        before = self.catalogue.current
        if stored.revision == before.revision:
            return False
        snapshot = await asyncio.to_thread(self._composer, stored)
        for step in self._prepare:
            await step(snapshot)
        self.catalogue.swap(snapshot)
        for tell in self.changed:
            await tell(before, snapshot)
        declared, skipped = len(snapshot.declared), len(snapshot.faults)
        if before.revision != SHIPPED:  # at a start it is no change
            log.info("sources.catalogue.renewed", revision=snapshot.revision, declared=declared, skipped=skipped)
        return True

    async def run(self, bell: Wakeup | None = None) -> None:
        """Until cancelled; survives every failure of the database. `bell` rings when there may be a new revision."""

        async def wait(_: object) -> None:
            if bell is None:
                await self._clock.sleep(LOOK_S)
            else:
                await bell.wait(LOOK_S)

        await run_forever(
            self.look,
            wait,
            lambda error, _: log.warning("sources.catalogue.failed", error=error.message),
            Backoff(RETRY_S, RETRY_MAX_S, self._clock),
            on_crash=lambda error: log.exception("sources.catalogue.crashed", error=repr(error)[:ERROR_CHARS]),
        )
