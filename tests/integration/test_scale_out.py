"""The page on scaling out names a series for every signal: each is made to move, and /metrics has the number."""

from __future__ import annotations

import ast
import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from prometheus_client import REGISTRY, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from websockets.asyncio.client import connect

from fix_earth import Earth, running_earth
from ledger_tools import until
from planetwire.database.postgres import Pool
from planetwire.model import ResyncReason
from planetwire.outbox.upkeep.prune_postgres import PostgresPruner
from planetwire.ports import Subscription
from planetwire.runtime.clock import ManualClock
from planetwire.stream.hub import Hub
from planetwire.stream.log_postgres import PostgresEventLog
from planetwire.web import metrics
from webhook_receiver import Receiver

DOCS = Path(__file__).resolve().parents[2] / "docs"
SERIES = re.compile(r"`(planetwire_\w+)[`{]")
ADD = "insert into collected_data (source, external_key, kind) select $1, n::text, 'k' from generate_series(1, $2) n"
UNCONSUMED = "select count(*) from earth_data_change_events where consumed_at is null and attempts = 0"
STALL_S = 20.0


def value(text: str, series: str, **labels: str) -> float | None:
    """The sample of exactly these labels; None when there is none."""
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == series and sample.labels == labels:
                return sample.value
    return None


class Scaled:
    """A web process with an outlet, asked the way Prometheus asks."""

    def __init__(self, earth: Earth, http: httpx.AsyncClient, receiver: Receiver) -> None:
        self.pool, self.earth, self.http, self.receiver = earth.pool, earth, http, receiver

    async def text(self) -> str:
        answer = await self.http.get("/metrics")
        assert answer.status_code == 200
        return answer.text

    async def shows(self, check: Callable[[str], Awaitable[bool] | bool]) -> None:
        """Wait until what is shown is so."""

        async def so() -> bool:
            verdict = check(await self.text())
            return verdict if isinstance(verdict, bool) else await verdict

        await until(so)

    async def number(self, query: str) -> float:
        return float(await self.pool.fetchval(query))

    async def relayed(self) -> None:
        async def so() -> bool:
            return not await self.number(UNCONSUMED)

        await until(so)


@pytest_asyncio.fixture
async def scaled(pg_dsn: str, pg_pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scaled]:
    monkeypatch.setattr(metrics, "SIGNALS_EVERY_S", 0.05)
    receiver = Receiver()
    await receiver.start()
    more = {"halves": "earth", "changes_bus": receiver.url}
    async with (
        running_earth(pg_dsn, pg_pool, tmp_path, **more) as earth,
        httpx.AsyncClient(base_url=earth.url, trust_env=False) as http,
    ):
        yield Scaled(earth, http, receiver)
    await receiver.stop()


async def test_what_the_relay_did_and_what_it_left_is_counted(scaled: Scaled) -> None:
    """S94, S99: rows and events, those put off and those that nobody takes, who leads, and what waits how long."""
    pool = scaled.pool
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute(ADD, "usgs_quakes", 20)
        await connection.execute("update collected_data set title = 'x' where external_key::int <= 3")
        await connection.execute("delete from collected_data where external_key::int > 18")
    await pool.execute(ADD, "nobody", 1)
    await scaled.relayed()
    await scaled.shows(lambda text: value(text, "planetwire_relay_changes_total") == 3.0)
    text = await scaled.text()
    assert value(text, "planetwire_relay_leads") == 1.0
    assert value(text, "planetwire_relay_events_total") == 1.0
    await scaled.shows(lambda text: value(text, "planetwire_relay_skipped_total") == 1.0)
    assert value(text, "planetwire_relay_deferred_total") == 0.0

    refuse = "alter table earth_broadcasts add check (message->>'source' is distinct from 'celestrak_gp')"
    await pool.execute(refuse)
    await pool.execute(ADD, "celestrak_gp", 1)

    async def deferred(text: str) -> bool:
        tries = await scaled.number("select sum(attempts) from earth_data_change_events")
        return tries >= 1.0 and value(text, "planetwire_relay_deferred_total") == tries

    await scaled.shows(deferred)
    await scaled.earth.stop("relay")
    for _ in range(3):
        await pool.execute("update collected_data set title = title || '.' where source = 'usgs_quakes'")
    await pool.execute("update earth_data_change_events set occurred_at = occurred_at - interval '1 h'")
    await scaled.shows(lambda text: value(text, "planetwire_outbox_pending") == 4.0)
    first = "select extract(epoch from clock_timestamp() - min(occurred_at)) from earth_data_change_events"
    least = await scaled.number(f"{first} where consumed_at is null")
    await scaled.shows(lambda text: (value(text, "planetwire_outbox_oldest_age_seconds") or 0.0) >= least >= 3600.0)
    shown = value(await scaled.text(), "planetwire_outbox_oldest_age_seconds") or 0.0
    assert shown <= await scaled.number(f"{first} where consumed_at is null")
    assert value(await scaled.text(), "planetwire_relay_leads") == 0.0


