"""Keeps the copy of the layer registry that SQL can read: `earth_layer_feeds`."""

from __future__ import annotations

from collections.abc import Sequence

from planetwire.database.postgres import Pool, translated
from planetwire.database.sql import queries_beside

Q = queries_beside(__file__)


async def write_feeds(pool: Pool, feeds: Sequence[tuple[str, str, str]]) -> None:
    """(table, source or "*", layer) of every feed; idempotent. With two versions running, the last one started wins."""
    tables, sources, layers = ([feed[n] for feed in feeds] for n in range(3))
    async with translated():
        await pool.execute(Q.write_feeds, tables, sources, layers)
