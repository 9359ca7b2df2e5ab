"""Files in `<data dir>/sources/`: what lies there is in the store, and what is taken away there is gone from it.

One process of a data dir watches, the one that holds the kernel's lock. A source that a file brought is changed by that
file alone; one that the store had first is not touched, and the file is named as refused.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO, Protocol

from planetwire.errors import BackendError, InputError, NotFound, PlanetwireError, TooLarge
from planetwire.log import get_logger
from planetwire.model import Actor, Role
from planetwire.model.facts import DECLARATION_MAX_BYTES, FROM_FILE, SOURCES_MAX, Declaration
from planetwire.ports import Clock
from planetwire.private import write_once
from planetwire.runtime.backoff import Backoff
from planetwire.runtime.forever import run_forever

log = get_logger()

LOOK_S = 0.5
RETRY_S, RETRY_MAX_S = 0.5, 5.0
SUFFIX = ".yaml"
OWNER = ".folder"  # names this folder, so that nobody else's empty one takes its sources away
Stamp = tuple[int, int, int]  # inode, size, time of change


class FileDesk(Protocol):
    """What the folder does to the store; see `DeclaredSources`."""

    async def get(self, name: str) -> Declaration:
        """Raises NotFound."""

    async def check(self, name: str, text: str, *, origin: str) -> tuple[object, Declaration | None]:
        """What is stored of this name. Raises InputError, StateError for what `put` would refuse."""

    async def put(
        self,
        by: Actor,
        name: str,
        text: str,
        *,
        expected: int | None,
        enabled: bool = True,
        confirm: bool = False,
        origin: str = ...,
    ) -> Declaration:
        """See the port SourceDesk."""

    async def remove(self, by: Actor, name: str, *, expected: int | None, clear: bool, origin: str = ...) -> None:
        """See the port SourceDesk."""


class SourceFolder:
    """`brought` gives the names in the store that a folder of this id brought. `refused`: files, and why; these
    are tried again when `revision`, that of the store, is another one.
    """

    def __init__(
        self,
        folder: Path,
        lock: Path,
        desk: FileDesk,
        brought: Callable[[str], Awaitable[list[str]]],
        clock: Clock,
        revision: Callable[[], int],
    ) -> None:
        self.refused: dict[str, str] = {}
        self._folder = folder
        self._lock = lock
        self._desk = desk
        self._brought = brought
        self._clock = clock
        self._held: IO[bytes] | None = None
        self._seen: dict[str, Stamp] | None = None
        self._revision = revision
        self._at: int | None = None

    async def run(self) -> None:
        """Until cancelled."""
        try:
            await run_forever(
                self.look,
                lambda _: self._clock.sleep(LOOK_S),
                lambda error, _: log.warning("sources.files.failed", error=error.message),
                Backoff(RETRY_S, RETRY_MAX_S, self._clock),
                on_crash=lambda error: log.exception("sources.files.crashed", error=repr(error)[:300]),
            )
        finally:
            if self._held is not None:
                self._held.close()

    async def look(self) -> None:
        """Bring what changed. Nothing happens without the folder. Raises BackendError."""
        if self._held is None and not self._take():
            return
        files = await asyncio.to_thread(stamps, self._folder)
        at = self._revision()
        if files is None or (files == self._seen and not (self.refused and at != self._at)):
            return
        origin = await asyncio.to_thread(_origin_of, self._folder)
        for name, stamp in files.items():
            if self._seen is None or self._seen.get(name) != stamp or name in self.refused:
                await self._bring(name, origin)
        for name in await self._brought(origin):
            if name not in files:
                await self._take_away(name, origin)
        for name in self.refused.keys() - files.keys():
            del self.refused[name]
        self._seen, self._at = files, at

    def _take(self) -> bool:
        """The lock, unless another process has it; a process that ends gives it back whatever way it ends."""
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        held = self._lock.open("ab")
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            held.close()
            return False
        self._held = held
        return True

    async def _bring(self, name: str, origin: str) -> None:
        try:
            text = await asyncio.to_thread(read_file, self._folder / f"{name}{SUFFIX}")
            before = await self._stored(name)
            if before is not None and (before.text, before.enabled, before.origin) == (text, True, origin):
                self.refused.pop(name, None)
                return
            expected = None if before is None else before.revision
            await self._desk.put(_as_file(name), name, text, expected=expected, confirm=True, origin=origin)
        except BackendError:
            raise
        except PlanetwireError as error:
            if self.refused.get(name) != error.message:
                log.warning("sources.file.refused", file=f"{name}{SUFFIX}", error=error.message[:500])
            self.refused[name] = error.message
        else:
            self.refused.pop(name, None)
            log.info("sources.file.imported", file=f"{name}{SUFFIX}", source=name)

    async def _stored(self, name: str) -> Declaration | None:
        try:
            return await self._desk.get(name)
        except NotFound:
            return None

    async def _take_away(self, name: str, origin: str) -> None:
        await self._desk.remove(_as_file(name), name, expected=None, clear=False, origin=origin)
        log.info("sources.file.removed", file=f"{name}{SUFFIX}", source=name)


def _as_file(name: str) -> Actor:
    return Actor(f"sources/{name}{SUFFIX}", Role.ADMIN, "local")


def stamps(folder: Path) -> dict[str, Stamp] | None:
    """By the name of its source, what says whether a file changed. None without the folder."""
    found: dict[str, Stamp] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(SUFFIX) and not entry.name.startswith(".") and entry.is_file():
                    about = entry.stat()
                    found[entry.name.removesuffix(SUFFIX)] = (about.st_ino, about.st_size, about.st_mtime_ns)
    except OSError:
        return None
    return dict(sorted(found.items())[: 2 * SOURCES_MAX])


def read_file(path: Path) -> str:
    """Its text. Raises InputError."""
    try:
        with path.open("rb") as file:
            return read_text(file)
    except OSError as error:
        raise InputError(f"it cannot be read: {error.strerror}") from error


def read_text(file: IO[bytes]) -> str:
    """The text of a declaration; no more is read than one may have. Raises InputError."""
    body = file.read(DECLARATION_MAX_BYTES + 1)
    if len(body) > DECLARATION_MAX_BYTES:
        raise TooLarge(f"a declaration has at most {DECLARATION_MAX_BYTES:,} bytes")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("it is not UTF-8", code="bad_characters") from error


def _origin_of(folder: Path) -> str:
    path = folder / OWNER
    if not path.exists():
        write_once(path, secrets.token_hex(8))
    return FROM_FILE + path.read_text(encoding="ascii").strip()[:40]


async def refusals(folder: Path, desk: FileDesk) -> dict[str, str]:
    """By the name of its source, why a file that lies there is not what runs; for the diagnostic."""
    found: dict[str, str] = {}
    files = await asyncio.to_thread(stamps, folder)
    origin = await asyncio.to_thread(_origin_of, folder) if files else ""
    for name in files or ():
        try:
            text = await asyncio.to_thread(read_file, folder / f"{name}{SUFFIX}")
            _, stored = await desk.check(name, text, origin=origin)
            if stored is None or stored.text != text:
                found[name] = "it is not in the store yet: a process that runs the schedule brings it within 2 s"
        except BackendError:
            raise
        except PlanetwireError as error:
            found[name] = error.message
    return found
