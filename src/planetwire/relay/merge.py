"""Merges the effects on one layer into one event. Pure.

Invariants: merging is associative, and the merged strategy is never weaker than that of any part:
`clear_then_reload` > `reload` > `delta`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from planetwire.model import Action, LayerEvent, Operation, Strategy
from planetwire.relay.route import DELTA_IDS_MAX, Routed

STRENGTH: Mapping[Strategy, int] = {Strategy.DELTA: 0, Strategy.RELOAD: 1, Strategy.CLEAR_THEN_RELOAD: 2}
FACTS = "collected_data"  # named before the tables derived from it, which change in the same commits
NAMES_MAX = 100  # sources, and tables, listed in one event

Kind = tuple[Action, Strategy, str | None, str | None, Operation | None]


@dataclass(frozen=True, slots=True)
class Tally:
    """The sum of effects of one kind."""

    records: int
    occurred_at: datetime

    def plus(self, other: Tally) -> Tally:
        """Records summed; the later time."""
        return Tally(self.records + other.records, max(self.occurred_at, other.occurred_at))


@dataclass(frozen=True, slots=True)
class Merged:
    """All effects on one layer so far. `rows`: id → whether it still exists, by its last effect."""

    layer: str
    tallies: Mapping[Kind, Tally]
    rows: Mapping[str, bool]
    count: int


def merge(first: Merged, second: Merged) -> Merged:
    """`first` happened before `second`, both on the same layer."""
    tallies = dict(first.tallies)
    for kind, tally in second.tallies.items():
        tallies[kind] = tallies[kind].plus(tally) if kind in tallies else tally
    return Merged(first.layer, tallies, {**first.rows, **second.rows}, first.count + second.count)


def merge_all(effects: Sequence[Routed]) -> Merged:
    """The effects of one layer, in order; at least one. Equals merging them one by one, without the copies."""
    tallies: dict[Kind, Tally] = {}
    rows: dict[str, bool] = {}
    for effect in effects:
        kind = (effect.action, effect.strategy, effect.source, effect.table, effect.operation)
        tally = Tally(effect.records, effect.occurred_at)
        tallies[kind] = tallies[kind].plus(tally) if kind in tallies else tally
        rows.update(dict.fromkeys(effect.row_ids, effect.operation is not Operation.DELETE))
    return Merged(effects[0].layer, tallies, rows, sum(effect.rows for effect in effects))


def strategy_of(merged: Merged) -> Strategy:
    """The strongest part's strategy; a delta with too many ids becomes a stronger one."""
    strongest = max((kind[1] for kind in merged.tallies), key=STRENGTH.__getitem__)
    if strongest is Strategy.DELTA and len(merged.rows) > DELTA_IDS_MAX:
        return Strategy.RELOAD if all(merged.rows.values()) else Strategy.CLEAR_THEN_RELOAD
    return strongest


def event_of(merged: Merged) -> LayerEvent:
    """The event on the wire: scalar fields of the strongest effect, and the names of all.

    Among equally strong effects, a change of facts wins over one of derived rows, then the latest wins.
    """
    kind, tally = max(
        merged.tallies.items(), key=lambda item: (STRENGTH[item[0][1]], item[0][3] == FACTS, item[1].occurred_at)
    )
    action, _, source, table, operation = kind
    strategy = strategy_of(merged)
    rows = merged.rows if strategy is Strategy.DELTA else {}
    return LayerEvent(
        layer=merged.layer,
        action=action,
        source=source,
        table=table,
        operation=operation,
        strategy=strategy,
        records_processed=tally.records,
        occurred_at=tally.occurred_at,
        sources=_names(kind[2] for kind in merged.tallies),
        tables=_names(kind[3] for kind in merged.tallies),
        operations=_names(kind[4] for kind in merged.tallies),
        merged_count=merged.count,
        upsert_ids=tuple(row for row, exists in rows.items() if exists),
        remove_ids=tuple(row for row, exists in rows.items() if not exists),
    )


def _names(values: Iterable[str | None]) -> tuple[str, ...]:
    """Distinct, in order of first appearance; enums as their values."""
    return tuple(dict.fromkeys(str(value) for value in values if value is not None))[:NAMES_MAX]
