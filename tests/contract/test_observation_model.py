"""Whatever comes in whatever order, the store answers as a plain dictionary of readings would."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

import pytest

from fix_observations import START, Observations, patch
from planetwire.facts.sqlite import recent_sqlite
from planetwire.model import Appended, ObservationPatch
from planetwire.runtime.clock import utc_text

CITIES = ["seoul", "tokyo", "london"]
LONG_AGO = START - timedelta(days=1)
Curve = tuple[str, str, str]


@dataclass
class Model:
    """City, series, source → observation time → °C."""

    curves: dict[Curve, dict[datetime, float]] = field(default_factory=dict)

    def take(self, one: ObservationPatch, now: datetime) -> None:
        for series, temp in one.points:
            self.curves.setdefault((one.city, series, one.source), {})[one.obs_time or now] = temp

    def history(self, city: str) -> list[tuple[str, str, datetime, float]]:
        curves = [(key, at, temp) for key, curve in self.curves.items() if key[0] == city for at, temp in curve.items()]
        return sorted((series, source, at, temp) for (_, series, source), at, temp in curves)

    def latest(self) -> dict[Curve, tuple[datetime, float]]:
        return {key: max(curve.items()) for key, curve in self.curves.items()}

    def highs(self) -> dict[str, tuple[float, datetime]]:
        found: dict[str, tuple[float, datetime]] = {}
        for (city, series, _), curve in self.curves.items():
            for at, temp in curve.items() if ":" not in series else ():
                old = found.get(city)
                if old is None or (temp, old[1]) > (old[0], at):
                    found[city] = (temp, at)
        return found


def reading(random: Random, observations: Observations) -> ObservationPatch:
    """Mostly the newest of its curve; now and then late, a correction, a repetition, untimed, of a runway alone."""
    now = observations.clock.now()
    back_s = random.choice([0, 0, 0, 0, random.randrange(0, 40), 3600])
    inner: dict[str, object] = {
        "obs_time": None if random.random() < 0.1 else utc_text(now - timedelta(seconds=back_s))
    }
    if random.random() < 0.2:
        inner["runway_points"] = [{"runway": "15R/33L", "temp": random.randrange(20)}]
    temp = None if "runway_points" in inner and random.random() < 0.3 else random.randrange(20)
    source = random.choice(["metar", "amos"])
    return patch(observations.clock, random.choice(CITIES), temp, source=source, **inner)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(4))
async def test_the_store_answers_as_a_dictionary_would(
    observations: Observations, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """F2, F21, F22, S127: through moves of recent readings, corrections and late ones, one call or many."""
    monkeypatch.setattr(recent_sqlite, "MOVE_AT", 7)
    random, model = Random(seed), Model()
    for _ in range(60):
        observations.clock.advance(random.choice([0, 1, 5]))
        group = [reading(random, observations) for _ in range(random.choice([1, 1, 1, 2, 9]))]
        appended = await observations.store.append(group)
        for one, result in zip(group, appended, strict=True):
            if not result.duplicate:
                model.take(one, observations.clock.now())
        await check_repetition(observations, random.choice(group), appended, group)
        await check_answers(observations, model)
    await check_chain(observations)


async def check_repetition(
    observations: Observations, one: ObservationPatch, appended: object, group: list[ObservationPatch]
) -> None:
    if one.obs_time is None:
        return
    results: list[Appended] = list(appended)  # type: ignore[call-overload]
    again = (await observations.store.append([one]))[0]
    assert again.duplicate
    assert again.revision in [result.revision for result in results]


async def check_answers(observations: Observations, model: Model) -> None:
    store = observations.store
    for city in CITIES:
        assert sorted(await store.history(city, LONG_AGO)) == model.history(city)
    rows = [(city, row) for city, rows in (await store.latest()).items() for row in rows]
    latest = {(city, row["series_key"], row["source"]): (row["obs_time"], row["temp"]) for city, row in rows}
    assert latest == model.latest()
    assert await store.highs(dict.fromkeys(CITIES, LONG_AGO)) == model.highs()


async def check_chain(observations: Observations) -> None:
    last: dict[str, int] = {}
    for event in await observations.log.page([f"city:{city}" for city in CITIES], 0, 10_000):
        assert event.prev_revision == last.get(event.topic, 0)
        last[event.topic] = event.revision


async def test_readings_of_one_call_may_fall_in_time(observations: Observations) -> None:
    """F22: the newest stays the newest, though all came after what was there."""
    await observations.put("seoul", 20.0, obs_time=utc_text(START - timedelta(minutes=9)))
    times = [START - timedelta(minutes=n) for n in (1, 3, 2)]
    await observations.store.append(
        [patch(observations.clock, "seoul", at.minute, obs_time=utc_text(at)) for at in times]
    )
    assert [row["temp"] for row in (await observations.store.latest())["seoul"]] == [59.0]
    assert [temp for *_, temp in await observations.store.history("seoul", LONG_AGO)] == [20.0, 57.0, 58.0, 59.0]


async def test_a_reading_is_in_the_table_of_readings_at_once(sqlite_observations: Observations) -> None:
    """S127: for who asks the file itself, moved or not."""
    observations, rows = (
        sqlite_observations,
        "select city, series_key, temp_c, obs_time from observations order by city",
    )
    await observations.put("seoul", 20.0)
    expected = [("seoul", "metar", 20.0, "2026-05-26T10:00:00.000Z")]
    assert await observations.rows(rows) == expected
    await observations.store.prune()
    assert await observations.rows(rows) == expected
    assert await observations.rows("select count(*) from observation_recent") == [(0,)]


async def test_recent_readings_are_moved_before_they_are_many(sqlite_observations: Observations) -> None:
    """S130: the reader of a curve passes few that are not its own."""
    observations, clock = sqlite_observations, sqlite_observations.clock
    for second in range(0, 1_200, 50):
        at = [utc_text(START - timedelta(seconds=1_200 - second - n)) for n in range(50)]
        await observations.store.append([patch(clock, "seoul", n / 10, obs_time=at[n]) for n in range(50)])
        left = (await observations.rows("select count(*) from observation_recent"))[0][0]
        assert left < recent_sqlite.MOVE_AT
    assert await observations.rows("select count(*) from observations") == [(1_200,)]
