"""The terminal over HTTP on a real store: from the pushed patch to the snapshots, with errors by name."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import httpx
import orjson
import pytest
import pytest_asyncio
from fastapi import FastAPI

from fix_observations import Observations
from planetwire.collect.push.accept import Ingest
from planetwire.datasets.registry import observed_sources
from planetwire.web.access.auth import Guard
from planetwire.web.http import problems
from planetwire.web.terminal import cities as terminal
from planetwire.web.terminal import ingest

SOURCES = observed_sources()

PATH = "/api/internal/collector-patch"
TOKEN = {"Authorization": "Bearer ingest-token"}


@pytest_asyncio.fixture
async def http(observations: Observations) -> AsyncIterator[httpx.AsyncClient]:
    guard = Guard("admin-token", "ingest-token", b"key")
    app = FastAPI()
    problems.install(app)
    accept = Ingest(observations.store, observations.clock, SOURCES).accept
    app.include_router(ingest.router(ingest.IngestEndpoint(accept, guard)))
    app.include_router(terminal.router(observations.store, observations.log, observations.clock, SOURCES, guard))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        yield client


async def push(http: httpx.AsyncClient, body: object) -> httpx.Response:
    return await http.post(PATH, content=json.dumps(body), headers=TOKEN)


def patch(city: str = "seoul", temp: object = 20.0, **inner: object) -> dict[str, object]:
    return {"city": city, "changes": {"temp": temp, "source": "metar", "obs_time": "2026-05-26T10:00:00Z", **inner}}


# --- ingest


async def test_a_patch_is_answered_with_its_revision(http: httpx.AsyncClient, observations: Observations) -> None:
    """S183, S166: stored, broadcast, answered; again is a duplicate and silent."""
    first, again = await push(http, patch()), await push(http, patch())
    assert (first.status_code, first.json()) == (200, {"revision": 1, "duplicate": False})
    assert (again.status_code, again.json()) == (200, {"revision": 1, "duplicate": True})
    assert [event.revision for event in observations.heard] == [1]


async def test_pushing_needs_the_ingest_token(http: httpx.AsyncClient) -> None:
    """Q35: no token 401, a wrong one 403, the admin's is good."""
    body = orjson.dumps(patch())
    assert (await http.post(PATH, content=body)).status_code == 401
    assert (await http.post(PATH, content=body, headers={"Authorization": "Bearer x"})).status_code == 403
    assert (await http.post(PATH, content=body, headers={"Authorization": "Bearer admin-token"})).status_code == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (patch("atlantis"), "unknown_city"),
        (patch(temp="hot"), "invalid_temp"),
        (patch(temp=None), "no_observation"),
        (patch(obs_time="10:05"), "invalid_obs_time"),
        (patch(obs_time="2099-01-01T00:00Z"), "obs_time_out_of_range"),
        (7, "bad_patch"),
        ([], "no_patches"),
        ([patch("atlantis"), patch("atlantis", 1)], "unknown_city"),
    ],
)
async def test_a_bad_patch_is_refused_by_name(
    http: httpx.AsyncClient, observations: Observations, body: object, code: str
) -> None:
    """S189, S226."""
    answer = await push(http, body)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == code
    assert await observations.log.head() == 0


async def test_what_is_no_json_is_refused_by_name(http: httpx.AsyncClient) -> None:
    """S189."""
    for body in (b"", b"{", b"\xff\xfe", b"NaN", b"[" * 2_000):
        answer = await http.post(PATH, content=body, headers=TOKEN)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_json")


async def test_one_bad_patch_of_an_array_loses_nothing_else(
    http: httpx.AsyncClient, observations: Observations
) -> None:
    """S189: results in order, counts beside them."""
    deep: object = 1
    for _ in range(300):
        deep = [deep]
    body = [patch("seoul"), patch("atlantis"), patch("seoul"), patch("taipei"), patch(x="y" * 20_000), patch(x=deep)]
    answer = await push(http, body)
    assert answer.status_code == 200
    content = answer.json()
    codes = [result.get("code") for result in content["results"]]
    assert codes == [None, "unknown_city", None, None, "too_large", "bad_patch"]
    assert [result.get("revision") for result in content["results"]] == [1, None, 1, 2, None, None]
    assert (content["accepted"], content["duplicates"], content["rejected"]) == (3, 1, 3)
    assert await observations.log.head() == 2


async def test_what_is_too_large_is_refused(http: httpx.AsyncClient) -> None:
    """Q35: 16 KiB a patch, 500 patches and 2 MiB an array; a chunked body is read no further than that."""

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(10_000):
            yield b" " * 65_536

    assert (await push(http, patch(filler="x" * 16_384))).status_code == 413
    assert (await push(http, [patch()] * 501)).status_code == 413
    assert (await push(http, [patch(filler="x" * 9_000)] * 300)).status_code == 413
    answer = await http.post(PATH, content=endless(), headers=TOKEN)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert (await push(http, [patch()] * 500)).json()["duplicates"] == 499


