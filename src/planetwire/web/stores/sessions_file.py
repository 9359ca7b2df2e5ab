"""`Sessions` of one data dir: a file each, so that every web process on it sees them, also after a restart.

A file's mtime is the end of its session. An unreadable file counts as no session.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import orjson

from planetwire.errors import BackendError
from planetwire.log import get_logger
from planetwire.ports import Session
from planetwire.private import make_folders
from planetwire.web.stores.sessions_memory import SESSIONS_MAX

log = get_logger()

CODE = "sessions_unavailable"
SIZE_MAX = 4_096
_KEY = re.compile(r"[0-9a-f]{64}")


class FileSessions:
    """An ended session stays ended after a power cut: the folder is fsynced."""

    def __init__(self, folder: Path, now: Callable[[], float] = time.time, most: int = SESSIONS_MAX) -> None:
        self._folder = folder
        self._now = now
        self._most = most

    async def open(self, key: str, session: Session) -> None:
        """See the port."""
        with _translated():
            await asyncio.to_thread(self._open, key, session)

    async def find(self, key: str) -> Session | None:
        """See the port."""
        if not _KEY.fullmatch(key):
            return None
        try:
            with (self._folder / key).open("rb") as file:
                session = _session(file.read(SIZE_MAX))
        except FileNotFoundError:
            return None
        except OSError as error:
            log.error("web.sessions.failed", error=str(error))
            raise BackendError("sessions cannot be read", code=CODE) from error
        return session if session is not None and session.expires_at > self._now() else None

    async def end(self, key: str) -> None:
        """See the port."""
        if _KEY.fullmatch(key):
            with _translated():
                await asyncio.to_thread(self._remove, [self._folder / key])

    async def end_all(self) -> int:
        """See the port."""
        with _translated():
            return await asyncio.to_thread(self._end_all)

    def _open(self, key: str, session: Session) -> None:
        make_folders(self._folder)
        self._make_room()
        body = orjson.dumps({"who": session.who, "bound": session.bound, "expires_at": session.expires_at})
        temporary = self._folder / f".{key}"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            file.flush()
            os.utime(handle, (session.expires_at, session.expires_at))
            os.fsync(handle)
        temporary.replace(self._folder / key)
        self._write_through()

    def _make_room(self) -> None:
        """Delete expired sessions, and beyond the maximum those that end first."""
        kept = sorted(self._files(), key=lambda found: found[1])
        over = len(kept) - (self._most - 1)
        self._remove([file for rank, (file, ends) in enumerate(kept) if rank < over or ends <= self._now()])

    def _end_all(self) -> int:
        files = [file for file, _ in self._files()]
        self._remove(files)
        return len(files)

    def _files(self) -> list[tuple[Path, float]]:
        """Each with its mtime; also incomplete ones of a killed process."""
        found = []
        with suppress(FileNotFoundError):
            for entry in os.scandir(self._folder):
                with suppress(FileNotFoundError):
                    found.append((Path(entry.path), entry.stat().st_mtime))
        return found

    def _remove(self, files: list[Path]) -> None:
        for file in files:
            file.unlink(missing_ok=True)
        if files:
            with suppress(FileNotFoundError):
                self._write_through()

    def _write_through(self) -> None:
        handle = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _session(body: bytes) -> Session | None:
    try:
        found = orjson.loads(body)
        return Session(str(found["who"]), str(found["bound"]), float(found["expires_at"]))
    except (ValueError, KeyError, TypeError):
        return None


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        log.error("web.sessions.failed", error=str(error))
        raise BackendError("sessions cannot be kept", code=CODE) from error
