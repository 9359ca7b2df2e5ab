"""An installation of the previous version, filled and stopped, is itself under this one; the other way is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

import previous_version
from fix_installation import Installation, wait_for
from planetwire.migrating.migrate import migrations

BY_HAND = """insert into collected_data (source, external_key, kind, title, data, lat, lon)
select source, 'hand' || n, 'earthquake', 'Upgrade Hill ' || n, '{"mag": 5.5}', n, n
from unnest(array['usgs_quakes', 'nobody']) source, generate_series(1, 12) n"""
# What a version leaves that derived nothing yet of these: the facts are there, and what is made of them is not.
UNDERIVED = """with gone as (
    delete from earth_interactables where source = 'celestrak_gp' and fact_key > '3' returning 1
), orbits as (
    delete from satellite_orbits where source = 'celestrak_gp' and fact_key > '3'
)
select count(*) from gone"""
NOT_DERIVED = """do $$ begin
    if to_regclass('derivation_recipes') is not null then delete from derivation_recipes; end if;
end $$"""
FACTS = """select md5(string_agg(t::text, '|' order by source, external_key)) from (
    select source, external_key, kind, title, data, lat, lon, observed_at, collected_at, valid_until, id
    from collected_data where source <> 'city_observation') t"""
DERIVED = """select jsonb_object_agg(source, of) from (
    select source, jsonb_build_array(
        count(*), md5(string_agg(concat_ws('|', id, title, subtitle, properties), '' order by id))) as of
    from earth_interactables where source <> 'city_observation' group by source) t"""
ORBITS = (
    "select md5(string_agg(concat_ws('|', fact_key, regime, apogee_km), '' order by fact_key)) from satellite_orbits"
)
JOBS = """select jsonb_agg(jsonb_build_array(id, task_type, source, status, records_processed, finished_at) order by id)
    from collection_tasks where id <= $max"""
WAITING = "select count(*) from derived_pending"


@dataclass
class Kept:
    """What was there before."""

    facts: str
    derived: dict[str, Any]
    orbits: str
    jobs: str
    last_job: int
    found: dict[str, Any]
    curves: dict[str, Any]
    epochs: tuple[str, str]
    cursors: tuple[str, str]
    tokens: tuple[str, str]


def command(python: Path | str, data_dir: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PLANETWIRE_")}
    kept |= {"PLANETWIRE_DATA_DIR": str(data_dir), "PLANETWIRE_PORT": "0"}
    return subprocess.run(
        [str(python), "-m", "planetwire", *words], env=kept, capture_output=True, text=True, timeout=110, check=False
    )


def push(made: Installation, city: str, n: int) -> int:
    patch = {"city": city, "changes": {"temp": 15 + n / 10, "obs_time": time.time() - 3_600 + 60 * n}}
    headers = {"Authorization": f"Bearer {made.token('ingest')}"}
    answer = httpx.post(f"{made.url}/api/internal/collector-patch", json=patch, headers=headers)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["revision"])


def fill(made: Installation) -> None:
    """Both feeds, psql, readings, settings, the ledger. What runs by itself is held, so that nothing mends itself."""
    with made.client() as client:
        for source in ("celestrak_gp", "usgs_quakes"):
            job = made.submit(client, "collect", source)
            assert made.wait_job(client, job, within_s=90)["status"] == "completed"
            made.execute(f"insert into paused_sources (source) values ('{source}')")
        made.wait_job(client, made.submit(client, "clear_cache", "usgs_quakes"))
        changed = client.patch("/api/v1/sources/usgs_quakes", json={"interval_s": 7_200, "enabled": False})
        assert changed.status_code == 200, changed.text
    made.execute(BY_HAND)
    for city in ("shanghai", "taipei"):
        for n in range(20):
            push(made, city, n)
    wait_for(lambda: made.value(WAITING) == 0, within_s=60, what="what was typed in is derived")
    wait_for(lambda: stations(made) == 2, within_s=60, what="both cities on the globe")
    wait_for(lambda: unread(made) == 0, within_s=60, what="every change is in the log")


def stations(made: Installation) -> int:
    return int(made.value("select count(*) from collected_data where source = 'city_observation'"))


def unread(made: Installation) -> int:
    return int(made.value("select count(*) from earth_data_change_events where consumed_at is null"))


def seen(made: Installation) -> Kept:
    last_job = made.value("select max(id) from collection_tasks")
    map_body = httpx.get(f"{made.url}/api/v1/visualization/earthquakes").json()
    details = {city: httpx.get(f"{made.url}/api/city/{city}/detail").json() for city in ("shanghai", "taipei")}
    return Kept(
        facts=made.value(FACTS),
        derived=json.loads(made.value(DERIVED)),
        orbits=made.value(ORBITS),
        jobs=made.value(JOBS.replace("$max", str(last_job))),
        last_job=last_job,
        found={words: search(made, words) for words in ("upgrade hill", "NORAD 5", "magnitude", "hill 7")},
        curves={city: (body["timeseries"], body["airport_primary"]["temp"]) for city, body in details.items()},
        epochs=(map_body["epoch"], details["taipei"]["epoch"]),
        cursors=(f"{map_body['epoch']}-{map_body['revision']}", f"{details['taipei']['epoch']}-"),
        tokens=(made.token("admin"), made.token("ingest")),
    )


def search(made: Installation, words: str) -> list[tuple[str, str, str]]:
    items = httpx.get(f"{made.url}/api/v1/search", params={"q": words, "limit": 50}).json()["items"]
    return sorted((item["source"], item["key"], item["title"]) for item in items)


@pytest.fixture
def ended() -> Iterator[list[Installation]]:
    running: list[Installation] = []
    yield running
    for one in running:
        one.stop()


def test_what_the_previous_version_left_is_there_under_this_one(
    data_dir: Path, pytestconfig: pytest.Config, ended: list[Installation]
) -> None:
    """One start of the previous version's wheel, one of this: facts, search, cards, curves, jobs, settings, cursors."""
    python = previous_version.python_with_it(pytestconfig.cache.mkdir("previous-version"))
    quiet = {f"PLANETWIRE_FEEDS__{source}__ENABLED": "false" for source in ("AWC_METAR", "RUNWAY_OBS")}
    old = Installation(data_dir, ("demo",), quiet, program=(str(python), "-m", "planetwire"))
    ended.append(old)
    old.start()
    assert_is_the_previous(old)
    fill(old)
    kept = seen(old)
    since = push(old, "taipei", 20)
    old.execute("update collected_data set title = 'Upgrade Hill 1b' where external_key = 'hand1'")
    wait_for(lambda: unread(old) == 0 and old.value(WAITING) == 0, within_s=60, what="the last change is in the log")
    kept = Kept(**{**vars(seen(old)), "cursors": (kept.cursors[0], f"{kept.epochs[1]}-{since - 1}")})
    assert old.value(UNDERIVED) > 5_000
    old.execute(NOT_DERIVED)
    assert old.stop() == 0

    assert_the_plan_says_what_is_due(data_dir)
    saved = data_dir.with_name("saved")
    done = command(sys.executable, data_dir, "backup", str(saved))
    assert done.returncode == 0, done.stderr
    assert_an_older_backup_comes_back_as_this_version(saved, data_dir.with_name("elsewhere"))

    new = Installation(data_dir, ("demo",), quiet)
    ended.append(new)
    new.start()
    wait_for(lambda: new.value(WAITING) == 0, within_s=120, what="derived rows of the older version's facts")
    assert_the_same(seen(new), kept, new)
    assert_settings_stay(new)
    assert_cursors_go_on(new, kept)
    assert new.stop() == 0

    refused = command(python, data_dir, "demo")
    assert refused.returncode == 1
    assert "which this version does not know; upgrade first" in refused.stderr


