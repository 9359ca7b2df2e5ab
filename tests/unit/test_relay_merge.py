"""Routing, merging and the object on the wire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.model import Action, Change, Hint, LayerAdapter, Operation, Provenance, Strategy
from planetwire.relay.merge import event_of, merge_all, strategy_of
from planetwire.relay.payload import payload
from planetwire.relay.route import DELTA_IDS_MAX, route, route_hint

AT = datetime(2026, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
ABOUT = Provenance("p", "l", "c", "x")


def adapter(name: str, *feeds: tuple[str, str], strategy: Strategy = Strategy.RELOAD) -> LayerAdapter:
    return LayerAdapter(name, name, name, "g", "point", feeds, (), ABOUT, default_strategy=strategy)


REGISTRY = EarthLayerAdapterRegistry(
    [
        adapter("points", ("facts", "a"), ("facts", "b")),
        adapter("lines", ("facts", "a"), ("lines", "*")),
        adapter("things", ("earth_interactables", "*"), strategy=Strategy.DELTA),
    ]
)


def change(
    table: str = "facts",
    source: str | None = "a",
    operation: Operation = Operation.INSERT,
    records: int = 1,
    ids: list[str] | None = None,
    number: int = 1,
) -> Change:
    return Change(number, table, operation, source, records, ids, AT + timedelta(seconds=number))


def test_a_row_is_routed_to_every_layer_it_feeds() -> None:
    """S25."""
    assert [effect.layer for effect in route(change(), REGISTRY)] == ["points", "lines"]
    assert [effect.layer for effect in route(change(source="b"), REGISTRY)] == ["points"]
    assert [effect.layer for effect in route(change("lines", "whatever"), REGISTRY)] == ["lines"]
    assert [effect.layer for effect in route(change(source=None), REGISTRY)] == ["points", "lines"]
    assert route(change(source="unknown"), REGISTRY) == []
    assert route(change("unknown"), REGISTRY) == []


@pytest.mark.parametrize(
    ("row", "strategy"),
    [
        (change(operation=Operation.INSERT), Strategy.RELOAD),
        (change(operation=Operation.UPDATE), Strategy.RELOAD),
        (change(operation=Operation.DELETE), Strategy.CLEAR_THEN_RELOAD),
        (change("earth_interactables", operation=Operation.UPDATE, ids=["x"]), Strategy.DELTA),
        (change("earth_interactables", operation=Operation.DELETE, ids=["x"]), Strategy.DELTA),
        (change("earth_interactables", operation=Operation.UPDATE), Strategy.RELOAD),
        (change("earth_interactables", operation=Operation.DELETE), Strategy.CLEAR_THEN_RELOAD),
        (change("earth_interactables", ids=["x"] * (DELTA_IDS_MAX + 1)), Strategy.RELOAD),
        (change(ids=["x"]), Strategy.RELOAD),
    ],
)
def test_the_strategy_follows_operation_table_and_ids(row: Change, strategy: Strategy) -> None:
    """S26, S63-S65, S76, Q26."""
    assert {effect.strategy for effect in route(row, REGISTRY)} == {strategy}


def test_a_hint_reaches_its_layer_its_source_or_everything() -> None:
    """S35, Q27."""

    def layers(layer: str | None, source: str | None) -> list[str]:
        hint = Hint(1, layer, source, Action.MANUAL_REFRESH, AT)
        return [effect.layer for effect in route_hint(hint, REGISTRY)]

    assert layers("lines", None) == ["lines"]
    assert layers(None, "b") == ["points"]
    assert layers(None, None) == ["points", "lines", "things"]
    assert layers("nothing", None) == []


def test_the_strongest_change_gives_the_scalars_and_all_give_the_lists() -> None:
    """Q20."""
    effects = [
        effect
        for row in (
            change(records=10, number=1),
            change(source="b", operation=Operation.DELETE, records=11125, number=2),
            change(operation=Operation.UPDATE, records=7, number=3),
        )
        for effect in route(row, REGISTRY)
        if effect.layer == "points"
    ]
    event = event_of(merge_all(effects))
    assert (event.strategy, event.operation, event.source) == (Strategy.CLEAR_THEN_RELOAD, Operation.DELETE, "b")
    assert (event.records_processed, event.occurred_at) == (11125, AT + timedelta(seconds=2))
    assert event.sources == ("a", "b")
    assert event.operations == ("INSERT", "DELETE", "UPDATE")
    assert event.merged_count == 3


def test_of_equally_strong_changes_that_of_the_facts_gives_the_scalars() -> None:
    """S56, Q20: derived rows go with their facts, and a little later."""
    registry = EarthLayerAdapterRegistry([adapter("points", ("collected_data", "a"), ("orbits", "a"))])
    rows = (
        change("collected_data", operation=Operation.DELETE, records=9, number=1),
        change("orbits", operation=Operation.DELETE, records=7, number=2),
    )
    event = event_of(merge_all([effect for row in rows for effect in route(row, registry)]))
    assert (event.table, event.records_processed) == ("collected_data", 9)
    assert event.tables == ("collected_data", "orbits")


def test_equal_changes_add_their_records() -> None:
    """S60: a source cleared in three batches is one event with all its records."""
    rows = [change(operation=Operation.DELETE, records=5000, number=n) for n in (1, 2)]
    rows.append(change(operation=Operation.DELETE, records=1125, number=3))
    effects = [effect for row in rows for effect in route(row, REGISTRY) if effect.layer == "lines"]
    assert event_of(merge_all(effects)).records_processed == 11125


def test_a_delta_names_rows_once_and_the_last_word_wins() -> None:
    """S65, Q21."""
    rows = [
        change("earth_interactables", operation=Operation.INSERT, ids=["1", "2"], number=1),
        change("earth_interactables", operation=Operation.DELETE, ids=["1"], number=2),
        change("earth_interactables", operation=Operation.UPDATE, ids=["3"], number=3),
    ]
    event = event_of(merge_all([effect for row in rows for effect in route(row, REGISTRY)]))
    assert event.strategy is Strategy.DELTA
    assert (event.upsert_ids, event.remove_ids) == (("2", "3"), ("1",))


@pytest.mark.parametrize(
    ("operation", "strategy"),
    [(Operation.UPDATE, Strategy.RELOAD), (Operation.DELETE, Strategy.CLEAR_THEN_RELOAD)],
)
def test_too_many_rows_for_a_delta_become_something_stronger(operation: Operation, strategy: Strategy) -> None:
    """Q21."""
    rows = [
        change("earth_interactables", operation=operation, ids=[f"{n}-{k}" for k in range(300)], number=n)
        for n in (1, 2)
    ]
    merged = merge_all([effect for row in rows for effect in route(row, REGISTRY)])
    assert strategy_of(merged) is strategy
    assert event_of(merged).upsert_ids == ()


def test_the_object_on_the_wire_has_the_nine_keys_and_utc_with_z() -> None:
    """S52-S61."""
    (effect,) = route(change("lines", "whatever", Operation.DELETE, 3), REGISTRY)
    body = payload(event_of(merge_all([effect])))
    nine = (
        "event",
        "action",
        "source",
        "table",
        "operation",
        "layers",
        "refresh_strategy",
        "records_processed",
        "occurred_at",
    )
    assert {key: body[key] for key in nine} == {
        "event": "earth.layer.changed",
        "action": "database_changed",
        "source": "whatever",
        "table": "lines",
        "operation": "DELETE",
        "layers": ["lines"],
        "refresh_strategy": "clear_then_reload",
        "records_processed": 3,
        "occurred_at": "2026-05-06T07:08:10.123Z",
    }
