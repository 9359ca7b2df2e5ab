"""Notes facts whose stored derived rows were made by other code than this version's, so that they are derived again.

A job derives facts that changed, and a trigger notes those that others wrote. Neither covers unchanged facts when the
code changes: without this, an upgraded search would hold only what changed since.
"""

from __future__ import annotations

from collections.abc import Mapping

from planetwire.database.postgres import Pool, translated
from planetwire.database.sql import queries_beside

Q = queries_beside(__file__)


async def note_recipes(pool: Pool, recipes: Mapping[tuple[str, str], str]) -> list[str]:
    """`recipes`: by source (or `*`) and layer. Returns the sources whose facts a worker will derive again."""
    pairs = list(recipes)
    async with translated():
        rows = await pool.fetch(
            Q.note_recipes, [source for source, _ in pairs], [layer for _, layer in pairs], list(recipes.values())
        )
    return sorted(row[0] for row in rows)