def assert_is_the_previous(made: Installation) -> None:
    known = {one.name for one in migrations("postgres")}
    there = json.loads(made.value("select jsonb_agg(name) from planetwire_migrations"))
    assert set(there) < known, "the previous version brought this one's schema: is it another program?"


def assert_the_plan_says_what_is_due(data_dir: Path) -> None:
    planned = command(sys.executable, data_dir, "migrate", "--plan", "--json")
    assert planned.returncode == 3, planned.stderr
    pending = json.loads(planned.stdout)["migrations"]
    assert [one["name"] for one in pending][-1] == migrations("postgres")[-1].name
    tables = {table["name"]: table for one in pending for table in one["tables"]}
    assert tables["collection_tasks"]["reads"] and tables["collection_tasks"]["bytes"] > 0


def assert_an_older_backup_comes_back_as_this_version(saved: Path, elsewhere: Path) -> None:
    manifest = json.loads((saved / "manifest.json").read_text())
    assert migrations("postgres")[-1].name not in manifest["migrations"]["postgres"], (
        "planning applied nothing, and it says what the database was"
    )
    restored = command(sys.executable, elsewhere, "restore", str(saved))
    assert restored.returncode == 0, restored.stderr
    planned = command(sys.executable, elsewhere, "migrate", "--plan")
    assert (planned.returncode, planned.stdout) == (0, "nothing to do: the schema is this version's\n")


