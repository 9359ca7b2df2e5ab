"""Appends to the observation store of the given file, printing each acknowledged revision, until killed."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from planetwire.clock import SystemClock
from planetwire.collect.ingest import normalise
from planetwire.facts.observations_sqlite import SqliteObservationStore
from planetwire.failpoint import arm

CITIES = ("seoul", "taipei", "london", "paris")


async def main(path: Path) -> None:
    clock = SystemClock()
    store = SqliteObservationStore(path, clock)
    await store.start()
    print(f"epoch {store.epoch}", flush=True)
    arm(os.environ.get("PLANETWIRE_FAILPOINT"))

    async def sender(number: int) -> None:
        for turn in range(100_000):
            raw = {
                "city": CITIES[number % 4],
                "source": f"p{os.getpid()}_{number}_{turn}",
                "changes": {"temp": number + turn % 50},
            }
            appended = (await store.append([normalise(raw, clock.now())]))[0]
            print(appended.revision, flush=True)

    await asyncio.gather(*(sender(number) for number in range(8)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
