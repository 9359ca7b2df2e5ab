"""Free space inside the observation file, used up before it grows."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from planetwire.database.pool_sqlite import connect
from planetwire.database.sql import queries_beside

Q = queries_beside(__file__)


def free_bytes(path: Path) -> int:
    """0 for a file that does not exist or cannot be read now."""
    if not path.exists():
        return 0
    try:
        with closing(connect(path, read_only=True)) as connection:
            return int(connection.execute(Q.free_bytes).fetchone()[0])
    except sqlite3.Error:
        return 0
