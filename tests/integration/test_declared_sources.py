"""Declared sources in running processes: added, changed and taken away by every way in, without a restart."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import pytest_asyncio
from websockets.asyncio.client import ClientConnection, connect

from declared_tools import quakes, quakes_address
from fix_earth import SECRETS, TOKEN, Earth, running_earth
from ledger_tools import until
from pace import promised
from planetwire.database.postgres import Pool
from planetwire.demo.server import FeedServer
from planetwire.model.facts import DECLARATION_MAX_BYTES
from planetwire.runtime.ending import end_all
from planetwire.settings import Settings
from planetwire.wiring import work as working
from planetwire.wiring.catalogue import followed

LIVE_S = 2.0  # how soon every process knows a change


@dataclass
class World:
    """A web process, a worker with the schedule, a second web process and a relay of its own, on one database."""

    web: Earth
    second: Earth
    pool: Pool
    feeds: FeedServer
    settings: Settings

    def client(self, token: str | None = TOKEN) -> httpx.AsyncClient:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.AsyncClient(base_url=self.web.url, headers=headers, trust_env=False)

    def quakes(self, **changes: Any) -> str:
        return quakes(**{"url": quakes_address(self.feeds.url), **changes})

    async def layers(self, earth: Earth) -> dict[str, Any]:
        async with httpx.AsyncClient(trust_env=False) as http:
            body = (await http.get(f"{earth.url}/api/v1/layers")).json()
        return {layer["id"]: layer for layer in body["items"]}

    async def in_time(self, look: Callable[[], Awaitable[bool]], what: str) -> None:
        """Holds within the time that is promised; the machine may be busy."""
        began = time.monotonic()
        await until(look)
        took = time.monotonic() - began
        assert took <= promised(LIVE_S), f"{what} took {took:.2f} s"

    async def everywhere(self, layer: str, *, there: bool = True, title: str | None = None) -> None:
        for earth in (self.web, self.second):

            async def shown(earth: Earth = earth) -> bool:
                found = (await self.layers(earth)).get(layer)
                return (found is not None) == there and (title is None or (found or {}).get("title") == title)

            await self.in_time(shown, f"{layer} at {earth.url}")

    async def rows(self, source: str) -> int:
        found: int = await self.pool.fetchval("select count(*) from collected_data where source = $1", source)
        return found

    async def collected(self, source: str, title_like: str = "%") -> None:
        async def done() -> bool:
            return bool(
                await self.pool.fetchval(
                    "select exists (select from collected_data where source = $1 and title like $2)"
                    " and not exists (select from collection_tasks where source = $1 and finished_at is null)",
                    source,
                    title_like,
                )
            )

        await until(done)

    async def put(self, name: str, text: str, *, revision: int | None = None, **more: Any) -> httpx.Response:
        headers = {} if revision is None else {"If-Match": f'"{revision}"'}
        async with self.client(more.pop("token", TOKEN)) as http:
            return await http.put(
                f"/api/v1/sources/{name}/declaration", json={"text": text}, headers=headers, params=more
            )

    def command(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        dsn = str(self.settings.database_url)
        return subprocess.run(
            [sys.executable, "-m", "planetwire", "sources", *words],
            env={
                "PLANETWIRE_DATABASE_URL": dsn,
                "PLANETWIRE_DATA_DIR": str(self.settings.data_dir),
                "PLANETWIRE_SOURCES_PRIVATE": "true",
                "PLANETWIRE_HALVES": "earth",
            },
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
        )


@asynccontextmanager
async def working_process(settings: Settings, dsn: str) -> AsyncIterator[working.Parts]:
    web = working.OwnWeb("http://127.0.0.1:9")
    async with working.open_work(settings, dsn, SECRETS, feeds=True, web=web) as parts:
        tasks = [asyncio.ensure_future(run()) for run in parts.loops.values()]
        try:
            yield parts
        finally:
            await parts.drain()
            await end_all(tasks)


@pytest_asyncio.fixture
async def world(pg_dsn: str, pg_pool: Pool, tmp_path: Path, feed_server: FeedServer) -> AsyncIterator[World]:
    """No shipped feed is asked."""
    own = {"halves": "earth", "sources_private": True}
    own["feeds"] = {"usgs_quakes": {"enabled": False}, "celestrak_gp": {"enabled": False}}
    async with (
        running_earth(pg_dsn, pg_pool, tmp_path, **own) as web,
        running_earth(pg_dsn, pg_pool, tmp_path / "second", **own) as second,
        working_process(web.settings, pg_dsn),
    ):
        yield World(web, second, pg_pool, feed_server, web.settings)


async def heard(socket: ClientConnection, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            frame: dict[str, Any] = json.loads(await socket.recv())
            if wanted(frame):
                return frame


@asynccontextmanager
async def listening(earth: Earth, channel: str = "earth_updates") -> AsyncIterator[ClientConnection]:
    async with connect(f"ws://{urlsplit(earth.url).netloc}/ws", proxy=None) as socket:
        await socket.send(json.dumps({"subscribe": [channel]}))
        await heard(socket, lambda frame: frame.get("type") == "subscribed")
        yield socket


async def test_a_source_added_on_one_process_runs_in_all_and_its_rows_reach_a_page_of_another(world: World) -> None:
    """S71."""
    async with listening(world.second) as page, listening(world.second, "datasource_tasks") as of_jobs:
        answer = await world.put("my_quakes", world.quakes())
        assert (answer.status_code, answer.headers["etag"]) == (201, '"1"')
        await world.everywhere("my_quakes", title="My quakes")
        for socket in (page, of_jobs):
            told = await heard(socket, lambda frame: frame.get("type") == "layers_changed")
            assert told == {"type": "layers_changed", "revision": 1}
        event = await heard(page, lambda frame: "my_quakes" in frame.get("data", {}).get("layers", ()))
        assert event["data"]["source"] == "my_quakes"
    await world.collected("my_quakes")
    async with world.client() as http:
        body = (await http.get("/api/v1/visualization/my_quakes")).json()
        assert body["count"] == await world.rows("my_quakes") > 0
        listed = (await http.get("/api/v1/sources")).json()["items"]
        assert {one["source"]: one["interval_s"] for one in listed}["my_quakes"] == 3600
        found = (await http.get("/api/v1/search", params={"q": "km", "layer": "my_quakes"})).json()["items"]
        assert found and found[0]["layer"] == "my_quakes"


async def test_what_is_edited_looks_and_reads_otherwise_at_once_and_without_a_request(world: World) -> None:
    assert (await world.put("my_quakes", world.quakes(floor="1h"))).status_code == 201
    await world.collected("my_quakes")
    every = "select external_key from collected_data order by 1"
    keys = await world.pool.fetch(every)
    text = world.quakes(floor="1h", title="Shakes").replace('"{place}"', '"M {mag}"')
    answer = await world.put("my_quakes", text, revision=1)
    assert (answer.status_code, answer.json()["revision"]) == (200, 2)
    await world.everywhere("my_quakes", title="Shakes")
    await world.collected("my_quakes", "M %")
    assert await world.pool.fetch(every) == keys
    path = urlsplit(quakes_address("")).path
    assert world.feeds.counts[path].requests == 1  # the kept body said it all


async def test_other_keys_replace_the_rows_and_are_told_before(world: World) -> None:
    await world.put("my_quakes", world.quakes(floor="1h"))
    await world.collected("my_quakes")
    rows, text = await world.rows("my_quakes"), world.quakes(floor="1h", key="place, id")
    refused = await world.put("my_quakes", text, revision=1)
    assert (refused.status_code, refused.json()["code"]) == (409, "confirm_needed")
    assert refused.json()["facts"] == rows
    done = await world.put("my_quakes", text, revision=1, confirm="true")
    assert done.status_code == 200
    await until(lambda: _only_composed_keys(world))
    assert await world.rows("my_quakes") == rows


async def _only_composed_keys(world: World) -> bool:
    await world.collected("my_quakes")
    return not await world.pool.fetchval("select bool_or(external_key ~ '^[a-z0-9]+$') from collected_data")


async def test_a_source_goes_with_or_without_its_data(world: World) -> None:
    for name in ("kept", "cleared"):
        assert (await world.put(name, world.quakes(source=name))).status_code == 201
        await world.collected(name)
    async with world.client() as http:
        path = "/api/v1/sources/{}/declaration"
        unsaid = await http.delete(path.format("kept"), headers={"If-Match": '"1"'})
        assert unsaid.status_code == 400
        assert (await http.delete(path.format("kept"), params={"data": "keep"})).status_code == 428
        for name, what, revision in (("kept", "keep", 1), ("cleared", "clear", 2)):
            gone = await http.delete(path.format(name), params={"data": what}, headers={"If-Match": f'"{revision}"'})
            assert gone.status_code == 204, gone.text
            assert (await http.get(path.format(name))).status_code == 404
    await world.everywhere("kept", there=False)
    await world.everywhere("cleared", there=False)

    async def cleared() -> bool:
        return await world.rows("cleared") == 0

    await until(cleared)
    assert await world.rows("kept") > 0
    assert not await world.pool.fetchval("select exists (select from earth_interactables where source = 'cleared')")
    assert {one["source"] for one in (await _sources(world))} & {"kept", "cleared"} == set()
    assert (await world.put("kept", world.quakes(source="kept"))).status_code == 201  # and it comes back with its rows
    await world.everywhere("kept")
    assert (await world.layers(world.web))["kept"]["count"] > 0


async def _sources(world: World) -> list[dict[str, Any]]:
    async with world.client() as http:
        items: list[dict[str, Any]] = (await http.get("/api/v1/sources")).json()["items"]
        return items


async def test_the_shell_does_all_of_it(world: World) -> None:
    file = world.settings.data_dir / "mine.yaml"
    file.write_text(world.quakes())
    added = await asyncio.to_thread(world.command, "add", str(file))
    assert added.returncode == 0, added.stderr
    await world.everywhere("my_quakes")
    await world.collected("my_quakes")
    assert (await asyncio.to_thread(world.command, "export", "my_quakes")).stdout == file.read_text()
    assert "my_quakes" in (await asyncio.to_thread(world.command)).stdout
    again = await asyncio.to_thread(world.command, "add", str(file))
    assert (again.returncode, "declared already" in again.stderr) == (1, True)

    file.write_text(world.quakes(key="place, id"))
    refused = await asyncio.to_thread(world.command, "edit", str(file))
    assert (refused.returncode, "records of my_quakes" in refused.stderr) == (2, True)
    assert (await asyncio.to_thread(world.command, "edit", str(file), "--yes")).returncode == 0

    assert (await asyncio.to_thread(world.command, "rm", "my_quakes")).returncode == 2
    gone = await asyncio.to_thread(world.command, "rm", "my_quakes", "--keep-data")
    assert gone.returncode == 0, gone.stderr
    await world.everywhere("my_quakes", there=False)

    broken = await asyncio.to_thread(world.command, "add", "-", stdin=world.quakes().replace("key:", "keys:"))
    assert broken.returncode == 1
    assert ":11:" in broken.stderr and "Traceback" not in broken.stderr


async def test_a_file_in_the_data_dir_is_the_source_and_goes_with_it(world: World) -> None:
    folder = world.settings.data_dir / "sources"
    folder.mkdir()
    file = folder / "my_quakes.yaml"
    file.write_text(world.quakes())
    await world.everywhere("my_quakes")
    await world.collected("my_quakes")
    refused = await world.put("my_quakes", world.quakes(title="Other"), revision=1)
    assert (refused.status_code, refused.json()["code"]) == (409, "kept_in_file")
    async with world.client() as http:
        path, match = "/api/v1/sources/my_quakes/declaration", {"If-Match": '"1"'}
        assert (await http.delete(path, params={"data": "keep"}, headers=match)).json()["code"] == "kept_in_file"
        assert (await http.get(path)).json()["origin"] == "file"

    file.write_text(world.quakes(title="From the file"))
    await world.everywhere("my_quakes", title="From the file")
    file.write_text("source: [")
    doctor = await world.web.doctor(canary=False)
    assert [finding["code"] for finding in doctor["sources"]["findings"]] == ["source_file_refused"]
    await world.everywhere("my_quakes", title="From the file")
    file.unlink()
    await world.everywhere("my_quakes", there=False)
    assert await world.rows("my_quakes") > 0
    rows = await world.pool.fetch("select who, what from audit_log where what like 'source.%' order by id")
    assert [tuple(row) for row in rows] == [
        ("sources/my_quakes.yaml", f"source.{what}") for what in ("added", "edited", "removed")
    ]


async def test_the_store_goes_before_a_file_of_the_same_name(world: World) -> None:
    assert (await world.put("my_quakes", world.quakes())).status_code == 201
    folder = world.settings.data_dir / "sources"
    folder.mkdir()
    (folder / "my_quakes.yaml").write_text(world.quakes(title="From the file"))
    (folder / "other_quakes.yaml").write_text(world.quakes(source="other_quakes"))
    await world.everywhere("other_quakes")  # so the folder was read
    assert (await world.layers(world.web))["my_quakes"]["title"] == "My quakes"
    doctor = await world.web.doctor(canary=False)
    assert "in the store already" in doctor["sources"]["findings"][0]["detail"]
    await world.pool.execute("delete from declared_sources where name = 'my_quakes'")
    await world.everywhere("my_quakes", title="From the file")


async def test_a_file_that_went_while_nobody_watched_takes_its_source_along_and_no_other(world: World) -> None:
    for name, origin in (("mine", "file:mine"), ("theirs", "file:theirs"), ("stored", "store")):
        await world.pool.execute(
            "insert into declared_sources (name, text, origin) values ($1, $2, $3)",
            name,
            world.quakes(source=name),
            origin,
        )
    await world.everywhere("mine")
    staged = world.settings.data_dir / "staged"
    staged.mkdir()
    (staged / ".folder").write_text("mine")
    staged.rename(world.settings.data_dir / "sources")
    await world.everywhere("mine", there=False)
    await world.everywhere("theirs")
    await world.everywhere("stored")


async def test_what_is_typed_into_the_database_runs_too(world: World) -> None:
    await world.pool.execute(
        "insert into declared_sources (name, text) values ('typed', $1)", world.quakes(source="typed")
    )
    await world.everywhere("typed")
    await world.collected("typed")
    await world.pool.execute("update declared_sources set enabled = false")
    await world.everywhere("typed", there=False)
    await world.pool.execute("update declared_sources set enabled = true")
    await world.everywhere("typed")
    await world.pool.execute("delete from declared_sources")
    await world.everywhere("typed", there=False)


async def test_a_declaration_that_cannot_be_used_is_named_and_stops_nothing(world: World) -> None:
    texts = {
        "later": "version: 2\nsource: later\n",
        "nonsense": "\tnot: [yaml",
        "usgs_quakes": world.quakes(source="usgs_quakes"),
        "renamed": world.quakes(source="another"),
    }
    for name, text in texts.items():
        await world.pool.execute("insert into declared_sources (name, text) values ($1, $2)", name, text)
    assert (await world.put("my_quakes", world.quakes())).status_code == 201
    await world.everywhere("my_quakes")
    doctor = await world.web.doctor(canary=False)
    named = [finding["detail"].partition(":")[0] for finding in doctor["sources"]["findings"]]
    assert named == sorted(texts) and doctor["sources"]["ok"]
    async with world.client() as http:
        fault = (await http.get("/api/v1/sources/renamed/declaration")).json()["fault"]
        assert "another" in fault
    assert await followed(world.pool, world.settings)  # a process that starts now


async def test_a_source_may_join_a_layer_there_is(world: World) -> None:
    await world.put("my_quakes", world.quakes(layer="earthquakes"))
    await world.collected("my_quakes")

    async def joined() -> bool:
        layers = await world.layers(world.second)
        return "my_quakes" in layers["earthquakes"]["sources"] and layers["earthquakes"]["count"] > 0

    await until(joined)
    assert "my_quakes" not in await world.layers(world.second)
    feeds = await world.pool.fetch("select layer from earth_layer_feeds where source = 'my_quakes'")
    assert {row[0] for row in feeds} == {"earthquakes"}


async def test_two_editors_do_not_overwrite_each_other(world: World) -> None:
    await world.put("my_quakes", world.quakes())
    assert (await world.put("my_quakes", world.quakes(title="Unseen"))).json()["code"] == "precondition_required"
    first, second = await asyncio.gather(
        *(world.put("my_quakes", world.quakes(title=title), revision=1) for title in ("Ann's", "Ben's"))
    )
    assert sorted((first.status_code, second.status_code)) == [200, 412]
    late = await world.put("my_quakes", world.quakes(title="Late"), revision=1)
    assert (late.status_code, late.json()["code"]) == (412, "revision_moved")


async def test_a_bad_declaration_is_answered_with_all_that_is_wrong(world: World) -> None:
    text = world.quakes().replace("key:", "keys:").replace("interval: 1h", "interval: soon")
    answer = await world.put("my_quakes", text)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_declaration")
    assert len(answer.json()["faults"]) >= 2
    for fault in answer.json()["faults"]:
        assert fault.keys() == {"line", "column", "code", "message", "remedy"} and fault["line"] >= 1
    shipped = await world.put("usgs_quakes", world.quakes(source="usgs_quakes"))
    assert (shipped.status_code, shipped.json()["faults"][0]["line"]) == (400, 1)
    other = await world.put("my_quakes", world.quakes(source="another"))
    assert (other.status_code, other.json()["code"]) == (400, "other_name")
    assert await world.pool.fetchval("select revision from declared_sources_head") == 0


@pytest.mark.parametrize("name", ["..", "A", "%2e%2e", "x" * 64, "a%00b", "a b", "%ff", "1"])
async def test_names_that_cannot_be_are_input_and_no_fault_of_ours(world: World, name: str) -> None:
    async with world.client() as http:
        for method in ("GET", "PUT", "DELETE"):
            answer = await http.request(method, f"/api/v1/sources/{name}/declaration", json={"text": "x"})
            assert 400 <= answer.status_code < 500, answer.text


async def test_sizes_that_cannot_be_are_input(world: World) -> None:
    for text in ("x" * 40_000, "a: \x00", "", "\ud800", "- " * 5_000, "&a [*a]", "{" * 2_000):
        async with world.client() as http:
            body = json.dumps({"text": text}).encode()
            answer = await http.put("/api/v1/sources/my_quakes/declaration", content=body)
            assert 400 <= answer.status_code < 500, (text[:10], answer.text)
        answer = await world.put("my_quakes", "x", revision=10**20)
        assert answer.status_code == 400


@pytest.mark.parametrize(
    ("added", "code"), [("#" * DECLARATION_MAX_BYTES, "too_large"), ("# \x00\n", "no_yaml")], ids=["size", "NUL"]
)
async def test_a_text_too_large_or_with_a_nul_is_a_bad_declaration(world: World, added: str, code: str) -> None:
    answer = await world.put("my_quakes", world.quakes() + added)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_declaration")
    assert [fault["code"] for fault in answer.json()["faults"]] == [code]


async def test_who_may_read_and_who_may_write(pg_dsn: str, pg_pool: Pool, tmp_path: Path) -> None:
    roles = {"viewer": "viewer-token-of-the-tests-1", "operator": "operator-token-of-the-tests"}
    tokens = {f"{role}_token": token for role, token in roles.items()}
    async with running_earth(pg_dsn, pg_pool, tmp_path, halves="earth", **tokens) as earth:
        path = f"{earth.url}/api/v1/sources/my_quakes/declaration"
        async with httpx.AsyncClient(trust_env=False) as http:
            for token, reads, writes in (
                (None, 401, 401),
                (roles["viewer"], 403, 403),
                (roles["operator"], 404, 403),
                (TOKEN, 404, 201),
            ):
                headers = {} if token is None else {"Authorization": f"Bearer {token}"}
                assert (await http.get(path, headers=headers)).status_code == reads
                assert (await http.delete(f"{path}?data=keep", headers=headers)).status_code in (writes, 404)
                put = await http.put(path, headers=headers, json={"text": quakes()})
                assert put.status_code == writes, put.text


HOSTS = ("127.0.0.1", "127.0.0.2:9", "localhost", "10.0.0.1", "169.254.169.254")


async def test_private_addresses_are_refused_unless_the_operator_allows_them(
    pg_dsn: str, pg_pool: Pool, tmp_path: Path
) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        running_earth(pg_dsn, pg_pool, tmp_path, halves="earth") as earth,
        httpx.AsyncClient(trust_env=False, headers=headers) as http,
    ):
        for host in HOSTS:
            path = f"{earth.url}/api/v1/sources/my_quakes/declaration"
            answer = await http.put(path, json={"text": quakes(url=f"http://{host}/x")})
            assert (answer.status_code, answer.json().get("code")) == (400, "bad_declaration"), host
            assert answer.json()["faults"][0]["code"] == "private_address", host
