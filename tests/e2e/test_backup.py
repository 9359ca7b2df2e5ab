"""An installation saved while it runs and brought back elsewhere is the same one, in a new life of its logs."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import httpx
from websockets.sync.client import connect

from fix_installation import NO_FEEDS, Installation, wait_for

Start = Callable[..., Installation]
FACTS = """insert into collected_data (source, external_key, kind, title, data, lat, lon)
select 'usgs_quakes', 'q' || n, 'earthquake', 'Quake ' || n, '{"mag": 5}', n % 80, n % 170
from generate_series(1, 500) n"""


# A numbered fact, and its number elsewhere in the same commit.
WRITE = """insert into collected_data (source, external_key, kind)
values ('celestrak_gp', lpad($1::int::text, 6, '0'), 'number');
update datasources set rejects = $1::int where source = 'usgs_quakes'"""


def planetwire(
    data_dir: Path, *words: str, largest_file: int | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The command; no file of it may grow beyond `largest_file`, as on a disk that is full."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PLANETWIRE_")}
    kept |= {"PLANETWIRE_DATA_DIR": str(data_dir)} | NO_FEEDS | environment
    return subprocess.run(
        [sys.executable, "-m", "planetwire", *words],
        env=kept,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        preexec_fn=None if largest_file is None else lambda: limit_files(largest_file),
    )


def limit_files(largest: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write fails, as it does when the disk is full
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))


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


class Writers:
    """Two that go on writing numbers, each the next one only after the last was acknowledged."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._stopped = threading.Event()
        self.facts = self.readings = 0

    @contextmanager
    def writing(self) -> Iterator[None]:
        threads = [threading.Thread(target=run) for run in (self._facts, self._readings)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            for thread in threads:
                thread.join()

    def _facts(self) -> None:
        async def run() -> None:
            connection = await asyncpg.connect(self._installation.dsn)
            try:
                while not self._stopped.is_set():
                    async with connection.transaction():
                        for statement in WRITE.split(";"):
                            await connection.execute(statement, self.facts + 1)
                    self.facts += 1
            finally:
                await connection.close()

        asyncio.run(run())

    def _readings(self) -> None:
        started = time.time() - 40_000
        while not self._stopped.is_set():
            n = self.readings + 1
            push(self._installation, temp_of(n), "taipei", started + n)
            self.readings = n


def temp_of(n: int) -> float:
    """Of the n-th reading: no two that follow each other are alike."""
    return n % 50 / 10


def numbers_of(installation: Installation) -> tuple[list[int], int, int]:
    """Of the facts, of the source beside them, and how many change rows tell of them."""
    keys = installation.value(
        "select array_agg(external_key::int order by id) from collected_data where source = 'celestrak_gp'"
    )
    told = installation.value(
        "select count(*) from earth_data_change_events where source = 'celestrak_gp' and table_name = 'collected_data'"
    )
    return keys or [], installation.value("select rejects from datasources where source = 'usgs_quakes'"), told


def readings_of(file: Path) -> tuple[list[float], list[float], int]:
    """Temperatures of the history and of the log, in their order, and the log's head."""
    with closing(sqlite3.connect(file)) as connection:
        history = connection.execute("select temp_c from observations where city = 'taipei' order by obs_time")
        events = connection.execute(
            "select payload_json from observation_patch_events where city = 'taipei' order by revision"
        )
        found, log = [temp for (temp,) in history], [json.loads(text)["payload"]["temp"] for (text,) in events]
        return found, log, connection.execute("select max(revision) from observation_patch_events").fetchone()[0]


def push(installation: Installation, temp: float, city: str = "shanghai", at: float | None = None) -> dict[str, object]:
    token = (installation.data_dir / "ingest.token").read_text().strip()
    changes = {"temp": temp, "source": "amsc_awos"} | ({} if at is None else {"obs_time": at})
    patch = {"city": city, "changes": changes}
    answer = httpx.post(
        f"{installation.url}/api/internal/collector-patch", json=patch, headers={"Authorization": f"Bearer {token}"}
    )
    assert answer.status_code == 200, answer.text
    body: dict[str, object] = answer.json()
    return body


def over_budget(made: Installation) -> bool:
    """As pages and machines are told, but no stranger."""
    with made.client() as client:
        mine, strangers = client.get("/api/v1/session"), httpx.get(f"{made.url}/api/v1/session")
        series = client.get("/metrics").text.splitlines()
    assert httpx.get(f"{made.url}/readyz").status_code == 200
    assert strangers.json()["disk"] is None
    return "planetwire_disk_level 5.0" in series and mine.json()["disk"] == "over"


def told(installation: Installation, cursor: str) -> dict[str, Any]:
    """What `/ws` says first to a page that comes back with a cursor."""
    with connect(installation.url.replace("http://", "ws://") + "/ws", proxy=None) as socket:
        socket.send(json.dumps({"subscribe": ["earth_updates"], "since": {"earth_updates": cursor}}))
        while (frame := json.loads(socket.recv(30)))["type"] in ("connected", "subscribed"):
            pass
        return dict(frame)


def saved_under_writes(made: Installation, saved_in: Path) -> tuple[tuple[int, int], tuple[int, int], int]:
    """Facts and readings that were acknowledged when it began and when it was through; the head of the saved log."""
    (made.data_dir / "feeds" / "awc_metar.json").write_text("{}")
    full = planetwire(made.data_dir, "backup", str(saved_in), largest_file=20_000)
    assert full.returncode == 1 and "planetwire: " in full.stderr
    assert list(saved_in.iterdir()) == [], "what a full disk left does not look like a backup, nor is it in the way"
    writers = Writers(made)
    with writers.writing():
        wait_for(lambda: writers.facts > 20 and writers.readings > 20, within_s=60, what="writes are under way")
        at_least = (writers.facts, writers.readings)
        saved = planetwire(made.data_dir, "backup", str(saved_in))
        at_most = (writers.facts + 1, writers.readings + 1)
        assert saved.returncode == 0, saved.stderr
    assert at_most > (at_least[0] + 1, at_least[1] + 1), "nothing was written meanwhile"
    # What one part says of another is older than that other: no cursor is ahead of what it points into.
    parts = [saved_in / name for name in ("feeds/awc_metar.json", "database.dump", "observations.db", "manifest.json")]
    assert sorted(parts, key=lambda part: part.stat().st_mtime_ns) == parts
    history, log, head = readings_of(saved_in / "observations.db")
    assert history == log == [temp_of(n + 1) for n in range(len(log))] and at_least[1] <= len(log) <= at_most[1]
    return at_least, at_most, head


def test_a_running_installation_is_saved_and_is_itself_again_elsewhere(installation: Start, data_dir: Path) -> None:
    """While it is written to: what comes back is what was committed up to a moment, in each store and between them."""
    saved_in, elsewhere = data_dir.with_name("saved"), data_dir.with_name("elsewhere")
    first = installation("up", **NO_FEEDS)
    sql(first, FACTS, "insert into paused_sources (source) values ('celestrak_gp')")
    push(first, 20.5)
    token = planetwire(first.data_dir, "tokens", "add", "wall", "--role", "viewer").stdout.strip()
    before = wait_for(
        lambda: (body := snapshot(first))["count"] == 500 and body, within_s=60, what="five hundred quakes"
    )
    at_least, at_most, head = saved_under_writes(first, saved_in)
    epoch = httpx.get(f"{first.url}/api/city/shanghai/detail").json()["epoch"]
    after = push(first, 21.5)  # seen by browsers, and not in the backup
    first.stop()

    restored = planetwire(elsewhere, "restore", str(saved_in))
    assert restored.returncode == 0, restored.stderr
    small = NO_FEEDS | {"PLANETWIRE_DISK_BUDGET_GB": "0.01"}  # all that looks back is shortened, and nothing else goes
    second = Installation(elsewhere, ("up",), small).start()
    try:
        again = wait_for(lambda: (body := snapshot(second))["count"] == 500 and body, within_s=60, what="the same")
        assert again["features"] == before["features"] and again["epoch"] != before["epoch"]
        keys, beside, changes = numbers_of(second)
        assert keys == list(range(1, beside + 1)) and at_least[0] <= beside == changes <= at_most[0]
        assert second.value("select coalesce(max(revision), 0) from log_consumers") <= head
        assert told(second, f"{before['epoch']}-{before['revision']}")["type"] == "resync_required"
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
        assert push(second, 22.5)["revision"] == head + 1
        asked = httpx.get(f"{second.url}/api/v1/session", headers={"Authorization": f"Bearer {token}"}).json()
        assert asked["who"] == "token wall"
        wait_for(lambda: over_budget(second), within_s=60, what="every step of the budget is taken")
        examined = planetwire(elsewhere, "doctor", "--json")
        assert examined.returncode == 0, examined.stdout
        assert "budget_over" in examined.stdout, "the budget warns, and is no fault"
        assert snapshot(second)["features"] == before["features"]
    finally:
        second.stop()


TERMINAL = {"PLANETWIRE_HALVES": "terminal"}


def test_a_backup_is_for_its_owner_alone_and_what_is_not_whole_is_refused(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "saved"
    nothing = planetwire(home, "backup", str(folder), **TERMINAL)
    assert nothing.returncode == 1 and "nothing to save" in nothing.stderr and list(folder.iterdir()) == []
    planetwire_home = Installation(home, ("up", "--only", "terminal"), NO_FEEDS).start()
    try:
        push(planetwire_home, 20.5)
        killed = planetwire(home, "backup", str(tmp_path / "half"), PLANETWIRE_FAILPOINT="backup.dumped", **TERMINAL)
        assert killed.returncode == -signal.SIGKILL
        done = planetwire(home, "backup", str(folder), **TERMINAL)
        assert done.returncode == 0, done.stderr
    finally:
        planetwire_home.stop()
    assert {stat.S_IMODE(file.stat().st_mode) & 0o077 for file in [folder, *folder.rglob("*")]} == {0}
    again = planetwire(home, "backup", str(folder), **TERMINAL)
    assert again.returncode == 1 and "already" in again.stderr
    into_filled = planetwire(home, "restore", str(folder), **TERMINAL)
    assert into_filled.returncode == 1 and "empty data dir" in into_filled.stderr
    refused(tmp_path / "half", "was not finished")
    of_a_newer_version(home)
    half_restored(folder, tmp_path / "killed")
    full = planetwire(tmp_path / "full", "restore", str(folder), largest_file=20_000, **TERMINAL)
    assert full.returncode == 1 and not (tmp_path / "full" / "observations.db").exists()
    saved_anew(folder, lambda said: said["migrations"]["sqlite"].append("0999_later"))
    refused(folder, "a newer version (0.1.0), whose schema has 0999_later; upgrade first")
    saved_anew(folder, lambda said: said["migrations"]["sqlite"].pop())
    enough = planetwire(tmp_path / "full", "restore", str(folder), **TERMINAL)
    assert enough.returncode == 0, "after a full disk was freed the same place takes it"
    manifest = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text(manifest.replace('"simulated": false', '"simulated": true'))
    refused(folder, "manifest.json differs")
    (folder / "manifest.json").write_text(manifest)
    with (folder / "observations.db").open("r+b") as file:
        file.seek(5000)
        file.write(b"\xff")
    refused(folder, "observations.db differ")


def of_a_newer_version(home: Path) -> None:
    """The start says so at once, instead of starting a web process that ends again and again."""
    with closing(sqlite3.connect(home / "observations.db")) as connection, connection:
        connection.execute("insert into planetwire_migrations (name, checksum) values ('0999_later', 'x')")
    done = planetwire(home, "up", **TERMINAL)
    assert done.returncode == 1 and "0999_later, which this version does not know; upgrade first" in done.stderr


def refused(folder: Path, reason: str) -> None:
    """Without a trace in the place where it should have gone."""
    new = folder.with_name("new")
    done = planetwire(new, "restore", str(folder), **TERMINAL)
    assert done.returncode == 1 and reason in done.stderr, done.stderr
    assert not new.exists()


def half_restored(folder: Path, place: Path) -> None:
    """Killed in the middle: what is there does not start, and says so."""
    killed = planetwire(place, "restore", str(folder), PLANETWIRE_FAILPOINT="restore.filled", **TERMINAL)
    assert killed.returncode == -signal.SIGKILL and (place / "observations.db").exists()
    for words in (("up", "--only", "terminal"), ("restore", str(folder))):
        done = planetwire(place, *words, **TERMINAL)
        assert done.returncode == 1 and "a restore into" in done.stderr, done.stderr


def saved_anew(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """As another version would have saved it."""
    said = json.loads((folder / "manifest.json").read_text())
    said.pop("sha256")
    change(said)
    said["sha256"] = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(said))
