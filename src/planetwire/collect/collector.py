"""`FeedCollector`: runs one feed of facts once and yields its rows in batches.

Invariant: validators, and the permission to sweep, come only with the last batch of a complete body.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Set
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from planetwire.collect.feeds import FactFeed, access_to, address_of, feed_named, rules_of
from planetwire.collect.formats.body import sample_of
from planetwire.collect.formats.pieces import Piece, prefetched
from planetwire.collect.http.client import FAILURES, Fetched, FetchRules, Outcome, PoliteClient
from planetwire.collect.http.slots import filled, has_slots
from planetwire.errors import FeedError
from planetwire.log import get_logger
from planetwire.model import Batch, FetchState, Parsed, Reject
from planetwire.ports import BodyStore, Clock
from planetwire.settings import Settings
from planetwire.text.reject_counts import rejected_text

log = get_logger()

EARLY_SHARE = 0.1  # share of the floor by which a scheduled run may be early: its timer has jitter


@dataclass(frozen=True, slots=True)
class FeedCollector:
    """Port Collector over HTTP."""

    feeds: Mapping[str, FactFeed]
    client: PoliteClient
    bodies: BodyStore
    clock: Clock
    settings: Settings

    async def batches(self, source: str, state: FetchState | None, *, manual: bool) -> AsyncGenerator[Batch, None]:
        """See the port. Within floor or cooldown it sends no request: only a message, or the stored body again."""
        feed = feed_named(source, self.feeds)
        state = state or FetchState()
        until = self._quiet_until(feed, state, manual=manual)
        if until is None:
            batches = self._with_request(feed, state)
        else:
            batches = self._without_request(feed, state, f"cooldown until {_text(until)}")
        async with aclosing(batches):
            async for batch in batches:
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
        """The provider's rules; the operator's floor also replaces the cooldown of a refusal."""
        rules = rules_of(feed, self.settings.feed(feed.source))
        if rules.refusal_cooldown_s is None:
            return rules
        return replace(rules, refusal_cooldown_s=self._floor_s(feed))

    async def _without_request(self, feed: FactFeed, state: FetchState, why: str) -> AsyncGenerator[Batch, None]:
        body = await asyncio.to_thread(self.bodies.load, feed.source) if state.void else None
        if body is None:
            yield Batch(facts=(), message=why)
            return
        log.info("collect.body.applied_again", source=feed.source, reason=why)
        message = f"kept data applied again; {why}"
        async with aclosing(self._of_body(feed, body, _state_of_kept(state, body), message)) as batches:
            async for batch in batches:
                yield batch

    async def _with_request(self, feed: FactFeed, state: FetchState) -> AsyncGenerator[Batch, None]:
        conditions = FetchState() if state.void else state
        own = self.settings.feed(feed.source)
        address = address_of(feed, own)
        if has_slots(address):  # validators belong to the address of their time; the body's hash is still compared
            conditions = replace(conditions, etag=None, last_modified=None)
        url = filled(address, self.clock.now())
        fetched = await self.client.fetch(url, conditions, self._rules(feed), access_to(feed, own))
        log.info("collect.feed.fetched", source=feed.source, outcome=fetched.outcome.value, message=fetched.message)
        if fetched.outcome in FAILURES:
            if fetched.retry_after_s is not None:
                yield _remembering(state, fetched)
            fetched.raise_failure()
        if fetched.outcome is Outcome.FRESH and fetched.body is not None:
            try:
                async with aclosing(self._of_body(feed, fetched.body, fetched.state, None)) as batches:
                    async for batch in batches:
                        yield _without_samples(batch) if fetched.foreign else batch
            except FeedError as error:
                raise fetched.redacted(error) from error
        elif state.void and fetched.outcome is not Outcome.EMPTY:
            asked = replace(state, cooldown_until=fetched.state.cooldown_until)
            yield Batch(facts=(), state=asked)
            async with aclosing(self._without_request(feed, asked, _message(fetched))) as batches:
                async for batch in batches:
                    yield batch
        else:
            yield Batch(facts=(), state=fetched.state, message=_message(fetched))

    async def _of_body(
        self, feed: FactFeed, body: bytes, state: FetchState, message: str | None
    ) -> AsyncGenerator[Batch, None]:
        keys: set[str] = set()
        saving: asyncio.Future[None] | None = None
        try:
            async with aclosing(
                prefetched(feed.pieces(body, self.clock.now(), self.settings.jobs.batch_rows))
            ) as pieces:
                async for piece in pieces:
                    _check_not_all_refused(piece)
                    _log_rejects(feed.source, piece)
                    if piece.whole and saving is None:
                        saving = asyncio.ensure_future(asyncio.to_thread(self.bodies.save, feed.source, body))
                    # Stored before the batch that refers to it, in parallel to the earlier ones, since disks are slow.
                    if piece.end is not None and saving is not None:
                        await asyncio.shield(saving)
                    keys.update(fact.external_key for fact in piece.facts)
                    yield _batch(piece, keys if feed.sweeps else None, state, message)
        except FeedError as error:
            error.sample = error.sample or sample_of(body)
            raise
        finally:
            if saving is not None:
                await asyncio.gather(saving, return_exceptions=True)


def _check_not_all_refused(piece: Piece) -> None:
    """Raises FeedError if all records are refused; such a body has one piece, so nothing of it was committed."""
    if piece.end is not None and piece.end.rejects and not piece.total:
        first = piece.end.rejects[0]
        raise FeedError(
            f"all {len(piece.end.rejects)} records refused, first: {first.reason}", code="bad_body", sample=first.sample
        )


def _batch(piece: Piece, keys: Set[str] | None, state: FetchState, message: str | None) -> Batch:
    """`keys`: those of the body so far, if it may sweep."""
    end = piece.end
    if end is None:
        return Batch(facts=piece.facts, total_hint=piece.total)
    return Batch(
        facts=piece.facts,
        rejects=end.rejects,
        total_hint=piece.total,
        complete=end.complete,
        sweep_keys=end.refused_keys.union(keys) if keys is not None and end.complete else None,
        state=state if end.complete else None,
        message="; ".join(part for part in (_summary(piece.total, end), message) if part),
        tombstones=end.tombstones,
        fault=_fault(piece.total, end),
    )


def _fault(total: int, end: Parsed) -> tuple[str, str] | None:
    """The finding of the diagnostic about a body with some valid records."""
    if not end.complete:
        why = f": {end.rejects[-1].reason}" if end.rejects else ""
        return "incomplete_body", f"the body was not whole, nothing was swept{why}"
    if len(end.rejects) > total:
        return "mostly_rejected", f"{len(end.rejects)} records refused, {total} good, first: {end.rejects[0].reason}"
    return None


def _log_rejects(source: str, piece: Piece) -> None:
    if piece.end is not None and piece.end.rejects:
        codes = Counter(one.code for one in piece.end.rejects)
        log.warning("collect.records.refused", source=source, rejects=len(piece.end.rejects), codes=dict(codes))


def _without_samples(batch: Batch) -> Batch:
    """For another host's body: its errors are counted and not quoted."""
    rejects = [Reject("refused", "", one.offset, one.code) for one in batch.rejects]
    fault = batch.fault and (
        batch.fault[0],
        "the body of another host, to which the provider redirects, was not all good",
    )
    return replace(batch, rejects=rejects, fault=fault)


def _summary(total: int, parsed: Parsed) -> str:
    parts = [f"{total} records"]
    parts += [rejected_text(Counter(one.code for one in parsed.rejects))] if parsed.rejects else []
    parts += [f"{count} {name.replace('_', ' ')}" for name, count in sorted(parsed.notes.items()) if count]
    parts += [] if parsed.complete else ["the body was not whole, nothing was swept"]
    return ", ".join(parts)


def _remembering(state: FetchState, fetched: Fetched) -> Batch:
    """No rows: only the time before which the provider must not be asked again."""
    return Batch(facts=(), state=replace(state, cooldown_until=fetched.state.cooldown_until))


def _state_of_kept(state: FetchState, body: bytes) -> FetchState:
    """Validators are valid only for the body they came with; after a cancel the stored body may be newer."""
    sha256 = hashlib.sha256(body).hexdigest()
    if sha256 == state.body_sha256:
        return replace(state, void=False)
    return FetchState(body_sha256=sha256, fetched_at=state.fetched_at, cooldown_until=state.cooldown_until)


def _message(fetched: Fetched) -> str:
    until = fetched.state.cooldown_until
    return fetched.message if until is None else f"{fetched.message}; cooldown until {_text(until)}"


def _text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
