"""Errors as `application/problem+json` with a stable `code`, the same for every route."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from planetwire.errors import BackendError, PlanetwireError
from planetwire.log import get_logger
from planetwire.text.printable import printable

log = get_logger()

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 5
DETAIL_MAX = 1_000  # characters
_CODES = {400: "bad_json", 404: "not_found", 405: "method_not_allowed", 401: "unauthorised", 403: "forbidden"}


def problem(
    status: int,
    code: str,
    detail: str,
    headers: dict[str, str] | None = None,
    extra: Mapping[str, object] | None = None,
) -> JSONResponse:
    """One problem document; `extra`: further members. The detail may quote the request, so it is sanitised."""
    title, detail = code.replace("_", " "), printable(detail, DETAIL_MAX)
    ours = {"type": "about:blank", "status": status, "code": code, "title": title, "detail": detail}
    body = dict(extra or {}) | ours
    return JSONResponse(body, status, headers, MEDIA_TYPE)


def of_error(error: PlanetwireError, path: str) -> JSONResponse:
    """The problem document of one of our errors; 5xx are logged."""
    wait_s = getattr(error, "retry_after_s", None) or (RETRY_AFTER_S if isinstance(error, BackendError) else None)
    headers = {"Retry-After": str(math.ceil(wait_s))} if wait_s is not None else None
    if error.status >= 500:
        log.error("web.request.failed", path=path, code=error.code, error=error.message)
    if error.status == 401:
        headers = {"WWW-Authenticate": "Bearer"}
    return problem(error.status, error.code, error.message, headers, error.extensions)


async def _ours(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, PlanetwireError)
    return of_error(error, request.scope["path"])


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
    code = "bad_json" if first["type"] == "json_invalid" else "bad_request"
    return problem(400, code, f"{where}: {first['msg']}")


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "http_error")
    return problem(error.status_code, code, str(error.detail), dict(error.headers or {}))


async def _gone(request: Request, error: Exception) -> Response:
    """The client disconnected before its body arrived: no error, and no one to read the answer."""
    return Response(status_code=400)


async def _bug(request: Request, error: Exception) -> JSONResponse:
    log.error("web.request.crashed", path=request.scope["path"], exc_info=error)
    return problem(500, "internal", "an error of ours; the log has the details")


def install(app: FastAPI) -> None:
    """Make every error of the application a problem document."""
    app.add_exception_handler(PlanetwireError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _bug)
