"""Derived rows in PostgreSQL, written in the transaction of their facts: neither is ever visible without the other.

The layer's declaration decides what is derived; this module only writes it, one statement per table and batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planetwire.database.postgres import Connection
from planetwire.database.sql import queries_beside
from planetwire.facts import clean
from planetwire.facts.owned_postgres import put_owned
from planetwire.facts.places import RESOLVERS, Gazetteer, Placed, own, resolve
from planetwire.facts.refused_postgres import skipping_refused
from planetwire.model import Derivation, Derived, Fact, PlaceAsked

Q = queries_beside(__file__)

CATCH_UP_ROWS = 2_000
NOTHING = b"{}"
STAGE = "interactables_stage"


class Projection:
    """Writes the derived rows of facts. `derivers`: the derivations of a source, one per layer that has any.

    For a fact without coordinates, the first of its layers names a place, which is looked up in the `gazetteer`.
    """

    def __init__(self, derivers: Callable[[str], Sequence[Derivation]], gazetteer: Gazetteer | None = None) -> None:
        """Without a gazetteer no name is looked up."""
        self._derivers = derivers
        self._gazetteer = gazetteer or NoNames()

    async def project(self, connection: Connection, source: str, facts: Sequence[Fact]) -> None:
        """Derive facts that the open transaction wrote or locked; each key once. Unchanged rows are not written."""
        for how in self._derivers(source):
            await self._put(connection, source, facts, how)

    async def project_each(self, connection: Connection, source: str, facts: Sequence[Fact]) -> None:
        """The same, but a fact that cannot be derived is skipped: it is on the map and not in search."""
        for how in self._derivers(source):
            await self._each(connection, source, facts, how)

    async def catch_up(self, connection: Connection, source: str) -> int:
        """Derive facts that no job of this version wrote, such as those typed in by hand; returns their number."""
        done = 0
        for how in self._derivers(source):
            after, more = "", True
            while more:
                facts = await _missing(connection, source, how.layer, after)
                if facts:
                    await self._each(connection, source, facts, how)
                    after = facts[-1].external_key  # skipped ones still lack their rows
                done += len(facts)
                more = len(facts) == CATCH_UP_ROWS
        return done

    async def _each(self, connection: Connection, source: str, facts: Sequence[Fact], how: Derivation) -> None:
        await skipping_refused(
            connection, source, facts, lambda some: self._put(connection, source, some, how), doing="derived"
        )

    async def _put(self, connection: Connection, source: str, facts: Sequence[Fact], how: Derivation) -> None:
        derived = [how.derive(fact) for fact in facts]
        keys = [clean.text(fact.external_key) for fact in facts]
        rows = [_row(*one) for one in zip(keys, facts, derived, strict=True)]
        await connection.execute(Q.create_stage)
        await connection.copy_records_to_table(STAGE, records=rows)
        await connection.execute(Q.put_interactables, how.layer, source)
        for table in how.tables:
            await put_owned(connection, table, source, keys, [one.rows.get(table.name) for one in derived])
        if how.layer == self._derivers(source)[0].layer:
            asked = {key: one.place for key, one in zip(keys, derived, strict=True) if one.place is not None}
            await self._put_places(connection, source, dict(zip(keys, facts, strict=True)), asked)

    async def _put_places(
        self, connection: Connection, source: str, facts: Mapping[str, Fact], asked: Mapping[str, PlaceAsked]
    ) -> None:
        """Rows of other resolvers, `manual` ones and locked ones are not touched; see the statements."""
        # In a thread: the first lookup loads the gazetteer, which takes a second or two.
        found = await asyncio.to_thread(_resolved, asked, self._gazetteer) if asked else {}
        if found:
            await connection.execute(Q.put_places, source, *_columns(found), RESOLVERS)
        if await connection.fetchval(Q.places_of_ours, source, RESOLVERS):
            # A fact that got coordinates has its row updated: a delete would make clients clear the layer.
            moved = {key: place for key, fact in facts.items() if key not in asked and (place := own(fact))}
            await connection.execute(Q.move_places, source, *_columns(moved), RESOLVERS)
            nowhere = [key for key in facts if key not in found and key not in moved]
            await connection.execute(Q.drop_places, source, nowhere, RESOLVERS)


async def _missing(connection: Connection, source: str, layer: str, after: str) -> Sequence[Fact]:
    rows = await connection.fetch(Q.not_yet_projected, source, layer, CATCH_UP_ROWS, after)
    return [fact_of(row) for row in rows]


def fact_of(row: Mapping[str, Any]) -> Fact:
    """The fact of a row with its eight columns. A hand-typed one may hold any JSON."""
    return Fact(**{**row, "data": row["data"] if isinstance(row["data"], dict) else {}})


class NoNames:
    """A gazetteer without entries."""

    def find(self, name: str) -> None:
        """See the port."""


def _resolved(asked: Mapping[str, PlaceAsked], gazetteer: Gazetteer) -> dict[str, Placed]:
    found = ((key, resolve(place, gazetteer)) for key, place in asked.items())
    return {key: place for key, place in found if place is not None}


def _columns(places: Mapping[str, Placed]) -> list[list[object]]:
    """The keys, then one list for each field of a place."""
    parts: list[list[object]] = [[place[number] for place in places.values()] for number in range(len(Placed._fields))]
    return [list(places), *parts]


def _row(key: str, fact: Fact, derived: Derived) -> tuple[object, ...]:
    """The values in the order of the stage's columns."""
    return (
        key,
        clean.short(fact.kind),
        clean.short(fact.title),
        clean.short(derived.subtitle),
        clean.finite(fact.lat),
        clean.finite(fact.lon),
        clean.finite(derived.alt_m),
        clean.json_bytes(derived.properties) if derived.properties else NOTHING,
        clean.finite(derived.severity),
        fact.valid_until,
    )
