"""A layer is added by its recipe: one declaration, one line in the registry; all else finds it."""

from __future__ import annotations

import difflib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from planetwire.database.postgres import Pool

ROOT = Path(__file__).resolve().parent.parent.parent
KEPT = ("src/planetwire", "scripts", "frontend/src/draw")
SKIPPED = shutil.ignore_patterns("__pycache__", "static", "samples")
# What a database and a browser make of it: a fact written by hand, one turn of the relay, the snapshot, the list.
PASSES = """
import asyncio, json, sys
from planetwire.runtime.clock import SystemClock
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.outbox.changelog_postgres import PostgresChangeLog
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.database.postgres import open_pool
from planetwire.relay.payload import payload
from planetwire.relay.relay import Relay
from planetwire.settings import RelaySettings
from planetwire.stream.log_postgres import PostgresEventLog
from planetwire.web.stores.cache_memory import MemoryCache
from planetwire.web.earth.layer_snapshots import LayerSnapshots

async def main(dsn):
    pool, registry, cache = await open_pool(dsn, application="test"), EarthLayerAdapterRegistry(), MemoryCache()
    relay = Relay(PostgresChangeLog(pool, payload), registry, cache.invalidate, MemoryWakeup(), RelaySettings(),
                  SystemClock(), lambda events: None)
    await pool.execute("insert into collected_data (source, external_key, kind, title, lat, lon)"
                       " values ('usgs_volcanoes', 'etna', 'volcano', 'Etna', 37.75, 14.99)")
    await relay.turn()
    message = await pool.fetchval("select message from earth_broadcasts")
    log = await PostgresEventLog.open(pool)
    snapshots = LayerSnapshots(PostgresFactStore(pool), registry, log, cache, SystemClock())
    body = json.loads(bytes((await snapshots.get("volcanoes", "identity")).body))
    rows = {layer["id"]: [row["key"] for row in layer["card"]] for layer in await snapshots.layers()}
    print(json.dumps([message["layers"], message["refresh_strategy"], body["features"][0]["id"], body["revision"],
                      rows["volcanoes"], registry.owned_tables("usgs_volcanoes")]))
    await pool.close()

asyncio.run(main(sys.argv[1]))
"""


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the parts that a layer could touch."""
    for part in KEPT:
        shutil.copytree(ROOT / part, tmp_path / part, ignore=SKIPPED)
    return tmp_path


def texts(root: Path) -> dict[str, str]:
    files = [file for part in KEPT for file in (root / part).rglob("*") if file.suffix in {".py", ".ts", ".sql"}]
    return {str(file.relative_to(root)): file.read_text() for file in files if "__pycache__" not in file.parts}


def new_layer(house: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, house / "scripts" / "new_layer.py", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


async def test_two_places_make_a_layer_that_the_whole_path_knows(house: Path, pg_pool: Pool, pg_dsn: str) -> None:
    """S71–S76."""
    before = texts(house)
    made = new_layer(house, "volcanoes", "usgs_volcanoes")
    assert made.returncode == 0, made.stderr
    after = texts(house)
    assert set(after) - set(before) == {"src/planetwire/layers/volcanoes.py"}
    assert {name for name in before if before[name] != after[name]} == {"src/planetwire/layers/registry.py"}
    old, new = (side["src/planetwire/layers/registry.py"].splitlines() for side in (before, after))
    assert [line for line in difflib.ndiff(old, new) if line[0] in "+-"] == ['+     "volcanoes",']

    environment = {**os.environ, "PYTHONPATH": str(house / "src")}
    passed = subprocess.run(
        [sys.executable, "-c", PASSES, pg_dsn], env=environment, capture_output=True, text=True, timeout=60
    )
    assert passed.returncode == 0, passed.stderr
    owned = ["resolved_locations", "earth_interactables"]
    seen = [["volcanoes"], "reload", "usgs_volcanoes:etna", 1, ["kind", "observed"], owned]
    assert json.loads(passed.stdout.splitlines()[-1]) == seen


def test_nothing_is_written_over_and_a_bad_name_is_refused(house: Path) -> None:
    before = texts(house)
    taken = new_layer(house, "satellites", "celestrak_gp")
    assert (taken.returncode, "satellites.py is there already" in taken.stderr) == (1, True)
    for words in (["Volcanoes", "x"], ["volcanoes", ""], ["a;b", "x"], ["../x", "y"]):
        assert new_layer(house, *words).returncode == 2
    assert texts(house) == before
