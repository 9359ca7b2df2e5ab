"""SIGKILL at the worst moments of a running installation: nothing is lost, repeats are harmless."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from fix_installation import NO_FEEDS, Installation, wait_for

SATELLITES = "select count(*) from collected_data where source = 'celestrak_gp'"
LOGGED = "select sum((message->>'records_processed')::int) from earth_broadcasts where layer = 'earthquakes'"
PENDING = "select count(*) from earth_data_change_events where consumed_at is null"
ROWS = 4  # the third kills the process, and what comes back has seen none
SLOW = {
    "PLANETWIRE_JOBS__BATCH_ROWS": "500",
    "PLANETWIRE_JOBS__LEASE_S": "600",  # a lease that a busy machine lets run out would be one more try
}


def try_json(url: str) -> Any:
    """None while the process that answers is being restarted."""
    try:
        answer = httpx.get(url, trust_env=False, timeout=10)
    except httpx.TransportError:
        return None
    return answer.json() if answer.status_code == 200 else None


def newest_job(client: httpx.Client, source: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/api/v1/jobs", params={"source": source, "limit": 1}).json()["items"][0]
    return found


def test_a_worker_killed_mid_job_is_replaced_and_the_job_finishes(installation: Callable[..., Installation]) -> None:
    """S45, S50, Q18: committed batches stay, another worker runs the job to its end."""
    made = installation("demo", PLANETWIRE_FEEDS__CELESTRAK_GP__MAX_ROWS_PER_S="4000", **SLOW)
    with made.client() as client:
        wait_for(lambda: (made.try_value(SATELLITES) or 0) >= 1_000, within_s=60, what="a collect under way")
        before = newest_job(client, "celestrak_gp")
        made.kill("work")
        kept = made.value(SATELLITES)
        done = made.wait_job(client, before["id"], within_s=60)
        assert done["status"] == "completed", done
        assert done["attempts"] == 2
        assert made.value(SATELLITES) >= max(kept, 12_000)
        body = client.get("/api/v1/visualization/satellites").json()
        assert body["count"] == made.value(SATELLITES)


def test_a_relay_killed_around_its_commit_loses_no_change(installation: Callable[..., Installation]) -> None:
    """S31, S32: the log and `consumed_at` are one commit; killed before it, the row is read again."""
    made = installation("up", PLANETWIRE_FAILPOINT="relay.before_publish:3", **NO_FEEDS)
    for number in range(ROWS):
        made.execute(
            "insert into collected_data (source, external_key, kind, lat, lon)"
            f" values ('usgs_quakes', 'q{number}', 'earthquake', 1, 2)",
        )
        wait_for(lambda: made.try_value(PENDING) == 0, within_s=60, what="the change consumed")
    broadcasts = made.value(LOGGED)
    assert broadcasts == ROWS, "every change is in the log exactly once"
    assert "supervise.child.ended" in made.log(), "the point was reached and the process died"
    revisions = made.value("select array_agg(revision order by revision) from earth_broadcasts")
    assert revisions == list(range(1, len(revisions) + 1)), "revisions stay dense"
    # The last publish may have killed the process once more: a request waits at the held port until it is back.
    body = wait_for(lambda: try_json(f"{made.url}/api/v1/visualization/earthquakes"), within_s=60, what="an answer")
    assert body["count"] == ROWS


def test_postgresql_killed_under_load_comes_back_with_everything(installation: Callable[..., Installation]) -> None:
    """S1, S2: what was committed is there; the job goes on; the globe's snapshot equals the table."""
    made = installation("demo", PLANETWIRE_FEEDS__CELESTRAK_GP__MAX_ROWS_PER_S="4000", **SLOW)
    with made.client() as client:
        wait_for(lambda: (made.try_value(SATELLITES) or 0) >= 1_000, within_s=60, what="a collect under way")
        kept = made.value(SATELLITES)
        postmaster = made.kill("postgres")
        wait_for(
            lambda: made.children().get("postgres") not in (None, postmaster), within_s=60, what="a new PostgreSQL"
        )
        wait_for(lambda: (made.try_value(SATELLITES) or -1) >= kept, within_s=60, what="the committed rows")
        wait_for(lambda: (made.try_value(SATELLITES) or 0) >= 12_000, within_s=90, what="the collect run to its end")
        wait_for(lambda: made.try_value(PENDING) == 0, within_s=60, what="all changes consumed")
        wait_for(lambda: try_json(f"{made.url}/readyz"), within_s=60, what="ready again")
        quiet = (
            "select count(*) from collection_tasks where source = 'celestrak_gp' and status in ('queued', 'running')"
        )
        wait_for(lambda: made.try_value(quiet) == 0, within_s=60, what="no job left")
        body = client.get("/api/v1/visualization/satellites").json()
        assert body["count"] == made.value(SATELLITES)


def test_everything_killed_at_once_starts_again_with_what_was_acknowledged(
    installation: Callable[..., Installation],
) -> None:
    """S190: an acknowledged reading survives; its revision is not given to another."""
    made = installation("up", **NO_FEEDS)
    headers = {"Authorization": f"Bearer {made.token('ingest')}"}

    def push(temp: float) -> int:
        answer = httpx.post(
            f"{made.url}/api/internal/collector-patch",
            headers=headers,
            json={"city": "shanghai", "changes": {"temp": temp, "source": "kill_probe"}},
            trust_env=False,
        )
        assert answer.status_code == 200, answer.text
        return int(answer.json()["revision"])

    made.execute("insert into collected_data (source, external_key, kind) values ('usgs_quakes', 'kept', 'quake')")
    last = [push(10 + number / 10) for number in range(20)][-1]
    assert made.process is not None and made.process.stdout is not None
    pids = [made.process.pid, *made.children().values()]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    made.process.wait()
    made.process.stdout.close()
    made.start()
    assert made.value("select count(*) from collected_data where external_key = 'kept'") == 1
    assert push(30.0) > last
    detail = httpx.get(f"{made.url}/api/city/shanghai/detail", trust_env=False).json()
    values = [point[1] for series in detail["timeseries"]["series"] for point in series["points"]]
    assert 30.0 in values and len(json.dumps(detail)) > 100


def test_the_feed_server_of_a_demo_is_started_again_at_its_address(installation: Callable[..., Installation]) -> None:
    """As every child: feeds that were killed come back where they were, and the next collect finds them."""
    made = installation("demo")
    with made.client() as client:
        first = made.submit(client, "collect", "usgs_quakes")
        assert made.wait_job(client, first)["status"] == "completed"
        killed = made.kill("feeds")
        new = wait_for(lambda: made.children().get("feeds") not in (None, killed), within_s=60, what="feeds again")
        assert new and not Path(f"/proc/{killed}").exists(), "and the dead one is no zombie"
        again = made.submit(client, "collect", "usgs_quakes")
        assert made.wait_job(client, again)["status"] == "completed"
        assert made.stop() == 0
    assert not [line for line in made.log().splitlines() if "Traceback" in line]
