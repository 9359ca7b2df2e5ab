"""The cases run over one feed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from planetwire.collect.feeds import FactFeed
from planetwire.model import LayerAdapter
from planetwire.testing.cases import BATCH_ROWS, CASES
from planetwire.testing.databases import Databases, shared
from planetwire.testing.stage import stage_of

ROWS = 5_000


def run_case(
    name: str, feed: FactFeed, bodies: Mapping[str, bytes], *, layer: LayerAdapter | None = None, databases: Databases
) -> None:
    """One case, in a database of its own. Raises AssertionError that says what the feed has to do."""

    async def run() -> None:
        async with stage_of(feed, layer, databases, batch_rows=BATCH_ROWS.get(name, ROWS)) as stage:
            await CASES[name](stage, bodies)

    asyncio.run(run())


def check_feed(
    feed: FactFeed,
    bodies: Mapping[str, bytes],
    *,
    layer: LayerAdapter | None = None,
    databases: Databases | None = None,
) -> None:
    """All cases; raises one AssertionError that names each that fails. `bodies`: `full`, `minimal`, `empty`.

    Call it outside of an event loop. With `layer` its derived rows are written too. `databases` None: a PostgreSQL is
    started, once a process.
    """
    failed: list[str] = []
    for name in CASES:
        try:
            run_case(name, feed, bodies, layer=layer, databases=databases or shared())
        except AssertionError as error:
            failed.append(f"{name}: {error}")
    if failed:
        raise AssertionError("\n".join([f"{feed.source} fails {len(failed)} of {len(CASES)} cases", *failed]))
