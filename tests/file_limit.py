"""A full disk, simulated for this process."""

from __future__ import annotations

import resource
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MX_FRAME = 16  # offset in the index of a SQLite write-ahead log of its number of frames
HEADER_BYTES, FRAME_BYTES = 32, 24 + 4_096


def journal_end(path: Path) -> int:
    """The used length of a SQLite file's write-ahead log; the file itself is longer from the start."""
    index = path.with_name(f"{path.name}-shm").read_bytes()
    frames: int = struct.unpack_from("=I", index, MX_FRAME)[0]
    return HEADER_BYTES + frames * FRAME_BYTES


@contextmanager
def file_size_limit(size_bytes: int) -> Iterator[None]:
    """No file may grow beyond this through this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
