"""The API description, generated from the routes: required roles, and all responses.

FastAPI describes parameters and bodies. It knows neither our problem documents nor our roles, so both are added here
for all routes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, iter_route_contexts

from planetwire.model import Json
from planetwire.web.access.auth import COOKIE
from planetwire.web.http.answers import problem

PATH = "/api/openapi.json"
ABOUT = (
    "Snapshots, jobs, sources and readings of one Planetwire. Errors are `application/problem+json` with a stable "
    "`code`. Live changes come by `GET /api/events` (server-sent events) and the WebSocket `/ws`."
)
PROBLEM: Json = {
    "title": "Problem",
    "type": "object",
    "required": ["type", "status", "code", "title", "detail"],
    "properties": {
        "type": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "stable, for programs"},
        "title": {"type": "string"},
        "detail": {"type": "string", "description": "for people"},
    },
}
SCHEMES: Json = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "the admin token, or that of the route's right"},
    "session": {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": "from `POST /api/v1/session`"},
}
SIGNED_IN: list[Json] = [{"bearer": []}, {"session": []}]
ANYBODY: Json = {}


def describe(app: FastAPI, *, public_reads: bool, public_diagnostics: bool = True) -> Json:
    """The document, OpenAPI 3.1."""
    document: Json = get_openapi(title=app.title, version=app.version, description=ABOUT, routes=app.routes)
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Problem"] = PROBLEM
    components["securitySchemes"] = SCHEMES
    for path, method, rights in _rights(app):
        operation = document["paths"][path][method]
        _complete(operation, path, rights, public_reads=public_reads, public_diagnostics=public_diagnostics)
    return document


def _rights(app: FastAPI) -> Iterator[tuple[str, str, set[str]]]:
    """By operation, the names of its guard's checks."""
    for route in iter_route_contexts(app.routes):
        if isinstance(route.original_route, APIRoute) and route.include_in_schema:
            for method in route.methods or ():
                yield str(route.path_format), method.lower(), set(_calls(route.dependant))


def _calls(dependant: Any) -> Iterator[str]:
    for inner in dependant.dependencies:
        yield getattr(inner.call, "__name__", "")
        yield from _calls(inner)


def _complete(operation: Json, path: str, rights: set[str], *, public_reads: bool, public_diagnostics: bool) -> None:
    responses = operation["responses"]
    responses.pop("422", None)
    wanted = {400}
    if "security" in operation or rights & {"viewer", "operator", "admin"}:
        operation.setdefault("security", SIGNED_IN)
        wanted |= {401, 403, 429}
    elif rights & {"reader", "diagnostics"}:
        is_open = public_reads and (public_diagnostics or "diagnostics" not in rights)
        operation["security"] = [ANYBODY, *SIGNED_IN] if is_open else SIGNED_IN
        wanted |= set() if is_open else {401, 403, 429}
    if "{" in path:
        wanted.add(404)
    if "requestBody" in operation:
        wanted.add(413)
    if rights or "security" in operation:
        wanted.add(503)
    for status in wanted:
        responses.setdefault(str(status), problem(status))
    operation["responses"] = dict(sorted(responses.items()))
