"""When a layer's merged event is sent: a throttle, not a debounce. Pure; times are monotonic seconds.

The first change of a quiet layer is sent at once. Later ones wait until the layer's spacing has passed since its
last event, and are sent together: at most one event per layer and window, and no change waits longer than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from planetwire.model import Strategy
from planetwire.ports import LayerRegistry
from planetwire.relay.merge import STRENGTH
from planetwire.relay.route import Key, Routed

LAYER_FULL = 5_000  # held effects of a layer from which its own longer spacing is ignored
HELD_MAX = 50_000  # held rows in total at which reading pauses; a window later there is room again


class Throttle:
    """The held effects by layer, and when each layer may send again."""

    def __init__(self, registry: LayerRegistry, window_s: float) -> None:
        self._registry = registry
        self._window_s = window_s
        self._held: dict[str, list[Routed]] = {}
        self._strongest: dict[str, Strategy] = {}
        self._sent_at: dict[str, float] = {}
        self._waiting: dict[Key, set[str]] = {}
        self._rows: dict[Key, int] = {}

    def add(self, effects: Iterable[Routed]) -> None:
        """Hold the effects of one row."""
        for effect in effects:
            self._held.setdefault(effect.layer, []).append(effect)
            self._waiting.setdefault(effect.key, set()).add(effect.layer)
            self._rows[effect.key] = effect.rows
            before = self._strongest.setdefault(effect.layer, effect.strategy)
            self._strongest[effect.layer] = max(before, effect.strategy, key=STRENGTH.__getitem__)

    @property
    def keys(self) -> Iterable[Key]:
        """Rows that are held for at least one layer."""
        return self._waiting.keys()

    @property
    def room(self) -> int:
        """How many more rows may be held."""
        return max(0, HELD_MAX - self.rows)

    @property
    def rows(self) -> int:
        """How many rows are held."""
        return sum(self._rows.values())

    def due_at(self, layer: str) -> float:
        """When the layer's held effects are due; -inf for a layer that has sent nothing yet."""
        sent_at = self._sent_at.get(layer, float("-inf"))
        full = self.room == 0 or len(self._held[layer]) >= LAYER_FULL
        if full or self._strongest[layer] is Strategy.CLEAR_THEN_RELOAD:
            return sent_at + self._window_s
        return sent_at + max(self._window_s, self._registry.adapter(layer).reload_floor_s)

    def due(self, now: float) -> Sequence[str]:
        """Layers whose held effects are due now."""
        return [layer for layer in self._held if self.due_at(layer) <= now]

    def next_due_at(self) -> float:
        """When the next layer is due; inf when nothing is held."""
        return min((self.due_at(layer) for layer in self._held), default=float("inf"))

    def held(self, layer: str) -> Sequence[Routed]:
        """The layer's effects in order of arrival."""
        return tuple(self._held.get(layer, ()))

    def settled(self, effects: Iterable[Routed]) -> Sequence[Key]:
        """Rows without effects other than these: they are done when these are published."""
        published: dict[Key, set[str]] = {}
        for effect in effects:
            published.setdefault(effect.key, set()).add(effect.layer)
        return [key for key, layers in published.items() if self._waiting[key] <= layers]

    def sent(self, effects: Sequence[Routed], now: float) -> None:
        """The effects were published."""
        published = {(effect.layer, effect.key) for effect in effects}
        for layer in {effect.layer for effect in effects}:
            self._sent_at[layer] = now
            self._keep(layer, [effect for effect in self._held[layer] if (layer, effect.key) not in published])
        for layer, key in published:
            self._release(key, layer)

    def _keep(self, layer: str, effects: list[Routed]) -> None:
        del self._held[layer], self._strongest[layer]
        if effects:
            self._held[layer] = effects
            self._strongest[layer] = max((effect.strategy for effect in effects), key=STRENGTH.__getitem__)

    def _release(self, key: Key, layer: str) -> None:
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.discard(layer)
            if not waiting:
                del self._waiting[key], self._rows[key]

    def drop(self, keys: Iterable[Key]) -> None:
        """Drop rows unpublished, for every layer: they were deferred and will be read again."""
        dropped = set(keys)
        for layer in {layer for key in dropped for layer in self._waiting.get(key, ())}:
            self._keep(layer, [effect for effect in self._held[layer] if effect.key not in dropped])
        for key in dropped:
            self._waiting.pop(key, None)
            self._rows.pop(key, None)

    def forget(self) -> None:
        """Drop everything held: the rows are still pending in the database and will be read again."""
        self._held.clear()
        self._strongest.clear()
        self._waiting.clear()
        self._rows.clear()
