"""The built front end: hashed files for ever, `index.html` never, deep links answered with the page."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from planetwire.errors import NotFound
from planetwire.web.static_files import read

STATIC = Path(__file__).parent / "static"
PAGES = ("", "earth", "terminal", "sources")
NAMED_MAX = 100  # characters of a path that an error message repeats
NOT_BUILT = """<!doctype html><title>Planetwire</title><p>The front end is not built.
Run <code>make setup</code> and start again, or install a released wheel. The API is described at
<a href="/api/openapi.json">/api/openapi.json</a>.</p>"""


def router(static: Path = STATIC) -> APIRouter:
    """The catch-all; include it last."""
    routes = APIRouter(include_in_schema=False)
    files = read(static)
    index = files.get("index.html")

    def page(request: Request) -> Response:
        if index is None:
            return HTMLResponse(NOT_BUILT, status_code=503)
        return index.answer(request, {})

    @routes.api_route("/{path:path}", methods=["GET", "HEAD"])
    async def serve(path: str, request: Request) -> Response:
        """A file of the build, or the page for a deep link a browser asks for."""
        if path.startswith(("api/", "ws")) or path == "api":
            raise NotFound(f"no such route: /{path[:NAMED_MAX]}")
        file = files.get(path)
        if file is not None and file is not index:
            return file.answer(request)
        if file is not None or path.strip("/") in PAGES or "text/html" in request.headers.get("accept", ""):
            return page(request)
        raise NotFound(f"no such file: /{path[:NAMED_MAX]}")

    return routes
