"""A whole installation behind PgBouncer: with the pooler's address alone it polls, with the server's too it listens."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as connect_websocket

from fix_installation import NO_FEEDS, Installation

WITHIN_S = 60.0
MADE = """
insert into collected_data (source, external_key, kind, title, lat, lon, observed_at)
select 'usgs_quakes', 'k' || n, 'earthquake', 'M 5', 10, 20, now() from generate_series(1, 3) n"""


@pytest.mark.parametrize("direct", [False, True], ids=["pooler alone", "with the server's address"])
def test_a_change_and_a_job_arrive_behind_a_pooler(
    direct: bool, pooled_dsn: str, pg_dsn: str, installation: Callable[..., Installation]
) -> None:
    address = {"PLANETWIRE_DATABASE_URL": pooled_dsn} | ({"PLANETWIRE_DATABASE_DIRECT_URL": pg_dsn} if direct else {})
    running = installation("up", **NO_FEEDS, **address, PLANETWIRE_HALVES="earth", PLANETWIRE_LOG_FORMAT="json")
    with running.client() as client, connect_websocket(f"{running.url.replace('http', 'ws')}/ws", proxy=None) as socket:
        socket.send(json.dumps({"subscribe": ["earth_updates"]}))
        _receive(socket, "subscribed")
        running.execute(MADE)
        _receive(socket, "earth.layer.changed")
        cleared = running.wait_job(client, running.submit(client, "clear_data", "usgs_quakes"))
        assert (cleared["status"], cleared["records_processed"]) == ("completed", 3)
        _receive(socket, "earth.layer.changed")
        steps = {step["step"]: step for step in client.get("/api/v1/diagnostics").json()["steps"]}
    assert steps["listener"]["ok"] and ("polled" in steps["listener"]["detail"]) is not direct
    assert ("PLANETWIRE_DATABASE_DIRECT_URL" in steps["listener"]["advice"]) is not direct
    said = running.log()
    assert said.count("earth.db_changes.poll_only") == (0 if direct else 2)  # web and work, once each
    assert said.count("earth.db_changes.connected") == (2 if direct else 0)
    assert running.stop() == 0


def test_an_address_of_the_server_without_one_of_the_database_stops_the_start(
    pg_dsn: str, installation: Callable[..., Installation]
) -> None:
    running: list[Installation] = []
    with pytest.raises(AssertionError, match="PLANETWIRE_DATABASE_DIRECT_URL goes beside"):
        running.append(installation("up", PLANETWIRE_DATABASE_DIRECT_URL=pg_dsn))
    assert not running


def _receive(socket: ClientConnection, text: str) -> None:
    while text not in str(socket.recv(WITHIN_S)):
        pass
