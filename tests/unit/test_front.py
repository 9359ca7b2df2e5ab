"""Deadlines in queues, and who goes when descriptors run out; without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from planetwire.settings import RequestSettings
from planetwire.web.http import front as front_module
from planetwire.web.http.front import LINGER_S, RECOUNT_S, Front, Wait


class Caller:
    """A connection, as far as the front sees it."""

    waits: Wait | None = None

    def __init__(self, front: Front) -> None:
        self.front = front
        self.expired: list[Wait] = []
        self.dropped = False

    def expire(self, wait: Wait) -> None:
        self.expired.append(wait)

    def drop(self) -> None:
        self.dropped = True

    def gone(self) -> None:
        self.front.wait(self, None)
        self.front.gone(dropped=self.dropped)


class Machine:
    """A process with few descriptors: the kernel gives the lowest free one."""

    def __init__(self, front: Front, others: int) -> None:
        self.front = front
        self.table: dict[int, Caller | None] = dict.fromkeys(range(others))

    def connect(self) -> tuple[Caller, bool]:
        number = next(each for each in range(10_000) if each not in self.table)
        caller = Caller(self.front)
        self.table[number] = caller
        return caller, self.front.opened(caller, number)

    def turn(self) -> None:
        """One turn of the loop: what was dropped gives its descriptor back."""
        for number, caller in list(self.table.items()):
            if caller is not None and caller.dropped:
                caller.gone()
                del self.table[number]


class At:
    """Seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def at() -> At:
    return At()


def made(at: At, descriptors: int = 10_000, **settings: float) -> Front:
    return Front(RequestSettings.model_validate(settings), now=at, descriptors=descriptors)


@pytest.mark.parametrize(
    ("wait", "after_s"), [(Wait.HEAD, 10.0), (Wait.BODY, 30.0), (Wait.IDLE, 60.0), (Wait.LINGER, LINGER_S)]
)
async def test_each_kind_has_its_time(at: At, wait: Wait, after_s: float) -> None:
    front = made(at)
    caller = Caller(front)
    front.wait(caller, wait)
    at.now = after_s - 0.01
    assert front.sweep() == 0
    at.now = after_s
    assert (front.sweep(), caller.expired, caller.waits) == (1, [wait], None)
    assert front.sweep() == 0


async def test_who_goes_on_in_time_is_left_alone(at: At) -> None:
    """A head that came, a body that came, a connection that closed."""
    front = made(at)
    callers = [Caller(front) for _ in range(3)]
    for caller in callers:
        front.wait(caller, Wait.HEAD)
    front.wait(callers[0], None)
    at.now = 5.0
    front.wait(callers[1], Wait.BODY)
    at.now = 10.0
    assert (front.sweep(), [caller.expired for caller in callers]) == (1, [[], [], [Wait.HEAD]])
    at.now = 35.0
    assert (front.sweep(), callers[1].expired) == (1, [Wait.BODY])


async def test_a_sweep_looks_only_at_who_is_over(at: At) -> None:
    """10,000 that wait cost nothing: of each queue one is looked at beyond those whose time is over."""
    front = made(at)
    looked = 0

    class Counted(dict[Caller, float]):
        def items(self) -> object:  # type: ignore[override]
            def each() -> object:
                nonlocal looked
                for pair in dict.items(self):
                    looked += 1
                    yield pair

            return each()

    front._queues = tuple(Counted() for _ in Wait)
    for number in range(10_000):
        at.now = number / 10_000
        front.wait(Caller(front), Wait.IDLE)
    at.now = 60.0005
    expired = front.sweep()
    assert 0 < expired < 10
    assert looked == expired + 1


async def test_one_timer_serves_all_and_sleeps_when_nobody_waits(at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process whose connections are all live streams does not wake for them."""
    monkeypatch.setattr(front_module, "SWEEP_S", 0.001)
    loop, armed = asyncio.get_running_loop(), 0
    call_later = loop.call_later

    def counted(delay: float, step: Callable[..., object], *arguments: object) -> asyncio.TimerHandle:
        nonlocal armed
        armed += step == front._tick
        return call_later(delay, step, *arguments)

    monkeypatch.setattr(loop, "call_later", counted)
    front = made(at)
    callers = [Caller(front) for _ in range(100)]
    for caller in callers:
        front.wait(caller, Wait.HEAD)
    assert armed == 1
    for caller in callers:
        front.wait(caller, None)
    async with asyncio.timeout(60):
        while front._timer is not None:
            await asyncio.sleep(0.001)
    assert armed < 50


async def test_the_oldest_without_a_request_goes_first(at: At) -> None:
    front = made(at, descriptors=40, reserved_descriptors=16)
    machine = Machine(front, others=14)
    first = [machine.connect()[0] for _ in range(10)]
    front.wait(first[0], None)  # its request is being answered
    front.wait(first[1], Wait.IDLE)
    assert not any(caller.dropped for caller in first)
    newest, welcome = machine.connect()
    assert welcome
    assert [caller.dropped for caller in first] == [False, False, True] + [False] * 7
    assert not newest.dropped


async def test_the_reserve_is_never_used_up_by_those_who_say_nothing(at: At) -> None:
    """2,000 of them, also while what was closed gives its descriptor back a turn later."""
    front = made(at, descriptors=400)
    machine = Machine(front, others=22)
    highest = 0
    for _ in range(2_000):
        _, welcome = machine.connect()
        assert welcome
        highest = max(highest, len(machine.table))
        machine.turn()
    assert highest <= 400 - 16 + 2
    assert front.shed == 2_000 - (400 - 16 - 22)


async def test_holes_below_do_not_hide_that_the_reserve_fills(at: At) -> None:
    """The number of a descriptor says how many there are only when it is the highest."""
    front = made(at, descriptors=100)
    machine = Machine(front, others=14)
    for _ in range(90):
        machine.connect()
        machine.connect()
        machine.turn()
        assert len(machine.table) <= 100 - 16 + 2


async def test_who_would_use_the_reserve_with_nobody_to_close_is_answered_health_only(at: At) -> None:
    front = made(at, descriptors=40)
    machine = Machine(front, others=14)
    busy = [machine.connect() for _ in range(10)]
    for caller, welcome in busy:
        assert welcome
        front.wait(caller, None)
    assert machine.connect()[1] is False
    busy[0][0].dropped = True  # it leaves
    front._closing += 1
    machine.turn()
    assert [caller.dropped for caller, _ in busy[1:]] == [False] * 9


async def test_descriptors_that_others_take_make_room_too(at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool of database connections opened while nobody could be accepted any more."""
    front = made(at, descriptors=40)
    machine = Machine(front, others=4)
    waiting = [machine.connect()[0] for _ in range(15)]
    monkeypatch.setattr("os.listdir", lambda _: ["x"] * (4 + 15 + 16 + 1))
    at.now = RECOUNT_S
    front.sweep()
    assert [caller.dropped for caller in waiting] == [True] * 3 + [False] * 12


async def test_shedding_is_said_once_in_a_while(at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[int] = []

    class Log:
        def warning(self, event: str, *, connections: int) -> None:
            said.append(connections)

    monkeypatch.setattr(front_module, "log", Log())
    front = made(at, descriptors=40)
    machine = Machine(front, others=14)
    at.now = 100.0
    for _ in range(20):
        machine.connect()
        machine.turn()
    front.sweep()
    for _ in range(20):
        machine.connect()
        machine.turn()
        front.sweep()
    at.now = 111.0
    front.sweep()
    assert len(said) == 2
    assert sum(said) == front.shed
