"""Access checks: tokens for programs, sessions for people, and users signed in by a trusted proxy.

The same checks serve FastAPI routes, the WebSocket and the SSE protocol class: all take plain header values.

Invariants: a valid token is never rate-limited, since it is compared before failures are counted; a session is looked
up, so that it can be ended, and is bound to the token it was opened with; requests by cookie or proxy sign-in may write
only from our own pages (same origin).
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network

from fastapi import Request

from planetwire.errors import BackendError, Forbidden, InputError, Unauthorised
from planetwire.model import Actor, Role
from planetwire.ports import Holder, Limit, Limits, LoginCodes, Session, Sessions, TokenBook
from planetwire.web.access.caller import Caller, caller_of, caller_of_request
from planetwire.web.access.caller import same_origin as same_origin
from planetwire.web.access.cookie import COOKIE as COOKIE
from planetwire.web.access.cookie import new_cookie, session_key
from planetwire.web.access.holders import Holders, NoTokens, same
from planetwire.web.http.proxies import NOBODY, RANKS, TrustedProxies
from planetwire.web.stores.codes_memory import MemoryCodes
from planetwire.web.stores.limits_memory import MemoryLimits
from planetwire.web.stores.sessions_memory import MemorySessions

SESSION_S = 7 * 86_400
LOGIN_CODE = "login code"
IPV6_PREFIX = 64  # usually one subscriber, who can use every address of it

Headers = Sequence[tuple[bytes, bytes]]


class TooMany(InputError):
    """A limit is reached, for `retry_after_s`."""

    status = 429

    def __init__(self, message: str, *, code: str, retry_after_s: float) -> None:
        super().__init__(message, code=code)
        self.retry_after_s = retry_after_s


@dataclass(slots=True)
class Guard:
    """Checks credentials. `session_key` signs cookies; sessions and counts are stored behind ports."""

    admin_token: str
    ingest_token: str
    session_key: bytes
    public_reads: bool = True
    codes: LoginCodes = field(default_factory=MemoryCodes)
    limits: Limits = field(default_factory=MemoryLimits)
    sessions: Sessions = field(default_factory=MemorySessions)
    operator_token: str | None = None
    viewer_token: str | None = None
    named: TokenBook = field(default_factory=NoTokens)
    proxies: TrustedProxies = NOBODY
    public_diagnostics: bool = True
    now: Callable[[], float] = time.time
    holders: Holders = field(init=False)

    def __post_init__(self) -> None:
        self.holders = Holders(self.admin_token, self.operator_token, self.viewer_token, self.named)

    # --- sessions

    async def sign_in(self, *, code: str | None, token: str | None, address: str) -> str:
        """Cookie value for a right code or token. Raises Unauthorised, TooMany, BackendError."""
        if token is not None:
            holder = self.holders.of_token(token)
            if holder is None:
                await self._count_failure(address)
                raise Unauthorised("wrong token")
            return await self._open(holder.who, holder.digest)
        await self._count_failure(address)  # before it is compared: codes are short enough to guess
        if code is None or not await self.codes.take(code):
            raise Unauthorised("the code is wrong, used or older than ten minutes")
        return await self._open(LOGIN_CODE, "")

    async def _open(self, who: str, digest: str) -> str:
        cookie = new_cookie(self.session_key)
        key = session_key(self.session_key, cookie)
        assert key is not None
        await self.sessions.open(key, Session(who, self._bound(digest), self.now() + SESSION_S))
        return cookie

    def _bound(self, digest: str) -> str:
        """What a session is bound to: a changed token ends the sessions of the old one."""
        text = f"{self.admin_token}\0{digest}".encode("utf-8", "surrogatepass")
        return hmac.new(self.session_key, text, hashlib.sha256).hexdigest()

    async def sign_out(self, cookie: str | None) -> None:
        """End the session, if there is one. Raises BackendError when that cannot be done now."""
        key = session_key(self.session_key, cookie)
        if key is not None:
            await self.sessions.end(key)

    async def holder_of(self, cookie: str | None, address: str) -> Actor | None:
        """The holder of the session; None without one. Raises BackendError."""
        found = await self._of_session(cookie)
        return Actor(*found, address) if found is not None else None

    async def _of_session(self, cookie: str | None) -> tuple[str, Role] | None:
        key = session_key(self.session_key, cookie)
        session = await self.sessions.find(key) if key is not None else None
        if session is None:
            return None
        if session.who == LOGIN_CODE:
            holder: Holder | None = Holder(LOGIN_CODE, Role.ADMIN, "")
        else:
            holder = self.holders.of_name(session.who)
        if holder is None or not same(session.bound, self._bound(holder.digest)):
            return None
        return holder.who, holder.role

    # --- identity

    def caller(self, request: Request) -> Caller:
        """What a route's request says of its sender."""
        return caller_of_request(request, self.proxies)

    def caller_of(self, headers: Headers, peer: str | None) -> Caller:
        """The same from plain headers, for read access."""
        return caller_of(headers, peer, self.proxies)

    async def known(self, caller: Caller) -> Actor | None:
        """The actor; None without credentials. Raises Unauthorised, Forbidden, TooMany, BackendError."""
        if caller.bearer is not None or (caller.authorization is not None and caller.user is None):
            return await self._of_bearer(caller)
        found = await self._of_session(caller.cookie) if caller.cookie else None
        found = found or caller.user
        if found is None:
            return None
        if caller.writes and not same_origin(caller.origin, caller.host):
            raise Forbidden("the request comes from another site", code="wrong_origin")
        return Actor(found[0], found[1], caller.address)

    async def _of_bearer(self, caller: Caller) -> Actor:
        token = caller.bearer or ""
        holder = self.holders.of_token(token)
        if holder is not None:
            return Actor(holder.who, holder.role, caller.address)
        if token and same(token, self.ingest_token):
            raise Forbidden("the ingest token pushes observations and does nothing else", code="role_too_small")
        await self._count_failure(caller.address)
        raise Unauthorised("wrong token")

    async def _count_failure(self, address: str) -> None:
        wait_s = await self.limits.take(Limit.SIGN_IN, limit_key(address))
        if wait_s:
            text = "too many wrong credentials from this address; wait a minute"
            raise TooMany(text, code="too_many_failures", retry_after_s=wait_s)

    async def _at_least(self, request: Request, role: Role) -> Actor:
        actor = await self.known(self.caller(request))
        if actor is None:
            raise Unauthorised("sign in first")
        if RANKS[actor.role] < RANKS[role]:
            raise Forbidden(f"this needs the role {role}; yours is {actor.role}", code="role_too_small")
        return actor

    # --- FastAPI dependencies

    async def viewer(self, request: Request) -> Actor:
        """What is not for everybody to look at."""
        return await self._at_least(request, Role.VIEWER)

    async def operator(self, request: Request) -> Actor:
        """Jobs and sources: who may run, stop and set them."""
        return await self._at_least(request, Role.OPERATOR)

    async def admin(self, request: Request) -> Actor:
        """Everything: the canary, the sessions of others."""
        return await self._at_least(request, Role.ADMIN)

    async def reader(self, request: Request) -> None:
        """Reading: open, unless PLANETWIRE_PUBLIC_READS is false."""
        if not self.public_reads:
            await self.viewer(request)

    async def diagnostics(self, request: Request) -> None:
        """The diagnostic and the metrics: open where PLANETWIRE_PUBLIC_DIAGNOSTICS is on."""
        if not (self.public_diagnostics and self.public_reads):
            await self.viewer(request)

    # --- without a request

    async def check_read(self, caller: Caller) -> None:
        """Raises Unauthorised when reads are closed and there are no credentials."""
        if not self.public_reads and await self.known(caller) is None:
            raise Unauthorised("sign in to read")

    async def sees_errors(self, caller: Caller) -> bool:
        """Whether the caller may see error texts, which may reveal details of the installation.

        Never raises: wrong credentials count as none.
        """
        if self.public_diagnostics:
            return True
        try:
            return await self.known(caller) is not None
        except (InputError, BackendError):
            return False

    async def check_ingest(self, authorization: str | None, address: str) -> None:
        """Pushing observations: bearer ingest or admin token. Raises Unauthorised, Forbidden, TooMany."""
        token = Caller(address, authorization).bearer
        if authorization is None:
            raise Unauthorised("an ingest token is needed")
        if token is None or not (same(token, self.ingest_token) or self._is_admin(token)):
            await self._count_failure(address)
            raise Forbidden("wrong ingest token")
        wait_s = await self.limits.take(Limit.INGEST, limit_key(address))
        if wait_s:
            raise TooMany("too many pushes from this address", code="too_many_pushes", retry_after_s=wait_s)

    def _is_admin(self, token: str) -> bool:
        holder = self.holders.of_token(token)
        return holder is not None and holder.role is Role.ADMIN

    async def check_opening(self, address: str) -> None:
        """One more live connection. Raises TooMany."""
        wait_s = await self.limits.take(Limit.STREAM, limit_key(address))
        if wait_s:
            text = "too many connections opened from this address"
            raise TooMany(text, code="too_many_openings", retry_after_s=wait_s)


def limit_key(address: str) -> str:
    """The key under which an address is rate-limited."""
    if ":" not in address:
        return address
    try:
        return str(ip_network(f"{address}/{IPV6_PREFIX}", strict=False))
    except ValueError:
        return address
