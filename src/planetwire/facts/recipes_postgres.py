"""Whether the derived rows that are there were made as this version makes them; if not, their facts are noted anew.

A job derives facts that changed, and a trigger notes those that others wrote. Neither sees a fact that stays as it is
while the program changes: after an upgrade search held only what had changed since.
"""

from __future__ import annotations

from collections.abc import Mapping

from planetwire.database.postgres import Pool, translated
from planetwire.database.sql import queries_beside

Q = queries_beside(__file__)


async def note_recipes(pool: Pool, recipes: Mapping[tuple[str, str], str]) -> list[str]:
    """`recipes`: by source (or `*`) and layer. The sources whose facts are derived again, by whoever works."""
    pairs = list(recipes)
    async with translated():
        rows = await pool.fetch(
            Q.note_recipes, [source for source, _ in pairs], [layer for _, layer in pairs], list(recipes.values())
        )
    return sorted(row[0] for row in rows)
