"""The audit log, and the last log lines of each job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from planetwire.model import JobLine
from planetwire.model.acts import Act, AuditEntry, AuditQuery


class AuditLog(Protocol):
    """The actions of people. Entries are never changed; they are deleted after their retention."""

    async def note(self, act: Act) -> None:
        """Store it. Raises BackendError; then it was not stored, and the action must not happen either."""

    async def page(self, asked: AuditQuery, cursor: int | None, limit: int) -> tuple[Sequence[AuditEntry], int | None]:
        """Newest first, at most 500; the second value is the cursor of the next page or None."""

    async def prune(self) -> int:
        """Delete some of the entries past their retention; returns how many."""


class JobLog(Protocol):
    """The last log lines of each job, for a while. Lines may be lost: nothing depends on them."""

    async def append(self, lines: Mapping[int, Sequence[JobLine]]) -> None:
        """Add lines by job id; the newest 200 of each job are kept. Raises BackendError."""

    async def read(self, task_id: int) -> Sequence[JobLine]:
        """Oldest first; empty for a job without lines. Raises BackendError."""

    async def prune(self) -> int:
        """Delete some of the lines past their retention; returns how many."""
