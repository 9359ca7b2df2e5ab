"""Rows of tables that belong to one layer, in PostgreSQL: every statement is made of the table's declaration.

Names are those of declarations, which refuse what is no plain identifier; values are parameters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from planetwire.database.postgres import Connection
from planetwire.facts import clean
from planetwire.model import OwnedTable

Row = Sequence[object]


@dataclass(frozen=True, slots=True)
class Statements:
    """What writes one table. `stage`: where a batch arrives by COPY, as for what search finds."""

    stage: str
    create: str
    put: str
    drop: str


@cache
def statements(table: OwnedTable) -> Statements:
    """A pooler's connection outlives the version that made its stage: one of other columns has another name."""
    typed = ", ".join(f'"{column.name}" {column.type}' for column in table.columns)
    names = [f'"{column.name}"' for column in table.columns]
    stage = f'"stage_{hashlib.sha256(typed.encode()).hexdigest()[:8]}_{table.name}"'
    listed, old, new = (", ".join(prefix + name for name in names) for prefix in ("", "o.", "excluded."))
    changes = ", ".join(f"{name} = excluded.{name}" for name in names)
    return Statements(
        stage=stage.strip('"'),
        create=f"create temporary table if not exists {stage} (fact_key text, {typed}) on commit delete rows;\n"
        f"delete from {stage}; -- what an earlier layer of the same transaction left",
        # Rows of changed facts have nearly all changed: no look beforehand. Those with the same values stay.
        put=f'insert into "{table.name}" as o (source, fact_key, {listed})\n'
        f"select $1, fact_key, {listed} from {stage} order by fact_key\n"
        f"on conflict (source, fact_key) do update set {changes}\n"
        f"where row({old}) is distinct from row({new})",
        drop=f'delete from "{table.name}" where source = $1 and fact_key = any ($2::text[])',
    )


def beside(query: str, tables: Sequence[OwnedTable]) -> str:
    """The query, which names a fact by `source` and `key`, with its row in each of the tables: as JSON, or null."""
    rows = (
        f"(select to_jsonb(o) - array['id', 'source', 'fact_key'] from \"{table.name}\" o"
        f' where o.source = one.source and o.fact_key = one.key) as "{table.name}"'
        for table in tables
    )
    return f"with one as (\n{query}\n)\nselect {', '.join(['one.*', *rows])} from one"


async def put_owned(
    connection: Connection, table: OwnedTable, source: str, keys: Sequence[str], rows: Sequence[Row | None]
) -> None:
    """Of facts of the open transaction, each key once; a fact without a row loses the one that it had."""
    made = statements(table)
    records = [(key, *_clean(table, row)) for key, row in zip(keys, rows, strict=True) if row is not None]
    if records:
        await connection.execute(made.create)
        await connection.copy_records_to_table(made.stage, records=records)
        await connection.execute(made.put, source)
    if len(records) < len(keys):
        without = [key for key, row in zip(keys, rows, strict=True) if row is None]
        await connection.execute(made.drop, source, without)


def _clean(table: OwnedTable, row: Row) -> Row:
    """As PostgreSQL can hold it; what is clean already, as nearly every row is, is not copied."""
    changed: dict[int, object] = {}
    for at in table.texts:
        value = row[at]
        if isinstance(value, str) and (plain := clean.short(value)) != value:
            changed[at] = plain
    for at in table.json:
        if row[at] is not None:
            changed[at] = clean.json_bytes(row[at])
    return row if not changed else [changed.get(at, value) for at, value in enumerate(row)]
