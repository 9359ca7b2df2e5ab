"""A process that runs the real collector, one feed at a time on command, and reports the result and its memory.

Each line of standard input is `{"source", "url", …}` with settings of the feed; each line of output is the result and
the peak resident size, by the kernel, since the line was read.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from pathlib import Path
from typing import Any

from planetwire.collect.bodies_file import FileBodyStore
from planetwire.collect.collector import FeedCollector
from planetwire.collect.http.client import PoliteClient
from planetwire.datasets.registry import fact_feeds
from planetwire.errors import PlanetwireError
from planetwire.log import configure_logging
from planetwire.runtime.clock import SystemClock
from planetwire.settings import Settings
from planetwire.wiring.work import check_supported

SIZE_MAX = 2 * 1024**3


def peak_mib() -> float:
    """The peak resident size (VmHWM)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


def forget_peak() -> None:
    """Reset the kernel's peak to the present size."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


async def collected(folder: Path, source: str, feed: dict[str, Any]) -> dict[str, Any]:
    """The result that a collect job would get."""
    clock = SystemClock()
    settings = Settings(data_dir=folder, feeds={source: feed})
    check_supported(settings)
    facts, message, rejects = 0, None, 0
    async with PoliteClient(clock) as client:
        collector = FeedCollector(fact_feeds(), client, FileBodyStore(folder / "bodies"), clock, settings)
        try:
            async for batch in collector.batches(source, None, manual=True):
                facts, message = facts + len(batch.facts), batch.message
                rejects += len(batch.rejects)
        except PlanetwireError as error:
            sample = getattr(error, "sample", None)
            return {"code": error.code, "message": error.message, "facts": facts, "sample": sample}
    return {"code": None, "message": message, "facts": facts, "rejects": rejects}


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (SIZE_MAX, SIZE_MAX))  # if a limit fails, only this process ends
    folder = Path(sys.argv[1])
    configure_logging("json", "error")
    for line in sys.stdin:
        command = json.loads(line)
        forget_peak()
        result = asyncio.run(collected(folder, command.pop("source"), command))
        print(json.dumps(result | {"peak_mib": peak_mib()}), flush=True)


if __name__ == "__main__":
    main()
