"""Turns one change or hint into its effect on each layer that it feeds. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from planetwire.model import Action, Change, Hint, LayerAdapter, Operation, Strategy
from planetwire.ports import LayerRegistry

INTERACTABLES = "earth_interactables"  # the only table whose rows browsers know by id
DELTA_IDS_MAX = 500

Key = tuple[Literal["change", "hint"], int]


@dataclass(frozen=True, slots=True)
class Routed:
    """The effect on one layer of a row, or of `rows` aggregated ones. `key`: what to mark once all is published."""

    key: Key
    layer: str
    action: Action
    strategy: Strategy
    source: str | None
    table: str | None
    operation: Operation | None
    records: int
    occurred_at: datetime
    row_ids: tuple[str, ...] = ()
    rows: int = 1


def route(change: Change, registry: LayerRegistry) -> Sequence[Routed]:
    """One entry per layer; empty when the table and source feed none."""
    return [_routed(change, registry.adapter(layer)) for layer in registry.layers_of(change.table_name, change.source)]


def _routed(change: Change, adapter: LayerAdapter) -> Routed:
    ids = tuple(change.row_ids or ())
    strategy = _strategy(change, adapter, ids)
    return Routed(
        key=("change", change.id),
        layer=adapter.id,
        action=Action.DATABASE_CHANGED,
        strategy=strategy,
        source=change.source,
        table=change.table_name,
        operation=change.operation,
        records=change.records_processed,
        occurred_at=change.occurred_at,
        row_ids=ids if strategy is Strategy.DELTA else (),
        rows=max(1, len(change.ids)),
    )


def _strategy(change: Change, adapter: LayerAdapter, ids: Sequence[str]) -> Strategy:
    """A delta if the layer takes deltas and the change has ids, at most DELTA_IDS_MAX; else a delete clears."""
    by_id = change.table_name == INTERACTABLES and 0 < len(ids) <= DELTA_IDS_MAX
    if adapter.default_strategy is Strategy.DELTA and by_id:
        return Strategy.DELTA
    if change.operation is Operation.DELETE:
        return Strategy.CLEAR_THEN_RELOAD
    return Strategy.RELOAD if adapter.default_strategy is Strategy.DELTA else adapter.default_strategy


def route_hint(hint: Hint, registry: LayerRegistry) -> Sequence[Routed]:
    """The hint's layer if named (none if unknown), else the layers of its source, else all layers."""
    if hint.layer is None:
        layers = registry.layers_of_source(hint.source)
    else:
        layers = [adapter.id for adapter in registry.all() if adapter.id == hint.layer]
    return [
        Routed(("hint", hint.id), layer, hint.action, Strategy.RELOAD, hint.source, None, None, 0, hint.created_at)
        for layer in layers
    ]
