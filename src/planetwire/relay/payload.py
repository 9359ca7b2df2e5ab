"""The object that browsers get for a layer event: `earth.layer.changed`. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from planetwire.model import Json, LayerEvent

EVENT = "earth.layer.changed"


def payload(event: LayerEvent) -> Json:
    """The nine fixed keys and the additive ones. `broadcast_id` is added where the revision is assigned."""
    return {
        "event": EVENT,
        "action": event.action.value,
        "source": event.source,
        "table": event.table,
        "operation": event.operation.value if event.operation else None,
        "layers": [event.layer],
        "refresh_strategy": event.strategy.value,
        "records_processed": event.records_processed,
        "occurred_at": utc_text(event.occurred_at),
        "sources": list(event.sources),
        "tables": list(event.tables),
        "operations": list(event.operations),
        "merged_count": event.merged_count,
        "delta": {"upsert": list(event.upsert_ids), "remove": list(event.remove_ids)},
    }


def utc_text(at: datetime) -> str:
    """ISO 8601 in UTC with milliseconds and `Z`."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
