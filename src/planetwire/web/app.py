"""The FastAPI application: routers in order, problem documents, the page last."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, FastAPI

from planetwire.web import problems, spa
from planetwire.web.head import HeadAsGet
from planetwire.web.security import ContentPolicy


def create(routers: Sequence[APIRouter], version: str) -> FastAPI:
    """The application. The page answers whatever no router before it takes."""
    app = FastAPI(
        title="Planetwire",
        version=version,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.add_middleware(HeadAsGet)
    app.add_middleware(ContentPolicy)
    problems.install(app)
    for router in routers:
        app.include_router(router)
    app.include_router(spa.router())
    return app
