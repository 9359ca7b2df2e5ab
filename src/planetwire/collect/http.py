"""`PoliteClient`: one conditional, bounded, verified GET, as a provider of public data may expect it.

Invariant: a body is handed out only whole and plausible, and validators only together with the body they belong to.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import httpx

from planetwire import __version__
from planetwire.collect.body import check_looks, sample_of, unpacked
from planetwire.errors import FeedError
from planetwire.model import FetchState
from planetwire.ports import Clock

USER_AGENT = f"planetwire/{__version__}"
TIMEOUT_S = 30.0
WHOLE_ANSWER_S = 300.0
MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_REDIRECTS = 5
MAX_RETRY_AFTER_S = 86_400.0
_LATER = frozenset({408, 425, 429})


class Outcome(StrEnum):
    """What one GET amounted to. `cooldown` is a refusal that means "nothing new, come back later"."""

    FRESH = "fresh"
    NOT_MODIFIED = "not_modified"
    COOLDOWN = "cooldown"
    EMPTY = "empty"
    AUTH_REFUSED = "auth_refused"
    BAD_BODY = "bad_body"
    TRUNCATED = "truncated"
    TRANSIENT = "transient"
    NOT_FOUND = "not_found"


FAILURES = frozenset({Outcome.AUTH_REFUSED, Outcome.BAD_BODY, Outcome.TRUNCATED, Outcome.TRANSIENT, Outcome.NOT_FOUND})


@dataclass(frozen=True, slots=True)
class FetchRules:
    """What is particular about one provider.

    `refusal_cooldown_s`: a 403 means "not modified, ask again after this"; None: it means refused credentials.
    `empty_text`: body of a 404 that means "no data in this format". `first_bytes`: what a body may start with,
    empty = anything but a web page. `empty_ok`: an empty 200 is an answer.
    """

    refusal_cooldown_s: float | None = None
    empty_text: str | None = None
    first_bytes: bytes = b""
    empty_ok: bool = False
    limit_bytes: int = MAX_BODY_BYTES


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result: `body` only when fresh; `state` is what to remember once the body's facts are committed."""

    outcome: Outcome
    body: bytes | None
    state: FetchState
    message: str
    retry_after_s: float | None = None
    answered: bool = True  # False: the request never got an answer

    def raise_failure(self) -> None:
        """Raises FeedError with the outcome as its code, if the outcome is a failure."""
        if self.outcome in FAILURES:
            raise FeedError(
                self.message, code=self.outcome.value, retry_after_s=self.retry_after_s, answered=self.answered
            )


@dataclass(frozen=True, slots=True)
class _Answer:
    """A whole answer as it came: raw bytes, not unpacked."""

    status: int
    headers: httpx.Headers
    raw: bytes

    def text(self, limit_bytes: int) -> bytes:
        return unpacked(self.raw, self.headers.get("content-encoding"), limit_bytes)


