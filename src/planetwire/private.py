"""Files that only their owner can read, whatever the umask says and whoever made them before."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

UMASK = 0o077
FILE, FOLDER, PASSABLE = 0o600, 0o700, 0o711


def make_file(path: Path) -> None:
    """An empty file, where there is none; one that is there is closed to others."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, FILE))
    close_to_others(path)


def close_to_others(path: Path) -> None:
    """Take every right of group and others from a file of ours; somebody else's stays as it is."""
    with suppress(FileNotFoundError, PermissionError):
        if path.is_file() and not path.is_symlink() and path.stat().st_mode & UMASK:
            path.chmod(path.stat().st_mode & ~UMASK & 0o7777)


def make_folders(path: Path, mode: int = FOLDER) -> None:
    """The folder and those above it that are missing, each with this mode; one that is there keeps its own."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        with suppress(FileExistsError):
            folder.mkdir()
            folder.chmod(mode)  # past the umask: root's PostgreSQL runs as another user who must be able to pass
