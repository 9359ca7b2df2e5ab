"""Signing in as a web process does it: sessions that end, roles, the brake, proxies, and what strangers see."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import pytest_asyncio
from typer.testing import CliRunner

from planetwire.cli import app as command
from planetwire.settings import Settings
from planetwire.wiring import web as serving
from planetwire.wiring.secrets import Secrets

ADMIN, OPERATOR, VIEWER, INGEST = ("word-of-" + role + "-" * 20 for role in ("admin", "operator", "viewer", "ingest"))
HERE = "http://here"
SESSION = "/api/v1/session"
ME = {"Origin": HERE}


@asynccontextmanager
async def web(folder: Path, admin: str = ADMIN, **more: Any) -> AsyncIterator[serving.Web]:
    """The terminal half alone: it needs no database."""
    settings = Settings(
        data_dir=folder, halves="terminal", operator_token=OPERATOR, viewer_token=VIEWER, **more  # type: ignore[arg-type]
    )  # fmt: skip
    async with serving.open_web(settings, None, Secrets(admin, INGEST, b"k" * 32), login_code="a-code") as made:
        yield made


def client(made: serving.Web, peer: str = "127.0.0.1", **headers: str) -> httpx.AsyncClient:
    carrier = httpx.ASGITransport(app=made.app, client=(peer, 4711))
    return httpx.AsyncClient(transport=carrier, base_url=HERE, headers=headers, trust_env=False)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def signed_in(http: httpx.AsyncClient, token: str = ADMIN) -> dict[str, str]:
    """The headers of a browser that has signed in."""
    answer = await http.post(SESSION, json={"token": token})
    assert answer.status_code == 204
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0], **ME}


async def who(http: httpx.AsyncClient, headers: dict[str, str]) -> tuple[str | None, str | None]:
    told = (await http.get(SESSION, headers=headers)).json()
    assert told["signed_in"] is (told["who"] is not None)
    return told["who"], told["role"]


@pytest_asyncio.fixture
async def http(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with web(tmp_path) as made, client(made) as opened:
        yield opened


async def test_signing_out_ends_the_session_wherever_its_cookie_is(http: httpx.AsyncClient) -> None:
    mine = await signed_in(http)
    http.cookies.clear()
    assert await who(http, mine) == ("admin token", "admin")
    assert (await http.delete(SESSION, headers=mine)).status_code == 204
    assert await who(http, mine) == (None, None)
    assert (await http.post("/api/v1/diagnostics", headers=mine)).status_code == 401


async def test_a_session_outlives_the_process_and_is_seen_by_its_sisters(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'of_the_other.db'}"
    async with web(tmp_path) as one, client(one) as http, web(tmp_path, observations_url=place) as other:
        mine = await signed_in(http)
        async with client(other) as beside:
            assert await who(beside, mine) == ("admin token", "admin")
    async with web(tmp_path) as again, client(again) as http:
        assert await who(http, mine) == ("admin token", "admin")


async def test_another_admin_token_ends_all_sessions(tmp_path: Path) -> None:
    async with web(tmp_path) as made, client(made) as http:
        mine = await signed_in(http)
    async with web(tmp_path, "another-" + ADMIN) as made, client(made) as http:
        assert await who(http, mine) == (None, None)


async def test_an_admin_ends_the_sessions_of_everybody(http: httpx.AsyncClient) -> None:
    mine, theirs = await signed_in(http), await signed_in(http, VIEWER)
    http.cookies.clear()
    assert (await http.delete(f"{SESSION}?all=true", headers=theirs)).json()["code"] == "role_too_small"
    assert (await http.delete(f"{SESSION}?all=true", headers=bearer(ADMIN))).status_code == 204
    assert [await who(http, each) for each in (mine, theirs)] == [(None, None)] * 2


async def test_the_code_of_the_link_signs_an_admin_in(http: httpx.AsyncClient) -> None:
    answer = await http.post(SESSION, json={"code": "a-code"})
    assert answer.status_code == 204
    assert (await http.get(SESSION)).json()["who"] == "login code"
    assert (await http.post(SESSION, json={"code": "a-code"})).status_code == 401


@pytest.mark.parametrize(
    "cookie", [b"planetwire_session=a.\xe9", b"planetwire_session=" + b"a" * 20_000, b"\xff=\xfe; =", b""]
)
async def test_a_cookie_of_any_bytes_is_only_no_session(http: httpx.AsyncClient, cookie: bytes) -> None:
    for method in ("GET", "DELETE"):
        answer = await http.request(method, SESSION, headers=[(b"cookie", cookie)])
        assert answer.status_code < 300


@pytest.mark.parametrize(("token", "role"), [(OPERATOR, "operator"), (VIEWER, "viewer")])
async def test_lesser_roles_may_less(http: httpx.AsyncClient, token: str, role: str) -> None:
    mine = await signed_in(http, token)
    http.cookies.clear()
    for credentials in (mine, bearer(token)):
        assert await who(http, credentials) == (f"{role} token", role)
        refused = await http.post("/api/v1/diagnostics", headers=credentials)
        assert (refused.status_code, refused.json()["code"]) == (403, "role_too_small")
        changed = await http.patch("/api/v1/sources/x", json={}, headers=credentials)
        assert changed.json()["code"] == ("role_too_small" if role == "viewer" else "not_changeable")


async def test_right_tokens_are_never_braked_and_a_made_up_client_avoids_no_brake(http: httpx.AsyncClient) -> None:
    answers = [
        await http.post(SESSION, json={"code": "wrong"}, headers={"X-Forwarded-For": f"192.0.2.{number}"})
        for number in range(11)
    ]
    assert [answer.status_code for answer in answers] == [401] * 10 + [429]
    assert answers[-1].json()["code"] == "too_many_failures" and 0 < int(answers[-1].headers["retry-after"]) <= 60
    assert (await http.post(SESSION, json={"code": "a-code"})).status_code == 429
    assert (await http.post(SESSION, json={"token": ADMIN})).status_code == 204
    pushed = await http.post("/api/internal/collector-patch", content=b"[]", headers=bearer(INGEST))
    assert pushed.json()["code"] == "no_patches"


async def test_limits_are_settings_and_say_when_to_try_again(tmp_path: Path) -> None:
    limits = {"ingest_per_minute": 2, "openings_per_minute": 1}
    async with web(tmp_path, limits=limits) as made, client(made) as http:
        pushes = [
            await http.post("/api/internal/collector-patch", content=b"[]", headers=bearer(INGEST)) for _ in range(3)
        ]
        assert [push.json()["code"] for push in pushes] == ["no_patches", "no_patches", "too_many_pushes"]
        assert 0 < int(pushes[-1].headers["retry-after"]) <= 60
        opened = [await http.get("/api/events?cities=shanghai&replay_limit=x") for _ in range(2)]
        assert [answer.status_code for answer in opened] == [400, 400], "what is refused anyway opens nothing"


# --- proxies


async def test_a_trusted_proxy_says_who_asks_and_signs_in_and_a_stranger_does_not(tmp_path: Path) -> None:
    told = {"X-Forwarded-For": "192.0.2.9", "X-Forwarded-Proto": "https", "Remote-User": "alice"}
    more = {"trusted_proxies": "10.0.0.1", "proxy_user_header": "Remote-User", "proxy_roles": "alice=operator"}
    async with web(tmp_path, **more) as made:
        async with client(made, "10.0.0.1", **told) as http:
            assert await who(http, {}) == ("alice", "operator")
            refused = await http.patch("/api/v1/sources/x", json={})
            assert refused.json()["code"] == "wrong_origin"
            assert (await http.patch("/api/v1/sources/x", json={}, headers=ME)).json()["code"] == "not_changeable"
            signed = await http.post(SESSION, json={"token": ADMIN})
            assert "Secure" in signed.headers["set-cookie"]
        async with client(made, "10.0.0.2", **told) as http:
            assert await who(http, {}) == (None, None)
            assert (await http.patch("/api/v1/sources/x", json={}, headers=ME)).status_code == 401
            assert "Secure" not in (await http.post(SESSION, json={"token": ADMIN})).headers["set-cookie"]


# --- diagnostics


@pytest.mark.parametrize(
    ("more", "public"),
    [
        ({}, True),
        ({"host": "0.0.0.0"}, False),
        ({"host": "0.0.0.0", "public_diagnostics": True}, True),
        ({"public_diagnostics": False}, False),
    ],
)
async def test_diagnostics_and_metrics_are_for_those_on_this_machine_or_signed_in(
    tmp_path: Path, more: dict[str, Any], public: bool
) -> None:
    async with web(tmp_path, **more) as made, client(made) as http:
        for path in ("/metrics", "/api/v1/diagnostics"):
            assert (await http.get(path)).status_code == (200 if public else 401)
            assert (await http.get(path, headers=bearer(VIEWER))).status_code == 200
            assert (await http.get(path, headers=bearer("no" * 20))).status_code == (200 if public else 401)
        assert (await http.get("/readyz")).status_code in (200, 503)
        assert (await http.get("/api/v1/sources")).status_code == 200


async def test_strangers_do_not_see_how_a_source_failed(tmp_path: Path) -> None:
    (tmp_path / "feeds").mkdir()
    feed = {"last_error_code": "transient", "last_error": "cannot reach 10.1.2.3"}
    (tmp_path / "feeds" / "awc_metar.json").write_bytes(orjson.dumps(feed))
    async with web(tmp_path, public_diagnostics=False) as made, client(made) as http:
        seen = {}
        for name, headers in (("stranger", {}), ("viewer", bearer(VIEWER))):
            items = (await http.get("/api/v1/sources", headers=headers)).json()["items"]
            seen[name] = [(item["last_error_code"], item["last_error"]) for item in items if item["last_error_code"]]
        assert seen["stranger"] == [("transient", None)] * len(seen["viewer"])
        assert seen["viewer"] and all(seen["viewer"])


# --- tokens with names


def tokens(folder: Path, *arguments: str) -> Any:
    """As typed; in a thread, since commands have an event loop of their own."""
    environment = {"PLANETWIRE_DATA_DIR": str(folder)}
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(CliRunner().invoke, command, ["tokens", *arguments], env=environment).result(60)


async def test_a_token_with_a_name_works_at_once_and_ends_at_once(tmp_path: Path, http: httpx.AsyncClient) -> None:
    made = tokens(tmp_path, "add", "wall-display", "--role", "operator", "--json")
    token = orjson.loads(made.stdout)["token"]
    assert await who(http, bearer(token)) == ("token wall-display", "operator")
    mine = await signed_in(http, token)
    http.cookies.clear()
    assert token not in (tmp_path / "tokens.json").read_text()
    assert stat.S_IMODE((tmp_path / "tokens.json").stat().st_mode) == 0o600
    listed = orjson.loads(tokens(tmp_path, "ls", "--json").stdout)
    assert [(each["name"], each["role"]) for each in listed] == [("wall-display", "operator")]
    assert tokens(tmp_path, "add", "wall-display").exit_code == 1
    assert tokens(tmp_path, "rm", "wall-display").exit_code == 0
    assert tokens(tmp_path, "rm", "wall-display").exit_code == 1
    acts = [orjson.loads(line) for file in (tmp_path / "audit").iterdir() for line in file.read_bytes().splitlines()]
    assert [(act["what"], act["details"]) for act in acts] == [
        ("token.added", {"name": "wall-display", "role": "operator"}),
        ("session.opened", {"proof": "token"}),
        ("token.removed", {"name": "wall-display"}),
    ]
    assert await who(http, bearer(token)) == (None, None)
    assert await who(http, mine) == (None, None)


@pytest.mark.parametrize(
    "body", [b"", b'{"a":1}', b"[1]", b'[{"name":"a"}]', b"\xff", b'[{"name":"a","role":"god","sha256":"0"}]']
)
async def test_a_damaged_file_of_tokens_lets_nobody_in_and_stops_the_next_start(
    tmp_path: Path, http: httpx.AsyncClient, body: bytes
) -> None:
    token = orjson.loads(tokens(tmp_path, "add", "bot", "--json").stdout)["token"]
    (tmp_path / "tokens.json").write_bytes(body)
    assert await who(http, bearer(token)) == (None, None)
    shown = tokens(tmp_path, "ls")
    assert shown.exit_code == 1 and "tokens.json" in shown.output


# --- files


async def test_what_a_web_process_keeps_is_its_owners_alone(tmp_path: Path, http: httpx.AsyncClient) -> None:
    """Whatever the umask is: the tests run with the usual one."""
    await signed_in(http)
    open_to_others = [
        str(file.relative_to(tmp_path))
        for file in tmp_path.rglob("*")
        if file.is_file() and stat.S_IMODE(file.stat().st_mode) & 0o077
    ]
    assert open_to_others == []
    assert (tmp_path / "observations.db").exists() and list((tmp_path / "sessions").iterdir())
