"""The FastAPI application: routers in order, problem documents, the page last."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from fastapi import APIRouter, FastAPI

from planetwire.web import docs_page, openapi, spa
from planetwire.web.http import problems
from planetwire.web.http.head import HeadAsGet
from planetwire.web.http.legible import Legible
from planetwire.web.http.security import ContentPolicy


def create(
    routers: Sequence[APIRouter], version: str, *, public_reads: bool = True, public_diagnostics: bool = True
) -> FastAPI:
    """The application. The page answers whatever no router before it takes."""
    app = FastAPI(
        title="Planetwire",
        version=version,
        openapi_url=openapi.PATH,
        docs_url=None,
        redoc_url=None,
    )
    app.add_middleware(HeadAsGet)
    app.add_middleware(Legible)
    app.add_middleware(ContentPolicy)
    problems.install(app)
    for router in routers:
        app.include_router(router)
    rights = {"public_reads": public_reads, "public_diagnostics": public_diagnostics}
    app.openapi = cache(lambda: openapi.describe(app, **rights))  # type: ignore[method-assign]
    app.include_router(docs_page.router(app.openapi))
    app.include_router(spa.router())
    return app
