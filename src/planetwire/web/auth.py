"""Who may do what: bearer tokens for programs, a one-time code and a signed cookie for people.

The same checks serve FastAPI routes, the WebSocket and the SSE protocol class: all take plain header values.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from fastapi import Request

from planetwire.errors import Forbidden, InputError, Unauthorised
from planetwire.model import Actor, Role
from planetwire.web.codes_memory import MemoryCodes
from planetwire.web.failures_memory import MemoryBrake

COOKIE = "planetwire_session"
SESSION_S = 7 * 86_400


class FailureBrake(Protocol):
    """Slows down guessing: counts wrong credentials of an address within a window."""

    async def note(self, address: str) -> None:
        """One more wrong try."""

    async def closed(self, address: str) -> bool:
        """Whether the address has to wait."""


class LoginCodes(Protocol):
    """One-time codes. Each is taken at most once, in whatever process, and only for ten minutes."""

    async def offer(self, code: str) -> None:
        """From now on it can be taken."""

    async def take(self, code: str) -> bool:
        """Whether it was offered and not taken yet; it is taken then."""


class TooManyFailures(InputError):
    """Too many wrong credentials from one address; wait a minute."""

    status = 429
    code = "too_many_failures"


@dataclass(slots=True)
class Guard:
    """Checks credentials. `session_key` signs cookies; where codes and failures are kept is not its business."""

    admin_token: str
    ingest_token: str
    session_key: bytes
    public_reads: bool = True
    codes: LoginCodes = field(default_factory=MemoryCodes)
    brake: FailureBrake = field(default_factory=MemoryBrake)
    now: Callable[[], float] = time.time

    # --- sessions

    async def sign_in(self, *, code: str | None, token: str | None, address: str) -> str:
        """Cookie value for a right code or admin token. Raises Unauthorised, TooManyFailures."""
        await self._check_rate(address)
        if token is not None and hmac.compare_digest(token.encode(), self.admin_token.encode()):
            return self._cookie()
        if code is not None and await self.codes.take(code):
            return self._cookie()
        await self.brake.note(address)
        raise Unauthorised("the code is wrong, used or older than ten minutes" if code else "wrong token")

    def _cookie(self) -> str:
        text = f"{int(self.now()) + SESSION_S}.{secrets.token_urlsafe(9)}"
        return f"{text}.{self._signature(text)}"

    def _signature(self, text: str) -> str:
        return hmac.new(self.session_key, text.encode(), hashlib.sha256).hexdigest()

    def session_valid(self, cookie: str | None) -> bool:
        """Whether the cookie is ours and not expired."""
        text, _, signature = (cookie or "").rpartition(".")
        if not text or not hmac.compare_digest(signature, self._signature(text)):
            return False
        expiry = text.split(".")[0]
        return expiry.isdigit() and int(expiry) > self.now()

    # --- tokens

    def bearer_is(self, header: str | None, *tokens: str) -> bool:
        """Whether an Authorization header carries one of the tokens."""
        scheme, _, given = (header or "").partition(" ")
        given = given.strip()
        matches = [hmac.compare_digest(given.encode(), token.encode()) for token in tokens]  # all, in constant time
        return scheme.lower() == "bearer" and bool(given) and any(matches)

    async def _check_rate(self, address: str) -> None:
        if await self.brake.closed(address):
            raise TooManyFailures("too many wrong credentials from this address; wait a minute")

    # --- FastAPI dependencies

    async def reader(self, request: Request) -> None:
        """Reading: open, unless PLANETWIRE_PUBLIC_READS is false."""
        self.check_read(request.headers.get("authorization"), request.cookies.get(COOKIE))

    def check_read(self, authorization: str | None, cookie: str | None) -> None:
        """Raises Unauthorised when reads are closed and there are no credentials."""
        if self.public_reads or self.bearer_is(authorization, self.admin_token) or self.session_valid(cookie):
            return
        raise Unauthorised("sign in to read")

    async def operator(self, request: Request) -> Actor:
        """Jobs and sources: who may run, stop and set them."""
        return await self.admin(request)

    async def admin(self, request: Request) -> Actor:
        """Writing: bearer admin token, or a session from our own origin."""
        address = request.client.host if request.client else ""
        await self._check_rate(address)
        authorization = request.headers.get("authorization")
        if authorization is not None:
            if self.bearer_is(authorization, self.admin_token):
                return Actor("admin token", Role.ADMIN, address)
            await self.brake.note(address)
            raise Unauthorised("wrong token")
        if not self.session_valid(request.cookies.get(COOKIE)):
            raise Unauthorised("sign in first")
        reads = request.method in ("GET", "HEAD")  # a page's own reading carries no Origin, and changes nothing
        if not reads and not same_origin(request.headers.get("origin"), request.headers.get("host")):
            raise Forbidden("the request comes from another site", code="wrong_origin")
        return Actor("session", Role.ADMIN, address)

    async def check_ingest(self, authorization: str | None, address: str) -> None:
        """Pushing observations: bearer ingest or admin token. Raises Unauthorised, Forbidden, TooManyFailures."""
        await self._check_rate(address)
        if authorization is None:
            raise Unauthorised("an ingest token is needed")
        if not self.bearer_is(authorization, self.ingest_token, self.admin_token):
            await self.brake.note(address)
            raise Forbidden("wrong ingest token")


def same_origin(origin: str | None, host: str | None) -> bool:
    """Whether a browser's Origin is the host it spoke to. No Origin: False (a cookie write needs one)."""
    if origin is None or host is None:
        return False
    return origin.partition("://")[2].lower() == host.lower()
