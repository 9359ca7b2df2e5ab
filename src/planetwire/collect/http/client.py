"""`PoliteClient`: one conditional, bounded, verified GET, considerate of providers of public data.

Invariant: a body is returned only complete and plausible, and validators only together with their body.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from types import TracebackType
from typing import Self

import httpx

from planetwire import __version__
from planetwire.collect.formats.body import check_looks, sample_of, without_bom
from planetwire.collect.http.addresses import Resolver, resolve
from planetwire.collect.http.connect import Connections, Gate, Proxies
from planetwire.collect.http.credential import PLAIN, Access, Credential, contains_secret, masked
from planetwire.collect.http.get import Answer, Getter
from planetwire.collect.http.marks import check_marks
from planetwire.collect.http.unpack import ASKED_FOR
from planetwire.errors import FeedError
from planetwire.model import FetchState
from planetwire.ports import Clock
from planetwire.remote import host_of, http_date, plain_header, retry_after

USER_AGENT = f"planetwire/{__version__}"
DEADLINE_S = 300.0  # from the first connection to the last byte, including redirects
MAX_BODY_BYTES = 16 * 1024 * 1024  # as sent and unpacked: twice the largest body of any feed we know
_LATER = frozenset({408, 425, 429})


class Outcome(StrEnum):
    """The result of one GET. `cooldown`: a refusal that means "nothing new, come back later"."""

    FRESH = "fresh"
    NOT_MODIFIED = "not_modified"
    COOLDOWN = "cooldown"
    EMPTY = "empty"
    AUTH_REFUSED = "auth_refused"
    BAD_BODY = "bad_body"
    TRUNCATED = "truncated"
    TRANSIENT = "transient"
    NOT_FOUND = "not_found"
    REDIRECT_REFUSED = "redirect_refused"


FAILURES = frozenset(Outcome) - {Outcome.FRESH, Outcome.NOT_MODIFIED, Outcome.COOLDOWN, Outcome.EMPTY}
FOREIGN = "another host, to which the provider redirects, answers with something that is no data of this feed"


@dataclass(frozen=True, slots=True)
class FetchRules:
    """The peculiarities of one provider.

    `refusal_cooldown_s`: a 403 means "not modified, ask again after this"; None: it means refused credentials.
    `empty_text`: body of a 404 that means "no data in this format". `first_bytes`: allowed first bytes of a body,
    empty = anything but an HTML page. `empty_ok`: an empty 200 is valid. `credential`: how a token is sent, None if
    there is none. `private_ok`: the feed's own address may lead into a private network, as an operator's always may.
    """

    refusal_cooldown_s: float | None = None
    empty_text: str | None = None
    first_bytes: bytes = b""
    empty_ok: bool = False
    limit_bytes: int = MAX_BODY_BYTES
    deadline_s: float = DEADLINE_S
    credential: Credential | None = None
    private_ok: bool = False


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result: `body` only if fresh; `state`: to be stored once the body's facts are committed.

    `foreign`: the body came from another host than the configured one, so no message may quote it. `answered` is False
    without any response: then the request does not count towards the provider's floor.
    """

    outcome: Outcome
    body: bytes | None
    state: FetchState
    message: str
    retry_after_s: float | None = None
    foreign: bool = False
    answered: bool = True

    def redacted(self, error: FeedError) -> FeedError:
        """An error in parsing the body that is safe to show: it never quotes another host's body."""
        return FeedError(FOREIGN, code=error.code, retry_after_s=error.retry_after_s) if self.foreign else error

    def raise_failure(self) -> None:
        """Raises FeedError with the outcome as its code, if the outcome is a failure."""
        if self.outcome in FAILURES:
            raise FeedError(
                self.message, code=self.outcome.value, retry_after_s=self.retry_after_s, answered=self.answered
            )


