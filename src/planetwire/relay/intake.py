"""Change rows that the relay has read and not yet sent. They stay pending in the database, so dropping loses none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence

from planetwire.errors import BackendError
from planetwire.log import get_logger
from planetwire.model import Change, Hint
from planetwire.ports import ChangeLog, Clock, LayerRegistry
from planetwire.relay.route import Key, Routed, route, route_hint
from planetwire.relay.throttle import Throttle

log = get_logger()

READ_ROWS = 10_000  # rows of one read, aggregated by the database …
READ_ROWS_SINGLY = 2_000  # … or one by one
READS_MAX = 10  # reads in a row before due events are sent
SINGLY_S = 5.0  # how long rows are read one by one after an aggregate was refused
PAIRS_MAX = 1_000  # unmapped (table, source) pairs remembered, so that each is logged once
POLLED_LOG_S = 1.0
NO_ADAPTER = "no_adapter"


class Intake:
    """Reads pending rows and holds their effects until the throttle releases them.

    `skipped`: rows that feed no layer, with the reason; `idle_hints`: hints that match no layer. Both are only marked.
    """

    def __init__(
        self,
        changelog: ChangeLog,
        registry: LayerRegistry,
        window_s: float,
        clock: Clock,
        counts: Counter[str],
        look: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """`counts["deferred"]` counts the deferred rows. `look` brings the registry up to date."""
        self._look = look
        self.throttle = Throttle(registry, window_s)
        self.skipped: dict[int, str] = {}
        self.idle_hints: list[int] = []
        self._changelog = changelog
        self._registry = registry
        self._clock = clock
        self._counts = counts
        self._members: dict[int, Sequence[int]] = {}
        self._singly_until = float("-inf")
        self._unmapped: set[tuple[str, str | None]] = set()
        self._polled = 0
        self._polled_logged_at = float("-inf")

    def forget(self) -> None:
        """Drop everything held; the next leader reads it again."""
        self.throttle.forget()
        self.skipped.clear()
        self.idle_hints.clear()
        self._members.clear()

    async def read(self) -> int:
        """Hold pending rows up to the limit; returns how many were found."""
        total = after = 0
        singly = self._clock.monotonic() < self._singly_until
        held = [*self.rows_behind(self._held("change")), *self.skipped]
        for _ in range(READS_MAX):
            limit = min(READ_ROWS_SINGLY if singly else READ_ROWS, self.throttle.room - len(self.skipped))
            if limit <= 0:
                break
            changes, hints = await self._changelog.pending(
                limit,
                held=[row for row in held if row > after],
                held_hints=[*self._held("hint"), *self.idle_hints],
                singly=singly,
                after=after,
            )
            rows = sum(max(1, len(change.ids)) for change in changes)
            total += rows + len(hints)
            await self._hold(changes, hints)
            if max(rows, len(hints)) < limit:
                break
            after = max((max(change.ids, default=change.id) for change in changes), default=after)
        self._log_polled(total)
        return total

    def _held(self, kind: str) -> Sequence[int]:
        return [number for held, number in self.throttle.keys if held == kind]

    def rows_behind(self, numbers: Iterable[int]) -> list[int]:
        """The rows aggregated into these changes."""
        return [row for number in numbers for row in self._members.get(number, (number,))]

    async def _hold(self, changes: Sequence[Change], hints: Sequence[Hint]) -> None:
        looked = False  # a row may be as new as what declares its source: only the newest registry skips it
        for change in changes:
            try:
                effects = route(change, self._registry)
                if not effects and not looked:
                    looked = await self._look_again()
                    effects = route(change, self._registry)
            except BackendError:
                raise
            except Exception as error:  # whatever the error, only this row is deferred
                await self.defer([("change", change.id)], error, change.ids)
                continue
            if len(change.ids) > 1 and effects:
                self._members[change.id] = change.ids
            self.throttle.add(effects)
            if not effects:
                self._skip(change)
        for hint in hints:
            effects = route_hint(hint, self._registry)
            if not effects and not looked:
                looked = await self._look_again()
                effects = route_hint(hint, self._registry)
            self.throttle.add(effects)
            if not effects:
                self.idle_hints.append(hint.id)

    async def _look_again(self) -> bool:
        """True: once a read is enough."""
        if self._look is not None:
            await self._look()
        return True

    def _skip(self, change: Change) -> None:
        self.skipped |= dict.fromkeys(change.ids or (change.id,), NO_ADAPTER)
        pair = (change.table_name, change.source)
        if pair not in self._unmapped and len(self._unmapped) < PAIRS_MAX:
            self._unmapped.add(pair)
            log.warning("earth.db_changes.unmapped", table=change.table_name, source=change.source)

    def sent(self, effects: Sequence[Routed], settled: Sequence[Key]) -> None:
        """The effects are published, and rows and hints marked; the `settled` rows have no other effects left."""
        self.skipped.clear()
        self.idle_hints.clear()
        self.throttle.sent(effects, self._clock.monotonic())
        self._forget_members(settled)

    async def defer(self, keys: Sequence[Key], error: Exception, ids: Sequence[int] = ()) -> None:
        """Defer rows, for every layer. `ids`: the rows, if they are not held."""
        log.warning("earth.db_changes.deferred", rows=keys, error=repr(error))
        hints = [number for kind, number in keys if kind == "hint"]
        rows = ids or self.rows_behind(number for kind, number in keys if kind == "change")
        await self._changelog.defer(rows, repr(error), hints=hints)
        self._counts["deferred"] += len(rows) + len(hints)
        self.throttle.drop(keys)
        self._forget_members(keys)

    def reread_singly(self, key: Key) -> None:
        """Drop an aggregate that contains a faulty row: its rows are read again, one by one."""
        self._singly_until = self._clock.monotonic() + SINGLY_S
        self.throttle.drop([key])
        self._forget_members([key])

    def _forget_members(self, keys: Iterable[Key]) -> None:
        for kind, number in keys:
            if kind == "change":
                self._members.pop(number, None)

    def _log_polled(self, found: int) -> None:
        """Log the number of rows found, at most once a second."""
        self._polled += found
        now = self._clock.monotonic()
        if self._polled and now - self._polled_logged_at >= POLLED_LOG_S:
            log.info("earth.db_changes.outbox_polled", rows=self._polled, held=self.throttle.rows)
            self._polled, self._polled_logged_at = 0, now
