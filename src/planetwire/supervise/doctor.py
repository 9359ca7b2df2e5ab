"""`planetwire doctor`: each stage of the path, in the order in which a change passes them."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

from websockets.asyncio.client import connect as connect_websocket
from websockets.exceptions import WebSocketException

from planetwire import wiring
from planetwire.errors import PlanetwireError
from planetwire.settings import Settings
from planetwire.supervise.datadir import DataDir
from planetwire.supervise.roles import database_of, web_url_of

ANSWER_TIMEOUT_S = 10.0

Step = dict[str, Any]


def _step(name: str, title: str, ok: bool, detail: str, advice: str = "") -> Step:
    return {"step": name, "title": title, "ok": ok, "detail": detail, "advice": "" if ok else advice}


def examine(settings: Settings) -> list[Step]:
    """Every step; a step that cannot be looked at fails with the reason."""
    url = web_url_of(settings)
    steps = [_installation(settings)]
    if settings.earth and not _terminal_only(settings):
        steps += _database(settings)
        steps += [asyncio.run(_websocket(url)), _http(url, "visualization", "Snapshots answer", "/api/v1/layers")]
    if settings.terminal:
        steps.append(_http(url, "terminal", "The terminal answers", "/api/scan/terminal", absent_ok="half_disabled"))
    steps.append(_http(url, "ready", "The installation is ready", "/readyz"))
    return steps


def _terminal_only(settings: Settings) -> bool:
    data = DataDir(settings.data_dir)
    running = data.runtime() if data.is_running() else None
    return bool(running and running.get("halves") == "terminal")


def _installation(settings: Settings) -> Step:
    data = DataDir(settings.data_dir)
    running = data.is_running()
    facts = data.runtime() or {}
    detail = f"pid {facts.get('pid')} at {facts.get('url')}" if running else f"nothing runs on {data.path}"
    ok = running or settings.database_url is not None
    return _step("installation", "Planetwire runs", ok, detail, "start it with `planetwire up`")


def _database(settings: Settings) -> list[Step]:
    try:
        return asyncio.run(wiring.examine_database(database_of(settings)))
    except PlanetwireError as error:
        advice = "see postgres.log in the data dir; `planetwire up` restarts an embedded server by itself"
        return [_step("database", "PostgreSQL answers", False, error.message, advice)]


async def _websocket(url: str) -> Step:
    title = "Browsers can connect"
    advice = "the web process does not accept WebSockets: look at its log, and at a proxy in between"
    try:
        async with connect_websocket(
            f"{url.replace('http', 'ws', 1)}/ws", open_timeout=ANSWER_TIMEOUT_S, proxy=None
        ) as socket:
            first = await asyncio.wait_for(socket.recv(), ANSWER_TIMEOUT_S)
    except (OSError, TimeoutError, WebSocketException) as error:
        return _step("websocket", title, False, repr(error), advice)
    return _step("websocket", title, True, str(first)[:80])


def _http(url: str, name: str, title: str, path: str, absent_ok: str = "") -> Step:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}{path}", timeout=ANSWER_TIMEOUT_S) as answer:
            return _step(name, title, True, f"{path} {answer.status}, {len(answer.read())} bytes")
    except urllib.error.HTTPError as error:
        text = error.read().decode(errors="replace")[:300]
        if absent_ok and absent_ok in text:
            return _step(name, title, True, "switched off")
        return _step(name, title, False, f"{path} {error.code}: {text}", "look at the log of the web process")
    except (OSError, TimeoutError) as error:
        return _step(name, title, False, f"{path}: {error}", "the web process does not answer: look at its log")


def healthy(steps: Sequence[Step]) -> bool:
    """Whether nothing is broken."""
    return all(step["ok"] for step in steps)


def render(steps: Sequence[Step]) -> str:
    """For people: one line a step, advice under what is broken, and a verdict."""
    lines = []
    for step in steps:
        lines.append(f"{'ok  ' if step['ok'] else 'FAIL'} {step['title']}: {step['detail']}")
        if step["advice"]:
            lines.append(f"     → {step['advice']}")
    broken = [step["title"] for step in steps if not step["ok"]]
    lines.append(f"\n{'All stages work.' if not broken else 'First broken stage: ' + broken[0]}")
    return "\n".join(lines)
