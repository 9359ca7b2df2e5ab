"""Rows of tables owned by one layer, in PostgreSQL: every statement is generated from the table's declaration.

Names come from declarations, which refuse all but plain identifiers; values are parameters.
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
    """The SQL that writes one table. `stage`: the temporary table that a batch is copied into."""

    stage: str
    create: str
    put: str
    drop: str


@cache
def statements(table: OwnedTable) -> Statements:
    """A pooled connection may outlive the version that made its stage: the name depends on the columns."""
    typed = ", ".join(f'"{column.name}" {column.type}' for column in table.columns)
    names = [f'"{column.name}"' for column in table.columns]
    stage = f'"stage_{hashlib.sha256(typed.encode()).hexdigest()[:8]}_{table.name}"'
    listed, old, new = (", ".join(prefix + name for name in names) for prefix in ("", "o.", "excluded."))
    changes = ", ".join(f"{name} = excluded.{name}" for name in names)
    return Statements(
        stage=stage.strip('"'),
        create=f"create temporary table if not exists {stage} (fact_key text, {typed}) on commit delete rows;\n"
        f"delete from {stage}; -- what an earlier layer of the same transaction left",
        # Nearly all rows of changed facts have changed, so no filter before the insert. Unchanged ones are not written.
        put=f'insert into "{table.name}" as o (source, fact_key, {listed})\n'
        f"select $1, fact_key, {listed} from {stage} order by fact_key\n"
        f"on conflict (source, fact_key) do update set {changes}\n"
        f"where row({old}) is distinct from row({new})",
        drop=f'delete from "{table.name}" where source = $1 and fact_key = any ($2::text[])',
    )


def beside(query: str, tables: Sequence[OwnedTable]) -> str:
    """Extends the query, whose rows have `source` and `key`, by the fact's row in each table: as JSON, or null."""
    rows = (
        f"(select to_jsonb(o) - array['id', 'source', 'fact_key'] from \"{table.name}\" o"
        f' where o.source = one.source and o.fact_key = one.key) as "{table.name}"'
        for table in tables
    )
    return f"with one as (\n{query}\n)\nselect {', '.join(['one.*', *rows])} from one"


async def put_owned(
    connection: Connection, table: OwnedTable, source: str, keys: Sequence[str], rows: Sequence[Row | None]
) -> None:
    """For facts of the open transaction, each key once; None deletes the fact's row."""
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
    """As PostgreSQL can store it; a row that is already clean, as nearly all are, is not copied."""
    changed: dict[int, object] = {}
    for at in table.texts:
        value = row[at]
        if isinstance(value, str) and (plain := clean.short(value)) != value:
            changed[at] = plain
    for at in table.json:
        if row[at] is not None:
            changed[at] = clean.json_bytes(row[at])
    return row if not changed else [changed.get(at, value) for at, value in enumerate(row)]
