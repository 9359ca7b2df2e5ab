"""The built front end: hashed files for ever, `index.html` never, deep links answered with the page."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse, HTMLResponse

from planetwire.errors import NotFound

STATIC = Path(__file__).parent / "static"
IMMUTABLE = "public, max-age=31536000, immutable"
PAGES = ("", "earth", "terminal")
NOT_BUILT = """<!doctype html><title>Planetwire</title><p>The front end is not built.
Run <code>make setup</code>, or install a released wheel. The API is described at
<a href="/api/openapi.json">/api/openapi.json</a>.</p>"""


def router(static: Path = STATIC) -> APIRouter:
    """The catch-all; include it last."""
    routes = APIRouter(include_in_schema=False)

    def page() -> Response:
        index = static / "index.html"
        if not index.exists():
            return HTMLResponse(NOT_BUILT, status_code=503)
        return FileResponse(
            index,
            media_type="text/html",
            headers={"Cache-Control": "no-cache"},
        )

    @routes.api_route("/{path:path}", methods=["GET", "HEAD"])
    async def serve(path: str, request: Request) -> Response:
        """A file of the build, or the page for a deep link a browser asks for."""
        if path.startswith(("api/", "ws")) or path == "api":
            raise NotFound(f"no such route: /{path}")
        file = (static / path).resolve()
        if path and file.is_relative_to(static.resolve()) and file.is_file():
            hashed = path.startswith("assets/")
            return FileResponse(file, headers={"Cache-Control": IMMUTABLE if hashed else "no-cache"})
        if path.strip("/") in PAGES or "text/html" in request.headers.get("accept", ""):
            return page()
        raise NotFound(f"no such file: /{path}")

    return routes
