"""`planetwire layers`, as typed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from typer.testing import CliRunner, Result

from planetwire.cli import app
from planetwire.database.postgres import Pool


async def typed(dsn: str, home: Path, *words: str) -> Result:
    """In a thread: commands have an event loop of their own."""
    environment = {"PLANETWIRE_DATABASE_URL": dsn, "PLANETWIRE_DATA_DIR": str(home)}
    return await asyncio.to_thread(CliRunner().invoke, app, words, env=environment)


async def test_each_layer_is_listed_with_what_it_holds_and_since_when(
    pg_dsn: str, pg_pool: Pool, tmp_path: Path
) -> None:
    await pg_pool.execute(
        "insert into collected_data (source, external_key, kind, lat, lon)"
        " select 'usgs_quakes', 'q' || n, 'earthquake', 1, 2 from generate_series(1, 1234) n"
    )
    await pg_pool.execute(
        "insert into datasources (source, last_success_at) values ('usgs_quakes', clock_timestamp())"
        " on conflict (source) do update set last_success_at = excluded.last_success_at"
    )
    shown = {line.split()[0]: line.split() for line in (await typed(pg_dsn, tmp_path, "layers")).stdout.splitlines()}
    assert shown["earthquakes"][1:3] == ["live", "1,234"] and shown["earthquakes"][-1] == "usgs_quakes"
    assert shown["satellites"][1:4] == ["empty", "0", "–"]
    listed = json.loads((await typed(pg_dsn, tmp_path, "layers", "--json")).stdout)
    quakes = next(layer for layer in listed if layer["id"] == "earthquakes")
    assert quakes["count"] == 1234 and quakes["provenance"]["publisher"]
