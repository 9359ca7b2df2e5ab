"""What held: with a person's cookie, other sites can write nothing and follow nothing; a printed link is good once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from fix_installation import NO_FEEDS, Installation, an_installation

WRITES = (
    ("POST", "/api/v1/jobs", {"task_type": "collect", "source": "usgs_quakes"}),
    ("POST", "/api/v1/jobs/1/cancel", {}),
    ("POST", "/api/v1/jobs/1/retry", {}),
    ("PATCH", "/api/v1/sources/usgs_quakes", {"enabled": False}),
    ("POST", "/api/v1/diagnostics", {}),
)
JOBS = "select count(*) from collection_tasks"
AT_ONCE = 6  # wrong codes, and fewer of them than make an address wait


@pytest.fixture(scope="module")
def made() -> Iterator[Installation]:
    """Two web processes on one port: which of them a request gets is the kernel's choice."""
    several = {"PLANETWIRE_WEB_WORKERS": "2", "PLANETWIRE_BUS": "postgres"}
    with an_installation("up", **NO_FEEDS, **several) as installation:
        yield installation


def foreign(url: str) -> list[dict[str, str]]:
    """What a browser may send as Origin from anywhere but our own page, and no Origin at all."""
    host = url.partition("://")[2]
    name, _, port = host.partition(":")
    origins = [
        "https://evil.example", "null", "", f"http://{name}", f"http://{name}:{int(port) - 1}", f"http://{host}.evil.example",
        f"http://evil.example/{host}", f"http://{host}@evil.example", f"http://evil.example?://{host}", host, f"http://{host}/",
        f"http://localhost:{port}", f"http://{host} http://evil.example", f"{host}://evil.example",
    ]  # fmt: skip
    return [{}, *({"Origin": origin} for origin in origins)]


def sign_in(url: str, code: str) -> tuple[int, str]:
    """Status, and the cookie."""
    with httpx.Client(base_url=url, trust_env=False) as client:
        answer = client.post("/api/v1/session", json={"code": code}, headers={"Origin": url})
        return answer.status_code, "; ".join(f"{name}={value}" for name, value in answer.cookies.items())


def test_a_printed_link_signs_one_in_however_many_try_and_other_sites_write_nothing_with_it(made: Installation) -> None:
    """Q15, Q35: six at once, over two processes."""
    code = made.login_url.partition("#login=")[2]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        tried = list(pool.map(lambda _: sign_in(made.url, code), range(AT_ONCE)))
    assert sorted({status for status, _ in tried}) == [204, 401]
    [cookie] = [cookie for status, cookie in tried if status == 204]
    assert sign_in(made.url, code)[0] == 401

    before = made.value(JOBS)
    with httpx.Client(base_url=made.url, headers={"Cookie": cookie}, trust_env=False) as client:
        for method, path, body in WRITES:
            for headers in foreign(made.url):
                answer = client.request(method, path, json=body, headers=headers)
                assert (answer.status_code, answer.json()["code"]) == (403, "wrong_origin"), (path, headers)
        assert made.value(JOBS) == before
        ours = client.post("/api/v1/jobs", json=WRITES[0][2], headers={"Origin": made.url})
        assert ours.status_code == 202, "else the above would hold of a cookie that is good for nothing"


def test_other_sites_cannot_open_the_socket(made: Installation) -> None:
    """Before the upgrade. Programs, which send no Origin, can."""
    address = f"ws{made.url.removeprefix('http')}/ws"
    for headers in foreign(made.url)[1:]:
        with pytest.raises(InvalidStatus) as refused:
            connect(address, additional_headers=headers, compression=None, proxy=None)
        assert refused.value.response.status_code == 403, headers
    with connect(address, additional_headers={"Origin": made.url}, compression=None, proxy=None):
        pass
