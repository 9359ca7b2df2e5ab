"""Writes the results of jobs, all waiting ones in one statement: a single result at once, a thousand in two."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from planetwire.database.postgres import Pool, translated
from planetwire.database.sql import queries_beside
from planetwire.model import JobStatus

Q = queries_beside(__file__)

MOST = 500  # ends in one statement; more would only hold row locks for longer
_ORDER = attrgetter("task_id", "seq")
RETRY_MAX_S = 300.0
# Trying again cannot help: the request or the credentials are wrong, not the moment.
HOPELESS = frozenset({"auth_refused", "not_found", "unknown_source", "unknown_layer", "bad_request"})


@dataclass(slots=True)
class End:
    """How one lease ends. `least_s`: the minimum back-off before a retry of a failure."""

    task_id: int
    seq: int
    status: JobStatus
    message: str | None = None
    code: str | None = None
    text: str | None = None
    sample: str | None = None
    least_s: float = 0.0

    @property
    def plain(self) -> bool:
        """Completed, without message or sample."""
        return self.status is JobStatus.COMPLETED and self.message is None and self.sample is None


class EndWriter:
    """Group commit of ends. `retry_s`: first back-off of a failure, doubled each time, ± 25 %."""

    def __init__(self, pool: Pool, retry_s: float) -> None:
        self._pool = pool
        self._retry_s = retry_s
        self._waiting: list[tuple[End, asyncio.Future[bool]]] = []
        self._flushing: asyncio.Task[None] | None = None

    async def write(self, end: End) -> bool:
        """True when this end, or the same before, was written; False when the lease was lost. Raises BackendError."""
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((end, done))
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush())
        return await done

    async def _flush(self) -> None:
        """Until nothing waits. An error fails every end of the statement; each caller retries."""
        while self._waiting:
            batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            try:
                written = await self._store([end for end, _ in batch])
            except BaseException as error:
                for _, done in batch:
                    if not done.done():
                        done.set_exception(error if isinstance(error, Exception) else asyncio.CancelledError())
                if not isinstance(error, Exception):
                    raise
            else:
                for end, done in batch:
                    if not done.done():
                        done.set_result(written is None or (end.task_id, end.seq) in written)

    async def _store(self, ends: Sequence[End]) -> set[tuple[int, int]] | None:
        """Which were written; None: all (the usual case, without building a set)."""
        # By id: heartbeats lock rows in the same order, so no deadlock. An older lease of the same job is lost.
        newest = {end.task_id: end for end in sorted(ends, key=_ORDER)}.values()
        plain = [end for end in newest if end.plain]
        others = [end for end in newest if not end.plain]
        written: set[tuple[int, int]] = set()
        async with translated():
            if plain:
                rows = await self._pool.fetch(Q.complete, *_keys(plain))
                if len(rows) == len(ends):
                    return None
                written.update(rows)
            if others:
                written.update(await self._pool.fetch(Q.finish, *_columns(others), self._retry_s, RETRY_MAX_S))
            lost = [end for end in ends if (end.task_id, end.seq) not in written]
            if lost:
                written.update(await self._pool.fetch(Q.were_finished, *_keys(lost)))
        return written


def _keys(ends: Sequence[End]) -> tuple[str, str]:
    """Ids and fencing tokens as array literals: the driver takes ten times as long for arrays as the server."""
    ids = ",".join([str(end.task_id) for end in ends])
    seqs = ",".join([str(end.seq) for end in ends])
    return f"{{{ids}}}", f"{{{seqs}}}"


def _columns(ends: Sequence[End]) -> tuple[list[object], ...]:
    return (
        [end.task_id for end in ends],
        [end.seq for end in ends],
        [end.status.value for end in ends],
        [end.message for end in ends],
        [end.code for end in ends],
        [end.text for end in ends],
        [end.sample for end in ends],
        [end.code not in HOPELESS for end in ends],
        [end.least_s for end in ends],
    )
