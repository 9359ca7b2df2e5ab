"""Objects that people search and open, in PostgreSQL: port ObjectStore."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from planetwire.database.postgres import Pool, read_again, translated
from planetwire.database.sql import queries_beside
from planetwire.facts.facts_postgres import readable
from planetwire.facts.owned_postgres import beside
from planetwire.model import Json, OwnedTable
from planetwire.text import plain_json

Q = queries_beside(__file__)

WORDS_MAX = 8
NO_NUMBERS = ("NaN", "Infinity", "-Infinity", "infinity", "-infinity")


class PostgresObjectStore:
    """Port ObjectStore. `tables`: the layers' owned tables; a card shows the rows of those that have a key in it."""

    def __init__(self, pool: Pool, tables: Iterable[OwnedTable] = ()) -> None:
        self._pool = pool
        self._shown = {table.card_key: table for table in tables if table.card_key is not None}
        self._read_card = beside(Q.card, list(self._shown.values()))

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
            row = await self._pool.fetchrow(self._read_card, object_id, layer, source, key)
        return _card(dict(row), self._shown) if row is not None else None

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


def _card(row: Json, shown: Mapping[str, OwnedTable]) -> Json:
    """As valid JSON: hand-typed data may be too deep. The rows of owned tables come after the fact's data."""
    owned = {key: _plain(table, row.pop(table.name)) for key, table in shown.items()}
    for name in ("data", "properties"):
        value = plain_json.loads(plain_json.dumps(row[name]))
        row[name] = value if isinstance(value, dict) else {}
    at = list(row).index("data") + 1
    items = list(row.items())
    return dict([*items[:at], *owned.items(), *items[at:]])


def _plain(table: OwnedTable, row: Json | None) -> Json | None:
    """The row as JSON: a column may hold NaN or an infinite time, which jsonb writes as text."""
    if row is None:
        return None
    texts = {column.name for column in table.columns if column.type == "text"}
    return {key: None if key not in texts and value in NO_NUMBERS else value for key, value in row.items()}
