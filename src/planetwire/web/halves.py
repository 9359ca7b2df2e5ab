"""Routes of a half that is switched off answer 404 `half_disabled`, so that it is not mistaken for a wrong path."""

from __future__ import annotations

from fastapi import APIRouter

from planetwire.errors import NotFound

EARTH_ROUTES = (
    "/api/v1/layers",
    "/api/v1/visualization/{rest:path}",
    "/api/v1/jobs",
    "/api/v1/jobs/{rest:path}",
    "/api/v1/search",
    "/api/v1/objects/{rest:path}",
    "/ws",
)
TERMINAL_ROUTES = (
    "/api/scan/{rest:path}",
    "/api/city/{rest:path}",
    "/api/cities",
    "/api/cities/{rest:path}",
    "/api/events",
    "/api/internal/{rest:path}",
)


def router(half: str) -> APIRouter:
    """Stand-ins for the routes of `earth` or `terminal`."""
    routes = APIRouter(include_in_schema=False)

    async def disabled() -> None:
        raise NotFound(f"the {half} half is off on this installation", code="half_disabled")

    for path in EARTH_ROUTES if half == "earth" else TERMINAL_ROUTES:
        routes.add_api_route(path, disabled, methods=["GET", "HEAD", "POST", "PATCH", "DELETE"])
    return routes
