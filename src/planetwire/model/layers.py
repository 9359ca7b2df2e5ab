"""What a layer declares of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from planetwire.model.derived import Deriver
from planetwire.model.presentation import PLAIN, CardRow, Look
from planetwire.model.presentation.faults import check


class Strategy(StrEnum):
    """How a browser brings a layer up to date, weakest first."""

    DELTA = "delta"
    RELOAD = "reload"
    CLEAR_THEN_RELOAD = "clear_then_reload"


@dataclass(frozen=True, slots=True)
class Provenance:
    """Who publishes a layer's data and what it does not cover; shown to people in both languages, all four texts."""

    publisher: str
    licence: str
    coverage: str
    limits: str
    zh: Provenance | None = None


@dataclass(frozen=True, slots=True)
class LayerAdapter:
    """One layer's entry in the registry: the only place that binds source, table, cache, owned rows, refresh.

    `feeds`: (table, source or "*"). `aliases`: other spellings of a source, e.g. `celestrak_tle`.
    `stale_after_s`: age of the newest success after which the layer is shown as stale. `kind` "meta": not drawn.
    `readings_of`: sources that reach the layer through the Terminal's log; a refresh of one is a refresh of the layer.
    `look`, `card`: how the page draws its things and what it says of one; ValueError when they are wrong.
    """

    id: str
    title: str
    title_zh: str
    group: str
    kind: str
    feeds: tuple[tuple[str, str], ...]
    cache_patterns: tuple[str, ...]
    provenance: Provenance
    owned_tables: tuple[str, ...] = ()
    default_strategy: Strategy = Strategy.RELOAD
    reload_floor_s: float = 0.0
    stale_after_s: float = 86_400.0
    aliases: Mapping[str, str] = field(default_factory=dict)
    readings_of: tuple[str, ...] = ()
    derive: Deriver | None = None  # None: the layer's things cannot be searched for
    look: Look = PLAIN
    card: tuple[CardRow, ...] = ()

    def __post_init__(self) -> None:
        check(self.id, self.look, self.card)

    @property
    def sources(self) -> tuple[str, ...]:
        """The named sources that feed the layer, in declaration order."""
        seen = dict.fromkeys(source for _, source in self.feeds if source != "*")
        return tuple(seen)
