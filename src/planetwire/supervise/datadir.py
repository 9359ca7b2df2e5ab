"""What one installation keeps, and where: `<data dir>/…`. Secrets are 0600, made once."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from planetwire.errors import SetupError

LOGIN_CODE_BYTES = 12
REAL_DATA = ("observations.db", "postgres")  # what each half leaves; either is reason enough


@dataclass(frozen=True, slots=True)
class DataDir:
    """Paths and small files below the data dir."""

    path: Path

    @property
    def run(self) -> Path:
        """What is only true while something runs."""
        return self.path / "run"

    @property
    def feeds(self) -> Path:
        """State of the observation feeds, one JSON file a source."""
        return self.path / "feeds"

    @property
    def bodies(self) -> Path:
        """The last verified body of each source."""
        return self.path / "bodies"

    def prepare(self) -> None:
        """Make the folders. Raises SetupError when the place cannot be written."""
        # Root's PostgreSQL runs as another user who must be able to pass, but not to list.
        mode = 0o711 if os.geteuid() == 0 else 0o700
        try:
            for folder in (self.path, self.run, self.feeds, self.bodies):
                folder.mkdir(parents=True, exist_ok=True, mode=mode if folder == self.path else 0o700)
            probe = self.run / f".probe-{os.getpid()}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise SetupError(f"the data dir {self.path} cannot be used: {error}") from error

    # --- secrets

    def secret(self, name: str) -> str:
        """A random text kept in `<name>`, made at the first call; safe against two first calls at once."""
        kept = self.kept_secret(name)
        if kept is not None:
            return kept
        file = self.path / name
        temporary = file.with_name(f".{name}-{os.getpid()}")
        write_private(temporary, secrets.token_urlsafe(32) + "\n")
        with suppress(FileExistsError):
            os.link(temporary, file)
        temporary.unlink()
        return file.read_text(encoding="ascii").strip()

    def kept_secret(self, name: str) -> str | None:
        """The secret if it was made already; makes nothing."""
        try:
            return (self.path / name).read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return None

    def new_login_code(self) -> str:
        """A fresh one-time code, left for the web process to take."""
        code = secrets.token_urlsafe(LOGIN_CODE_BYTES)
        write_private(self.run / "login-code", code)
        return code

    def take_login_code(self) -> str | None:
        """The code, once."""
        file = self.run / "login-code"
        try:
            code = file.read_text(encoding="ascii").strip()
            file.unlink()
        except FileNotFoundError:
            return None
        return code

    # --- who runs

    def lock(self) -> IO[str]:
        """The installation's kernel lock; freed when the holder ends, however it ends. Raises SetupError."""
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
        """Say where the running parts are: pid, url, database_url."""
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
            marker.touch()
        elif marker.exists():
            raise SetupError(
                f"{self.path} holds simulated data of `demo`; choose another PLANETWIRE_DATA_DIR or remove it"
            )


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(text)
