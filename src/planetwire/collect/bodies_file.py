"""The last verified body of each source, one file each, so that it can be processed again without a request."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from planetwire.errors import InputError
from planetwire.private import make_folders

_SOURCE = re.compile(r"[a-z0-9_]{1,64}")


def file_of(folder: Path, source: str, suffix: str) -> Path:
    """The source's file in the folder. Raises InputError for a source that is not a plain name."""
    if not _SOURCE.fullmatch(source):
        raise InputError(f"no source name: {source[:40]!r}", code="invalid_source")
    return folder / f"{source}{suffix}"


def write_atomically(path: Path, body: bytes) -> None:
    """Replace the file or leave it: readers see the old or the new content, also after a power cut."""
    make_folders(path.parent)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


class FileBodyStore:
    """Port BodyStore in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, source: str, body: bytes) -> None:
        """See the port."""
        write_atomically(file_of(self._folder, source, ".body"), body)

    def load(self, source: str) -> bytes | None:
        """See the port."""
        try:
            return file_of(self._folder, source, ".body").read_bytes()
        except FileNotFoundError:
            return None