async def test_tables_the_database_and_long_transactions_are_measured(scaled: Scaled) -> None:
    """S94-S98: what was written, what lies there, and who holds back the vacuum."""
    pool = scaled.pool
    await pool.execute(ADD, "usgs_quakes", 20)
    await pool.execute("update collected_data set title = 'x' where external_key::int <= 3")
    await pool.execute("delete from collected_data where external_key::int > 18")
    await scaled.relayed()
    await pool.execute("analyze collected_data")
    await pool.execute("analyze earth_broadcasts")

    await scaled.shows(lambda text: value(text, "planetwire_table_written_total", table="collected_data") == 25.0)
    await scaled.shows(lambda text: value(text, "planetwire_table_rows", table="collected_data") == 18.0)
    events = await scaled.number("select count(*) from earth_broadcasts")
    assert events >= 1.0
    await scaled.shows(lambda text: value(text, "planetwire_table_rows", table="earth_broadcasts") == events)

    async def sizes(text: str) -> bool:
        table = await scaled.number("select pg_total_relation_size('collected_data')")
        database = await scaled.number("select pg_database_size(current_database())")
        shown = value(text, "planetwire_table_bytes", table="collected_data"), value(text, "planetwire_database_bytes")
        return table > 8_192.0 and database > table and shown == (table, database)

    await scaled.shows(sizes)
    async with pool.acquire() as connection, connection.transaction():
        age = "select extract(epoch from clock_timestamp() - now())"  # of this transaction
        least = float(await connection.fetchval(age))
        assert least > 0.0
        await scaled.shows(lambda text: (value(text, "planetwire_database_longest_transaction_seconds") or 0.0) > least)
        seen = value(await scaled.text(), "planetwire_database_longest_transaction_seconds")
        assert seen is not None and least < seen <= float(await connection.fetchval(age))


async def test_what_readers_wait_for_hear_and_miss_is_counted(scaled: Scaled) -> None:
    """S95, S96, S99: how long a layer took to read, events delivered, and readers that were away for too long."""
    pool, layer = scaled.pool, "/api/v1/visualization/earthquakes"
    async with connect(scaled.earth.url.replace("http", "ws") + "/ws", proxy=None) as socket:
        await said(socket, {"subscribe": ["earth_updates"]}, "subscribed")
        for number in (1, 2, 3):
            await pool.execute(ADD.replace("n::text", f"'{number}-' || n"), "usgs_quakes", 5)
            while (await heard(socket)).get("revision") != number:
                pass
        assert value(await scaled.text(), "planetwire_stream_delivered_total", half="earth") == 3.0

    await pool.execute("update earth_broadcasts set created_at = created_at - interval '7 hours'")
    assert await PostgresPruner(pool).broadcasts() == 3
    epoch = await pool.fetchval("select epoch from earth_log_head")
    for count in (1.0, 2.0):
        async with connect(scaled.earth.url.replace("http", "ws") + "/ws", proxy=None) as socket:
            late = {"subscribe": ["earth_updates"], "since": {"earth_updates": f"{epoch}-1"}}
            assert (await said(socket, late, "resync_required"))["reason"] == "replay_window_exceeded"
        labels = {"half": "earth", "reason": "replay_window_exceeded"}
        assert value(await scaled.text(), "planetwire_stream_resyncs_total", **labels) == count

    loop = asyncio.get_running_loop()
    async with pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute("lock table collected_data in access exclusive mode")
        asked_at = loop.time()
        asking = asyncio.create_task(scaled.http.get(layer))

        async def waits() -> bool:
            return bool(await scaled.number("select count(*) from pg_locks where not granted"))

        await until(waits)
        stuck_at = loop.time()
        await connection.fetchval("select 1")
        let_go_at = loop.time()
        await transaction.rollback()
        assert (await asking).json()["count"] == 15
    took = value(await scaled.text(), "planetwire_snapshot_read_seconds", layer="earthquakes")
    assert took is not None and let_go_at - stuck_at <= took <= loop.time() - asked_at


async def test_an_outlet_tells_whether_it_sends_and_how_far_behind_it_is(scaled: Scaled) -> None:
    """S93, S95: a receiver that takes nothing falls behind by each event, and not for ever."""
    refusing = True

    async def answer(body: dict[str, Any]) -> tuple[int, str]:
        return (503, "") if refusing else (204, "")

    scaled.receiver.answer = answer
    await scaled.shows(lambda text: value(text, "planetwire_outlet_sends", outlet="webhook") == 1.0)
    await scaled.relayed()
    for number in (1, 2, 3):
        await scaled.pool.execute(ADD.replace("n::text", f"'{number}-' || n"), "usgs_quakes", 1)
        labels = {"outlet": "webhook", "layer": "earthquakes"}
        await scaled.shows(lambda text, labels=labels: value(text, "planetwire_outlet_behind", **labels) is not None)
        await scaled.relayed()
    await scaled.shows(lambda text: value(text, "planetwire_outlet_behind", **labels) == 3.0)
    refusing = False
    await scaled.pool.execute("update change_outlet_cursors set next_attempt_at = clock_timestamp()")
    await scaled.receiver.has(3)
    await scaled.shows(lambda text: value(text, "planetwire_outlet_behind", **labels) is None)
    await scaled.earth.stop("outlet")
    assert value(await scaled.text(), "planetwire_outlet_sends", outlet="webhook") == 0.0