async def test_a_log_that_refuses_is_a_500_and_nothing_is_broadcast(
    http: httpx.AsyncClient, observations: Observations
) -> None:
    """S166, S190, S226: and the next patch works."""
    async with observations.refusing():
        answer = await push(http, patch())
    assert (answer.status_code, answer.json()["code"]) == (500, "log_write_failed")
    assert observations.heard == []
    assert (await push(http, patch())).json() == {"revision": 1, "duplicate": False}


# --- snapshots


async def test_the_list_holds_all_cities_and_what_was_pushed(http: httpx.AsyncClient) -> None:
    """S101, S174, S182, Q3."""
    await push(http, patch("hong kong", 28.5, max_so_far=30.0))
    await push(http, patch("hong kong", 27.0, obs_time="2026-05-26T09:00:00Z"))
    answer = await http.get("/api/scan/terminal")
    content = answer.json()
    assert len(content["rows"]) == 50
    assert [row["rank"] for row in content["rows"]] == list(range(1, 51))
    assert content["revision"] == 2
    assert answer.headers["x-patch-revision"] == "2"
    row = next(row for row in content["rows"] if row["city"] == "hong kong")
    assert row["current_temp"] == 28.5
    assert row["current_max_so_far"] == 30.0
    assert row["obs_time"] == "2026-05-26T10:00:00Z"
    assert row["freshness"] == "fresh"
    assert row["id"] == "hong-kong"
    assert sum(row["current_temp"] is not None for row in content["rows"]) == 1


async def test_the_detail_holds_the_curves_and_the_cursor(http: httpx.AsyncClient, observations: Observations) -> None:
    """S101, S128, Q3: what the chart starts from, under any spelling of the name."""
    for minute in range(3):
        await push(http, patch("hong kong", 20.0 + minute, obs_time=f"2026-05-26T09:0{minute}:00Z"))
    await push(http, patch("taipei", 30.0))
    for name in ("hong kong", "hong-kong", "Hong_Kong", "hk", "hong%20kong", "%E9%A6%99%E6%B8%AF"):
        content = (await http.get(f"/api/city/{name}/detail")).json()
        assert content["city"] == "hong kong"
        assert (content["revision"], content["epoch"]) == (4, observations.log.epoch)
        (series,) = content["timeseries"]["series"]
        assert [temp for _, temp in series["points"]] == [20.0, 21.0, 22.0]
        assert content["day_high"] == {"temp": 22.0, "obs_time": "2026-05-26T09:02:00Z"}
        assert content["errors"] == []


async def test_the_high_begins_again_at_the_citys_midnight(http: httpx.AsyncClient, observations: Observations) -> None:
    """S139, F24."""
    await push(http, patch("seoul", 30.0))  # 19:00 in Seoul
    observations.clock.advance(5 * 3600 + 60)
    assert (await http.get("/api/city/seoul/summary")).json()["current"]["max_so_far"] is None
    await push(http, patch("seoul", 18.0, obs_time="2026-05-26T15:01:00Z", max_so_far=18.5))
    content = (await http.get("/api/city/seoul/detail")).json()
    assert content["local_date"] == "2026-05-27"
    assert content["day_high"]["temp"] == 18.5
    assert len(content["timeseries"]["series"][0]["points"]) == 2


async def test_an_unchanged_snapshot_is_a_304(http: httpx.AsyncClient, observations: Observations) -> None:
    """S101: strong ETag, the same bytes until something changes; a new event changes it at once."""
    await push(http, patch())
    url = "/api/city/seoul/detail"
    first = await http.get(url)
    etag = first.headers["etag"]
    assert etag.startswith('"')
    observations.clock.advance(30)
    same = await http.get(url)
    assert same.content == first.content
    for condition in (etag, f'W/{etag}, "other"', "*"):
        unchanged = await http.get(url, headers={"If-None-Match": condition})
        assert (unchanged.status_code, unchanged.content, unchanged.headers["etag"]) == (304, b"", etag)
    await push(http, patch(temp=21.0))
    changed = await http.get(url, headers={"If-None-Match": etag})
    assert changed.status_code == 200
    assert changed.json()["revision"] == 2
    assert changed.json()["fetched_at"] == "2026-05-26T10:00:30Z"


