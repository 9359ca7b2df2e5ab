"""What the web process notes: refusals are counted and merged, and nothing is lost while the log's store is away."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from planetwire.errors import BackendError
from planetwire.model import Actor, Role
from planetwire.model.acts import Act
from planetwire.web.access.audit import ADDRESSES_MAX, OTHERS, WINDOW_S, Notes

ANN = Actor("ann", Role.ADMIN, "192.0.2.7")


class HandClock:
    at = 0.0

    def monotonic(self) -> float:
        return self.at

    def now(self) -> datetime:
        return datetime(2026, 5, 4, tzinfo=UTC)

    async def sleep(self, seconds: float) -> None:
        self.at += seconds


class Log:
    """Keeps acts in a list; may be away."""

    def __init__(self) -> None:
        self.acts: list[Act] = []
        self.away = False

    async def note(self, act: Act) -> None:
        if self.away:
            raise BackendError("away")
        self.acts.append(act)

    async def carry(self, at: datetime, key: str, act: Act) -> None:
        await self.note(act)

    async def page(self, *wanted: object) -> tuple[list[object], None]:
        return [], None

    async def prune(self) -> int:
        return 0

    async def take(self) -> list[tuple[datetime, str, Act]]:
        return [(datetime(2026, 5, 4, tzinfo=UTC), str(n), act) for n, act in enumerate(self.acts)]

    async def drop(self, keys: Sequence[str]) -> None:
        self.acts = [act for n, act in enumerate(self.acts) if str(n) not in keys]


def made(*, spare: Log | None = None) -> tuple[Notes, Log, HandClock]:
    log, clock = Log(), HandClock()
    return Notes(log, clock, spare, log.carry), log, clock  # type: ignore[arg-type]


async def test_a_thousand_refusals_of_an_address_are_two_rows() -> None:
    notes, log, clock = made()
    for _ in range(1_000):
        await notes.refused("192.0.2.9", "unauthorised")
    assert len(log.acts) == 1
    clock.at += WINDOW_S
    await notes.step()
    assert [act.details for act in log.acts] == [
        {"code": "unauthorised", "times": 1},
        {"times": 999, "merged": True},
    ]
    await notes.step()
    await notes.refused("192.0.2.9", "unauthorised")
    assert len(log.acts) == 3


async def test_refusals_of_ever_new_addresses_are_bounded_in_rows_and_memory() -> None:
    notes, log, clock = made()
    for number in range(10_000):
        await notes.refused(f"10.0.{number // 256}.{number % 256}", "unauthorised")
    assert len(log.acts) == ADDRESSES_MAX + 1
    clock.at += WINDOW_S
    await notes.step()
    assert len(log.acts) == ADDRESSES_MAX + 2
    assert log.acts[-1].by.address == OTHERS
    assert sum(act.details["times"] for act in log.acts) == 10_000


async def test_while_the_store_is_away_the_spare_takes_acts_and_they_are_carried_when_it_answers() -> None:
    spare = Log()
    notes, log, _ = made(spare=spare)
    log.away = True
    await notes.note(ANN, "session.opened", proof="token")
    assert [act.what for act in spare.acts] == ["session.opened"]
    with pytest.raises(BackendError):
        await notes.step()
    assert len(spare.acts) == 1
    log.away = False
    await notes.step()
    assert [act.what for act in log.acts] == ["session.opened"] and spare.acts == []


async def test_an_act_that_nothing_takes_fails_and_a_refusal_stands() -> None:
    notes, log, _ = made()
    log.away = True
    with pytest.raises(BackendError):
        await notes.note(ANN, "session.opened")
    await notes.refused("192.0.2.9", "unauthorised")


async def test_an_entry_that_no_database_takes_stays_and_holds_no_other_back() -> None:
    spare = Log()
    notes, log, _ = made(spare=spare)
    log.away = True
    for what in ("token.added", "odd", "token.removed"):
        await notes.note(ANN, what)
    log.away = False
    carry = log.carry

    async def picky(at: datetime, key: str, act: Act) -> None:
        if act.what == "odd":
            raise ValueError("not like that")
        await carry(at, key, act)

    notes._carry = picky
    await notes.step()
    assert [act.what for act in log.acts] == ["token.added", "token.removed"]
    assert [act.what for act in spare.acts] == ["odd"]
