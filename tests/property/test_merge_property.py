"""Laws of merging: associative, never weaker than a part, nothing forgotten."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from planetwire.model import Action, Operation, Strategy
from planetwire.relay.merge import STRENGTH, Merged, event_of, merge, merge_all, strategy_of
from planetwire.relay.route import Routed

AT = datetime(2026, 1, 1, tzinfo=UTC)

effects = st.builds(
    Routed,
    key=st.tuples(st.just("change"), st.integers(1, 1_000_000)),
    layer=st.just("layer"),
    action=st.sampled_from(Action),
    strategy=st.sampled_from(Strategy),
    source=st.sampled_from([None, "a", "b"]),
    table=st.sampled_from([None, "facts", "earth_interactables"]),
    operation=st.sampled_from([None, *Operation]),
    records=st.integers(0, 10_000),
    occurred_at=st.integers(0, 1000).map(lambda s: AT + timedelta(seconds=s)),
    row_ids=st.lists(st.sampled_from([f"r{n}" for n in range(700)]), max_size=300, unique=True).map(tuple),
)
runs = st.lists(effects, min_size=1, max_size=6)


@given(runs, runs, runs)
def test_merging_is_associative(first: list[Routed], second: list[Routed], third: list[Routed]) -> None:
    """Q20: it does not matter how changes fall into windows of one read."""
    a, b, c = merge_all(first), merge_all(second), merge_all(third)
    assert merge(merge(a, b), c) == merge(a, merge(b, c)) == merge_all([*first, *second, *third])
    assert event_of(merge(merge(a, b), c)) == event_of(merge(a, merge(b, c)))


@given(runs, runs)
def test_merging_never_weakens_a_refresh(first: list[Routed], second: list[Routed]) -> None:
    """S62-S65."""

    def strength(merged: Merged) -> int:
        return STRENGTH[strategy_of(merged)]

    a, b = merge_all(first), merge_all(second)
    assert strength(merge(a, b)) >= max(strength(a), strength(b))


@given(runs)
def test_a_delta_names_every_row_that_its_parts_named(run: list[Routed]) -> None:
    """S65, Q21."""
    event = event_of(merge_all(run))
    assert event.merged_count == len(run)
    if event.strategy is Strategy.DELTA:
        named = {row for effect in run for row in effect.row_ids}
        assert set(event.upsert_ids) | set(event.remove_ids) == named
        assert not set(event.upsert_ids) & set(event.remove_ids)
