"""Compares the triggers of watched tables, partitions included, with what should be there; and puts them right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from planetwire.database.postgres import Connection
from planetwire.database.sql import queries_beside
from planetwire.outbox.tables import EVENTS, WATCHED

Q = queries_beside(__file__)

ROWS_MAX = 20_000  # relations × events looked at
HOOKS = 2

Lack = Literal["missing", "disabled", "wrong"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One trigger that does not do what it should; `wrong`: another function, or another name to report."""

    relation: str
    trigger: str
    lacks: Lack


@dataclass(frozen=True, slots=True)
class Triggers:
    """What was found: triggers that are right, those that are not, partitions, and whether new ones are followed."""

    right: int
    faults: Sequence[Fault]
    leaves: int
    followed: bool


async def read_triggers(connection: Connection, tables: Sequence[str] | None = None) -> Triggers:
    """Of the listed tables, or of these."""
    names = [watched.name for watched in WATCHED] if tables is None else tables
    rows = await connection.fetch(Q.trees, names, EVENTS, ROWS_MAX)
    faults = [Fault(row["relation"], row["trigger"], row["lacks"]) for row in rows if row["lacks"]]
    seen = {row["reported"] for row in rows}
    faults += [Fault(name, "the table itself", "missing") for name in names if name not in seen]
    leaves = {row["relation"] for row in rows if row["is_leaf"]}
    hooks: int = await connection.fetchval(Q.hooks)
    return Triggers(sum(1 for row in rows if not row["lacks"]), faults, len(leaves), hooks == HOOKS)


async def repair_triggers(connection: Connection, tables: Sequence[str] | None = None) -> int:
    """Make every trigger as it should be, also one that was switched off by hand; how many were made anew."""
    await connection.fetchval(Q.install_hooks)
    names = [watched.name for watched in WATCHED] if tables is None else tables
    return sum([await connection.fetchval(Q.watch_tree, name) or 0 for name in names])


async def install_hooks(connection: Connection) -> bool:
    """Follow tables that come and go, if the role may; whether they are followed now."""
    return bool(await connection.fetchval(Q.install_hooks))
