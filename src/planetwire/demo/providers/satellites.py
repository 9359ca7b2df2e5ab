"""The simulated GP provider: `/NORAD/elements/gp.php`. Its data changes every two hours, like the real one's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime

from planetwire.demo.providers.answer import Answer, Query, text
from planetwire.demo.providers.noise import spread
from planetwire.demo.providers.omm import TICK_US, WRITERS, Elements
from planetwire.demo.providers.orbits import REFERENCE_S, UPDATE_S, Orbit, fleet, sidereal_deg, visitors

NOTHING = "No GP data found"
_DAY_S = 86_400
_MAX_KEPT = 24
"""Answers kept of one update; a query beyond that is written anew each time."""


def issue_of(now_s: float) -> int:
    """The time of issue of the elements served at `now_s`, epoch seconds."""
    return int(now_s // UPDATE_S) * UPDATE_S


def _epoch_ticks(orbit: Orbit, issued_s: int) -> int:
    """An object gets new elements every few issues; their epoch is up to half a day earlier."""
    update, period = issued_s // UPDATE_S, orbit.period_updates
    last = update - (update - orbit.norad_id) % period
    lag_s = spread(600, 5_000 if period == 1 else 42_000, orbit.norad_id, last)
    return round(max(last * UPDATE_S - lag_s, orbit.launched_s) * 1_000_000 / TICK_US)


def elements_of(orbit: Orbit, issued_s: int) -> Elements:
    """The record of an object in that issue; angles follow from its orbit, so issues are continuous."""
    ticks = _epoch_ticks(orbit, issued_s)
    at_s = ticks * TICK_US / 1_000_000
    sinking = orbit.family == "visitors"
    days = (at_s - (orbit.launched_s if sinking else REFERENCE_S)) / _DAY_S
    dot = orbit.motion_dot if sinking else 0.0
    node = orbit.node_deg + orbit.node_rate * days
    argument = orbit.argument_deg + orbit.argument_rate * days
    if orbit.slot_deg is None:
        anomaly = orbit.anomaly_deg + 360 * (orbit.motion_rev_day * days % 1 + dot * days * days)
    else:
        anomaly = orbit.slot_deg + sidereal_deg(at_s) - node - argument
    motion = orbit.motion_rev_day + 2 * dot * days
    return Elements(
        orbit.name,
        orbit.designator,
        ticks,
        round(motion, 8),
        round(orbit.eccentricity, 7),
        round(orbit.inclination_deg, 4),
        round(node % 360, 4) % 360,
        round(argument % 360, 4) % 360,
        round(anomaly % 360, 4) % 360,
        orbit.norad_id,
        int((at_s - orbit.launched_s) / _DAY_S * motion) % 100_000,
        float(f"{orbit.bstar:.4e}"),
        round(orbit.motion_dot, 8),
    )


class Satellites:
    """Answers GP queries. Thread-safe; the records of an issue are computed once."""

    def __init__(self, seed: int, *, strict: bool = False) -> None:
        self._seed = seed
        self._strict = strict
        self._lock = threading.Lock()
        self._issued_s = -1
        self._records: list[tuple[str, Elements]] = []
        self._answers: dict[str, Answer] = {}
        self._served: dict[tuple[str, str], tuple[int, float]] = {}

    def records(self, now_s: float) -> list[tuple[str, Elements]]:
        """(family, elements) of all objects in the current issue, by ascending id."""
        with self._lock:
            self._turn(now_s)
            return self._records

    def answer(self, query: Query, now_s: float) -> Answer:
        """A body in the requested format; errors are text, as the provider's."""
        asked = "&".join(f"{name.upper()}={query.get(name)}" for name in ("group", "catnr", "intdes", "name"))
        form = query.get("format", "tle").lower()
        if form not in WRITERS:
            return text(404, f'Invalid query: "{asked}" (FORMAT={form} not known)')
        choose = self._filter(query)
        if choose is None:
            return text(404, f'Invalid query: "{asked}" (GROUP, CATNR, INTDES or NAME needed)')
        with self._lock:
            self._turn(now_s)
            refusal = self._refuse_repeat(query, f"{asked}&FORMAT={form}", now_s)
            return refusal or self._written(f"{asked}&FORMAT={form}", form, choose)

    def _turn(self, now_s: float) -> None:
        issued_s = issue_of(now_s)
        if issued_s == self._issued_s:
            return
        orbits = [*fleet(self._seed), *visitors(self._seed, issued_s)]
        self._records = [(orbit.family, elements_of(orbit, issued_s)) for orbit in orbits]
        self._issued_s = issued_s
        self._answers.clear()

    @staticmethod
    def _filter(query: Query) -> Callable[[str, Elements], bool] | None:
        group, number = query.get("group").lower(), query.get("catnr")
        launch, name = query.get("intdes").upper(), query.get("name").upper()
        if group == "active":
            return lambda family, record: True
        if group == "last-30-days":
            return lambda family, record: family == "visitors"
        if group:
            return lambda family, record: family.lower() == group
        if number:
            return lambda family, record: str(record.norad_id) == number
        if launch:
            return lambda family, record: record.designator.startswith(launch)
        return (lambda family, record: name in record.name) if name else None

    def _refuse_repeat(self, query: Query, asked: str, now_s: float) -> Answer | None:
        """Allows one full download per issue and client; enforced only in strict mode."""
        if not self._strict:
            return None
        issued_s, at_s = self._served.get((query.client, asked), (-1, 0.0))
        if issued_s == self._issued_s and not query.conditional:
            when = datetime.fromtimestamp(at_s, UTC)
            return text(
                403,
                "GP data has not updated since your last successful\r\n"
                f"download of {asked.split('&')[0]} at {when:%Y-%m-%d %H:%M:%S} UTC.\r\n"
                "Data is updated once every 2 hours.\r\n",
            )
        self._served[(query.client, asked)] = (self._issued_s, now_s)
        return None

    def _written(self, asked: str, form: str, choose: Callable[[str, Elements], bool]) -> Answer:
        kept = self._answers.get(asked)
        if kept is not None:
            return kept
        write, content_type = WRITERS[form]
        chosen = [record for family, record in self._records if choose(family, record)]
        body = write(chosen) if chosen else ""
        made = Answer(body.encode(), content_type, modified_s=self._issued_s) if body else text(404, NOTHING)
        if len(self._answers) < _MAX_KEPT:
            self._answers[asked] = made
        return made
