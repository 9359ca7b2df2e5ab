"""Whatever a feed answers, a collect ends with a code, in time and in bounded memory, as the kernel counts it."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

import collect_process
from hostile_feed import (
    BLOCK,
    MIB,
    HostileFeed,
    Script,
    answer,
    at_length,
    bomb,
    chunked,
    dripping,
    head,
    plainly,
    running_hostile_feed,
)
from planetwire.collect.http.client import MAX_BODY_BYTES
from planetwire.collect.http.marks import marks_max

PEAK_MIB = 260.0  # the work process has 40 MiB more of its own: 300 in all
ROW = {
    "OBJECT_NAME": "ONE", "OBJECT_ID": "1998-067A", "EPOCH": "2026-03-20T04:10:11.123456", "MEAN_MOTION": 15.49,
    "ECCENTRICITY": 0.0004, "INCLINATION": 51.63, "RA_OF_ASC_NODE": 12.5, "ARG_OF_PERICENTER": 90.0,
    "MEAN_ANOMALY": 270.0, "NORAD_CAT_ID": 1,
}  # fmt: skip
GOOD = orjson.dumps([ROW])
MARKS = marks_max(MAX_BODY_BYTES)
GZIP = {"Content_Encoding": "gzip"}
Collect = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """One process for all, so that what one feed leaves behind counts for the next."""
    folder = tmp_path_factory.mktemp("collect")
    command = [sys.executable, collect_process.__file__, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        yield started
        assert started.stdin is not None
        started.stdin.close()
        assert started.wait(20) == 0


@pytest.fixture
def feed() -> Iterator[HostileFeed]:
    with running_hostile_feed() as running:
        yield running


@pytest.fixture
def collect(process: subprocess.Popen[str], feed: HostileFeed) -> Collect:
    """Collects from a path of the feed; what came of it, its memory already judged."""

    def collected(path: str = "/feed", **settings: Any) -> dict[str, Any]:
        told = {"source": "celestrak_gp", "url": f"{feed.url}{path}", "deadline_s": 60} | settings
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(told) + "\n")
        process.stdin.flush()
        result: dict[str, Any] = json.loads(process.stdout.readline())
        assert result["peak_mib"] <= PEAK_MIB, result
        return result

    return collected


def test_a_chain_of_bombs_as_redirects_is_followed_unread(feed: HostileFeed, collect: Collect) -> None:
    packed = bomb(1024 * MIB)
    feed.scripts = {
        "/a": plainly(head(302, Location="/b", Content_Encoding="gzip", Content_Length=len(packed)), packed),
        "/b": at_length(head(301, Location="/c", Content_Length=600 * MIB), BLOCK, 600 * MIB),
        "/c": at_length(head(307, Location="/d", Transfer_Encoding="chunked"), b"10000\r\n" + BLOCK + b"\r\n", None),
        "/d": chunked(BLOCK, None, status=308, Location="/feed"),
        "/feed": answer(GOOD),
    }
    assert collect("/a", deadline_s=20)["facts"] == 1
    assert feed.paths() == ["/a", "/b", "/c", "/d", "/feed"]


def _of(body: bytes, size_bytes: int) -> bytes:
    return b"[" + body * (size_bytes // len(body)) + b"]"


LARGE: dict[str, tuple[Script, str]] = {
    "1 GB that says so": (at_length(head(Content_Length=1024 * MIB), BLOCK, 1024 * MIB), "bad_body"),
    "1 GB in chunks": (chunked(BLOCK, 1024 * MIB), "bad_body"),
    "without end": (at_length(head(), BLOCK, None), "bad_body"),
    "an error without end": (chunked(BLOCK, None, status=500), "transient"),
    "a refusal without end": (chunked(BLOCK, None, status=401), "auth_refused"),
    "a packed error": (plainly(head(503, **GZIP), bomb(256 * MIB)), "transient"),
    "1 MB that unpacks to 1 GB": (plainly(head(**GZIP), bomb(1024 * MIB)), "bad_body"),
    "the same without saying so": (plainly(head(), bomb(1024 * MIB)), "bad_body"),
    "300 MB of one string": (chunked(b"a" * MIB, 300 * MIB, first=b'["'), "bad_body"),
    "300 MB of one string, packed": (plainly(head(**GZIP), bomb(300 * MIB)), "bad_body"),
    "one string as long as a body may be": (answer(b'["' + b"a" * (16 * MIB - 4) + b'"]'), "bad_body"),
    "one string of wide letters": (answer(b'["' + "𝄞".encode() * (4 * MIB - 1) + b'"]'), "bad_body"),
    "half a string": (answer(b'["' + b"a" * (16 * MIB - 4)), "bad_body"),
    "ever so many objects": (answer(_of(b"{},", 16 * MIB - 8)), "bad_body"),
    "ever so many lists": (answer(_of(b"[],", 16 * MIB - 8)), "bad_body"),
    "ever deeper lists": (answer(b"[" * (16 * MIB)), "bad_body"),
    "ever so many lines": (answer(b"a\n" * (8 * MIB - 1)), "bad_body"),
    "as many lines as may be": (answer(b"ab\n" * MARKS), "bad_body"),
    "100 MB of headers": (at_length(b"HTTP/1.1 200 X\r\n", b"X: " + b"a" * 1000 + b"\r\n", 100 * MIB), "bad_body"),
    "one header of 100 MB": (at_length(b"HTTP/1.1 200 X\r\nX: ", BLOCK, 100 * MIB), "bad_body"),
    "no HTTP": (plainly(b"SSH-2.0-OpenSSH_9.6 s3cret-banner\r\n\r\n" * 9), "bad_body"),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_answer_costs_little_and_has_a_code(feed: HostileFeed, collect: Collect, name: str) -> None:
    script, code = LARGE[name]
    feed.scripts["/feed"] = script
    result = collect()
    assert (result["code"], result["facts"]) == (code, 0)
    assert len(result["message"]) < 300
    assert "s3cret" not in json.dumps(result)


def test_as_many_values_as_may_be_are_read(feed: HostileFeed, collect: Collect) -> None:
    feed.scripts["/feed"] = answer(_of(b"1,", marks_max(2 * MIB) * 2 - 6))
    result = collect(max_body_bytes=2 * MIB)
    assert (result["code"], "refused" in result["message"]) == ("bad_body", True)


def test_a_body_in_crumbs_is_not_read_to_its_end(feed: HostileFeed, collect: Collect) -> None:
    feed.scripts["/feed"] = chunked(b"[]", None)
    result = collect(max_body_bytes=MIB)
    assert (result["code"], "pieces" in result["message"]) == ("bad_body", True)


SLOW = {
    "silent": dripping(b"", b""),
    "headers in drops": dripping(b"HTTP/1.1 200 X\r\n", b"X: a\r\n"),
    "a body in drops": dripping(head(Content_Length=MIB), b" "),
    "only ever provisional": dripping(b"", b"HTTP/1.1 100 X\r\n\r\n"),
    "a redirect in drops": dripping(b"HTTP/1.1 302 X\r\nLocation: /feed\r\n", b"X: a\r\n"),
}


@pytest.mark.parametrize("name", SLOW)
def test_an_answer_that_takes_for_ever_ends_at_the_deadline(feed: HostileFeed, collect: Collect, name: str) -> None:
    feed.scripts["/feed"] = SLOW[name]
    result = collect(deadline_s=0.5)
    assert (result["code"], result["facts"]) == ("transient", 0)
    assert "within 0.5 s" in result["message"]


CUT: dict[str, Script] = {
    "shorter than announced": plainly(head(Content_Length=len(GOOD) + 1), GOOD),
    "longer than announced": plainly(head(Content_Length=len(GOOD)), GOOD + b"{}"),
    "longer than announced, later": plainly(head(Content_Length=len(GOOD)), GOOD, b" ", b"{}"),
    "announced by twenty digits": plainly(head(Content_Length="9" * 20), GOOD),
    "a chunk too short": plainly(head(Transfer_Encoding="chunked"), b"ffff\r\n" + GOOD),
    "a chunk of no size": plainly(head(Transfer_Encoding="chunked"), b"4\r\n[{}]\r\nzz\r\n"),
    "without a last chunk": plainly(head(Transfer_Encoding="chunked"), b"%x\r\n%b\r\n" % (len(GOOD), GOOD)),
    "gzip without its trailer": plainly(head(**GZIP), gzip.compress(GOOD)[:-8]),
    "gzip with half a trailer": plainly(head(**GZIP), gzip.compress(GOOD)[:-1]),
    "gzip with a wrong sum": plainly(head(**GZIP), gzip.compress(GOOD)[:-8] + b"\0" * 8),
}


@pytest.mark.parametrize("name", CUT)
def test_an_answer_of_the_wrong_length_is_never_taken(feed: HostileFeed, collect: Collect, name: str) -> None:
    feed.scripts["/feed"] = CUT[name]
    result = collect()
    assert (result["code"], result["facts"]) == ("truncated", 0)


ODD: dict[str, Script] = {
    "two lengths": plainly(b"HTTP/1.1 200 X\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n[]"),
    "a negative length": plainly(head(Content_Length="-1"), GOOD),
    "a length of 5,000 digits": plainly(head(Content_Length="1" * 5_000), GOOD),
    "two codings": answer(GOOD, Content_Encoding="gzip, gzip"),
    "an unknown coding": answer(GOOD, Content_Encoding="br"),
    "gzip that goes on": plainly(head(**GZIP), gzip.compress(GOOD) + b"more"),
    "gzip that is none": answer(GOOD, Content_Encoding="gzip"),
}


@pytest.mark.parametrize("name", ODD)
def test_an_answer_that_contradicts_itself_is_never_taken(feed: HostileFeed, collect: Collect, name: str) -> None:
    feed.scripts["/feed"] = ODD[name]
    result = collect()
    assert (result["code"], result["facts"]) == ("bad_body", 0)


def test_redirects_end(feed: HostileFeed, collect: Collect) -> None:
    feed.scripts["/feed"] = plainly(head(302, Location="/feed", Content_Length=0))
    result = collect()
    assert (result["code"], "5 redirects" in result["message"]) == ("redirect_refused", True)
    assert feed.paths() == ["/feed"] * 6


def test_the_last_redirect_that_is_followed_brings_the_data(feed: HostileFeed, collect: Collect) -> None:
    for n in range(5):
        feed.scripts[f"/{n}"] = plainly(head(302, Location=f"/{n + 1}", Content_Length=0))
    feed.scripts["/5"] = answer(GOOD)
    assert collect("/0")["facts"] == 1


def test_redirects_to_this_machine_are_refused_unasked(feed: HostileFeed, collect: Collect) -> None:
    with running_hostile_feed() as other:
        other.scripts["/secret"] = answer(b"the other's secret text", 500)
        feed.scripts["/secret"] = answer(b"the other's secret text", 500)
        places = [f"{other.url}/secret", f"{feed.other_url}/secret", f"http://localhost:{other.port}/secret",
                  f"http://[::ffff:127.0.0.1]:{other.port}/secret", f"http://0.0.0.0:{other.port}/secret",
                  f"http://[::]:{other.port}/secret", f"http://[64:ff9b::7f00:1]:{other.port}/secret",
                  f"http://127.1:{other.port}/secret", f"http://2130706433:{other.port}/secret"]  # fmt: skip
        for place in places:
            feed.scripts["/feed"] = plainly(head(302, Location=place, Content_Length=0))
            result = collect()
            assert result["code"] == "redirect_refused", place
            assert "secret" not in json.dumps(result)
        assert other.asked == []
        assert set(feed.paths()) == {"/feed"}


@pytest.mark.parametrize("location", ["", "ftp://example.org/", "http://", "http://[", "x" * 9_000])
def test_a_redirect_to_nowhere_is_refused(feed: HostileFeed, collect: Collect, location: str) -> None:
    feed.scripts["/feed"] = plainly(head(302, Location=location, Content_Length=0))
    assert collect()["code"] == "redirect_refused"
