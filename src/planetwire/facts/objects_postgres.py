"""Objects that people search and open, in PostgreSQL: port ObjectStore."""

from __future__ import annotations

from collections.abc import Sequence

from planetwire.database.postgres import Pool, read_again, translated
from planetwire.database.sql import queries_beside
from planetwire.facts.facts_postgres import readable
from planetwire.model import Json
from planetwire.text import plain_json

Q = queries_beside(__file__)

WORDS_MAX = 8
NO_NUMBERS = ("NaN", "Infinity", "-Infinity", "infinity", "-infinity")


class PostgresObjectStore:
    """Port ObjectStore."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @read_again
    async def search(self, question: str, layer: str | None, limit: int) -> Sequence[Json]:
        """See the port."""
        async with translated():
            rows = await self._pool.fetch(Q.search, question, question.strip().lower(), layer, limit, WORDS_MAX)
        return [dict(row) for row in rows]

    @read_again
    async def card(self, object_id: str) -> Json | None:
        """See the port."""
        layer, source, key = (*object_id.split(":", 2), "", "")[:3]
        async with translated():
            row = await self._pool.fetchrow(Q.card, object_id, layer, source, key)
        return _card(dict(row)) if row is not None else None

    @read_again
    async def features(self, ids: Sequence[str] | None, limit: int | None) -> tuple[Sequence[bytes], int]:
        """See the port."""
        async with (
            translated(),
            self._pool.acquire() as connection,
            connection.transaction(isolation="repeatable_read"),
        ):
            rows = await connection.fetch(Q.features, ids, limit)
            whole = ids is not None or limit is None
            total = len(rows) if whole else await connection.fetchval(Q.count_features)
        return [readable(row[0]) for row in rows], total


def _card(row: Json) -> Json:
    """As JSON can say it: what was typed in may be too deep, and a column may hold NaN, which jsonb writes as text."""
    orbit = row["orbit"]
    if isinstance(orbit, dict):
        row["orbit"] = {key: None if key != "name" and value in NO_NUMBERS else value for key, value in orbit.items()}
    for name in ("data", "properties"):
        value = plain_json.loads(plain_json.dumps(row[name]))
        row[name] = value if isinstance(value, dict) else {}
    return row
