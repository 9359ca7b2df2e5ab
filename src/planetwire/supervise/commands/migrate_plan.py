"""`planetwire migrate --plan`: pending migrations, the tables they lock and their sizes. Read-only."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from planetwire.database.postgres import connected
from planetwire.migrating.effects import Effects, checks_of, effects_of, indexes_of
from planetwire.migrating.locks_postgres import table_sizes
from planetwire.migrating.migrate import Engine, Migration, due_postgres, due_sqlite, migrations
from planetwire.model import Json
from planetwire.settings import Settings
from planetwire.supervise.databases import database_while, has_database
from planetwire.wiring.observations import readings_file

PENDING = 3  # the exit status when something is due: neither done nor failed
UP_TO_DATE = "nothing to do: the schema is this version's"
LAST_WORD = {
    "expand": "an older process works on beside it: apply it, then restart",
    "contract": "no older process works beside a contraction: stop them all first (`planetwire up` does, being one)",
}


@dataclass(frozen=True, slots=True)
class Planned:
    """One migration, and the existing tables that it touches."""

    name: str
    engine: Engine
    kind: str
    because: list[str]
    tables: list[Json]  # name, lock, rewrite, reads, writes, rows (about), bytes


def plan(settings: Settings) -> list[Planned]:
    """In the order in which they would be applied. Raises SetupError, BackendError."""
    planned = _of_database(settings) if settings.earth else []
    location, file = settings.observations_location, readings_file(settings)
    if settings.terminal and file is not None:
        planned += _of_file(file)
    elif settings.terminal and not (settings.earth and location == settings.database_url):
        planned += asyncio.run(_of_server(location))
    return planned


def _of_database(settings: Settings) -> list[Planned]:
    if not has_database(settings):
        return _planned("postgres", migrations("postgres"), {})
    with database_while(settings) as dsn:
        return asyncio.run(_of_server(dsn))


async def _of_server(dsn: str) -> list[Planned]:
    async with connected(dsn, application="migrate plan") as connection:
        due = await due_postgres(connection)
        return _planned("postgres", due, await table_sizes(connection))


def _of_file(path: Path) -> list[Planned]:
    """SQLite has one write lock for the file: readings wait for the whole migration."""
    size = path.stat().st_size if path.exists() else 0
    due = due_sqlite(path)
    return [
        Planned(one.name, "sqlite", effects.kind, effects.contracts, [_file(path, effects, size)] if size else [])
        for one in due
        for effects in [effects_of(one.sql)]
    ]


def _file(path: Path, effects: Effects, size: int) -> Json:
    touched = bool(effects.locks)
    return {
        "name": path.name,
        "lock": "whole file",
        "rewrite": False,
        "reads": bool(effects.reads),
        "writes": touched,
        "rows": None,
        "bytes": size,
    }


def _planned(engine: Engine, due: Sequence[Migration], sizes: Mapping[str, tuple[int, int]]) -> list[Planned]:
    scripts = [one.sql for one in migrations(engine)]
    indexes, checks = indexes_of(scripts), checks_of(scripts)
    planned = []
    for one in due:
        effects = effects_of(one.sql, indexes, checks)
        tables = [_table(name, effects, *sizes[name]) for name in sorted(effects.locks) if name in sizes]
        planned.append(Planned(one.name, engine, effects.kind, effects.contracts, tables))
    return planned


def _table(name: str, effects: Effects, rows: int, size: int) -> Json:
    return {
        "name": name,
        "lock": effects.locks[name],
        "rewrite": name in effects.rewrites,
        "reads": name in effects.reads,
        "writes": name in effects.writes,
        "rows": rows,
        "bytes": size,
    }


def as_json(planned: Sequence[Planned]) -> Json:
    """`{migrations: […]}`."""
    return {"migrations": [asdict(one) for one in planned]}


def render(planned: Sequence[Planned]) -> str:
    """A line a migration, one below it for each table."""
    if not planned:
        return UP_TO_DATE
    lines = []
    for one in planned:
        why = f": {'; '.join(one.because)}" if one.because else ""
        lines.append(f"{one.name:<28} {one.engine:<9} {one.kind}{why}")
        lines += [f"    {_line(table)}" for table in one.tables]
    worst = "contract" if any(one.kind == "contract" for one in planned) else "expand"
    return "\n".join([*lines, f"{len(planned)} to apply; {LAST_WORD[worst]}"])


def _line(table: Json) -> str:
    does = [f"lock {table['lock']}", *(word for key, word in _DOES.items() if table[key])]
    rows = "" if table["rows"] is None else f"about {table['rows']:,} rows, "
    return f"{table['name']}: {', '.join(does)} ({rows}{_size(table['bytes'])})"


_DOES = {"rewrite": "written anew", "reads": "every row read", "writes": "rows changed"}


def _size(size: int) -> str:
    amount, units = float(size), iter(("B", "kB", "MB", "GB", "TB"))
    unit = next(units)
    while amount >= 1000 and unit != "TB":
        amount, unit = amount / 1000, next(units)
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
