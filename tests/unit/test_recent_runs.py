"""What a feed's record says of its last hour."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from planetwire.collect.recent_runs import KEPT_MAX, last_hour, with_run

AT = datetime(2026, 5, 25, 10, tzinfo=UTC)


def test_runs_count_for_an_hour_and_then_no_more() -> None:
    kept: object = None
    for minutes in (0, 30, 59):
        kept = with_run(kept, AT + timedelta(minutes=minutes), requests=2, rows=10)
    assert last_hour(kept, AT + timedelta(minutes=59)) == (6, 30)
    assert last_hour(kept, AT + timedelta(minutes=61)) == (4, 20)
    assert last_hour(kept, AT + timedelta(hours=3)) == (0, 0)


def test_no_more_runs_are_kept_than_are_needed() -> None:
    kept: object = None
    for second in range(KEPT_MAX + 40):
        kept = with_run(kept, AT + timedelta(seconds=second), requests=1, rows=1)
    assert last_hour(kept, AT) == (KEPT_MAX, KEPT_MAX)
    assert len(with_run(kept, AT + timedelta(hours=2), requests=1, rows=1)) == 1


def test_what_somebody_made_of_the_file_by_hand_counts_as_far_as_it_is_a_run() -> None:
    run = [AT.isoformat(), 1, 5]
    for odd in (
        None,
        7,
        "x",
        [None],
        [[1, 2, 3]],
        [["2026", 1, 1]],
        [[AT.isoformat(), "a", 1]],
        [[AT.isoformat(), -1, 1]],
    ):
        assert last_hour(odd, AT) == (0, 0)
    assert last_hour([run, ["2026-05-25T09:59:00", 9, 9], {}], AT) == (1, 5)
