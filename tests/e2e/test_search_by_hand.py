"""What is typed into psql is found by search as it is on the map: no job runs, on a whole installation."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import httpx
from websockets.sync.client import connect

from fix_installation import NO_FEEDS, Installation, wait_for

WITHIN_S = 60.0
ADD = """insert into collected_data (source, external_key, kind, title, data, lat, lon)
values ('usgs_quakes', 'typed', 'earthquake', 'Typed by hand', '{"mag": 6.1}', 35, 139)"""


def found(made: Installation, words: str) -> list[str]:
    answer = httpx.get(f"{made.url}/api/v1/search", params={"q": words}, trust_env=False)
    return [item["key"] for item in answer.json()["items"]]


def heard(socket: Any, object_id: str, what: str) -> None:
    """The event that tells browsers of the object by id."""
    deadline = time.monotonic() + WITHIN_S
    while True:
        data = json.loads(socket.recv(max(0.0, deadline - time.monotonic()))).get("data", {})
        if data.get("layers") == ["interactables"] and object_id in (data.get("delta") or {}).get(what, ()):
            return


def test_search_follows_an_insert_an_update_and_a_delete_typed_into_psql(
    installation: Callable[..., Installation],
) -> None:
    """S79, S80."""
    made = installation("up", "--only", "earth", **NO_FEEDS)
    with connect(made.url.replace("http://", "ws://") + "/ws", proxy=None) as socket:
        socket.send(json.dumps({"subscribe": ["earth_updates"]}))
        name = "earthquakes:usgs_quakes:typed"
        for statement, words, event in (
            (ADD, "typed hand", "upsert"),
            ("update collected_data set title = 'Put right'", "put right", "upsert"),
            ("delete from collected_data", "", "remove"),
        ):
            made.execute(statement)
            heard(socket, name, event)
            assert found(made, words or "put right") == (["typed"] if words else [])
    assert found(made, "typed hand") == []
    made.execute(
        "insert into collected_data (source, external_key, kind, title) select 'usgs_quakes', n::text, 'k',"
        " 'loaded ' || n from generate_series(1, 3000) n"
    )
    wait_for(lambda: found(made, "loaded 2999") == ["2999"], within_s=60, what="a load is found too")
    wait_for(lambda: made.value("select count(*) from derived_pending") == 0, within_s=60, what="nothing is left")
    assert made.value("select count(*) from collection_tasks") == 0
