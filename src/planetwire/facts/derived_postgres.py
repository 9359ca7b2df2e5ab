"""Derived rows in PostgreSQL: made of facts in the transaction of the facts, so neither is ever seen without the other.

What a fact means is said by its layer's declaration; here it is only written, one statement a table and batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planetwire.facts import clean
from planetwire.facts.aside_postgres import each_that_can
from planetwire.model import Derived, Deriver, Fact, Orbit
from planetwire.postgres import Connection
from planetwire.sql import queries_beside

Q = queries_beside(__file__)

CATCH_UP_ROWS = 2_000
MAX_TEXT_CHARS = 2_000  # of what was typed in as a title; its first 500 can be searched for
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

    async def project_each(self, connection: Connection, source: str, facts: Sequence[Fact]) -> None:
        """The same, but a fact that cannot be derived is put aside: it is on the map and not in search."""
        for layer, derive in self._derivers(source):
            await self._each(connection, layer, source, facts, derive)

    async def catch_up(self, connection: Connection, source: str) -> int:
        """Facts that no job of this version wrote, as those typed in by hand; how many there were."""
        done = 0
        for layer, derive in self._derivers(source):
            after, more = "", True
            while more:
                facts = await _missing(connection, source, layer, after)
                if facts:
                    await self._each(connection, layer, source, facts, derive)
                    after = facts[-1].external_key  # those that were put aside are still missing
                done += len(facts)
                more = len(facts) == CATCH_UP_ROWS
        return done

    async def _each(
        self, connection: Connection, layer: str, source: str, facts: Sequence[Fact], derive: Deriver
    ) -> None:
        await each_that_can(
            connection, source, facts, lambda some: _put(connection, layer, source, some, derive), doing="derived"
        )


async def _missing(connection: Connection, source: str, layer: str, after: str) -> Sequence[Fact]:
    rows = await connection.fetch(Q.not_yet_projected, source, layer, CATCH_UP_ROWS, after)
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
        clean.text(fact.kind)[:MAX_TEXT_CHARS],
        clean.text(fact.title)[:MAX_TEXT_CHARS],
        clean.text(derived.subtitle)[:MAX_TEXT_CHARS],
        clean.finite(fact.lat),
        clean.finite(fact.lon),
        clean.finite(derived.alt_m),
        clean.json_bytes(derived.properties) if derived.properties else NOTHING,
        clean.finite(derived.severity),
        fact.valid_until,
        *orbit,
    )


def _clean(orbit: Orbit) -> Orbit:
    name = clean.text(orbit.name)[:MAX_TEXT_CHARS]
    return orbit if name == orbit.name else orbit._replace(name=name)
