"""Problem documents in the API description: the error responses of a route."""

from __future__ import annotations

from typing import Any

from planetwire.model import Json
from planetwire.web.http.problems import MEDIA_TYPE

WHY = {
    400: "What was sent cannot be accepted",
    401: "No credentials, or wrong ones",
    403: "Not allowed, or asked from another site",
    404: "No such thing",
    406: "Accept-Encoding refuses every coding there is",
    409: "The present state forbids it",
    412: "Somebody else changed it since the caller looked",
    413: "The body is larger than the route allows",
    428: "It replaces something, and If-Match does not say what",
    429: "Too many wrong credentials from this address",
    503: "A store of ours does not answer; try again later",
}


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Problem documents of a route beyond the common ones, for its `responses`."""
    return {status: problem(status) for status in statuses}


def problem(status: int) -> Json:
    """One of them."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": WHY[status], "content": content}
