"""A file lock for a store: held by one web process alone, or shared by several that all joined a bus.

The lock is on a file beside the store, since SQLite's own locks are lost when any handle of its file is closed. The
kernel frees it when the holder ends, however it ends.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import IO

from planetwire.errors import SetupError
from planetwire.private import make_file, make_folders

ALREADY = "another web process has the observation store"
HOW = "several need a bus that joins them: give all of them PLANETWIRE_BUS=redis or postgres, or stop the other one"


def claim_file(path: Path, *, shared: bool) -> IO[bytes]:
    """Keep the returned file open. Raises SetupError if other holders conflict."""
    make_folders(path.parent)
    make_file(path.with_name(f"{path.name}.lock"))
    handle = path.with_name(f"{path.name}.lock").open("ab")
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.close()
        raise SetupError(f"{ALREADY} {path} open; {HOW}", code="already_running") from None
    except OSError as error:
        handle.close()
        raise SetupError(f"the observation store {path} cannot be locked: {error}") from error
    return handle
