"""Who did what, and the last lines of each job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from planetwire.model import JobLine
from planetwire.model.acts import Act, AuditEntry, AuditQuery


class AuditLog(Protocol):
    """What people did. Entries are added and never changed; they go when their time is over."""

    async def note(self, act: Act) -> None:
        """Keep it. Raises BackendError; then it was not kept, and what it tells must not happen either."""

    async def page(self, asked: AuditQuery, cursor: int | None, limit: int) -> tuple[Sequence[AuditEntry], int | None]:
        """Newest first, at most 500; the second value is the cursor of the next page or None."""

    async def prune(self) -> int:
        """Delete some of the entries that are past their time; how many."""


class JobLog(Protocol):
    """The last lines of each job, for a while. Lines may be lost: nothing is decided by them."""

    async def append(self, lines: Mapping[int, Sequence[JobLine]]) -> None:
        """Add lines by job id; of each job the newest 200 stay. Raises BackendError."""

    async def read(self, task_id: int) -> Sequence[JobLine]:
        """Oldest first; nothing for a job that has none, or none any more. Raises BackendError."""

    async def prune(self) -> int:
        """Delete some of the lines that are past their time; how many."""
