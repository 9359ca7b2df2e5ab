"""Signing in and out: a one-time code or a token becomes a cookie, and the cookie a session that can be ended."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from planetwire.errors import BackendError, InputError
from planetwire.model import Actor
from planetwire.web.access.audit import Notes
from planetwire.web.access.auth import COOKIE, SESSION_S, Guard, TooMany
from planetwire.web.http.answers import answers


class SignIn(BaseModel):
    """Exactly one of the two."""

    model_config = ConfigDict(extra="ignore")
    code: str | None = Field(None, max_length=200)
    token: str | None = Field(None, max_length=200)


def router(
    guard: Guard,
    notes: Notes,
    *,
    halves: list[str],
    simulated: bool,
    version: str,
    room: Callable[[], str | None] = lambda: None,
) -> APIRouter:
    """Routes under /api/v1/session. `room`: what the disk budget says, `near` or `over`."""
    routes = APIRouter(prefix="/api/v1/session", tags=["session"])

    @routes.get("")
    async def show(request: Request) -> dict[str, object]:
        """Whether this browser is signed in, as whom and with which role, and what runs here."""
        actor = await _known(guard, request)
        return {
            "signed_in": actor is not None,
            "who": actor and actor.who,
            "role": actor and actor.role,
            "simulated": simulated,
            "halves": halves,
            "version": version,
            "disk": room() if actor is not None else None,
        }

    @routes.post("", status_code=204, responses=answers(401, 429))
    async def sign_in(body: SignIn, request: Request) -> Response:
        """Exchange a code or token for a cookie."""
        if (body.code is None) == (body.token is None):
            raise InputError("give either code or token")
        address = guard.caller(request).address
        try:
            cookie = await guard.sign_in(code=body.code, token=body.token, address=address)
        except InputError as error:
            await notes.refused(address, error.code)
            raise
        actor = await guard.holder_of(cookie, address)
        if actor is not None:
            await notes.note(actor, "session.opened", proof="code" if body.code is not None else "token")
        response = Response(status_code=204)
        secure = request.scope["scheme"] == "https"
        response.set_cookie(
            COOKIE, cookie, max_age=SESSION_S, httponly=True, samesite="strict", secure=secure, path="/"
        )
        return response

    @routes.delete("", status_code=204)
    async def sign_out(request: Request, all: bool = False) -> Response:
        """End this session; with `all` every session of everybody, which needs the role admin."""
        cookie = request.cookies.get(COOKIE)
        if all:
            await notes.note(await guard.admin(request), "session.ended", sessions="all")
            await guard.sessions.end_all()
        else:
            actor = await guard.holder_of(cookie, guard.caller(request).address)
            if actor is not None:  # noted first, like every act: what nothing notes does not happen
                await notes.note(actor, "session.ended")
            await guard.sign_out(cookie)
        response = Response(status_code=204)
        response.delete_cookie(COOKIE, path="/")
        return response

    return routes


async def _known(guard: Guard, request: Request) -> Actor | None:
    """None also for wrong credentials, and while nobody can tell whose they are."""
    try:
        return await guard.known(guard.caller(request))
    except TooMany:
        raise
    except (InputError, BackendError):
        return None
