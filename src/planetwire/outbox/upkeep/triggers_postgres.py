"""Checks the triggers of watched tables, partitions included, and repairs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from planetwire.database.postgres import Connection
from planetwire.database.sql import queries_beside
from planetwire.outbox.tables import EVENTS

Q = queries_beside(__file__)

ROWS_MAX = 20_000  # relations × events checked
HOOKS = 2

Lack = Literal["missing", "disabled", "wrong"]


@dataclass(frozen=True, slots=True)
class Fault:
    """A faulty trigger; `wrong`: it calls another function, or reports another table name."""

    relation: str
    trigger: str
    lacks: Lack


@dataclass(frozen=True, slots=True)
class Triggers:
    """The number of correct triggers, the faults, the number of partitions, and whether new ones get triggers."""

    right: int
    faults: Sequence[Fault]
    leaves: int
    followed: bool


async def read_triggers(connection: Connection, tables: Sequence[str]) -> Triggers:
    """Of these tables and all their partitions."""
    rows = await connection.fetch(Q.trees, tables, EVENTS, ROWS_MAX)
    faults = [Fault(row["relation"], row["trigger"], row["lacks"]) for row in rows if row["lacks"]]
    seen = {row["reported"] for row in rows}
    faults += [Fault(name, "the table itself", "missing") for name in tables if name not in seen]
    leaves = {row["relation"] for row in rows if row["is_leaf"]}
    hooks: int = await connection.fetchval(Q.hooks)
    return Triggers(sum(1 for row in rows if not row["lacks"]), faults, len(leaves), hooks == HOOKS)


async def repair_triggers(connection: Connection, tables: Sequence[str]) -> int:
    """Repair every faulty trigger, also one disabled by hand; returns how many were recreated."""
    await connection.fetchval(Q.install_hooks)
    return sum([await connection.fetchval(Q.watch_tree, name) or 0 for name in tables])


async def install_hooks(connection: Connection) -> bool:
    """Install the event triggers that watch new partitions, if the role may; returns whether they are installed."""
    return bool(await connection.fetchval(Q.install_hooks))
