"""Who may do what: bearer tokens for programs, a one-time code and a signed cookie for people.

The same checks serve FastAPI routes, the WebSocket and the SSE protocol class: all take plain header values.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from fastapi import Request

from planetwire.errors import Forbidden, InputError, Unauthorised

COOKIE = "planetwire_session"
SESSION_S = 7 * 86_400
CODE_S = 600  # life of a one-time login code
FAILURES_MAX = 10  # wrong credentials of one address per window
FAILURE_WINDOW_S = 60.0
ADDRESSES_MAX = 10_000  # addresses remembered by the failure counter


class TooManyFailures(InputError):
    """Too many wrong credentials from one address; wait a minute."""

    status = 429
    code = "too_many_failures"


@dataclass(slots=True)
class Guard:
    """Checks credentials. `session_key` signs cookies; `login_code` is taken once, within ten minutes."""

    admin_token: str
    ingest_token: str
    session_key: bytes
    public_reads: bool = True
    login_code: str | None = None
    now: Callable[[], float] = time.time
    _issued: float = field(default=0.0, init=False)
    _failures: OrderedDict[str, tuple[float, int]] = field(default_factory=OrderedDict, init=False)

    def __post_init__(self) -> None:
        self._issued = self.now()

    # --- sessions

    def sign_in(self, *, code: str | None, token: str | None, address: str) -> str:
        """Cookie value for a right code or admin token. Raises Unauthorised, TooManyFailures."""
        self._check_rate(address)
        if token is not None and hmac.compare_digest(token, self.admin_token):
            return self._cookie()
        if code is not None and self._take_code(code):
            return self._cookie()
        self._note_failure(address)
        raise Unauthorised("the code is wrong, used or older than ten minutes" if code else "wrong token")

    def _take_code(self, code: str) -> bool:
        current = self.login_code
        if current is None or self.now() - self._issued > CODE_S or not hmac.compare_digest(code, current):
            return False
        self.login_code = None
        return True

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

    def _check_rate(self, address: str) -> None:
        since, count = self._failures.get(address, (0.0, 0))
        if count >= FAILURES_MAX and self.now() - since < FAILURE_WINDOW_S:
            raise TooManyFailures("too many wrong credentials from this address; wait a minute")

    def _note_failure(self, address: str) -> None:
        since, count = self._failures.pop(address, (self.now(), 0))
        if self.now() - since >= FAILURE_WINDOW_S:
            since, count = self.now(), 0
        self._failures[address] = (since, count + 1)
        while len(self._failures) > ADDRESSES_MAX:
            self._failures.popitem(last=False)

    # --- FastAPI dependencies

    async def reader(self, request: Request) -> None:
        """Reading: open, unless PLANETWIRE_PUBLIC_READS is false."""
        self.check_read(request.headers.get("authorization"), request.cookies.get(COOKIE))

    def check_read(self, authorization: str | None, cookie: str | None) -> None:
        """Raises Unauthorised when reads are closed and there are no credentials."""
        if self.public_reads or self.bearer_is(authorization, self.admin_token) or self.session_valid(cookie):
            return
        raise Unauthorised("sign in to read")

    async def admin(self, request: Request) -> None:
        """Writing: bearer admin token, or a session from our own origin."""
        address = request.client.host if request.client else ""
        self._check_rate(address)
        authorization = request.headers.get("authorization")
        if authorization is not None:
            if self.bearer_is(authorization, self.admin_token):
                return
            self._note_failure(address)
            raise Unauthorised("wrong token")
        if not self.session_valid(request.cookies.get(COOKIE)):
            raise Unauthorised("sign in first")
        if not same_origin(request.headers.get("origin"), request.headers.get("host")):
            raise Forbidden("the request comes from another site", code="wrong_origin")

    async def ingest(self, request: Request) -> None:
        """Pushing observations: bearer ingest or admin token."""
        address = request.client.host if request.client else ""
        self._check_rate(address)
        authorization = request.headers.get("authorization")
        if authorization is None:
            raise Unauthorised("an ingest token is needed")
        if not self.bearer_is(authorization, self.ingest_token, self.admin_token):
            self._note_failure(address)
            raise Forbidden("wrong ingest token")


def same_origin(origin: str | None, host: str | None) -> bool:
    """Whether a browser's Origin is the host it spoke to. No Origin: False (a cookie write needs one)."""
    if origin is None or host is None:
        return False
    return origin.partition("://")[2].lower() == host.lower()
