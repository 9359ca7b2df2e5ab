"""The API's description: valid, true of every route, and followed by every answer to what it allows and forbids."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from asgi_asking import operations
from fix_earth import INGEST, TOKEN, running_earth
from fix_postgres import database_of
from planetwire.database.postgres import open_pool
from planetwire.model import Json
from planetwire.supervise.embedded_postgres import EmbeddedPostgres
from planetwire.web import docs_page

EXAMPLES = 8  # of each operation, valid ones and invalid ones each
HELD = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
# A stream has no end to wait for; a wrong secret would be braked, and with it all who come after; see
# test_no_5xx_for_input.py for both. A canary takes its time.
LEFT_OUT = {("get", "/api/events"), ("post", "/api/v1/session"), ("post", "/api/v1/diagnostics")}
STARTS_S = 60


class Served:
    """The real application on a socket, in a thread: who asks it here waits for the answer."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self.url = ""
        self.declared: set[tuple[str, str]] = set()
        self._started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve(dsn, folder)))
        self._thread.start()
        assert self._started.wait(STARTS_S)

    async def _serve(self, dsn: str, folder: Path) -> None:
        pool = await open_pool(dsn, application="test")
        async with running_earth(dsn, pool, folder) as earth:
            self.url = earth.url
            self.declared = {(one.method.lower(), one.path) for one in operations(earth.web.app)}
            self._started.set()
            await self._end.wait()
        await pool.close()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="module")
def served(pg_cluster: EmbeddedPostgres) -> Iterator[Served]:
    with database_of(pg_cluster) as dsn, tempfile.TemporaryDirectory() as folder:
        made = Served(dsn, Path(folder))
        try:
            yield made
        finally:
            made.close()


@pytest.fixture(scope="module")
def document(served: Served) -> Json:
    answer = httpx.get(f"{served.url}/api/openapi.json", trust_env=False)
    assert answer.status_code == 200
    return dict(answer.json())


def test_the_document_is_valid_and_of_this_version(document: Json) -> None:
    schemathesis.openapi.from_dict(document).validate()
    assert document["openapi"].startswith("3.1")
    assert "HTTPValidationError" not in document["components"]["schemas"]
    used = {one["operationId"] for path in document["paths"].values() for one in path.values()}
    assert len(used) == sum(len(path) for path in document["paths"].values())


def test_every_route_under_api_is_in_it(served: Served, document: Json) -> None:
    told = {(method, path) for path, methods in document["paths"].items() for method in methods}
    wanted = {
        (method, path.replace(":path}", "}"))
        for method, path in served.declared
        if path.startswith(("/api/", "/healthz", "/readyz", "/metrics")) and method != "head"
    }
    assert wanted - told == {("get", "/api/openapi.json"), ("get", "/api/docs")}


# Of what is read, that which is not for everybody: who did what, what a worker said, what a clear would delete.
CLOSED = {
    "/api/v1/audit",
    "/api/v1/jobs/{task_id}/acts",
    "/api/v1/jobs/{task_id}/log",
    "/api/v1/sources/{name}/declaration",
    "/api/v1/sources/{source}/rows",
}


def test_it_says_who_may_ask(document: Json) -> None:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if method == "get":
                assert ({} in operation.get("security", [{}])) == (path not in CLOSED), path
            elif path != "/api/v1/session":
                assert {"bearer": []} in operation["security"] and {"401", "403"} <= set(operation["responses"]), path
            assert "400" in operation["responses"]
            if operation.get("security"):
                assert "503" in operation["responses"], f"{method} {path}: what it asks for may be away"
            for status, answer in operation["responses"].items():
                if status >= "400" and path != "/readyz":
                    assert set(answer["content"]) == {"application/problem+json"}, (path, status)


def test_what_it_calls_protected_answers_nobody_without_credentials(served: Served, document: Json) -> None:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if operation.get("security") and {} not in operation["security"]:
                answer = httpx.request(method, served.url + path.replace("{task_id}", "1"), trust_env=False)
                assert answer.status_code == 401, (method, path)


def credentials(path: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {INGEST if 'internal' in path else TOKEN}"}


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_answer_is_one_that_it_describes(served: Served, document: Json, mode: GenerationMode) -> None:
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=served.url)
    asked = set()
    for result in schema.get_all_operations():
        operation = result.ok()
        if (operation.method, operation.path) in LEFT_OUT:
            continue

        @settings(
            max_examples=EXAMPLES,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
            derandomize=True,
            database=None,
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case: Any) -> None:
            asked.add((case.method, case.path))
            case.call_and_validate(headers=credentials(case.path), checks=HELD)

        try:
            ask()
        except Unsatisfiable:  # no way to be wrong: no parameter and no body
            assert mode is GenerationMode.NEGATIVE
    told = {(method, path) for path, methods in document["paths"].items() for method in methods}
    if mode is GenerationMode.POSITIVE:
        assert {(method.lower(), path) for method, path in asked} == told - LEFT_OUT
    assert len(asked) > 10


def test_the_page_shows_every_route_without_script_or_network(served: Served, document: Json) -> None:
    answer = httpx.get(f"{served.url}{docs_page.PATH}", trust_env=False)
    assert answer.status_code == 200
    assert answer.headers["content-security-policy"] == docs_page.CSP
    assert "<script" not in answer.text and "http://" not in answer.text and "https://" not in answer.text
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert f'id="{operation["operationId"]}"' in answer.text, path


def test_the_page_escapes_what_it_shows() -> None:
    operation = {"operationId": "a<b", "summary": "<script>x</script>", "responses": {"200": {"description": "`<i>`"}}}
    shown = docs_page.render(
        {
            "openapi": "3.1.0",
            "info": {"title": "T<", "version": "1", "description": "d"},
            "paths": {"/<x>": {"get": operation}},
            "components": {"schemas": {"<S>": {"description": "</pre><script>"}}},
        }
    )
    assert "<script" not in shown and "/&lt;x&gt;" in shown and "<code>&lt;i&gt;</code>" in shown
