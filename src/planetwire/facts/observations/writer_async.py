"""Group commit, one commit at a time: the asyncio counterpart of `writer_sqlite.py`.

Invariant: a unit is all or nothing; results are delivered in commit order, first to the listener, then to the waiter.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from planetwire.errors import BackendError, LogWriteFailed, PlanetwireError
from planetwire.log import get_logger

log = get_logger()
Item = TypeVar("Item")
Result = TypeVar("Result")

GROUP_MAX = 200  # items per commit; a larger unit is committed alone
WAITING_MAX = 2_000  # units not yet committed; more are refused
WRITE_TIMEOUT_S = 30.0
CLOSE_TIMEOUT_S = 30.0


@dataclass(slots=True)
class _Unit(Generic[Item, Result]):
    items: Sequence[Item]
    done: asyncio.Future[Sequence[Result]]


class GroupWriter(Generic[Item, Result]):
    """`commit` stores items in one transaction and returns one result each, or raises and stores nothing.

    It raises LogWriteFailed for an error that affects all units; any other error may be caused by one unit, so the
    units of the group are then committed one by one.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
        on_committed: Callable[[Sequence[Result]], None],
    ) -> None:
        self._commit = commit
        self._on_committed = on_committed
        self._waiting: deque[_Unit[Item, Result]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def run(self, items: Sequence[Item]) -> Sequence[Result]:
        """The results, once committed. Cancelling the wait does not undo the work.

        Raises LogWriteFailed (nothing stored, or unknown after 30 s), BackendError `overloaded` or after `aclose`.
        """
        if self._closed:
            raise BackendError("the observation store is closed")
        if len(self._waiting) >= WAITING_MAX:
            raise BackendError("too many writes are waiting", code="overloaded")
        unit = _Unit[Item, Result](items, asyncio.get_running_loop().create_future())
        self._waiting.append(unit)
        if self._task is None:
            self._task = asyncio.create_task(self._work(), name="observation-writer")
        try:
            return await asyncio.wait_for(unit.done, WRITE_TIMEOUT_S)
        except TimeoutError as error:
            raise LogWriteFailed(f"the database did not answer within {WRITE_TIMEOUT_S:.0f} s") from error

    async def aclose(self) -> None:
        """Commit what was accepted, then stop. Idempotent."""
        self._closed = True
        if self._task is not None:
            await asyncio.wait([self._task], timeout=CLOSE_TIMEOUT_S)

    async def _work(self) -> None:
        while self._waiting:
            units = self._gather()
            try:
                self._settle(units, await self._commit([item for unit in units for item in unit.items]))
            except Exception as error:
                await self._one_by_one(units, error)
        self._task = None

    def _gather(self) -> list[_Unit[Item, Result]]:
        units = [self._waiting.popleft()]
        weight = len(units[0].items)
        while self._waiting and weight + len(self._waiting[0].items) <= GROUP_MAX:
            units.append(self._waiting.popleft())
            weight += len(units[-1].items)
        return units

    async def _one_by_one(self, units: Sequence[_Unit[Item, Result]], error: Exception) -> None:
        if len(units) == 1 or isinstance(error, LogWriteFailed):
            self._refuse(units, error)
            return
        for unit in units:
            try:
                self._settle([unit], await self._commit(unit.items))
            except Exception as own:
                self._refuse([unit], own)

    def _settle(self, units: Sequence[_Unit[Item, Result]], results: Sequence[Result]) -> None:
        try:
            self._on_committed(results)
        except Exception:
            log.exception("facts.observation.listener_failed")
        left = iter(results)
        for unit in units:
            own = [next(left) for _ in unit.items]
            if not unit.done.done():
                unit.done.set_result(own)

    def _refuse(self, units: Sequence[_Unit[Item, Result]], error: Exception) -> None:
        log.error("facts.observation.write_failed", error=repr(error), units=len(units))
        if not isinstance(error, PlanetwireError):
            error = LogWriteFailed(f"the observation log did not take the write: {error!r}")
        for unit in units:
            if not unit.done.done():
                unit.done.set_exception(error)
