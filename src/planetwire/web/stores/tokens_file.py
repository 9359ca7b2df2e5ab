"""`TokenBook` of one data dir: `tokens.json`, written by `planetwire tokens` and read by every web process."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from planetwire.errors import InputError, NotFound, SetupError, StateError
from planetwire.log import get_logger
from planetwire.model import Json, Role
from planetwire.ports import Holder
from planetwire.private import make_folders

log = get_logger()

TOKENS_MAX = 100
SIZE_MAX = 100_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class FileTokens:
    """Stores names, roles and hashes. An unreadable file grants no access."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: object = None
        self._holders: tuple[Holder, ...] = ()

    def holders(self) -> Sequence[Holder]:
        """See the port. Read again after the file was replaced."""
        seen = self._state()
        if seen != self._seen:
            self._seen, self._holders = seen, ()
            try:
                self._holders = tuple(_holder(record) for record in self.records())
            except SetupError as error:
                log.error("web.tokens.unreadable", error=error.message)
        return self._holders

    def _state(self) -> object:
        try:
            found = self._path.stat()
        except OSError as error:
            return error.errno
        return found.st_ino, found.st_mtime_ns, found.st_size

    def records(self) -> list[Json]:
        """The file's entries in name order. Raises SetupError if it cannot be read."""
        try:
            with self._path.open("rb") as file:
                records = json.loads(file.read(SIZE_MAX))
            for record in records:
                _holder(record)
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SetupError(f"{self._path} cannot be used: {error!r}") from error
        return sorted(records, key=lambda record: str(record["name"]))

    def add(self, name: str, role: Role, digest: str) -> None:
        """Raises InputError for an invalid name, StateError for a taken one or too many tokens."""
        if not _NAME.fullmatch(name):
            raise InputError("a name has 1 to 64 letters, digits, dots, dashes and underscores", code="bad_name")

        def added(records: list[Json]) -> list[Json]:
            if any(record["name"] == name for record in records):
                raise StateError(f"there is a token {name} already; remove it first", code="name_taken")
            if len(records) >= TOKENS_MAX:
                raise StateError(f"there are {TOKENS_MAX} tokens already; remove one first", code="too_many_tokens")
            at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
            return [*records, {"name": name, "role": role.value, "sha256": digest, "created_at": at}]

        self._change(added)

    def remove(self, name: str) -> None:
        """Raises NotFound."""

        def removed(records: list[Json]) -> list[Json]:
            left = [record for record in records if record["name"] != name]
            if len(left) == len(records):
                raise NotFound(f"there is no token {name!r}")
            return left

        self._change(removed)

    def _change(self, change: Callable[[list[Json]], list[Json]]) -> None:
        with self._locked():
            records = change(self.records())
            temporary = self._path.with_name(f".{self._path.name}-{os.getpid()}")
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(records, file, indent=2)
                file.flush()
                os.fsync(handle)
            temporary.replace(self._path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        make_folders(self._path.parent)
        handle = os.open(self._path.with_name(f"{self._path.name}.lock"), os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def _holder(record: Json) -> Holder:
    name, digest = record["name"], record["sha256"]
    if not _NAME.fullmatch(name) or not _DIGEST.fullmatch(digest):
        raise ValueError(f"no token: {str(name)[:40]!r}")
    return Holder(f"token {name}", Role(record["role"]), digest)
