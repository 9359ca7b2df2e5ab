"""The audit log without a database: port AuditLog over one file a day in the data dir, one JSON line an act.

Web processes and commands append lines under a lock between processes. If the database was only unreachable, `take`
returns the acts stored meanwhile, to be moved there (see `web/access/audit.py`).
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from planetwire.errors import BackendError
from planetwire.model import Actor, Json, Role
from planetwire.model.acts import Act, AuditEntry, AuditQuery, bounded, plain

PAGE_MAX = 500
DAY_MAX_BYTES = 16 * 1024 * 1024  # of one day; far more than people do by hand
_OFFSETS = 2**32  # an id is the day and the offset in its file, so ids rise with time


class FileAuditLog:
    """Port AuditLog. `now` gives aware UTC."""

    def __init__(self, folder: Path, keep_days: float, now: Callable[[], datetime]) -> None:
        self._folder = folder
        self._keep = timedelta(days=keep_days)
        self._now = now

    async def note(self, act: Act) -> None:
        """See the port."""
        await asyncio.to_thread(self._append, act)

    async def page(self, asked: AuditQuery, cursor: int | None, limit: int) -> tuple[Sequence[AuditEntry], int | None]:
        """See the port."""
        return await asyncio.to_thread(self._page, asked, cursor, min(limit, PAGE_MAX))

    async def prune(self) -> int:
        """See the port. One day's file at a time."""
        return await asyncio.to_thread(self._prune)

    async def take(self) -> list[tuple[datetime, str, Act]]:
        """All stored entries, oldest first, each with a unique key. They stay until `drop`."""
        return await asyncio.to_thread(self._all)

    async def drop(self, keys: Sequence[str]) -> None:
        """Delete the entries of these keys, which are stored elsewhere by now."""
        await asyncio.to_thread(self._drop, frozenset(keys))

    # --- files

    def _append(self, act: Act) -> None:
        at = self._now().astimezone(UTC)
        line = json.dumps(_record(at, act), separators=(",", ":")).encode() + b"\n"
        try:
            with self._locked():
                path = self._folder / f"{at.date().isoformat()}.jsonl"
                if path.exists() and path.stat().st_size + len(line) > DAY_MAX_BYTES:
                    raise BackendError("the audit log of today is full", code="audit_full")
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                with os.fdopen(handle, "ab") as file:
                    _mend_end(path, file)
                    file.write(line)
        except OSError as error:
            raise BackendError(f"the audit log cannot be written: {error}") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(self._folder / ".lock", os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(handle, "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _days(self) -> list[tuple[date, Path]]:
        """Newest first."""
        found = []
        for path in self._folder.glob("*.jsonl"):
            try:
                found.append((date.fromisoformat(path.stem), path))
            except ValueError:
                continue
        return sorted(found, reverse=True)

    def _page(self, asked: AuditQuery, cursor: int | None, limit: int) -> tuple[list[AuditEntry], int | None]:
        found: list[AuditEntry] = []
        try:
            for day, path in self._days():
                if cursor is not None and day.toordinal() * _OFFSETS >= cursor:
                    continue
                if asked.since is not None and day < asked.since.astimezone(UTC).date():
                    break
                for entry, _ in reversed(list(_entries(day, path))):
                    if (cursor is None or entry.id < cursor) and asked.wants(entry):
                        found.append(entry)
                        if len(found) > limit:
                            return found[:limit], found[limit - 1].id
        except OSError as error:
            raise BackendError(f"the audit log cannot be read: {error}") from error
        return found, None

    def _prune(self) -> int:
        oldest = (self._now().astimezone(UTC) - self._keep).date()
        for day, path in reversed(self._days()):
            if day >= oldest:
                return 0
            try:
                with self._locked():
                    gone = len(list(_entries(day, path)))
                    path.unlink()
            except OSError as error:
                raise BackendError(f"the audit log cannot be pruned: {error}") from error
            return max(gone, 1)
        return 0

    def _all(self) -> list[tuple[datetime, str, Act]]:
        days = reversed(self._days())
        return [(entry.at, key, entry.act) for day, path in days for entry, key in _entries(day, path)]

    def _drop(self, keys: frozenset[str]) -> None:
        for day, path in self._days():
            with self._locked():
                kept = [line for line, key in _lines(day, path) if key not in keys]
                if not kept:
                    path.unlink()
                    continue
                fresh = path.with_suffix(".new")
                handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                with os.fdopen(handle, "wb") as file:
                    file.write(b"".join(kept))
                fresh.replace(path)


def _mend_end(path: Path, file: Any) -> None:
    """End a line that a crash or a full disk truncated, so that the next one does not become part of it."""
    size = path.stat().st_size
    if size:
        with path.open("rb") as reader:
            reader.seek(size - 1)
            if reader.read(1) != b"\n":
                file.write(b"\n")


def _record(at: datetime, act: Act) -> Json:
    return {
        "at": at.isoformat(),
        "key": secrets.token_hex(8),
        "who": plain(act.by.who),
        "role": act.by.role.value,
        "address": plain(act.by.address),
        "what": act.what,
        "task_id": act.task_id,
        "source": plain(act.source) if act.source is not None else None,
        "rows_deleted": act.rows_deleted,
        "details": bounded(act.details),
    }


def _lines(day: date, path: Path) -> Iterator[tuple[bytes, str]]:
    with path.open("rb") as file:
        for line in file:
            read = _read(line)
            yield line, read["key"] if read is not None else ""


def _entries(day: date, path: Path) -> Iterator[tuple[AuditEntry, str]]:
    offset = 0
    with path.open("rb") as file:
        for line in file:
            read = _read(line)
            if read is not None:
                yield _entry(day.toordinal() * _OFFSETS + offset, read), read["key"]
            offset += len(line)


def _read(line: bytes) -> Json | None:
    """None for a truncated line."""
    try:
        found = json.loads(line)
        Role(found["role"])
        datetime.fromisoformat(found["at"])
        return {"key": str(found["key"]), **found}
    except (ValueError, TypeError, KeyError):
        return None


def _entry(number: int, read: Json) -> AuditEntry:
    by = Actor(read["who"], Role(read["role"]), read["address"])
    act = Act(by, read["what"], read["task_id"], read["source"], read["rows_deleted"], read["details"])
    return AuditEntry(number, datetime.fromisoformat(read["at"]), act)
