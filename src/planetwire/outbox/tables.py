"""The list of fact and derived tables, and the SQL that creates their change triggers.

Invariant: every table of this list, with its partitions and children, has four statement triggers that fire for every
session (`ENABLE ALWAYS`). A test compares the list with `pg_trigger`, and this SQL with the shipped migration; a table
added later gets a new migration: `migration_of`. Later partitions get their triggers from an event trigger where the
server permits one, else from `planetwire migrate --repair`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from planetwire.model import OwnedTable

EVENTS = ("insert", "update", "delete", "truncate")
_TRANSITION = {
    "insert": "referencing new table as new_rows",
    "update": "referencing old table as old_rows new table as new_rows",
    "delete": "referencing old table as old_rows",
    "truncate": "",
}


@dataclass(frozen=True, slots=True)
class Watched:
    """A table with columns `id` (primary key) and `source`, whose changes reach the map."""

    name: str
    partitioned: bool = False


FACTS = Watched("collected_data")
DERIVED = (Watched("resolved_locations"), Watched("earth_interactables"))  # of every layer


def watched(owned: Iterable[OwnedTable]) -> tuple[Watched, ...]:
    """All of them, with those that belong to one layer each."""
    return (FACTS, *(Watched(table.name) for table in owned), *DERIVED)


def trigger_names(table: str) -> tuple[str, ...]:
    """Names of a table's triggers, in the order of `EVENTS`."""
    return tuple(f"tr_planet_{table}_changed_{event}" for event in EVENTS)


def statements(watched: Watched) -> str:
    """SQL that creates the triggers of the table and its partitions. Names are ours, never user input.

    A statement addressed to a partition fires only the partition's own triggers; they report the parent's name.
    """
    lines = [_trigger(watched.name, event) for event in EVENTS]
    if watched.partitioned:
        lines.append(f"select planet_watch_tree('public.{watched.name}');")
    return "\n".join(lines)


def _trigger(table: str, event: str) -> str:
    name = f"tr_planet_{table}_changed_{event}"
    # TRUNCATE has no transition table: the rows are counted before it.
    moment = "before" if event == "truncate" else "after"
    transition = f"\n    {_TRANSITION[event]}" if _TRANSITION[event] else ""
    return (
        f"create trigger {name} {moment} {event} on public.{table}{transition}\n"
        f"    for each statement execute function public.planet_note_{event}('{table}');\n"
        f"alter table public.{table} enable always trigger {name};"
    )
