"""The feed server over real HTTP: validators, compression, scripted failures, counts, control, and the program."""

from __future__ import annotations

import asyncio
import gzip
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.client import IncompleteRead
from itertools import pairwise
from urllib.parse import urlsplit
from urllib.request import urlopen

import httpx
import pytest

from planetwire.datasets.earthquakes.feed import UsgsQuakes
from planetwire.datasets.satellites.feed import CelestrakGp
from planetwire.datasets.weather_stations.feed_metar import AwcMetar
from planetwire.datasets.weather_stations.feed_runway import RunwayObs
from planetwire.demo.server import FeedServer, Step, demo_environment
from planetwire.demo.world import sample, sample_names, sample_type
from planetwire.errors import InputError
from planetwire.settings import check_environment, load_settings

GP = "/NORAD/elements/gp.php"
STATIONS = f"{GP}?GROUP=stations&FORMAT=json"
QUAKES = "/earthquakes/feed/v1.0/summary/all_hour.geojson"
METAR = "/api/data/metar"
RUNWAYS = "/runways/readings.json"
END_TIMEOUT_S = 60
FEED_TIME = datetime(2026, 3, 20, 12, 0, 30, tzinfo=UTC)


@pytest.fixture
def client(feed_server: FeedServer) -> httpx.Client:
    return httpx.Client(base_url=feed_server.url, timeout=60)


@pytest.fixture(autouse=True)
def _close(client: httpx.Client, request: pytest.FixtureRequest) -> None:
    request.addfinalizer(client.close)


@pytest.mark.parametrize("path", [STATIONS, QUAKES, f"{METAR}?ids=KLGA&format=json", "/data/cache/metars.cache.csv.gz"])
def test_unchanged_content_is_304_by_etag_and_by_date(client: httpx.Client, feed_server: FeedServer, path: str) -> None:
    first = client.get(path)
    assert first.status_code == 200
    tag, date = first.headers["etag"], first.headers["last-modified"]
    assert tag.startswith('"')
    by_tag = client.get(path, headers={"If-None-Match": f'"other", {tag}'})
    by_date = client.get(path, headers={"If-Modified-Since": date})
    assert (by_tag.status_code, by_date.status_code) == (304, 304)
    assert by_tag.content == b"" and by_tag.headers["etag"] == tag
    assert client.get(path, headers={"If-None-Match": '"other"', "If-Modified-Since": date}).status_code == 200
    counts = feed_server.counts[path.partition("?")[0]]
    assert (counts.requests, counts.ok, counts.not_modified) == (4, 2, 2)


def test_content_changes_when_the_clock_is_advanced(client: httpx.Client, feed_server: FeedServer) -> None:
    before = {path: client.get(path) for path in (STATIONS, QUAKES, f"{METAR}?ids=KLGA&format=json")}
    feed_server.advance(7_200)
    for path, old in before.items():
        new = client.get(path, headers={"If-None-Match": old.headers["etag"]})
        assert new.status_code == 200
        assert new.content != old.content


