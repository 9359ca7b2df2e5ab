"""What is done about a source that is due: fire or let pass, and when it is due again. No database, no clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from planetwire.errors import InputError
from planetwire.jobs.schedule import follow
from planetwire.model import DueSource, NextRun

NOW = datetime(2026, 5, 4, 12, 0, 10, tzinfo=UTC)
EVERY = DueSource("alpha", NOW, NOW - timedelta(seconds=1), None, None, None, 600.0, 0.0, None, None, "once")
HOURLY = replace(EVERY, due_at=NOW - timedelta(seconds=3), tick_at=NOW - timedelta(seconds=10), cron="0 * * * *")


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def test_jitter_only_lengthens_an_interval_and_by_a_twentieth_at_most() -> None:
    assert follow(EVERY, 0.0).next_run_at == NOW + seconds(600)
    assert follow(EVERY, 1.0).next_run_at == NOW + seconds(630)


@pytest.mark.parametrize(
    ("cron", "most_s"), [("* * * * *", 3.0), ("*/5 * * * *", 15.0), ("0 * * * *", 30.0), ("0 0 1 1 *", 30.0)]
)
def test_jitter_of_a_tick_is_a_twentieth_of_its_gap_and_half_a_minute_at_most(cron: str, most_s: float) -> None:
    due = replace(HOURLY, cron=cron)
    for share in (0.0, 0.5, 1.0):
        then = follow(due, share)
        assert then.tick_at is not None and then.tick_at > NOW
        assert then.next_run_at == then.tick_at + seconds(most_s * share)


def test_all_who_see_a_tick_give_its_firing_the_same_name() -> None:
    assert {follow(HOURLY, share).fire_at for share in (0.0, 0.3, 1.0)} == {HOURLY.tick_at}
    assert {follow(EVERY, share).fire_at for share in (0.0, 0.3, 1.0)} == {EVERY.due_at}


def test_a_first_run_by_interval_is_now_and_a_first_tick_is_waited_for() -> None:
    assert follow(replace(EVERY, due_at=None), 0.0).fire_at == NOW
    then = follow(replace(HOURLY, due_at=None, tick_at=None), 0.0)
    assert (then.fire_at, then.next_run_at) == (None, datetime(2026, 5, 4, 13, tzinfo=UTC))


@pytest.mark.parametrize("away", [seconds(90), timedelta(days=40)])
def test_after_a_downtime_one_run_stands_for_all_that_were_missed(away: timedelta) -> None:
    then = follow(replace(HOURLY, due_at=NOW - away, tick_at=NOW - away), 0.0)
    assert then.fire_at == NOW - away and then.next_run_at == datetime(2026, 5, 4, 13, tzinfo=UTC)
    then = follow(replace(EVERY, due_at=NOW - away), 0.0)
    assert then.fire_at == NOW - away and then.next_run_at == NOW + seconds(600)


def test_with_skip_what_is_later_than_a_minute_is_let_pass() -> None:
    for late_s, fires in ((59, True), (61, False), (86_400, False)):
        late = NOW - seconds(late_s)
        by_tick = follow(replace(HOURLY, misfire="skip", due_at=late, tick_at=late), 0.0)
        assert (by_tick.fire_at is not None) is fires
        assert by_tick.next_run_at == datetime(2026, 5, 4, 13, tzinfo=UTC)
        by_beat = follow(replace(EVERY, misfire="skip", due_at=late), 0.0)
        assert (by_beat.fire_at is not None) is fires
    beat = follow(replace(EVERY, misfire="skip", due_at=NOW - seconds(1500)), 1.0)
    assert beat.next_run_at == NOW + seconds(300)


def test_waiting_for_the_floor_is_not_being_late() -> None:
    held = replace(HOURLY, misfire="skip", floor_s=3600.0, answered_at=NOW - seconds(3601), due_at=NOW - seconds(900))
    assert follow(held, 0.0).fire_at is not None
    assert follow(replace(held, answered_at=NOW - seconds(3700)), 0.0).fire_at is None


def test_the_next_run_is_never_before_the_floor_has_passed_since_the_last() -> None:
    for due in (EVERY, HOURLY):
        then = follow(replace(due, floor_s=7200.0, answered_at=NOW - seconds(1)), 0.0)
        assert then.next_run_at == NOW + seconds(7199)


def test_a_tick_plan_of_the_future_does_not_name_a_run_of_today() -> None:
    edited = replace(HOURLY, tick_at=NOW + seconds(3000))
    assert follow(edited, 0.0).fire_at == edited.due_at


@pytest.mark.parametrize("wrong", [{"cron": "whenever"}, {"cron": "0 0 30 2 *"}, {"time_zone": "Mars/Base"}])
def test_a_schedule_written_past_the_check_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(InputError):
        follow(replace(HOURLY, **wrong), 0.0)


def test_a_try_after_a_failure_leaves_the_plan_as_it_is_until_its_time_has_come() -> None:
    for plan in (EVERY, HOURLY):
        ahead = replace(plan, due_at=NOW + seconds(400), tick_at=plan.tick_at and NOW + seconds(390))
        again = replace(ahead, retry_at=NOW - seconds(1))
        assert follow(again, 0.5) == NextRun(again.retry_at, ahead.tick_at, NOW + seconds(400))
        both = follow(replace(plan, retry_at=NOW - seconds(1)), 0.0)
        assert both == replace(follow(plan, 0.0), fire_at=NOW - seconds(1))


def test_a_try_after_a_failure_is_never_one_that_was_missed() -> None:
    late = replace(EVERY, misfire="skip", due_at=NOW - seconds(3000), retry_at=NOW - seconds(3600))
    assert follow(late, 0.0).fire_at == late.retry_at
