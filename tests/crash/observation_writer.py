"""Appends to the observation store at the given file or address, printing each acknowledged revision, until killed."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from planetwire.collect.push.ingest import normalise
from planetwire.database.postgres import open_pool
from planetwire.datasets.registry import observed_sources
from planetwire.facts.observations.observations_postgres import PostgresObservationStore
from planetwire.facts.sqlite.observations_sqlite import SqliteObservationStore
from planetwire.log import configure_logging
from planetwire.runtime.clock import SystemClock
from planetwire.runtime.failpoint import arm

SOURCES = observed_sources()

CITIES = ("seoul", "taipei", "london", "paris")


async def main(place: str) -> None:
    """Logs go to stderr."""
    configure_logging("console", "info")
    clock = SystemClock()
    store: Any = SqliteObservationStore(Path(place), clock)
    if place.startswith("postgresql://"):
        store = PostgresObservationStore(await open_pool(place, application="observations"), clock)
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
            appended = (await store.append([normalise(SOURCES, raw, clock.now())]))[0]
            print(appended.revision, flush=True)

    await asyncio.gather(*(sender(number) for number in range(8)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