def assert_the_same(now: Kept, before: Kept, made: Installation) -> None:
    assert now.facts == before.facts
    assert now.derived == before.derived, "search and cards hold every fact, as they did"
    derived, facts = (
        made.value("select count(*) from earth_interactables"),
        made.value("select count(*) from collected_data where source <> 'nobody'"),
    )
    assert derived == facts > 10_000
    assert (now.orbits, now.found, now.curves) == (before.orbits, before.found, before.curves)
    assert len(now.found["upgrade hill"]) == 12 and now.found["NORAD 5"]
    assert made.value(JOBS.replace("$max", str(before.last_job))) == before.jobs
    assert (now.epochs, now.tokens) == (before.epochs, before.tokens)


def assert_settings_stay(made: Installation) -> None:
    sources = {each["source"]: each for each in httpx.get(f"{made.url}/api/v1/sources").json()["items"]}
    assert sources["celestrak_gp"]["paused"] and sources["usgs_quakes"]["paused"]
    assert (sources["usgs_quakes"]["interval_s"], sources["usgs_quakes"]["enabled"]) == (7_200, False)


def assert_cursors_go_on(made: Installation, kept: Kept) -> None:
    """A page that was open all the time gets what it missed, and one from another life is told to load anew."""
    earth, cities = kept.cursors
    assert replayed(made, cities)["payload"]["temp"] == 17.0
    assert replayed(made, f"{kept.epochs[1]}-999999")["reason"] == "revision_ahead"
    assert replayed(made, "aaaaaaaaaaaa-1")["reason"] == "epoch_changed"
    assert "earthquakes" in told(made, earth)
    assert told(made, f"{kept.epochs[0]}-999999") == ["resync_required"]


def replayed(made: Installation, cursor: str) -> dict[str, Any]:
    """The first thing that the stream says after its greeting."""
    url = f"{made.url}/api/events?cities=taipei&since_revision={cursor}"
    with httpx.stream("GET", url, timeout=60) as events:
        data = (json.loads(line[6:]) for line in events.iter_lines() if line.startswith("data: "))
        return dict(next(each for each in data if each["type"] not in ("connected", "heartbeat")))


def told(made: Installation, cursor: str) -> list[str]:
    """Layers of which `/ws` says that they changed, up to the earthquakes; or that the page must load anew."""
    layers: list[str] = []
    with connect(made.url.replace("http://", "ws://") + "/ws", proxy=None) as socket:
        socket.send(json.dumps({"subscribe": ["earth_updates"], "since": {"earth_updates": cursor}}))
        while "earthquakes" not in layers:
            frame = json.loads(socket.recv(30))
            if frame.get("type") == "resync_required":
                return [frame["type"]]
            layers += frame["data"]["layers"] if frame.get("channel") == "earth_updates" else []
    return layers
