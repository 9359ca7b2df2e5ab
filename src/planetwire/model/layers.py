"""The declaration of a layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal, TypeAlias

from planetwire.model.derived import Deriver
from planetwire.model.presentation import PLAIN, CardRow, Look
from planetwire.model.presentation.faults import check
from planetwire.model.tables import OwnedTable

BuiltInKind: TypeAlias = Literal["point", "line", "area"]  # drawn by the page without a file of their own


class Strategy(StrEnum):
    """How a browser brings a layer up to date, weakest first."""

    DELTA = "delta"
    RELOAD = "reload"
    CLEAR_THEN_RELOAD = "clear_then_reload"


@dataclass(frozen=True, slots=True)
class Provenance:
    """Who publishes a layer's data and what it does not cover; all four texts are shown, in both languages."""

    publisher: str
    licence: str
    coverage: str
    limits: str
    zh: Provenance | None = None


@dataclass(frozen=True, slots=True)
class LayerAdapter:
    """One layer's entry in the registry: the only place that binds source, table, cache, owned rows, refresh.

    `feeds`: (table, source or "*"). `aliases`: other spellings of a source, each with its own name.
    `stale_after_s`: age of the newest success after which the layer is shown as stale.
    `kind`: "line" and "area" are drawn by their facts' geometry (contracts §3), "meta" not at all, others as points.
    `readings_of`: sources that reach the layer through the Terminal's log; a refresh of one is a refresh of the layer.
    `owned_tables`: those from which a clearing deletes its rows. `tables`: those of them that no other layer has.
    `look`, `card`: how the page draws its objects, and the card of one; ValueError when invalid.
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
    tables: tuple[OwnedTable, ...] = ()
    default_strategy: Strategy = Strategy.RELOAD
    reload_floor_s: float = 0.0
    stale_after_s: float = 86_400.0
    aliases: Mapping[str, str] = field(default_factory=dict)
    readings_of: tuple[str, ...] = ()
    derive: Deriver | None = None  # None: the layer's objects cannot be searched for
    look: Look = PLAIN
    card: tuple[CardRow, ...] = ()

    def __post_init__(self) -> None:
        check(self.id, self.look, self.card)
        for table in self.tables:
            if table.name not in self.owned_tables or all(table.name != fed for fed, _ in self.feeds):
                raise ValueError(f"layer {self.id}: its table {table.name} is not among its owned tables and feeds")

    def joined(self, other: LayerAdapter) -> LayerAdapter:
        """This layer with the sources of the other one too."""
        return replace(
            self,
            feeds=tuple(dict.fromkeys((*self.feeds, *other.feeds))),
            readings_of=tuple(dict.fromkeys((*self.readings_of, *other.readings_of))),
        )

    @property
    def sources(self) -> tuple[str, ...]:
        """The named sources that feed the layer, in declaration order."""
        seen = dict.fromkeys(source for _, source in self.feeds if source != "*")
        return tuple(seen)
