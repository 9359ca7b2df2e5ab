"""One-time login codes that the web processes of one data dir take: `LoginCodes` of auth.py, a file each."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from planetwire.private import make_folders
from planetwire.text.fingerprint import fingerprint
from planetwire.web.stores.codes_memory import CODE_S


class FileCodes:
    """Removing the file takes the code; only one process can succeed."""

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._now = now

    async def offer(self, code: str) -> None:
        """Make the code available to all processes. Expired codes are deleted."""
        make_folders(self._folder)
        for kept in self._folder.iterdir():
            self._remove(kept)
        (self._folder / fingerprint(code)).touch(mode=0o600)

    def _remove(self, kept: Path) -> None:
        with suppress(FileNotFoundError):
            if self._now() - kept.stat().st_mtime > CODE_S:
                kept.unlink()

    async def take(self, code: str) -> bool:
        """Whether it was offered within the last ten minutes and not taken yet."""
        file = self._folder / fingerprint(code)
        try:
            offered_at = file.stat().st_mtime
            file.unlink()
        except FileNotFoundError:
            return False
        return self._now() - offered_at <= CODE_S
