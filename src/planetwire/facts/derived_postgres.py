"""Derived rows in PostgreSQL: made of facts in the transaction of the facts, so neither is ever seen without the other.

What a fact means is said by its layer's declaration; here it is only written, one statement a table and batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planetwire.database.postgres import Connection
from planetwire.database.sql import queries_beside
from planetwire.facts import clean
from planetwire.facts.aside_postgres import each_that_can
from planetwire.facts.places import RESOLVERS, Gazetteer, Placed, own, resolve
from planetwire.model import Derived, Deriver, Fact, Orbit, PlaceAsked

Q = queries_beside(__file__)

CATCH_UP_ROWS = 2_000
MAX_TEXT_CHARS = 2_000  # of what was typed in as a title; its first 500 can be searched for
NOTHING = b"{}"
STAGE = "derived_stage"
FOUND_COLUMNS = 10  # of the stage, before those of the orbit
NO_ORBIT = (None,) * len(Orbit._fields)


class Projection:
    """Writes the derived rows of facts. `derivers` names a source's layers that have any, each with how.

    Where a fact lies that has no coordinates is said by the first of its layers, and looked up in the `gazetteer`.
    """

    def __init__(
        self, derivers: Callable[[str], Sequence[tuple[str, Deriver]]], gazetteer: Gazetteer | None = None
    ) -> None:
        """Without a gazetteer no name is looked up."""
        self._derivers = derivers
        self._gazetteer = gazetteer or NoNames()

    async def project(self, connection: Connection, source: str, facts: Sequence[Fact]) -> None:
        """Of facts that the open transaction wrote or locked; each key once. Rows with the same values stay."""
        for layer, derive in self._derivers(source):
            await self._put(connection, layer, source, facts, derive)

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
            connection, source, facts, lambda some: self._put(connection, layer, source, some, derive), doing="derived"
        )

    async def _put(
        self, connection: Connection, layer: str, source: str, facts: Sequence[Fact], derive: Deriver
    ) -> None:
        derived = [derive(fact) for fact in facts]
        keys = [clean.text(fact.external_key) for fact in facts]
        await _put_rows(connection, layer, source, [_row(*one) for one in zip(keys, facts, derived, strict=True)])
        if layer == self._derivers(source)[0][0]:
            asked = {key: one.place for key, one in zip(keys, derived, strict=True) if one.place is not None}
            await self._put_places(connection, source, dict(zip(keys, facts, strict=True)), asked)

    async def _put_places(
        self, connection: Connection, source: str, facts: Mapping[str, Fact], asked: Mapping[str, PlaceAsked]
    ) -> None:
        """Rows of others, `manual` ones and locked ones stay as they are; see the statements."""
        # In a thread: the first name of all reads the gazetteer, which takes a second or two.
        found = await asyncio.to_thread(_resolved, asked, self._gazetteer) if asked else {}
        if found:
            await connection.execute(Q.put_places, source, *_columns(found), RESOLVERS)
        if await connection.fetchval(Q.places_of_ours, source, RESOLVERS):
            # A fact that has coordinates by now takes its row along: a delete would clear the layer first.
            moved = {key: place for key, fact in facts.items() if key not in asked and (place := own(fact))}
            await connection.execute(Q.move_places, source, *_columns(moved), RESOLVERS)
            nowhere = [key for key in facts if key not in found and key not in moved]
            await connection.execute(Q.drop_places, source, nowhere, RESOLVERS)


async def _missing(connection: Connection, source: str, layer: str, after: str) -> Sequence[Fact]:
    rows = await connection.fetch(Q.not_yet_projected, source, layer, CATCH_UP_ROWS, after)
    return [fact_of(row) for row in rows]


def fact_of(row: Mapping[str, Any]) -> Fact:
    """Of a row with its eight columns. One that was typed in may hold any JSON."""
    return Fact(**{**row, "data": row["data"] if isinstance(row["data"], dict) else {}})


class NoNames:
    """A gazetteer that knows none."""

    def find(self, name: str) -> None:
        """See the port."""


def _resolved(asked: Mapping[str, PlaceAsked], gazetteer: Gazetteer) -> dict[str, Placed]:
    found = ((key, resolve(place, gazetteer)) for key, place in asked.items())
    return {key: place for key, place in found if place is not None}


def _columns(places: Mapping[str, Placed]) -> list[list[object]]:
    """Keys, and then a list for each part of a place."""
    parts: list[list[object]] = [[place[number] for place in places.values()] for number in range(len(Placed._fields))]
    return [list(places), *parts]


async def _put_rows(connection: Connection, layer: str, source: str, rows: Sequence[tuple[Any, ...]]) -> None:
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
