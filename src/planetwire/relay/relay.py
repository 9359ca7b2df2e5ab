"""The relay: pending changes × registry → cache out, event into the log, rows consumed.

Order, so that a crash anywhere repeats and never loses: the cache generation moves first, then one transaction
appends the events and marks the rows, then the tails of the log are woken. Rows that wait for their layer's turn
are held in memory only; in the database they stay pending. One relay leads; others stand by for its term to end.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress

from planetwire.errors import BackendError, LeaseLost
from planetwire.failpoint import failpoint
from planetwire.log import get_logger
from planetwire.model import Change, Hint, LayerEvent, LogEvent
from planetwire.ports import ChangeLog, Clock, LayerRegistry, Wakeup
from planetwire.relay.gate import Gate
from planetwire.relay.merge import event_of, merge_all
from planetwire.relay.route import Key, Routed, route, route_hint
from planetwire.relay.throttle import Throttle
from planetwire.settings import RelaySettings

log = get_logger()

READ_ROWS = 10_000  # rows read at once, added up by the database …
READ_ROWS_SINGLY = 2_000  # … or one by one
READS_MAX = 10  # reads in a row before what is due goes out
SINGLY_S = 5.0  # how long rows are read one by one after some that were added up had been refused
RENEWALS_PER_TTL = 3
STANDBY_LOOKS_S = 1.0  # a standby asks more often than a leader renews, so that a term is not vacant for long
RETRY_S = 0.5  # wait after the database failed …
RETRY_MAX_S = 2.0  # … doubling up to this
RESIGN_TIMEOUT_S = 2.0
REFUSALS_MAX = 64  # publishes refused in one search for the rows at fault; then the rest is put off together
PAIRS_MAX = 1_000  # unmapped pairs remembered, so that each is logged once
POLLED_LOG_S = 1.0
NO_ADAPTER = "no_adapter"


class Relay:
    """Run one in each process that may lead. `is_leader` and `term` say whether this one does."""

    def __init__(
        self,
        changelog: ChangeLog,
        registry: LayerRegistry,
        invalidate: Callable[[str], Awaitable[object]],
        wakeup: Wakeup,
        settings: RelaySettings,
        clock: Clock,
        on_published: Callable[[Sequence[LogEvent]], None],
    ) -> None:
        """`invalidate(layer)` empties the snapshot cache; `on_published` is told after the commit."""
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
        self._throttle = Throttle(registry, settings.merge_window_ms / 1000)
        self._gate = Gate()
        self._skipped: dict[int, str] = {}
        self._idle_hints: list[int] = []
        self._members: dict[int, Sequence[int]] = {}
        self._singly_until = float("-inf")
        self._unmapped: set[tuple[str, str | None]] = set()
        self._renew_at = float("-inf")
        self._polled = 0
        self._polled_logged_at = float("-inf")

    @property
    def is_leader(self) -> bool:
        """Whether this relay held the term when it last looked."""
        return self.term is not None

    async def run(self) -> None:
        """Lead or stand by until cancelled; survives every failure of the database."""
        retry_s = RETRY_S
        try:
            while True:
                try:
                    delay_s = await self.turn()
                    retry_s = RETRY_S
                except BackendError as error:
                    log.warning("earth.relay.failed", error=error.message, retry_s=retry_s)
                    self._stand_down()
                    await self._clock.sleep(retry_s)
                    retry_s = min(retry_s * 2, RETRY_MAX_S)
                    continue
                await self._wakeup.wait(delay_s)
        finally:
            await self._resign()

    async def turn(self) -> float:
        """Do what there is to do now; how long to wait for a ring afterwards. Raises BackendError."""
        try:
            if not await self._lead():
                return max(0.0, self._renew_at - self._clock.monotonic())
            await self._read()
            failpoint("relay.read")
            await self._send()
            if await self._tend_gate():  # who committed before the gate was open did not ring: look once more
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
        self._renew_at = now + (renew_s if term else min(renew_s, STANDBY_LOOKS_S))
        if term != self.term:
            self._forget()
            log.info("earth.relay.elected" if term else "earth.relay.stood_by", term=term)
        self.term = term
        return term is not None

    def _stand_down(self) -> None:
        """What is held is pending in the database: whoever leads next reads it again."""
        self.term = None
        self._renew_at = float("-inf")
        self._forget()

    def _forget(self) -> None:
        self._throttle.forget()
        self._gate.forget()
        self._skipped.clear()
        self._idle_hints.clear()
        self._members.clear()

    async def _resign(self) -> None:
        term, self.term = self.term, None
        if term is not None:
            with suppress(BackendError, TimeoutError):
                async with asyncio.timeout(RESIGN_TIMEOUT_S):
                    await self._changelog.resign(self.holder, term)

    # --- reading

    async def _read(self) -> None:
        """Hold every pending row there is room for."""
        total = after = 0
        singly = self._clock.monotonic() < self._singly_until
        held = [*self._all(self._held("change")), *self._skipped]
        for _ in range(READS_MAX):
            limit = min(READ_ROWS_SINGLY if singly else READ_ROWS, self._throttle.room - len(self._skipped))
            if limit <= 0:
                break
            changes, hints = await self._changelog.pending(
                limit,
                held=[row for row in held if row > after],
                held_hints=[*self._held("hint"), *self._idle_hints],
                singly=singly,
                after=after,
            )
            rows = sum(max(1, len(change.ids)) for change in changes)
            total += rows + len(hints)
            await self._hold(changes, hints)
            if max(rows, len(hints)) < limit:
                break
            after = max((max(change.ids, default=change.id) for change in changes), default=after)
        self._gate.note(total, self._clock.monotonic())
        self._log_polled(total)

    def _held(self, kind: str) -> Sequence[int]:
        return [number for held, number in self._throttle.keys if held == kind]

    def _all(self, numbers: Iterable[int]) -> list[int]:
        """The rows behind these changes."""
        return [row for number in numbers for row in self._members.get(number, (number,))]

    async def _hold(self, changes: Sequence[Change], hints: Sequence[Hint]) -> None:
        for change in changes:
            try:
                effects = route(change, self._registry)
            except Exception as error:  # a row that cannot be understood is put off alone, whatever is wrong with it
                await self._defer([("change", change.id)], error, change.ids)
                continue
            if len(change.ids) > 1 and effects:
                self._members[change.id] = change.ids
            self._throttle.add(effects)
            if not effects:
                self._skip(change)
        for hint in hints:
            effects = route_hint(hint, self._registry)
            self._throttle.add(effects)
            if not effects:
                self._idle_hints.append(hint.id)

    def _skip(self, change: Change) -> None:
        self._skipped |= dict.fromkeys(change.ids or (change.id,), NO_ADAPTER)
        pair = (change.table_name, change.source)
        if pair not in self._unmapped and len(self._unmapped) < PAIRS_MAX:
            self._unmapped.add(pair)
            log.warning("earth.db_changes.unmapped", table=change.table_name, source=change.source)

    # --- sending

    async def _send(self) -> None:
        """Publish the layers whose turn it is. If that fails by its content, find the rows at fault."""
        layers = self._throttle.due(self._clock.monotonic())
        if not (layers or self._skipped or self._idle_hints):
            return
        batches = [self._throttle.held(layer) for layer in layers]
        try:
            await self._publish(batches)
        except (BackendError, LeaseLost):
            raise
        except Exception as error:
            log.warning("earth.relay.refused", layers=layers, error=repr(error))
            for layer in layers:
                await self._send_apart(self._throttle.held(layer))

    async def _send_apart(self, effects: Sequence[Routed]) -> None:
        """Publish by halves until the rows at fault stand alone; those are put off, the others go out."""
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
                    self._take_apart(part[0].key)
                elif len(part) == 1 or refusals > REFUSALS_MAX:
                    await self._defer([effect.key for effect in part], error)
                else:
                    middle = len(part) // 2
                    parts += [part[middle:], part[:middle]]

    async def _publish(self, batches: Sequence[Sequence[Routed]]) -> None:
        """One event for each batch (the effects of one layer), and the rows that are done with it, in one commit."""
        events = [event_of(merge_all(effects)) for effects in batches]
        settled = self._throttle.settled(effect for effects in batches for effect in effects)
        changes = [number for kind, number in settled if kind == "change"]
        consumed = self._all(changes)
        for event in events:
            await self._invalidate(event.layer)
        failpoint("relay.before_publish")
        published = await self._changelog.publish(
            self.term or 0,
            events,
            consumed=consumed,
            hints=[*(number for kind, number in settled if kind == "hint"), *self._idle_hints],
            skipped=dict(self._skipped),
        )
        failpoint("relay.after_publish")
        self.counts.update(changes=len(consumed), events=len(published), skipped=len(self._skipped))
        self._skipped.clear()
        self._idle_hints.clear()
        self._throttle.sent([effect for effects in batches for effect in effects], self._clock.monotonic())
        self._forget_members(changes)
        if published:
            self._on_published(published)
            _log_broadcast(events, published)

    async def _defer(self, keys: Sequence[Key], error: Exception, ids: Sequence[int] = ()) -> None:
        """`ids`: the rows, where they are not held."""
        log.warning("earth.db_changes.deferred", rows=keys, error=repr(error))
        changes = [number for kind, number in keys if kind == "change"]
        hints = [number for kind, number in keys if kind == "hint"]
        rows = ids or self._all(changes)
        await self._changelog.defer(rows, repr(error), hints=hints)
        self.counts["deferred"] += len(rows) + len(hints)
        self._throttle.drop(keys)
        self._forget_members(changes)

    def _take_apart(self, key: Key) -> None:
        """Rows that were added up hold one at fault: they are read again, one by one."""
        self._singly_until = self._clock.monotonic() + SINGLY_S
        self._throttle.drop([key])
        self._forget_members([key[1]])

    def _forget_members(self, changes: Iterable[int]) -> None:
        for number in changes:
            self._members.pop(number, None)

    # --- waiting

    async def _tend_gate(self) -> bool:
        """Open or shut the gate if the load says so; whether it was opened."""
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
        return max(0.0, min(poll_s, self._throttle.next_due_at() - now, self._renew_at - now))

    def _log_polled(self, found: int) -> None:
        """The count of rows found, at most once a second."""
        self._polled += found
        now = self._clock.monotonic()
        if self._polled and now - self._polled_logged_at >= POLLED_LOG_S:
            log.info("earth.db_changes.outbox_polled", rows=self._polled, held=self._throttle.rows)
            self._polled, self._polled_logged_at = 0, now


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
