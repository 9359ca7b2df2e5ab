"""Changes of rows on their way to browsers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from planetwire.model.layers import Strategy


class Operation(StrEnum):
    """What a statement did. TRUNCATE is recorded as DELETE with source None."""

    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


class Action(StrEnum):
    """Why a layer event was sent."""

    DATABASE_CHANGED = "database_changed"
    CACHE_CLEARED = "cache_cleared"
    MANUAL_REFRESH = "manual_refresh"


@dataclass(frozen=True, slots=True)
class Change:
    """One outbox row: one statement's effect on one table and source (None = every source of the table).

    Or several of one table, operation and source, added up: then `ids` names them all, `id` the first.
    """

    id: int
    table_name: str
    operation: Operation
    source: str | None
    records_processed: int
    row_ids: Sequence[str] | None
    occurred_at: datetime
    attempts: int = 0
    ids: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Hint:
    """A refresh asked for by `clear_cache` or `earth_refresh`; read by the relay like a change."""

    id: int
    layer: str | None
    source: str | None
    action: Action
    created_at: datetime


@dataclass(frozen=True, slots=True)
class LayerEvent:
    """One merged `earth.layer.changed`: the strongest change's scalars, and all that was merged into it."""

    layer: str
    action: Action
    source: str | None
    table: str | None
    operation: Operation | None
    strategy: Strategy
    records_processed: int
    occurred_at: datetime
    sources: tuple[str, ...]
    tables: tuple[str, ...]
    operations: tuple[str, ...]
    merged_count: int
    upsert_ids: tuple[str, ...] = ()
    remove_ids: tuple[str, ...] = ()