class PoliteClient:
    """Own User-Agent, one request per host at a time, time and size limits, no automatic retry.

    A connection serves one fetch and is not reused: its allowed address was decided for that fetch.
    """

    def __init__(self, clock: Clock, *, resolver: Resolver = resolve) -> None:
        self._clock = clock
        self._hosts: dict[str, asyncio.Lock] = {}
        self._resolver = resolver
        self._proxies = Proxies()
        self._tls = httpx.create_ssl_context()
        self._headers = {"User-Agent": USER_AGENT, "Accept": "*/*", "Accept-Encoding": ASKED_FOR}

    async def fetch(self, url: str, state: FetchState, rules: FetchRules, access: Access = PLAIN) -> Fetched:
        """One GET, conditional on the validators in `state`. Never raises for what the provider does."""
        lock = self._hosts.setdefault(host_of(url), asyncio.Lock())
        gate = Gate(self._resolver, private_ok=access.own_address)
        try:
            async with lock, asyncio.timeout(rules.deadline_s):
                fetched = await self._once(url, state, rules, access, gate)
        except TimeoutError:
            message = f"no whole answer within {rules.deadline_s:g} s from {host_of(url)}"
            fetched = self._failed(Outcome.TRANSIENT, state, message)
        return replace(fetched, answered=gate.answered)

    async def _once(self, url: str, state: FetchState, rules: FetchRules, access: Access, gate: Gate) -> Fetched:
        connections = Connections(gate, self._tls, self._proxies)
        try:
            getter = Getter(url, access, rules.limit_bytes, gate, connections)
            answer = await getter.get(self._headers | _conditions(state))
            if answer.status == 304 and _newer_date(answer.headers.get("last-modified"), state.last_modified):
                answer = await getter.get(self._headers)  # same ETag, newer date: it has changed
            return self._judge(_without_secrets(answer, getter.secrets), state, rules)
        except FeedError as error:
            return self._failed(Outcome(error.code), state, error.message)
        finally:
            await connections.aclose()

    def _judge(self, answer: Answer, state: FetchState, rules: FetchRules) -> Fetched:
        if answer.status == 304:
            return self._unchanged(answer, state)
        if answer.status in (401, 403):
            return self._refused(answer, state, rules)
        if answer.status in _LATER or answer.status >= 500:
            wait_s = retry_after(answer.headers, self._clock.now())
            return self._failed(Outcome.TRANSIENT, state, f"status {answer.status}{_quoted(answer)}", wait_s)
        if answer.status in (404, 410):
            return self._missing(answer, state, rules)
        if answer.status not in (200, 203, 204):
            return self._failed(Outcome.BAD_BODY, state, f"status {answer.status}{_quoted(answer)}")
        return self._received(answer, state, rules)

    def _received(self, answer: Answer, state: FetchState, rules: FetchRules) -> Fetched:
        body = without_bom(answer.body)
        new = replace(
            self._remembered(answer, FetchState()),
            body_sha256=hashlib.sha256(body).hexdigest(),
            fetched_at=self._clock.now(),
        )
        if not body.strip() and rules.empty_ok:
            return Fetched(Outcome.FRESH, b"", new, "empty")
        _check_body(answer, body, rules)
        if new.body_sha256 == state.body_sha256:
            return Fetched(Outcome.NOT_MODIFIED, None, new, "not modified")
        return Fetched(Outcome.FRESH, body, new, "fresh", foreign=answer.foreign)

    def _unchanged(self, answer: Answer, state: FetchState) -> Fetched:
        new = replace(self._remembered(answer, state), fetched_at=self._clock.now(), cooldown_until=None)
        return Fetched(Outcome.NOT_MODIFIED, None, new, "not modified")

    def _refused(self, answer: Answer, state: FetchState, rules: FetchRules) -> Fetched:
        if answer.status == 403 and rules.refusal_cooldown_s is not None:
            wait_s = retry_after(answer.headers, self._clock.now()) or rules.refusal_cooldown_s
            until = self._clock.now() + timedelta(seconds=wait_s)
            new = replace(state, cooldown_until=until)
            return Fetched(
                Outcome.COOLDOWN, None, new, f"not modified, the provider asks to wait{_quoted(answer)}", wait_s
            )
        message = f"status {answer.status}, credentials refused{_quoted(answer)}"
        return self._failed(Outcome.AUTH_REFUSED, state, message)

    def _missing(self, answer: Answer, state: FetchState, rules: FetchRules) -> Fetched:
        if rules.empty_text and rules.empty_text.encode() in answer.body[:200]:
            return Fetched(Outcome.EMPTY, None, state, f"no data in this format{_quoted(answer)}")
        return self._failed(Outcome.NOT_FOUND, state, f"status {answer.status}{_quoted(answer)}")

    def _failed(self, outcome: Outcome, state: FetchState, message: str, after_s: float | None = None) -> Fetched:
        until = self._clock.now() + timedelta(seconds=after_s) if after_s else state.cooldown_until
        return Fetched(outcome, None, replace(state, cooldown_until=until), message, after_s)

    @staticmethod
    def _remembered(answer: Answer, old: FetchState) -> FetchState:
        """Both validators from this answer; one that is missing or malformed keeps its old value."""
        modified = plain_header(answer.headers.get("last-modified"))
        return replace(
            old,
            etag=plain_header(answer.headers.get("etag")) or old.etag,
            last_modified=(modified if http_date(modified) else None) or old.last_modified,
        )

    async def aclose(self) -> None:
        """Nothing to release: no connection outlives a fetch. Idempotent."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _quoted(answer: Answer) -> str:
    """The provider's text, for a message; nothing from another host."""
    return "" if answer.foreign else f": {sample_of(answer.body)!r}"


def _without_secrets(answer: Answer, secrets: tuple[str, ...]) -> Answer:
    """The answer without our token, or a password of the address: masked in the body, their headers dropped."""
    headers = {name: value for name, value in answer.headers.items() if not contains_secret(value, secrets)}
    return replace(answer, headers=headers, body=masked(answer.body, secrets))


def _check_body(answer: Answer, body: bytes, rules: FetchRules) -> None:
    """Raises FeedError for a body that cannot be data of this feed, or is too large."""
    content_type = plain_header(answer.headers.get("content-type"))
    try:
        check_looks(body, first_bytes=rules.first_bytes, status=answer.status, content_type=content_type)
        check_marks(body, rules.limit_bytes)
    except FeedError as error:
        if answer.foreign:
            raise FeedError(FOREIGN, code=error.code) from error
        raise


def _conditions(state: FetchState) -> dict[str, str]:
    wanted = {"If-None-Match": plain_header(state.etag), "If-Modified-Since": plain_header(state.last_modified)}
    return {name: value for name, value in wanted.items() if value}


def _newer_date(new: str | None, old: str | None) -> bool:
    new_at, old_at = http_date(new), http_date(old)
    return new_at is not None and old_at is not None and new_at > old_at
