"""An installation saved while it runs and brought back elsewhere is the same one, in a new life of its logs."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import asyncpg
import httpx

from fix_installation import NO_FEEDS, Installation, wait_for

Start = Callable[..., Installation]
FACTS = """insert into collected_data (source, external_key, kind, title, data, lat, lon)
select 'usgs_quakes', 'q' || n, 'earthquake', 'Quake ' || n, '{"mag": 5}', n % 80, n % 170
from generate_series(1, 500) n"""


def planetwire(data_dir: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PLANETWIRE_")}
    kept |= {"PLANETWIRE_DATA_DIR": str(data_dir)} | NO_FEEDS | environment
    return subprocess.run(
        [sys.executable, "-m", "planetwire", *words], env=kept, capture_output=True, text=True, timeout=110, check=False
    )


def snapshot(installation: Installation) -> dict[str, object]:
    body: dict[str, object] = httpx.get(f"{installation.url}/api/v1/visualization/earthquakes").json()
    return body


def sql(installation: Installation, *statements: str) -> None:
    async def run() -> None:
        runtime = json.loads((installation.data_dir / "run" / "runtime.json").read_text())
        connection = await asyncpg.connect(runtime["database_url"])
        for statement in statements:
            await connection.execute(statement)
        await connection.close()

    asyncio.run(run())


def push(installation: Installation, temp: float) -> dict[str, object]:
    token = (installation.data_dir / "ingest.token").read_text().strip()
    patch = {"city": "shanghai", "changes": {"temp": temp, "source": "amsc_awos"}}
    answer = httpx.post(
        f"{installation.url}/api/internal/collector-patch", json=patch, headers={"Authorization": f"Bearer {token}"}
    )
    assert answer.status_code == 200, answer.text
    body: dict[str, object] = answer.json()
    return body


def test_a_running_installation_is_saved_and_is_itself_again_elsewhere(installation: Start, data_dir: Path) -> None:
    saved_in, elsewhere = data_dir.with_name("saved"), data_dir.with_name("elsewhere")
    first = installation("up", **NO_FEEDS)
    sql(first, FACTS, "insert into paused_sources (source) values ('celestrak_gp')")
    push(first, 20.5)
    token = planetwire(first.data_dir, "tokens", "add", "wall", "--role", "viewer").stdout.strip()
    before = wait_for(
        lambda: (body := snapshot(first))["count"] == 500 and body, within_s=60, what="five hundred quakes"
    )
    saved = planetwire(first.data_dir, "backup", str(saved_in))
    assert saved.returncode == 0, saved.stderr
    epoch = httpx.get(f"{first.url}/api/city/shanghai/detail").json()["epoch"]
    after = push(first, 21.5)  # seen by browsers, and not in the backup
    first.stop()

    restored = planetwire(elsewhere, "restore", str(saved_in))
    assert restored.returncode == 0, restored.stderr
    second = Installation(elsewhere, ("up",), NO_FEEDS).start()
    try:
        again = wait_for(lambda: (body := snapshot(second))["count"] == 500 and body, within_s=60, what="the same")
        assert again["features"] == before["features"] and again["epoch"] != before["epoch"]
        found = httpx.get(f"{second.url}/api/v1/search", params={"q": "Quake 77"}).json()["items"]
        assert [item["key"] for item in found] == ["q77"]
        sources = {each["source"]: each for each in httpx.get(f"{second.url}/api/v1/sources").json()["items"]}
        assert sources["celestrak_gp"]["paused"] is True
        detail = httpx.get(f"{second.url}/api/city/shanghai/detail").json()
        assert detail["airport_primary"]["temp"] == 20.5
        # What the first said after it was saved is not taken for what the second says.
        assert detail["epoch"] != epoch
        cursor = f"{epoch}-{after['revision']}"
        with httpx.stream("GET", f"{second.url}/api/events?cities=shanghai&since_revision={cursor}") as events:
            said = next(line for line in events.iter_lines() if "resync_required" in line)
        assert "epoch_changed" in said
        assert push(second, 22.5)["revision"] == after["revision"]
        asked = httpx.get(f"{second.url}/api/v1/session", headers={"Authorization": f"Bearer {token}"}).json()
        assert asked["who"] == "token wall"
        examined = planetwire(elsewhere, "doctor", "--json")
        assert examined.returncode == 0, examined.stdout
    finally:
        second.stop()


def test_a_backup_is_for_its_owner_alone_and_goes_into_a_new_folder(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "saved"
    assert planetwire(home, "backup", str(folder), PLANETWIRE_HALVES="terminal").returncode == 1  # nothing to save
    planetwire_home = Installation(home, ("up", "--only", "terminal"), NO_FEEDS).start()
    try:
        push(planetwire_home, 20.5)
        folder = tmp_path / "saved2"
        done = planetwire(home, "backup", str(folder), PLANETWIRE_HALVES="terminal")
        assert done.returncode == 0, done.stderr
    finally:
        planetwire_home.stop()
    assert {stat.S_IMODE(file.stat().st_mode) & 0o077 for file in [folder, *folder.rglob("*")]} == {0}
    again = planetwire(home, "backup", str(folder), PLANETWIRE_HALVES="terminal")
    assert again.returncode == 1 and "already" in again.stderr
    into_filled = planetwire(home, "restore", str(folder), PLANETWIRE_HALVES="terminal")
    assert into_filled.returncode == 1 and "empty data dir" in into_filled.stderr
    with (folder / "observations.db").open("r+b") as file:
        file.seek(5000)
        file.write(b"\xff" * 64)
    damaged = planetwire(tmp_path / "new", "restore", str(folder), PLANETWIRE_HALVES="terminal")
    assert damaged.returncode == 1 and "observations.db differ" in damaged.stderr
    assert not (tmp_path / "new" / "observations.db").exists()
