"""Derived rows in PostgreSQL: made of facts in the transaction of the facts, so neither is ever seen without the other.

What a fact means is said by its layer's declaration; here it is only written, one statement a table and batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planetwire.facts import clean
from planetwire.model import Derived, Deriver, Fact, Orbit
from planetwire.postgres import Connection
from planetwire.sql import queries_beside

Q = queries_beside(__file__)

CATCH_UP_ROWS = 2_000
NOTHING = b"{}"
STAGE = "derived_stage"
FOUND_COLUMNS = 10  # of the stage, before those of the orbit
NO_ORBIT = (None,) * len(Orbit._fields)


class Projection:
    """Writes the derived rows of facts. `derivers` names a source's layers that have any, each with how."""

    def __init__(self, derivers: Callable[[str], Sequence[tuple[str, Deriver]]]) -> None:
        self._derivers = derivers

    async def project(self, connection: Connection, source: str, facts: Sequence[Fact]) -> None:
        """Of facts that the open transaction wrote or locked; each key once. Rows with the same values stay."""
        for layer, derive in self._derivers(source):
            await _put(connection, layer, source, facts, derive)

    async def catch_up(self, connection: Connection, source: str) -> int:
        """Facts that no job of this version wrote, as those typed in by hand; how many there were."""
        done = 0
        for layer, derive in self._derivers(source):
            while facts := await _missing(connection, source, layer):
                await _put(connection, layer, source, facts, derive)
                done += len(facts)
        return done


async def _missing(connection: Connection, source: str, layer: str) -> Sequence[Fact]:
    rows = await connection.fetch(Q.not_yet_projected, source, layer, CATCH_UP_ROWS)
    return [fact_of(row) for row in rows]


def fact_of(row: Mapping[str, Any]) -> Fact:
    """Of a row with its eight columns. One that was typed in may hold any JSON."""
    return Fact(**{**row, "data": row["data"] if isinstance(row["data"], dict) else {}})


async def _put(connection: Connection, layer: str, source: str, facts: Sequence[Fact], derive: Deriver) -> None:
    rows = [_row(clean.text(fact.external_key), fact, derive(fact)) for fact in facts]
    without = [row[0] for row in rows if row[FOUND_COLUMNS] is None]
    await connection.execute(Q.create_stage)
    await connection.copy_records_to_table(STAGE, records=rows)
    await connection.execute(Q.put_interactables, layer, source)
    if len(without) < len(rows):
        await connection.execute(Q.put_orbits, source)
    if without:
        await connection.execute(Q.drop_orbits, source, without)


def _row(key: str, fact: Fact, derived: Derived) -> tuple[object, ...]:
    """In the order of the stage's columns."""
    orbit = NO_ORBIT if derived.orbit is None else _clean(derived.orbit)
    return (
        key,
        clean.text(fact.kind),
        clean.text(fact.title),
        clean.text(derived.subtitle),
        fact.lat,
        fact.lon,
        derived.alt_m,
        clean.json_bytes(derived.properties) if derived.properties else NOTHING,
        derived.severity,
        fact.valid_until,
        *orbit,
    )


def _clean(orbit: Orbit) -> Orbit:
    return orbit._replace(name=clean.text(orbit.name)) if "\x00" in orbit.name else orbit
