"""`FeedCollector`: runs one feed of facts once and hands its rows over in batches.

Invariant: validators, and the right to sweep, go out only with the last batch of a body that was whole.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import cast

from planetwire.collect.feeds import FactFeed, feed_named
from planetwire.collect.http import FAILURES, Fetched, FetchRules, Outcome, PoliteClient
from planetwire.errors import FeedError
from planetwire.log import get_logger
from planetwire.model import Batch, Fact, FetchState, Parsed
from planetwire.ports import BodyStore, Clock
from planetwire.settings import Settings

log = get_logger()

EARLY_SHARE = 0.1  # a scheduled run may come this share of the floor early: its timer has jitter


@dataclass(frozen=True, slots=True)
class FeedCollector:
    """Port Collector over HTTP."""

    feeds: Mapping[str, FactFeed]
    client: PoliteClient
    bodies: BodyStore
    clock: Clock
    settings: Settings

    async def batches(self, source: str, state: FetchState | None, *, manual: bool) -> AsyncGenerator[Batch, None]:
        """See the port. Inside a floor or a cooldown there is no request: only a message, or the kept body again."""
        feed = feed_named(source, self.feeds)
        state = state or FetchState()
        until = self._quiet_until(feed, state, manual=manual)
        if until is not None:
            async for batch in self._without_request(feed, state, f"cooldown until {_text(until)}"):
                yield batch
            return
        async for batch in self._with_request(feed, state):
            yield batch

    def _quiet_until(self, feed: FactFeed, state: FetchState, *, manual: bool) -> datetime | None:
        """When the next request is allowed, if that is later than now."""
        floor_s = self._floor_s(feed) * (1.0 if manual else 1.0 - EARLY_SHARE)
        times = [state.fetched_at + timedelta(seconds=floor_s)] if state.fetched_at else []
        times += [state.cooldown_until] if state.cooldown_until else []
        latest = max(times, default=None)
        return latest if latest is not None and latest > self.clock.now() else None

    def _floor_s(self, feed: FactFeed) -> float:
        own = self.settings.feed(feed.source).floor_s
        return feed.floor_s if own is None else own

    def _rules(self, feed: FactFeed) -> FetchRules:
        """The provider's rules; an operator who sets the floor also sets how long a refusal lasts."""
        if feed.rules.refusal_cooldown_s is None:
            return feed.rules
        return replace(feed.rules, refusal_cooldown_s=self._floor_s(feed))

    async def _without_request(self, feed: FactFeed, state: FetchState, why: str) -> AsyncGenerator[Batch, None]:
        body = await asyncio.to_thread(self.bodies.load, feed.source) if state.void else None
        if body is None:
            yield Batch(facts=(), message=why)
            return
        log.info("collect.body.applied_again", source=feed.source, reason=why)
        async for batch in self._of_body(feed, body, _state_of_kept(state, body), f"kept data applied again; {why}"):
            yield batch

    async def _with_request(self, feed: FactFeed, state: FetchState) -> AsyncGenerator[Batch, None]:
        conditions = FetchState() if state.void else state
        url = self.settings.feed(feed.source).url or feed.default_url
        fetched = await self.client.fetch(url, conditions, self._rules(feed))
        log.info("collect.feed.fetched", source=feed.source, outcome=fetched.outcome.value, message=fetched.message)
        if fetched.outcome in FAILURES:
            if fetched.retry_after_s is not None:
                yield _remembering(state, fetched)
            fetched.raise_failure()
        if fetched.outcome is Outcome.FRESH and fetched.body is not None:
            async for batch in self._of_body(feed, fetched.body, fetched.state, None):
                yield batch
        elif state.void and fetched.outcome is not Outcome.EMPTY:
            asked = replace(state, cooldown_until=fetched.state.cooldown_until)
            yield Batch(facts=(), state=asked)
            async for batch in self._without_request(feed, asked, _message(fetched)):
                yield batch
        else:
            yield Batch(facts=(), state=fetched.state, message=_message(fetched))

    async def _of_body(
        self, feed: FactFeed, body: bytes, state: FetchState, message: str | None
    ) -> AsyncGenerator[Batch, None]:
        parsed = await asyncio.to_thread(feed.parse, body, self.clock.now())
        if parsed.rejects and not parsed.rows:
            first = parsed.rejects[0]
            raise FeedError(f"all {len(parsed.rejects)} records refused, first: {first.reason}", code="bad_body")
        # On disk before the batch that says so; beside the batches before it, since a disk takes its time.
        saving = (
            asyncio.ensure_future(asyncio.to_thread(self.bodies.save, feed.source, body)) if parsed.complete else None
        )
        try:
            for batch in _split(feed, parsed, state, self.settings.jobs.batch_rows, message):
                if batch.complete and saving is not None:
                    await saving
                yield batch
        finally:
            if saving is not None:
                await saving


def _split(feed: FactFeed, parsed: Parsed, state: FetchState, batch_rows: int, message: str | None) -> Iterator[Batch]:
    facts = cast("list[Fact]", list(parsed.rows))
    total = len(facts)
    last_start = max(total - 1, 0) // batch_rows * batch_rows
    for start in range(0, last_start, batch_rows):
        yield Batch(facts=facts[start : start + batch_rows], total_hint=total)
    keys = frozenset(fact.external_key for fact in facts) | parsed.refused_keys
    yield Batch(
        facts=facts[last_start:],
        rejects=parsed.rejects,
        total_hint=total,
        complete=parsed.complete,
        sweep_keys=keys if feed.sweeps and parsed.complete else None,
        state=state if parsed.complete else None,
        message="; ".join(part for part in (_summary(parsed), message) if part),
        tombstones=parsed.tombstones,
    )


def _summary(parsed: Parsed) -> str:
    parts = [f"{len(parsed.rows)} records"]
    parts += [f"{len(parsed.rejects)} rejected"] if parsed.rejects else []
    parts += [f"{count} {name.replace('_', ' ')}" for name, count in sorted(parsed.notes.items()) if count]
    parts += [] if parsed.complete else ["the body was not whole, nothing was swept"]
    return ", ".join(parts)


def _remembering(state: FetchState, fetched: Fetched) -> Batch:
    """No rows: only the time before which the provider does not want to be asked again."""
    return Batch(facts=(), state=replace(state, cooldown_until=fetched.state.cooldown_until))


def _state_of_kept(state: FetchState, body: bytes) -> FetchState:
    """Validators stay valid only for the body they came with; a newer one may lie on disk after a cancel."""
    sha256 = hashlib.sha256(body).hexdigest()
    if sha256 == state.body_sha256:
        return replace(state, void=False)
    return FetchState(body_sha256=sha256, fetched_at=state.fetched_at, cooldown_until=state.cooldown_until)


def _message(fetched: Fetched) -> str:
    until = fetched.state.cooldown_until
    return fetched.message if until is None else f"{fetched.message}; cooldown until {_text(until)}"


def _text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
