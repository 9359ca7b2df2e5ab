"""Signing in and out: a one-time code or the admin token becomes a cookie."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from planetwire.errors import InputError
from planetwire.model import Actor, Role
from planetwire.web.audit import Notes
from planetwire.web.auth import COOKIE, SESSION_S, Guard


class SignIn(BaseModel):
    """Exactly one of the two."""

    model_config = ConfigDict(extra="ignore")
    code: str | None = Field(None, max_length=200)
    token: str | None = Field(None, max_length=200)


def router(guard: Guard, notes: Notes, *, halves: list[str], simulated: bool, version: str) -> APIRouter:
    """Routes under /api/v1/session."""
    routes = APIRouter(prefix="/api/v1/session", tags=["session"])

    @routes.get("")
    async def show(request: Request) -> dict[str, object]:
        """Whether this browser is signed in, and what runs here."""
        signed_in = guard.session_valid(request.cookies.get(COOKIE)) or guard.bearer_is(
            request.headers.get("authorization"), guard.admin_token
        )
        return {"signed_in": signed_in, "simulated": simulated, "halves": halves, "version": version}

    @routes.post("", status_code=204)
    async def sign_in(body: SignIn, request: Request) -> Response:
        """Exchange a code or token for a cookie."""
        if (body.code is None) == (body.token is None):
            raise InputError("give either code or token")
        address = request.client.host if request.client else ""
        try:
            cookie = await guard.sign_in(code=body.code, token=body.token, address=address)
        except InputError as error:
            await notes.refused(address, error.code)
            raise
        proof = "code" if body.code is not None else "token"
        await notes.note(Actor("admin token", Role.ADMIN, address), "session.opened", proof=proof)
        response = Response(status_code=204)
        secure = request.url.scheme == "https"
        response.set_cookie(
            COOKIE, cookie, max_age=SESSION_S, httponly=True, samesite="strict", secure=secure, path="/"
        )
        return response

    @routes.delete("", status_code=204)
    async def sign_out(request: Request) -> Response:
        """Forget the cookie."""
        if guard.session_valid(request.cookies.get(COOKIE)):
            address = request.client.host if request.client else ""
            await notes.note(Actor("session", Role.ADMIN, address), "session.ended")
        response = Response(status_code=204)
        response.delete_cookie(COOKIE, path="/")
        return response

    return routes
