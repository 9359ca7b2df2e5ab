"""The relay: for pending changes, invalidates caches, appends events to the log and marks the rows consumed.

The order makes a crash anywhere repeat work and never lose it: the cache generation moves first, then one transaction
appends the events and marks the rows, then the tails of the log are woken. Rows whose layer is not yet due are held
in memory only; in the database they stay pending. One relay leads; standbys wait for its term to end.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from planetwire.errors import BackendError, LeaseLost
from planetwire.log import get_logger
from planetwire.model import LayerEvent, LogEvent
from planetwire.ports import ChangeLog, Clock, LayerRegistry, Wakeup
from planetwire.relay.gate import Gate
from planetwire.relay.intake import Intake
from planetwire.relay.merge import event_of, merge_all
from planetwire.relay.route import Routed
from planetwire.runtime.backoff import Backoff
from planetwire.runtime.failpoint import failpoint
from planetwire.runtime.forever import run_forever
from planetwire.settings import RelaySettings

log = get_logger()

RENEWALS_PER_TTL = 3
STANDBY_POLL_S = 1.0  # a standby asks more often than a leader renews, so that a term is not vacant for long
RETRY_S = 0.5  # wait after the database failed …
RETRY_MAX_S = 2.0  # … doubling up to this
RESIGN_TIMEOUT_S = 2.0
REFUSALS_MAX = 64  # publishes refused in one search for the faulty rows; then the rest is deferred together


class Relay:
    """Run one in each process that may lead. `is_leader` and `term`: whether this one does."""

    def __init__(
        self,
        changelog: ChangeLog,
        registry: LayerRegistry,
        invalidate: Callable[[Sequence[str]], Awaitable[object]],
        wakeup: Wakeup,
        settings: RelaySettings,
        clock: Clock,
        on_published: Callable[[Sequence[LogEvent]], None],
        *,
        look: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """`invalidate(patterns)` drops cached snapshots; `on_published` is called after the commit. `look` brings the
        registry up to date, before a row is skipped that it does not know.
        """
        self.term: int | None = None
        self.holder = secrets.token_hex(8)
        self.counts: Counter[str] = Counter()  # changes, events, skipped, deferred; since the start
        self._changelog = changelog
        self._registry = registry
        self._invalidate = invalidate
        self._wakeup = wakeup
        self._settings = settings
        self._clock = clock
        self._on_published = on_published
        self._intake = Intake(changelog, registry, settings.merge_window_ms / 1000, clock, self.counts, look)
        self._gate = Gate()
        self._renew_at = float("-inf")

    @property
    def is_leader(self) -> bool:
        """Whether this relay held the term at its last check."""
        return self.term is not None

    async def run(self) -> None:
        """Lead or stand by until cancelled; survives every failure of the database."""
        try:
            await run_forever(self.turn, self._wakeup.wait, self._failed, Backoff(RETRY_S, RETRY_MAX_S, self._clock))
        finally:
            await self._resign()

    def _failed(self, error: BackendError, retry_s: float) -> None:
        log.warning("earth.relay.failed", error=error.message, retry_s=retry_s)
        self._stand_down()

    async def turn(self) -> float:
        """Do what is due now; returns how long to wait for a wake-up. Raises BackendError."""
        try:
            if not await self._lead():
                return max(0.0, self._renew_at - self._clock.monotonic())
            await self._read()
            failpoint("relay.read")
            await self._send()
            if await self._adjust_gate():  # commits before the gate opened sent no NOTIFY: read once more
                await self._read()
                await self._send()
        except LeaseLost:
            log.warning("earth.relay.deposed", term=self.term)
            self._stand_down()
            return 0.0
        return self._delay_s()

    # --- leadership

    async def _lead(self) -> bool:
        now = self._clock.monotonic()
        if now < self._renew_at:
            return self.is_leader
        term = await self._changelog.lead(self.holder, self._settings.leader_ttl_s)
        renew_s = self._settings.leader_ttl_s / RENEWALS_PER_TTL
        self._renew_at = now + (renew_s if term else min(renew_s, STANDBY_POLL_S))
        if term != self.term:
            self._forget()
            log.info("earth.relay.elected" if term else "earth.relay.stood_by", term=term)
        self.term = term
        return term is not None

    def _stand_down(self) -> None:
        """Held rows are still pending in the database: the next leader reads them again."""
        self.term = None
        self._renew_at = float("-inf")
        self._forget()

    def _forget(self) -> None:
        self._intake.forget()
        self._gate.forget()

    async def _resign(self) -> None:
        term, self.term = self.term, None
        if term is not None:
            with suppress(BackendError, TimeoutError):
                async with asyncio.timeout(RESIGN_TIMEOUT_S):
                    await self._changelog.resign(self.holder, term)

    # --- reading and sending

    async def _read(self) -> None:
        self._gate.note(await self._intake.read(), self._clock.monotonic())

    async def _send(self) -> None:
        """Publish the layers that are due. If that fails because of the content, find the faulty rows."""
        throttle = self._intake.throttle
        layers = throttle.due(self._clock.monotonic())
        if not (layers or self._intake.skipped or self._intake.idle_hints):
            return
        batches = [throttle.held(layer) for layer in layers]
        try:
            await self._publish(batches)
        except (BackendError, LeaseLost):
            raise
        except Exception as error:
            log.warning("earth.relay.refused", layers=layers, error=repr(error))
            for layer in layers:
                await self._publish_bisected(throttle.held(layer))

    async def _publish_bisected(self, effects: Sequence[Routed]) -> None:
        """Bisect down to the faulty rows; those are deferred, the others are published."""
        parts = [effects] if effects else []
        refusals = 0
        while parts:
            part = parts.pop()
            try:
                await self._publish([part])
            except (BackendError, LeaseLost):
                raise
            except Exception as error:
                refusals += 1
                if len(part) == 1 and part[0].rows > 1:
                    self._intake.reread_singly(part[0].key)
                elif len(part) == 1 or refusals > REFUSALS_MAX:
                    await self._intake.defer([effect.key for effect in part], error)
                else:
                    middle = len(part) // 2
                    parts += [part[middle:], part[:middle]]

    async def _publish(self, batches: Sequence[Sequence[Routed]]) -> None:
        """One event per batch (the effects of one layer), and its completed rows marked, in one commit."""
        events = [event_of(merge_all(effects)) for effects in batches]
        effects = [effect for batch in batches for effect in batch]
        settled = self._intake.throttle.settled(effects)
        consumed = self._intake.rows_behind(number for kind, number in settled if kind == "change")
        await self._invalidate(self._patterns(events))
        failpoint("relay.before_publish")
        published = await self._changelog.publish(
            self.term or 0,
            events,
            consumed=consumed,
            hints=[*(number for kind, number in settled if kind == "hint"), *self._intake.idle_hints],
            skipped=dict(self._intake.skipped),
        )
        failpoint("relay.after_publish")
        self.counts.update(changes=len(consumed), events=len(published), skipped=len(self._intake.skipped))
        self._intake.sent(effects, settled)
        if published:
            self._on_published(published)
            _log_broadcast(events, published)

    def _patterns(self, events: Sequence[LayerEvent]) -> Sequence[str]:
        """The distinct cache patterns of the layers."""
        adapters = [self._registry.adapter(event.layer) for event in events]
        return tuple(dict.fromkeys(pattern for adapter in adapters for pattern in adapter.cache_patterns))

    # --- waiting

    async def _adjust_gate(self) -> bool:
        """Open or shut the gate as the load requires; returns whether it was opened."""
        now = self._clock.monotonic()
        seconds = self._gate.wanted(now)
        if seconds is None:
            return False
        await self._changelog.open_gate(seconds)
        self._gate.moved(seconds, now)
        return seconds > 0

    def _delay_s(self) -> float:
        now = self._clock.monotonic()
        poll_s = self._gate.poll_s(self._settings.merge_window_ms / 1000, self._settings.poll_s)
        return max(0.0, min(poll_s, self._intake.throttle.next_due_at() - now, self._renew_at - now))


def _log_broadcast(events: Sequence[LayerEvent], published: Sequence[LogEvent]) -> None:
    for event, entry in zip(events, published, strict=True):
        log.info(
            "earth.db_changes.broadcasted",
            layer=event.layer,
            strategy=event.strategy.value,
            revision=entry.revision,
            records=event.records_processed,
            merged=event.merged_count,
        )