class PoliteClient:
    """Own User-Agent, one request per host at a time, time and size limits, no automatic retry."""

    def __init__(self, clock: Clock, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._clock = clock
        self._hosts: dict[str, asyncio.Lock] = {}
        self._client = httpx.AsyncClient(
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "gzip"},
            timeout=TIMEOUT_S,
            follow_redirects=True,
            max_redirects=MAX_REDIRECTS,
            transport=transport,
        )

    async def fetch(
        self, url: str, state: FetchState, rules: FetchRules, *, headers: Mapping[str, str] | None = None
    ) -> Fetched:
        """One GET, conditional on the validators in `state`. Never raises for what the provider did."""
        lock = self._hosts.setdefault(urlsplit(url).netloc, asyncio.Lock())
        try:
            async with lock, asyncio.timeout(WHOLE_ANSWER_S):
                return await self._once(url, state, rules, dict(headers or {}))
        except (TimeoutError, httpx.TimeoutException):
            message = f"no answer in time from {urlsplit(url).netloc}"
            return replace(self._failed(Outcome.TRANSIENT, state, message), answered=False)
        except httpx.RemoteProtocolError as error:
            return self._failed(Outcome.TRUNCATED, state, f"the answer broke off: {error}")
        except httpx.HTTPError as error:
            what = str(error) or type(error).__name__
            message = f"cannot reach {urlsplit(url).netloc}: {what}"
            return replace(self._failed(Outcome.TRANSIENT, state, message), answered=False)

    async def _once(self, url: str, state: FetchState, rules: FetchRules, headers: dict[str, str]) -> Fetched:
        try:
            answer = await self._get(url, headers | _conditions(state), rules.limit_bytes)
            if answer.status == 304 and _newer_date(answer.headers.get("last-modified"), state.last_modified):
                answer = await self._get(url, headers, rules.limit_bytes)  # same ETag, newer date: it did change
            return self._judge(answer, state, rules)
        except FeedError as error:
            return self._failed(Outcome(error.code), state, error.message)

    async def _get(self, url: str, headers: dict[str, str], limit_bytes: int) -> _Answer:
        async with self._client.stream("GET", url, headers=headers) as response:
            parts: list[bytes] = []
            size = 0
            async for part in response.aiter_raw():
                size += len(part)
                if size > limit_bytes:
                    raise FeedError(f"the body is larger than {limit_bytes} bytes", code="bad_body")
                parts.append(part)
            return _Answer(response.status_code, response.headers, b"".join(parts))

    def _judge(self, answer: _Answer, state: FetchState, rules: FetchRules) -> Fetched:
        if answer.status == 304:
            return self._unchanged(answer, state)
        if answer.status in (401, 403):
            return self._refused(answer, state, rules)
        if answer.status in _LATER or answer.status >= 500:
            message = f"status {answer.status}: {sample_of(answer.text(rules.limit_bytes))!r}"
            return self._failed(Outcome.TRANSIENT, state, message, retry_after(answer.headers, self._clock.now()))
        if answer.status in (404, 410):
            return self._missing(answer, state, rules)
        if answer.status not in (200, 203, 204):
            message = f"status {answer.status}: {sample_of(answer.text(rules.limit_bytes))!r}"
            return self._failed(Outcome.BAD_BODY, state, message)
        return self._received(answer, state, rules)

    def _received(self, answer: _Answer, state: FetchState, rules: FetchRules) -> Fetched:
        length = answer.headers.get("content-length")
        if length is not None and length.isdigit() and int(length) != len(answer.raw):
            message = f"{len(answer.raw)} bytes came, {length} were announced"
            return self._failed(Outcome.TRUNCATED, state, message)
        body = answer.text(rules.limit_bytes)
        new = replace(
            self._remembered(answer, FetchState()),
            body_sha256=hashlib.sha256(body).hexdigest(),
            fetched_at=self._clock.now(),
        )
        if not body.strip() and rules.empty_ok:
            return Fetched(Outcome.FRESH, b"", new, "empty")
        content_type = answer.headers.get("content-type")
        check_looks(body, first_bytes=rules.first_bytes, status=answer.status, content_type=content_type)
        if new.body_sha256 == state.body_sha256:
            return Fetched(Outcome.NOT_MODIFIED, None, new, "not modified")
        return Fetched(Outcome.FRESH, body, new, "fresh")

    def _unchanged(self, answer: _Answer, state: FetchState) -> Fetched:
        new = replace(self._remembered(answer, state), fetched_at=self._clock.now(), cooldown_until=None)
        return Fetched(Outcome.NOT_MODIFIED, None, new, "not modified")

    def _refused(self, answer: _Answer, state: FetchState, rules: FetchRules) -> Fetched:
        said = sample_of(answer.text(rules.limit_bytes))
        if answer.status == 403 and rules.refusal_cooldown_s is not None:
            wait_s = retry_after(answer.headers, self._clock.now()) or rules.refusal_cooldown_s
            until = self._clock.now() + timedelta(seconds=wait_s)
            new = replace(state, cooldown_until=until)
            return Fetched(Outcome.COOLDOWN, None, new, f"not modified, the provider says {said!r}", wait_s)
        return self._failed(Outcome.AUTH_REFUSED, state, f"status {answer.status}, credentials refused: {said!r}")

    def _missing(self, answer: _Answer, state: FetchState, rules: FetchRules) -> Fetched:
        body = answer.text(rules.limit_bytes)
        if rules.empty_text and rules.empty_text.encode() in body[:200]:
            return Fetched(Outcome.EMPTY, None, state, f"no data in this format: {sample_of(body)!r}")
        return self._failed(Outcome.NOT_FOUND, state, f"status {answer.status}: {sample_of(body)!r}")

    def _failed(self, outcome: Outcome, state: FetchState, message: str, after_s: float | None = None) -> Fetched:
        until = self._clock.now() + timedelta(seconds=after_s) if after_s else state.cooldown_until
        return Fetched(outcome, None, replace(state, cooldown_until=until), message, after_s)

    @staticmethod
    def _remembered(answer: _Answer, old: FetchState) -> FetchState:
        """Both validators as this answer gives them; one it leaves out keeps its old value."""
        return replace(
            old,
            etag=answer.headers.get("etag") or old.etag,
            last_modified=answer.headers.get("last-modified") or old.last_modified,
        )

    async def aclose(self) -> None:
        """Close the connections. May be called twice."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _conditions(state: FetchState) -> dict[str, str]:
    wanted = {"If-None-Match": state.etag, "If-Modified-Since": state.last_modified}
    return {name: value for name, value in wanted.items() if value}


def _http_date(text: str | None) -> datetime | None:
    try:
        at = parsedate_to_datetime(text) if text else None
    except ValueError:
        return None
    if at is None:
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def _newer_date(new: str | None, old: str | None) -> bool:
    new_at, old_at = _http_date(new), _http_date(old)
    return new_at is not None and old_at is not None and new_at > old_at


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds the provider asks to wait, 0 … one day; None when it does not say or says nonsense."""
    text = (headers.get("retry-after") or headers.get("x-rate-limit-retry-after-seconds") or "").strip()
    if text.isdigit():
        return min(float(text), MAX_RETRY_AFTER_S)
    at = _http_date(text)
    return None if at is None else min(max((at - now).total_seconds(), 0.0), MAX_RETRY_AFTER_S)