@pytest.mark.parametrize(
    "url",
    [
        "/api/scan/terminal",
        "/api/city/seoul/detail",
        "/api/city/seoul/summary",
        "/api/cities/detail-batch?cities=seoul",
        "/api/cities",
    ],
)
async def test_a_snapshot_is_compressed_when_asked(http: httpx.AsyncClient, url: str) -> None:
    """S101: each coding with an ETag of its own, which is answered with 304 in that coding only."""
    await push(http, patch())
    plain = await http.get(url, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    tags = {plain.headers["etag"]}
    for header, coding in (("br, gzip", "gzip"), ("gzip, deflate, br, zstd", "zstd")):
        packed = await http.get(url, headers={"Accept-Encoding": header})
        assert (packed.headers["content-encoding"], packed.content) == (coding, plain.content)
        assert int(packed.headers["content-length"]) < len(plain.content)
        tag = packed.headers["etag"]
        tags.add(tag)
        known = await http.get(url, headers={"Accept-Encoding": header, "If-None-Match": f"W/{tag}"})
        assert (known.status_code, known.headers["vary"]) == (304, "Accept-Encoding")
    assert len(tags) == 3
    refused = await http.get(url, headers={"Accept-Encoding": "gzip;q=0"})
    assert "content-encoding" not in refused.headers
    assert (await http.get(url, headers={"Accept-Encoding": "*;q=0"})).status_code == 406


async def test_a_snapshots_tag_names_epoch_and_revision(http: httpx.AsyncClient, observations: Observations) -> None:
    """Contracts §3; also of several cities at once."""
    await push(http, patch())
    for url in ("/api/scan/terminal", "/api/city/seoul/detail", "/api/cities/detail-batch?cities=seoul"):
        answer = await http.get(url)
        assert answer.headers["etag"].startswith(f'"{observations.log.epoch}:1:')
        assert (answer.json()["epoch"], answer.json()["revision"]) == (observations.log.epoch, 1)


async def test_many_who_ask_at_once_cause_one_reading(
    http: httpx.AsyncClient, observations: Observations, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Single flight on a miss, whatever the coding."""
    await push(http, patch())
    asked, go_on, reads = asyncio.Event(), asyncio.Event(), 0
    latest = observations.store.latest

    async def held(*cities: object) -> object:
        nonlocal reads
        reads += 1
        asked.set()
        await go_on.wait()
        return await latest(*cities)

    monkeypatch.setattr(observations.store, "latest", held)
    headers = [{"Accept-Encoding": coding} for coding in ("identity", "gzip", "zstd")] * 5
    waiting = [asyncio.create_task(http.get("/api/scan/terminal", headers=each)) for each in headers]
    await asked.wait()
    waiting[0].cancel()
    go_on.set()
    answers = await asyncio.gather(*waiting[1:])
    assert reads == 1
    assert len({answer.content for answer in answers}) == 1


async def test_an_unknown_city_is_a_404_by_name(http: httpx.AsyncClient) -> None:
    """S189."""
    for url in ("/api/city/atlantis/detail", "/api/city/atlantis/summary"):
        answer = await http.get(url)
        assert (answer.status_code, answer.json()["code"]) == (404, "unknown_city")


async def test_several_details_at_once_fail_one_by_one(http: httpx.AsyncClient) -> None:
    """S182."""
    await push(http, patch())
    content = (await http.get("/api/cities/detail-batch?cities=seoul,hk,atlantis,%20seoul")).json()
    assert content["cities"] == ["seoul", "hong kong"]
    assert content["details"]["seoul"]["airport_primary"]["temp"] == 20.0
    assert content["details"]["hong kong"]["timeseries"]["series"] == []
    assert content["errors"]["atlantis"]["code"] == "unknown_city"
    assert (content["missing"], content["partial"]) == (["atlantis"], True)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("", "no_cities"),
        ("cities=,", "no_cities"),
        ("cities=a,b,c&limit=2", "too_many_cities"),
        ("cities=a&limit=25", "bad_limit"),
        ("cities=a&limit=x", "bad_request"),
    ],
)
async def test_a_bad_batch_is_refused_by_name(http: httpx.AsyncClient, query: str, code: str) -> None:
    """S182."""
    answer = await http.get(f"/api/cities/detail-batch?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, code)


async def test_the_registry_is_a_list(http: httpx.AsyncClient) -> None:
    """S182."""
    content = (await http.get("/api/cities")).json()
    assert len(content["items"]) == 50
    assert content["next_cursor"] is None
    assert content["items"][4]["settlement_station"]["station_code"] == "HKO"


async def test_a_snapshot_never_lacks_what_its_cursor_covers(
    http: httpx.AsyncClient, observations: Observations
) -> None:
    """Q3, F9: snapshots taken while patches arrive hold every reading up to their revision."""

    async def write() -> None:
        for number in range(60):
            await observations.put("seoul", number / 10, obs_time=f"2026-05-26T09:{number:02}:00Z")

    async def read() -> None:
        for _ in range(30):
            content = (await http.get("/api/city/seoul/detail")).json()
            series = content["timeseries"]["series"]
            assert len(series[0]["points"] if series else []) >= content["revision"]

    await asyncio.gather(write(), read(), read())
    assert len((await http.get("/api/city/seoul/detail")).json()["timeseries"]["series"][0]["points"]) == 60


async def test_a_store_that_cannot_be_read_is_a_503(http: httpx.AsyncClient, observations: Observations) -> None:
    """Our own failure is ours, with Retry-After."""
    await observations.unplug()
    answer = await http.get("/api/scan/terminal")
    assert answer.status_code == 503
    assert "retry-after" in answer.headers
