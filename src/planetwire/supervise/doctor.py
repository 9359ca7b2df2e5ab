"""`planetwire doctor`: checks each stage in the order in which a change passes them, with a canary.

Seven numbered steps are the path (S88); the others – the installation, the server, the ledger – have no number.
"""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ssl import SSLContext

from planetwire.diagnosis.path import examine_file, examine_path, observation_feeds_step
from planetwire.errors import PlanetwireError
from planetwire.model import Json
from planetwire.model.finding import Finding, first_broken, step
from planetwire.settings import PLAIN_OFF, Settings
from planetwire.supervise.datadir import DataDir
from planetwire.supervise.roles import database_of, effective, trust_of, web_url_of
from planetwire.wiring.commands import declared_step
from planetwire.wiring.keeping import disk_step
from planetwire.wiring.observations import readings_file
from planetwire.wiring.plugins import plugins_step

ANSWER_TIMEOUT_S = 10.0
FILE = "sqlite:///"


def examine(settings: Settings, *, canary: bool = True) -> list[Json]:
    """Every step; a step that cannot be checked fails with the reason."""
    url, trust = web_url_of(settings), trust_of(settings)
    ask = partial(_http, trust=trust)
    shown = effective(settings).admin_token
    token = shown.get_secret_value() if shown else None
    with ThreadPoolExecutor() as asking:  # in parallel: a check that hangs does not delay the others
        snapshots = asking.submit(
            ask, url, token, "visualization", "Snapshots answer", "/api/v1/layers", "snapshots_down"
        )
        ready = asking.submit(ask, url, token, "ready", "The installation is ready", "/readyz", "not_ready")
        terminal = asking.submit(_terminal, ask, url, token) if settings.terminal else None
        steps = [
            _installation(settings),
            *_protocol(settings),
            *_room(settings),
        ]  # first: on a full disk everything else fails too
        if settings.earth and not _terminal_only(settings):
            path = _path(settings, url, token, trust, canary=canary)
            around = [found for found in path if not found["number"]]
            # Without a database nothing else answers either: it is the cause, so it comes first.
            steps += [*(found for found in path if found["number"]), *_sorted(snapshots.result(), around)]
            steps += [*_declared(settings), *plugins_step()]
        steps += [terminal.result(), *_file(settings), observation_feeds_step(settings.data_dir)] if terminal else []
        steps.append(ready.result())
    return steps


def _protocol(settings: Settings) -> list[Json]:
    """None if all bounds on connections apply."""
    if not settings.plain_http:
        return []
    return [step("protocol", "Connections are served plainly", "", [Finding("plain_http", PLAIN_OFF)])]


def _room(settings: Settings) -> list[Json]:
    """None without a data dir."""
    return [disk_step(settings.data_dir)] if settings.data_dir.exists() else []


def _file(settings: Settings) -> list[Json]:
    """None if a database stores readings."""
    path = readings_file(settings)
    return [] if path is None else [examine_file(path)]


def _sorted(snapshots: Json, around: list[Json]) -> list[Json]:
    return [*around, snapshots] if any(found["step"] == "database" for found in around) else [snapshots, *around]


def _terminal_only(settings: Settings) -> bool:
    data = DataDir(settings.data_dir)
    running = data.runtime() if data.is_running() else None
    return bool(running and running.get("halves") == "terminal")


def _installation(settings: Settings) -> Json:
    data = DataDir(settings.data_dir)
    running = data.is_running()
    facts = data.runtime() or {}
    ok = running or settings.database_url is not None
    elsewhere = "; with a database of one's own, processes may run elsewhere" if ok else ""
    detail = f"pid {facts.get('pid')} at {facts.get('url')}" if running else f"nothing on {data.path}{elsewhere}"
    return step(
        "installation", "Planetwire runs", detail, [] if ok else [Finding("installation_down", "no process holds it")]
    )


def _path(settings: Settings, url: str, token: str | None, trust: SSLContext | None, *, canary: bool) -> list[Json]:
    try:
        return asyncio.run(examine_path(database_of(settings), url, token, trust, canary=canary))
    except PlanetwireError as error:
        if error.code == "schema_behind":
            return [step("database", "The schema is this version's", "", [Finding("schema_behind", error.message)])]
        return [step("database", "PostgreSQL answers", "", [Finding("database_down", error.message)])]


def _declared(settings: Settings) -> list[Json]:
    """None without a database: another step says so."""
    try:
        return [asyncio.run(declared_step(settings, database_of(settings)))]
    except PlanetwireError:
        return []


def _terminal(ask: Callable[..., Json], url: str, token: str | None) -> Json:
    found = ask(url, token, "terminal", "The terminal answers", "/api/scan/terminal", "terminal_down")
    return step("terminal", found["title"], "switched off") if "half_disabled" in found["detail"] else found


def _http(
    url: str, token: str | None, name: str, title: str, path: str, code: str, *, trust: SSLContext | None
) -> Json:
    own = urllib.request.HTTPSHandler(context=trust)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), own)
    request = urllib.request.Request(f"{url}{path}", headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with opener.open(request, timeout=ANSWER_TIMEOUT_S) as answer:
            return step(name, title, f"{path} {answer.status}, {len(answer.read())} bytes")
    except urllib.error.HTTPError as error:
        text = error.read().decode(errors="replace")[:300]
        return step(name, title, "", [Finding(code, f"{path} {error.code}: {text}")])
    except OSError as error:
        return step(name, title, "", [Finding(code, f"{url}{path} does not answer: {_reason(error)}")])


def _reason(error: OSError) -> str:
    """The system's own error text, without the wrapping exceptions."""
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    return cause.strerror if isinstance(cause, OSError) and cause.strerror else str(cause)


def healthy(steps: Sequence[Json]) -> bool:
    """Whether nothing is broken; warnings do not count."""
    return all(found["ok"] for found in steps)


def render(steps: Sequence[Json]) -> str:
    """For people: one line a step, advice and page under each finding, and a verdict."""
    lines = []
    for found in steps:
        mark = "FAIL" if not found["ok"] else "warn" if found["findings"] else "ok  "
        lines.append(f"{mark} {found['number'] or ' '} {found['title']}: {found['detail']}")
        for record in found["findings"]:
            lines.append(f"       → {record['advice']} ({record['see']})")
    broken = first_broken(steps)
    lines.append(f"\n{'All stages work.' if broken is None else 'First broken stage: ' + broken['title']}")
    return "\n".join(lines)
