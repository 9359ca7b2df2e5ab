"""The files of one installation: `<data dir>/…`. Secrets are 0600, created once."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from planetwire.errors import SetupError
from planetwire.private import (
    FOLDER,
    PASSABLE,
    close_to_others,
    make_file,
    make_folders,
    write_once,
    write_private,
)
from planetwire.setting_texts import secret_fault

LOGIN_CODE_BYTES = 12
SECRET_SIZE_MAX = 4_096
FILES_MAX = 10_000  # of a folder
AGAIN = "remove the file, and the next start makes a new one"
REAL_DATA = ("observations.db", "postgres")  # files of each half; either one proves real data


@dataclass(frozen=True, slots=True)
class DataDir:
    """Paths and small files below the data dir."""

    path: Path

    @property
    def run(self) -> Path:
        """Runtime state, valid only while a process runs."""
        return self.path / "run"

    @property
    def feeds(self) -> Path:
        """State of the observation feeds, one JSON file a source."""
        return self.path / "feeds"

    @property
    def sessions(self) -> Path:
        """Sessions, one file each."""
        return self.path / "sessions"

    @property
    def bodies(self) -> Path:
        """The last verified body of each source."""
        return self.path / "bodies"

    @property
    def restoring(self) -> Path:
        """Mark of a restore that is running or did not finish."""
        return self.path / "restoring"

    def prepare(self) -> None:
        """Create the folders. Raises SetupError if they cannot be written, or hold an unfinished restore."""
        self.check_whole()
        # As root, PostgreSQL runs as another user, who must be able to traverse but not to list.
        mode = PASSABLE if os.geteuid() == 0 else FOLDER
        try:
            make_folders(self.path, mode)
            for folder in (self.run, self.feeds, self.bodies, self.sessions):
                make_folders(folder)
            probe = self.run / f".probe-{os.getpid()}"
            make_file(probe)
            probe.unlink()
            self._close_to_others()
        except OSError as error:
            raise SetupError(f"the data dir {self.path} cannot be used: {error}") from error

    def check_whole(self) -> None:
        """Raises SetupError for an unfinished restore."""
        if self.restoring.exists():
            raise SetupError(
                f"a restore into {self.path} did not come to its end: remove the folder (and empty the database, "
                "where you have your own), and restore again"
            )

    def _close_to_others(self) -> None:
        """Remove read permission that an older version or a permissive umask left."""
        for folder in (self.path, self.run, self.feeds, self.bodies):
            for entry in list(os.scandir(folder))[:FILES_MAX]:
                close_to_others(Path(entry.path))

    # --- secrets

    def secret(self, name: str) -> str:
        """A random text stored in `<name>`, created at the first call; safe against concurrent first calls."""
        kept = self.kept_secret(name)
        if kept is not None:
            return kept
        write_once(self.path / name, secrets.token_urlsafe(32) + "\n")
        return self.kept_secret(name) or ""

    def kept_secret(self, name: str) -> str | None:
        """The secret if it exists; creates nothing. Raises SetupError for a file without a valid one."""
        file = self.path / name
        try:
            with file.open(encoding="ascii") as handle:
                text = handle.read(SECRET_SIZE_MAX).strip()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeError) as error:
            raise SetupError(f"the secret in {file} cannot be read: {_reason(error)}; {AGAIN}") from error
        fault = secret_fault(text) if text else "the file is empty"
        if fault is not None:
            raise SetupError(f"the secret in {file} is of no use: {fault}; {AGAIN}")
        return text

    def new_login_code(self) -> str:
        """Store a new one-time code for the web process."""
        code = secrets.token_urlsafe(LOGIN_CODE_BYTES)
        write_private(self.run / "login-code", code)
        return code

    def take_login_code(self) -> str | None:
        """Read and delete the code."""
        file = self.run / "login-code"
        try:
            code = file.read_text(encoding="ascii").strip()
            file.unlink()
        except FileNotFoundError:
            return None
        return code

    # --- running processes

    def lock(self) -> IO[str]:
        """The installation's `flock`; released whenever its holder ends. Raises SetupError."""
        make_file(self.run / "up.lock")
        file = (self.run / "up.lock").open("a+", encoding="ascii")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            running = self.runtime() or {}
            where = f" at {running['url']}" if running.get("url") else ""
            raise SetupError(
                f"Planetwire already runs on {self.path} (pid {running.get('pid', '?')}){where}; "
                "stop it first, or choose another PLANETWIRE_DATA_DIR",
                code="already_running",
            ) from None
        return file

    def is_running(self) -> bool:
        """Whether an `up` or `demo` holds the lock."""
        file = self.run / "up.lock"
        if not file.exists():
            return False
        with file.open("r", encoding="ascii") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def write_runtime(self, **facts: Any) -> None:
        """Record where the running parts are: pid, url, database_url."""
        temporary = self.run / f".runtime-{os.getpid()}"
        write_private(temporary, json.dumps(facts))
        temporary.replace(self.run / "runtime.json")

    def runtime(self) -> dict[str, Any] | None:
        """What the running `up` wrote, or None."""
        try:
            text = (self.run / "runtime.json").read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        loaded: dict[str, Any] = json.loads(text)
        return loaded

    # --- simulated data

    def check_kind(self, *, simulated: bool) -> None:
        """A data dir holds real data or simulated data, never both. Raises SetupError."""
        marker = self.path / "simulated"
        if simulated:
            if not marker.exists() and any((self.path / kept).exists() for kept in REAL_DATA):
                raise SetupError(f"{self.path} holds real data; `demo` needs a data dir of its own")
            make_file(marker)
        elif marker.exists():
            raise SetupError(
                f"{self.path} holds simulated data of `demo`; choose another PLANETWIRE_DATA_DIR or remove it"
            )


def _reason(error: OSError | UnicodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else "it is not ASCII"