def test_bodies_are_compressed_when_the_client_accepts_it(client: httpx.Client) -> None:
    plain = client.get(STATIONS, headers={"Accept-Encoding": "identity"})
    packed = client.get(STATIONS, headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.content) / 3
    assert packed.content == plain.content
    assert packed.headers["etag"] != plain.headers["etag"]
    file = client.get("/data/cache/metars.cache.csv.gz", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in file.headers
    assert gzip.decompress(file.content).startswith(b"raw_text,")


def test_head_has_the_headers_of_get_and_no_body(client: httpx.Client, feed_server: FeedServer) -> None:
    got, head = client.get(STATIONS), client.head(STATIONS)
    assert head.content == b""
    assert {key: head.headers[key] for key in ("etag", "content-length")} == {
        key: got.headers[key] for key in ("etag", "content-length")
    }
    assert client.post(STATIONS, content=b"x").status_code == 405
    assert client.get("/nothing/here").status_code == 404
    assert feed_server.counts["/nothing/here"].by_status == {404: 1}


def test_next_answers_follow_the_script_then_normal_service(client: httpx.Client, feed_server: FeedServer) -> None:
    feed_server.script(
        GP,
        [
            Step(status=403, body=b"GP data has not updated"),
            Step(status=429, headers={"Retry-After": "7"}),
            Step(status=200, body=b"<html>maintenance</html>", content_type="text/html"),
            Step(status=500, times=2),
        ],
    )
    answers = [client.get(STATIONS) for _ in range(6)]
    assert [one.status_code for one in answers] == [403, 429, 200, 500, 500, 200]
    assert answers[0].text == "GP data has not updated"
    assert answers[1].headers["retry-after"] == "7"
    assert answers[2].headers["content-type"] == "text/html"
    assert "etag" not in answers[0].headers
    assert answers[5].json()[0]["OBJECT_NAME"] == "ISS (ZARYA)"
    assert client.get(QUAKES).status_code == 200, "other paths are not touched"
    assert feed_server.counts[GP].by_status == {403: 1, 429: 1, 200: 2, 500: 2}


def test_cut_answers_announce_more_than_they_send(client: httpx.Client, feed_server: FeedServer) -> None:
    feed_server.script(GP, [Step(cut_at_byte=1_000), Step(cut_at_byte=1_000, chunked=True), Step(cut_at_byte=0)])
    with pytest.raises(IncompleteRead) as cut:
        urlopen(feed_server.url + STATIONS, timeout=60).read()
    assert len(cut.value.partial) == 1_000
    with pytest.raises(httpx.RemoteProtocolError):
        client.get(STATIONS)
    with pytest.raises(httpx.RemoteProtocolError):
        client.get(STATIONS)
    assert feed_server.counts[GP].bytes == 2_000
    assert client.get(STATIONS).status_code == 200


def test_transfer_can_be_chunked_and_compression_forced(client: httpx.Client, feed_server: FeedServer) -> None:
    plain = client.get(STATIONS, headers={"Accept-Encoding": "identity"})
    feed_server.script(GP, [Step(chunked=True), Step(gzip=True), Step(gzip=False), Step(validators=False)])
    chunked = client.get(STATIONS, headers={"Accept-Encoding": "identity"})
    assert chunked.headers["transfer-encoding"] == "chunked"
    forced = client.get(STATIONS, headers={"Accept-Encoding": "identity"})
    assert forced.headers["content-encoding"] == "gzip"
    refused = client.get(STATIONS, headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in refused.headers
    bare = client.get(STATIONS, headers={"If-None-Match": plain.headers["etag"]})
    assert bare.status_code == 200 and "etag" not in bare.headers
    assert plain.content == chunked.content == forced.content == refused.content == bare.content


def test_delayed_answer_holds_up_no_other(client: httpx.Client, feed_server: FeedServer) -> None:
    """The held request is still open when another path has long been answered."""
    feed_server.script(GP, [Step(delay_s=30)])
    with pytest.raises(httpx.ReadTimeout):
        client.get(STATIONS, timeout=0.2)
    assert client.get(QUAKES, timeout=60).status_code == 200
    assert feed_server.counts[GP].requests == 1
    assert feed_server.counts[GP].by_status == {}


def test_exact_bytes_are_served_until_reset(client: httpx.Client, feed_server: FeedServer) -> None:
    body = b'{"any": [1, 2, NaN]}\r\n'
    feed_server.set_body(QUAKES, body, "application/geo+json")
    got = client.get(QUAKES)
    assert (got.content, got.headers["content-type"]) == (body, "application/geo+json")
    assert client.get(QUAKES, headers={"If-None-Match": got.headers["etag"]}).status_code == 304
    feed_server.script(QUAKES, [Step(status=503)])
    feed_server.reset()
    assert client.get(QUAKES).json()["type"] == "FeatureCollection"
    assert feed_server.counts[QUAKES].requests == 1


@pytest.mark.parametrize("name", sample_names())
def test_packaged_samples_are_served_byte_for_byte(client: httpx.Client, feed_server: FeedServer, name: str) -> None:
    assert client.get(f"/_samples/{name}").content == sample(name)
    feed_server.set_body(METAR, sample(name), sample_type(name))
    assert client.get(f"{METAR}?ids=KSFO").content == sample(name)


def test_running_server_is_controlled_over_http(client: httpx.Client, feed_server: FeedServer) -> None:
    state = client.get("/_control/state").json()
    assert state["seed"] == 1 and state["now_s"] == state["start_s"]
    steps = [{"status": 404, "body": "No GP data found"}, {"status": 200, "body_b64": "/wA=", "gzip": False}]
    assert client.post("/_control/script", json={"path": GP, "steps": steps}).json() == {"waiting": 2}
    assert client.get(STATIONS).text == "No GP data found"
    assert client.get(STATIONS).content == b"\xff\x00"
    assert client.post("/_control/advance", json={"seconds": 90}).json() == {"now_s": state["now_s"] + 90}
    client.post("/_control/body", json={"path": GP, "body": "[]"})
    assert client.get(STATIONS).content == b"[]"
    client.post("/_control/body", json={"path": GP})
    assert client.get(STATIONS).json()[0]["NORAD_CAT_ID"] == 25_544
    assert client.get("/_control/counts").json()[GP]["by_status"] == {"200": 3, "404": 1}
    client.post("/_control/reset", json={})
    assert client.get("/_control/counts").json() == {}


@pytest.mark.parametrize(
    ("action", "message", "code"),
    [
        ("script", {"path": GP, "steps": [{"stauts": 500}]}, "bad_step"),
        ("script", {"path": GP, "steps": [{"status": 99}]}, "bad_step"),
        ("script", {"path": GP, "steps": [{"delay_s": "long"}]}, "bad_step"),
        ("script", {"path": GP, "steps": {}}, "bad_step"),
        ("script", {"path": GP, "steps": [{"times": 1_000}, {"times": 1}]}, "too_many_steps"),
        ("script", {"path": "NORAD", "steps": []}, "bad_path"),
        ("body", {"path": GP, "body_b64": "%%"}, "bad_body"),
        ("advance", {"seconds": -1}, "bad_seconds"),
        ("advance", {"seconds": "nan"}, "bad_seconds"),
        ("advance", {"seconds": 1e300}, "bad_seconds"),
        ("advance", {}, "bad_seconds"),
        ("advance", [], "bad_json"),
        ("explode", {"path": GP}, "not_found"),
    ],
)
def test_impossible_control_is_refused_with_a_code(
    client: httpx.Client, action: str, message: object, code: str
) -> None:
    answer = client.post(f"/_control/{action}", json=message)
    assert 400 <= answer.status_code < 500
    assert answer.json()["code"] == code
    assert client.get(STATIONS).status_code == 200


def test_web_pages_cannot_reach_the_control_interface(client: httpx.Client) -> None:
    """A form or a simple cross-origin request cannot carry this content type."""
    answer = client.post("/_control/reset", content=b"{}", headers={"Content-Type": "text/plain"})
    assert answer.json()["code"] == "bad_content_type"


def test_impossible_step_is_refused_in_code_too(feed_server: FeedServer) -> None:
    for step in (Step(status=42), Step(delay_s=-1), Step(cut_at_byte=-1), Step(times=0)):
        with pytest.raises(InputError):
            feed_server.script(GP, [step])


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"NONSENSE\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: many\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", 431),
    ],
)
async def test_bytes_that_are_no_request_end_only_their_connection(
    feed_server: FeedServer, sent: bytes, status: int
) -> None:
    parts = urlsplit(feed_server.url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(sent)
    answer = await asyncio.wait_for(reader.readline(), END_TIMEOUT_S)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    async with httpx.AsyncClient(base_url=feed_server.url) as client:
        assert (await client.get(QUAKES)).status_code == 200


def test_strict_provider_refuses_a_second_download_over_http(start_feed_server: Callable[..., FeedServer]) -> None:
    url = start_feed_server(strict=True).url + STATIONS
    first = httpx.get(url)
    assert (first.status_code, httpx.get(url).status_code) == (200, 403)
    assert httpx.get(url, headers={"If-None-Match": first.headers["etag"]}).status_code == 304


def test_parallel_first_requests_build_the_catalogue_once(feed_server: FeedServer) -> None:
    bodies: list[bytes] = []
    url = f"{feed_server.url}{GP}?GROUP=active&FORMAT=json"
    threads = [threading.Thread(target=lambda: bodies.append(httpx.get(url, timeout=60).content)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(bodies) == 4 and len(set(bodies)) == 1
    assert len(json.loads(bodies[0])) >= 12_000


def test_demo_environment_is_accepted_by_the_settings(feed_server: FeedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = demo_environment(feed_server.url)
    assert check_environment(environment) == []
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    settings, _ = load_settings()
    assert settings.simulated
    assert set(settings.feeds) == {"celestrak_gp", "usgs_quakes", "awc_metar", "runway_obs"}
    assert all(settings.feed(source).floor_s == 0 and settings.feed(source).interval_s for source in settings.feeds)
    for source in ("celestrak_gp", "usgs_quakes"):
        address = settings.feed(source).url
        assert address is not None and httpx.get(address, timeout=60).status_code == 200


@pytest.mark.parametrize("form", ["json", "csv", "kvn", "xml", "tle"])
def test_satellite_feed_reads_every_form_whole(feed_server: FeedServer, form: str) -> None:
    body = httpx.get(f"{feed_server.url}{GP}?GROUP=active&FORMAT={form}", timeout=60).content
    parsed = CelestrakGp().parse(body, FEED_TIME)
    assert len(parsed.rows) > (11_000 if form == "tle" else 12_000)
    assert list(parsed.rejects) == [] and parsed.complete


def test_quake_and_weather_feeds_read_hours_of_simulation_whole(feed_server: FeedServer) -> None:
    feed_server.advance(6 * 3_600)
    weather, at = AwcMetar(), FEED_TIME + timedelta(hours=6)
    quakes = UsgsQuakes().parse(httpx.get(f"{feed_server.url}{QUAKES}").content, at)
    assert len(quakes.rows) > 70 and list(quakes.rejects) == [] and quakes.complete
    address = weather.url(feed_server.url + METAR, weather.stations, 2)
    for body in (httpx.get(address).content, httpx.get(address.replace("=json", "=raw")).content):
        reports = weather.parse(body, at)
        assert len(reports.rows) + reports.notes.get("duplicates", 0) == 400, "a correction replaces what it corrects"
        assert list(reports.rejects) == []
        assert {row["station"] for row in reports.rows} == set(weather.stations)


def test_runway_readings_are_dense_from_just_before_the_start_sparse_before_and_the_same_for_a_restarted_server(
    feed_server: FeedServer, start_feed_server: Callable[..., FeedServer]
) -> None:
    feed, at = RunwayObs(), FEED_TIME + timedelta(hours=1)
    feed_server.advance(3_600)
    body = httpx.get(feed.url(feed_server.url + RUNWAYS, (), 2)).content
    found = feed.parse(body, at)
    assert (list(found.rejects), found.notes, found.complete) == ([], {}, True)
    rows = [one for one in found.rows if isinstance(one, dict) and one["station"] == "ZSPD"]
    assert {one["runway"] for one in rows} == {"16L/34R", "16R/34L", "17L/35R", "17R/35L"}
    times = sorted({one["obs_time"] for one in rows})
    assert (times[-1], len(times)) == ("2026-03-20T13:00:00Z", 3 + 90)
    temps = [one["temp_c"] for one in rows if one["runway"] == "17L/35R" and one["temp_c"] is not None]
    steps = [abs(after - before) for before, after in pairwise(temps[3:])]
    assert 0 < max(steps) < 1, "it moves, by tenths a minute"
    again = start_feed_server(at="2026-03-20T13:00:30Z")
    bodies = {httpx.get(f"{url}{RUNWAYS}?hours=0.02").content for url in (feed_server.url, again.url)}
    assert len(bodies) == 1 and b"RKSI" in bodies.pop()
    for hours in ("0", "25", "x", "-1", "nan"):
        assert httpx.get(f"{feed_server.url}{RUNWAYS}?hours={hours}").status_code == 400, hours


def _program(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "planetwire.demo", *arguments]


def test_program_prints_its_address_and_ends_on_sigterm() -> None:
    process = subprocess.Popen(
        _program("--at", "2026-03-20T12:00:30", "--rate", "0", "--seed", "3"), stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert ready["pid"] == process.pid
        state = httpx.get(f"{ready['url']}/_control/state").json()
        assert (state["now_s"], state["seed"], state["rate"]) == (1_774_008_030.0, 3, 0.0)
        with httpx.stream("GET", ready["url"] + QUAKES) as held:
            assert held.status_code == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(END_TIMEOUT_S) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="the parent-death signal is Linux's")
def test_program_ends_with_its_parent() -> None:
    """Its end closes the last writing end of the pipe that both hold."""
    code = f"import subprocess, time; subprocess.Popen({_program()!r}); time.sleep(60)"
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        url = json.loads(parent.stdout.readline())["url"]
    finally:
        parent.kill()
    parent.communicate(timeout=END_TIMEOUT_S)
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/_control/state")


def test_program_refuses_a_taken_port_and_an_odd_cadence(feed_server: FeedServer) -> None:
    port = str(urlsplit(feed_server.url).port)
    for arguments in (("--port", port), ("--cadence", "45")):
        ended = subprocess.run(_program(*arguments), capture_output=True, text=True, timeout=END_TIMEOUT_S)
        assert ended.returncode == 1
        assert ended.stdout == "" and ended.stderr.startswith("planetwire.demo: ")


def test_time_runs_at_its_rate(start_feed_server: Callable[..., FeedServer]) -> None:
    """A server at a rate of an hour a second passes an hour at once; the condition is awaited, not slept for."""
    server = start_feed_server(rate=3_600.0)
    deadline = time.monotonic() + END_TIMEOUT_S
    while httpx.get(f"{server.url}/_control/state").json()["now_s"] < server.world.clock.start_s + 3_600:
        assert time.monotonic() < deadline
