"""Files that only their owner can read, whatever the umask and whoever created them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

UMASK = 0o077
FILE, FOLDER, PASSABLE = 0o600, 0o700, 0o711


def make_file(path: Path) -> None:
    """Create an empty file if there is none; an existing one is closed to others."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, FILE))
    close_to_others(path)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    make_file(path)
    handle = os.open(path, os.O_WRONLY | os.O_TRUNC)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(text)


def write_once(path: Path, text: str) -> None:
    """The same unless the file exists. It is never there in part, and of several who write at once one wins."""
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    write_private(temporary, text)
    with suppress(FileExistsError):
        os.link(temporary, path)
    temporary.unlink()


def close_to_others(path: Path) -> None:
    """Remove all permissions of group and others from a file of ours; another user's is left alone."""
    with suppress(FileNotFoundError, PermissionError):
        if path.is_file() and not path.is_symlink() and path.stat().st_mode & UMASK:
            path.chmod(path.stat().st_mode & ~UMASK & 0o7777)


def make_folders(path: Path, mode: int = FOLDER) -> None:
    """Create the folder and its missing parents, each with this mode; existing ones keep theirs."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        with suppress(FileExistsError):
            folder.mkdir()
            folder.chmod(mode)  # despite the umask: root's PostgreSQL runs as another user and must traverse