class Stuck:
    """A transport that takes one frame and no more, until it is cut."""

    def __init__(self) -> None:
        self.pending, self.was_cut = 0, False
        self.subscription: Subscription | None = None

    def write(self, frame: bytes) -> None:
        self.write_many([frame])

    def write_many(self, frames: Sequence[bytes]) -> None:
        self.pending += sum(map(len, frames))
        assert self.subscription is not None
        self.subscription.pause()

    def resync(self, reason: ResyncReason) -> None:
        raise AssertionError(reason)

    def pending_bytes(self) -> int:
        return self.pending

    def cut(self) -> None:
        self.was_cut = True


async def test_readers_that_are_too_slow_are_counted(pg_pool: Pool) -> None:
    """S95, S99: while their transports are full, and when they were cut for it; by the clock, which is moved here."""
    clock, log = ManualClock(datetime(2026, 11, 30, tzinfo=UTC)), await PostgresEventLog.open(pg_pool)
    hub = Hub(log, encode=lambda event: event.body, clock=clock, stall_s=STALL_S)
    await hub.start()
    metrics.expose("earth", hub)
    for _ in range(2):
        sink = Stuck()
        sink.subscription = hub.join(["layer:earthquakes"], None, sink)
        sink.subscription.resume()
    await pg_pool.execute(
        "with head as (update earth_log_head set revision = 1 returning epoch) insert into earth_broadcasts"
        " (epoch, revision, prev_revision, layer, message) select epoch, 1, 0, 'earthquakes', '{}' from head"
    )

    def shown(series: str) -> float | None:
        return value(generate_latest(REGISTRY).decode(), series, half="earth")

    assert (shown("planetwire_stream_lagging"), shown("planetwire_stream_cut_total")) == (0.0, 0.0)
    hub.publish(await log.page(["layer:earthquakes"], 0, 10))
    assert (shown("planetwire_stream_lagging"), shown("planetwire_stream_cut_total")) == (2.0, 0.0)
    hub.sweep()
    clock.advance(STALL_S + 1.0)
    hub.sweep()
    assert (shown("planetwire_stream_lagging"), shown("planetwire_stream_cut_total")) == (0.0, 2.0)
    await hub.aclose()


# --- page and tests


def rows() -> list[list[str]]:
    lines = (DOCS / "scale-out.md").read_text(encoding="utf-8").splitlines()
    return [line.split("|") for line in lines if re.search(r"\| S9\d \|", line)]


def driven() -> dict[str, set[str]]:
    """Series by test: those whose value it asks for, by name."""
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    found: dict[str, set[str]] = {}
    for test in tree.body:
        if isinstance(test, ast.AsyncFunctionDef) and test.name.startswith("test_"):
            calls = [node for node in ast.walk(test) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
            names = [arg for node in calls if node.func.id in ("value", "shown") for arg in node.args]  # type: ignore[attr-defined]
            texts = [name.value for name in names if isinstance(name, ast.Constant) and isinstance(name.value, str)]
            found[test.name] = set(texts)
    return found


def test_every_signal_has_a_series_of_its_own() -> None:
    """S93-S99."""
    assert [row[2].strip() for row in rows()] == [f"S{number}" for number in range(93, 100)]
    assert all(SERIES.search(row[3]) and row[4].strip() and row[5].strip() for row in rows())


def test_every_series_of_the_page_is_driven_by_a_test_and_no_other() -> None:
    """S93-S99: and for each signal by one that is named where the signal is held."""
    page = (DOCS / "scale-out.md").read_text(encoding="utf-8")
    assert set().union(*driven().values()) == set(SERIES.findall(page))
    held = (DOCS / "requirements-coverage.md").read_text(encoding="utf-8")
    for row in rows():
        line = next(line for line in held.splitlines() if line.startswith(f"| {row[2].strip()} |"))
        named = [series for test, series in driven().items() if f"::{test}`" in line]
        assert set(SERIES.findall(row[3])) <= set().union(*named), line


async def said(socket: Any, message: dict[str, Any], kind: str) -> dict[str, Any]:
    await socket.send(json.dumps(message))
    while (frame := await heard(socket)).get("type") != kind:
        pass
    return frame


async def heard(socket: Any) -> dict[str, Any]:
    async with asyncio.timeout(60):
        frame: dict[str, Any] = json.loads(await socket.recv())
    return frame
