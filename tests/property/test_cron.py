"""Cron expressions: against a minute-by-minute reading of the clock, on the nights it changes, and at random."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from long_form import examples
from planetwire.errors import InputError
from planetwire.model.cron import next_after, smallest_gap_s, upcoming, zone_of

BERLIN = ZoneInfo("Europe/Berlin")
# Half-hour changes, changes at midnight, odd offsets, none.
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana", "Asia/Beirut",
         "America/Scoresbysund", "Asia/Kathmandu", "Pacific/Apia", "Africa/Casablanca"]  # fmt: skip
START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def local(text: str, fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold).astimezone(UTC)


def times(expression: str, after: datetime, count: int) -> list[str]:
    return [tick.astimezone(BERLIN).strftime("%d %H:%M %Z") for tick in upcoming(expression, BERLIN, after, count)]


def test_a_time_in_the_skipped_hour_comes_right_after_it() -> None:
    assert times("30 2 * * *", local("2026-03-28T12:00"), 3) == ["29 03:00 CEST", "30 02:30 CEST", "31 02:30 CEST"]
    assert times("0,30 2 * * *", local("2026-03-28T12:00"), 2) == ["29 03:00 CEST", "30 02:00 CEST"]


def test_a_time_in_the_doubled_hour_comes_once() -> None:
    assert times("30 2 * * *", local("2026-10-24T12:00"), 2) == ["25 02:30 CEST", "26 02:30 CET"]
    for between in (local("2026-10-25T02:30"), local("2026-10-25T02:10", fold=1), local("2026-10-25T02:50", fold=1)):
        assert times("30 2 * * *", between, 1) == ["26 02:30 CET"]


def test_a_schedule_with_a_star_follows_real_time_through_both_nights() -> None:
    assert times("30 * * * *", local("2026-03-29T01:00"), 2) == ["29 01:30 CET", "29 03:30 CEST"]
    assert times("*/30 2 * * *", local("2026-10-25T01:00"), 5) == [
        "25 02:00 CEST", "25 02:30 CEST", "25 02:00 CET", "25 02:30 CET", "26 02:00 CET",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "expression",
    ["0 0 30 2 *", "0 0 */31 * 1#5", "0 0 31 4,6 *", "", "* * * *", "0 * * * * *", "@daily", "60 * * * *",
     "*/0 * * * *", "a b c d e", "5-1 * * * *", "* * * * *\0", "1" * 101, "1,,2 * * * *", "-1 * * * *", "² * * * *"],
)  # fmt: skip
def test_what_is_no_schedule_or_never_comes_is_refused(expression: str) -> None:
    with pytest.raises(InputError) as refused:
        smallest_gap_s(expression)
    assert refused.value.code == "bad_cron"


@pytest.mark.parametrize("name", ["", "Mars/Base", "America", "../etc/passwd", "UTC\0", "é", "x" * 5_000])
def test_a_zone_nobody_knows_is_refused(name: str) -> None:
    with pytest.raises(InputError) as refused:
        zone_of(name)
    assert refused.value.code == "bad_time_zone"
    assert zone_of(None) is UTC


@pytest.mark.parametrize(
    ("expression", "gap_s"),
    [
        ("* * * * *", 60),
        ("*/45 * * * *", 900),
        ("0 */2 * * *", 7200),
        ("0 */7 * * *", 3 * 3600),
        ("0 0,23 * * *", 3600),
        ("0 0,23 * * 1", 23 * 3600),
        ("5 4 * * *", 86_400),
        ("0 0 1,31 * *", 86_400),
        ("0 0 1 1 MON", 86_400),
        ("0 0 * * 1,4", 3 * 86_400),
        ("0,30 0 29 2 *", 1800),
        ("0 0 L * *", 28 * 86_400),
        ("0 0 29 2 */7", 28 * 365.25 * 86_400),
    ],
)
def test_the_smallest_gap_is_found_across_days_and_years(expression: str, gap_s: float) -> None:
    assert smallest_gap_s(expression) == gap_s


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    one = number.map(str)
    pairs = st.lists(number, min_size=2, max_size=2, unique=True)
    span = pairs.map(lambda pair: f"{min(pair)}-{max(pair)}")
    step = st.tuples(st.one_of(st.just("*"), span), st.integers(1, 40)).map(lambda pair: f"{pair[0]}/{pair[1]}")
    term = st.one_of(one, span, step)
    return st.one_of(st.just("*"), term, st.lists(term, min_size=2, max_size=4).map(",".join))


EXPRESSIONS = st.tuples(field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 7)).map(" ".join)
INSTANTS = st.integers(0, 6 * 366 * 1440).map(lambda minutes: START + minutes * MINUTE)


@cache
def numbers(text: str, low: int, high: int) -> set[int]:
    out: set[int] = set()
    for term in text.split(","):
        span, _, step = term.partition("/")
        first, _, last = span.partition("-")
        bounds = (low, high) if span == "*" else (int(first), int(last or first))
        out |= set(range(bounds[0], bounds[1] + 1, int(step or 1)))
    return out


def matches(expression: str, at: datetime) -> bool:
    """What the manual page of cron says, read literally."""
    minute, hour, day, month, weekday = expression.split()
    by_day = at.day in numbers(day, 1, 31)
    by_weekday = at.isoweekday() % 7 in {number % 7 for number in numbers(weekday, 0, 7)}
    both = day.startswith("*") or weekday.startswith("*")
    return (
        at.minute in numbers(minute, 0, 59)
        and at.hour in numbers(hour, 0, 23)
        and at.month in numbers(month, 1, 12)
        and ((by_day and by_weekday) if both else (by_day or by_weekday))
    )


@settings(max_examples=examples(60), deadline=None)
@given(expression=EXPRESSIONS, after=INSTANTS)
def test_ticks_in_utc_are_those_a_watch_would_show(expression: str, after: datetime) -> None:
    end = after + timedelta(days=2)
    seen = [at for n in range(1, 2 * 1440 + 1) if matches(expression, at := after + n * MINUTE)]
    try:
        found = [tick for tick in upcoming(expression, UTC, after, len(seen) + 1) if tick <= end]
    except InputError:
        found = []
    assert found == seen


@settings(max_examples=examples(100), deadline=None)
@given(expression=EXPRESSIONS, after=INSTANTS, name=st.sampled_from(ZONES))
def test_ticks_rise_in_every_zone_and_lie_on_matching_minutes(expression: str, after: datetime, name: str) -> None:
    zone = zone_of(name)
    try:
        ticks = upcoming(expression, zone, after, 20)
    except InputError as refused:
        assert refused.code == "bad_cron"
        return
    assert all(earlier < later for earlier, later in pairwise([after, *ticks]))
    assert all(tick.utcoffset() == timedelta(0) for tick in ticks)
    for tick in ticks:
        at = tick.astimezone(zone)
        changed = at.utcoffset() != (tick - timedelta(hours=3)).astimezone(zone).utcoffset()
        assert changed or matches(expression, at)


@settings(max_examples=examples(100), deadline=None)
@given(expression=EXPRESSIONS)
def test_no_two_ticks_are_closer_than_the_smallest_gap(expression: str) -> None:
    try:
        gap_s = smallest_gap_s(expression)
    except InputError:
        return
    ticks = upcoming(expression, UTC, START, 30)
    assert all((b - a).total_seconds() >= gap_s for a, b in pairwise(ticks))


TEXTS = st.one_of(
    st.text(max_size=120),
    st.text(alphabet="0123456789*/-,#LW? MONJAN", max_size=40),
    st.lists(st.text(alphabet="0123456789*/-,#LW", min_size=1, max_size=6), min_size=5, max_size=5).map(" ".join),
)


@settings(max_examples=examples(300), deadline=None)
@given(text=TEXTS, name=st.one_of(st.sampled_from(ZONES), st.text(max_size=20)), after=st.datetimes())
def test_whatever_is_written_gives_a_time_nothing_or_a_refusal(text: str, name: str, after: datetime) -> None:
    try:
        tick = next_after(text, zone_of(name), after.replace(tzinfo=UTC))
        assert tick is None or tick > after.replace(tzinfo=UTC)
        assert smallest_gap_s(text) >= 60
    except InputError as refused:
        assert refused.code in {"bad_cron", "bad_time_zone"}
