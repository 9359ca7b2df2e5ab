"""The ledger as a state machine: any calls in any order against a model of what each must do, on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import ledger_oracle
from fix_postgres import database_of
from ledger_tools import ALL_TYPES, expire, queue_on, wish
from long_form import amount
from planetwire.database.postgres import open_pool
from planetwire.errors import LeaseLost, StateError
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.model import JobStatus, Lease, TaskType
from planetwire.supervise.embedded_postgres import EmbeddedPostgres

T = TypeVar("T")
EXAMPLES = amount("LEDGER_EXAMPLES", 20, 400)
KINDS = st.sampled_from(list(TaskType))
SOURCES = st.sampled_from(["a", "b", "c"])
HELD = {"running", "cancelling"}
FINAL = {"completed", "failed", "cancelled"}
ADD = """
insert into collection_tasks (task_type, source, priority, max_attempts, created_at)
values ($1, $2, $3, $4, clock_timestamp() - interval '1 h') returning id
"""


@dataclass
class Wanted:
    """What a job should be."""

    id: int
    kind: TaskType
    source: str
    priority: int
    most: int
    status: str = "queued"
    attempts: int = 0
    seq: int = 0
    records: int = 0
    due: bool = True

    @property
    def writes(self) -> bool:
        return self.kind in (TaskType.COLLECT, TaskType.CLEAR_DATA)

    def leave(self, status: str, *, new_seq: bool) -> None:
        self.status = status
        self.seq += new_seq


@dataclass
class Model:
    jobs: dict[int, Wanted] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)

    def claimable(self) -> set[int]:
        """Heads of sources where nothing runs, and whatever waits without a key."""
        waiting = sorted(
            (job for job in self.jobs.values() if job.status == "queued" and job.due),
            key=lambda job: (job.priority, job.id),
        )
        busy = {job.source for job in self.jobs.values() if job.writes and job.status in HELD} | self.paused
        found = set()
        for job in waiting:
            if not job.writes:
                found.add(job.id)
            elif job.source not in busy:
                found.add(job.id)
                busy.add(job.source)
        return found


class LedgerMachine(RuleBasedStateMachine):
    """Every rule calls the ledger and then does to the model what the ports promise."""

    dsn = ""
    few = 0  # sources up to which nothing is parked

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.pool = self.do(open_pool(self.dsn, application="test", max_size=2))
        self.queue = self.fresh()
        self.model = Model()
        self.leases: list[Lease] = []
        self.do(self.pool.execute("truncate collection_tasks, paused_sources, effects, transitions"))

    def fresh(self) -> PostgresJobQueue:
        return queue_on(self.pool, retry_s=0, rescue_retry_s=0, few_sources=self.few)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def pick(self, number: int, *statuses: str) -> Wanted | None:
        """Some job, of these states if any are named."""
        jobs = [job for job in self.model.jobs.values() if not statuses or job.status in statuses]
        return jobs[number % len(jobs)] if jobs else None

    def lease(self, number: int) -> tuple[Lease, Wanted, bool]:
        """Some lease that was ever given out; whether it still holds."""
        lease = self.leases[-1 - number % len(self.leases)]
        job = self.model.jobs[lease.job.id]
        return lease, job, job.seq == lease.seq and job.status in HELD

    # --- rules

    @initialize(
        jobs=st.lists(st.tuples(KINDS, SOURCES, st.integers(0, 2), st.integers(1, 3)), max_size=8),
        few=st.sampled_from([0, 200]),
    )
    def fill(self, jobs: list[tuple[TaskType, str, int, int]], few: int) -> None:
        self.few = few
        self.queue = self.fresh()
        for job in jobs:
            self.insert(*job)

    @rule(kind=KINDS, source=SOURCES, priority=st.integers(0, 2), most=st.integers(1, 3))
    def insert(self, kind: TaskType, source: str, priority: int, most: int) -> None:
        task_id = self.do(self.pool.fetchval(ADD, kind.value, source, priority, most))
        self.model.jobs[task_id] = Wanted(task_id, kind, source, priority, most)

    @rule(kind=KINDS, source=SOURCES)
    def submit(self, kind: TaskType, source: str) -> None:
        """Q28: a waiting twin is the answer, and its time has come."""
        jobs = self.model.jobs.values()
        twins = [job for job in jobs if (job.kind, job.source, job.status) == (kind, source, "queued")]
        job, created = self.do(self.queue.submit(wish(kind, source)))
        assert created == (not twins)
        if created:
            self.model.jobs[job.id] = Wanted(job.id, kind, source, job.priority, job.max_attempts)
        else:
            assert job.id == min(twins, key=lambda twin: (twin.priority, twin.id)).id
            self.model.jobs[job.id].due = True

    @rule(limit=st.integers(1, 5))
    def claim(self, limit: int) -> None:
        may = self.model.claimable()
        # A new one each time: after a slow claim it may for two seconds pass over what has come to stand in front.
        got = self.do(self.fresh().claim("w", ALL_TYPES, limit))
        assert len(got) == min(limit, len(may)) and {lease.job.id for lease in got} <= may
        assert [(g.job.priority, g.job.id) for g in got] == sorted((g.job.priority, g.job.id) for g in got)
        for lease in got:
            job = self.model.jobs[lease.job.id]
            job.status, job.attempts, job.seq = "running", job.attempts + 1, job.seq + 1
            job.records = job.records if job.kind is TaskType.CLEAR_DATA else 0
            assert (lease.seq, lease.job.attempts) == (job.seq, job.attempts)
            self.leases.append(lease)

    @precondition(lambda self: self.leases)
    @rule(number=st.integers(0, 5), rows=st.integers(0, 3))
    def batch(self, number: int, rows: int) -> None:
        lease, job, held = self.lease(number)
        if not held or job.status == "cancelling":
            with pytest.raises(LeaseLost):
                self.do(self.write(lease, rows))
        else:
            self.do(self.write(lease, rows))
            job.records += rows

    async def write(self, lease: Lease, rows: int) -> None:
        number = await self.pool.fetchval("select count(*)::int from effects where job = $1", lease.job.id)
        async with self.queue.batch(lease) as tx:
            await ledger_oracle.leave_effect(tx, lease, number, rows)

    @precondition(lambda self: self.leases)
    @rule(number=st.integers(0, 5), status=st.sampled_from(["completed", "failed", "cancelled"]))
    def finish(self, number: int, status: str) -> None:
        lease, job, held = self.lease(number)
        error = ("transient", "x") if status == "failed" else None
        written = self.do(self.queue.finish(lease, JobStatus(status), error=error))
        assert written == (job.seq == lease.seq)  # also when it had been written before
        if held and status == "failed" and job.status == "cancelling":
            job.leave("cancelled", new_seq=False)
        elif held and status == "failed" and job.attempts < job.most:
            job.leave("queued", new_seq=False)
        elif held:
            job.leave(status, new_seq=False)

    @rule(number=st.integers(0, 20))
    def cancel(self, number: int) -> None:
        job = self.pick(number)
        if job is None:
            return
        if job.status in FINAL:
            with pytest.raises(StateError):
                self.do(self.queue.cancel(job.id))
        else:
            job.status = "cancelled" if job.status == "queued" else "cancelling"
            assert self.do(self.queue.cancel(job.id)).status == job.status

    @rule(number=st.integers(0, 20))
    def fall_silent(self, number: int) -> None:
        job = self.pick(number, *HELD)
        if job is None:
            assert self.do(self.queue.rescue()) == 0
            return
        self.do(expire(self.pool, job.id))
        assert self.do(self.queue.rescue()) == 1
        lost = "failed" if job.attempts >= job.most else "queued"
        job.leave("cancelled" if job.status == "cancelling" else lost, new_seq=True)

    @precondition(lambda self: self.leases)
    @rule(number=st.integers(0, 5))
    def give_back(self, number: int) -> None:
        lease, job, held = self.lease(number)
        assert self.do(self.queue.release([lease])) == held
        if held:
            job.attempts -= job.status == "running"
            job.leave("cancelled" if job.status == "cancelling" else "queued", new_seq=True)

    @rule()
    def beat_and_look(self) -> None:
        held = {}
        for lease in self.leases:
            job = self.model.jobs[lease.job.id]
            if job.seq == lease.seq and job.status in HELD:
                held[job.id] = job.status
        assert self.do(self.queue.heartbeat(self.leases)) == held == self.do(self.queue.look(self.leases))

    @rule(source=SOURCES, paused=st.booleans())
    def pause(self, source: str, paused: bool) -> None:
        self.do(self.queue.pause(source, paused))
        (self.model.paused.add if paused else self.model.paused.discard)(source)

    @rule(number=st.integers(0, 20), later=st.booleans())
    def put_off_by_hand(self, number: int, later: bool) -> None:
        job = self.pick(number, "queued")
        if job is not None:
            at = "clock_timestamp() + make_interval(hours => $2)"
            by_hand = f"update collection_tasks set scheduled_at = {at} where id = $1"
            self.do(self.pool.execute(by_hand, job.id, 1 if later else -1))
            job.due = not later

    @rule(number=st.integers(0, 20), source=SOURCES, priority=st.integers(0, 2))
    def move_by_hand(self, number: int, source: str, priority: int) -> None:
        job = self.pick(number, "queued")
        if job is not None:
            by_hand = "update collection_tasks set source = $2, priority = $3 where id = $1"
            self.do(self.pool.execute(by_hand, job.id, source, priority))
            job.source, job.priority = source, priority

    @rule(number=st.integers(0, 20))
    def delete_by_hand(self, number: int) -> None:
        job = self.pick(number, "queued")
        if job is not None and job.attempts == 0 and job.seq == 0:
            self.do(self.pool.execute("delete from collection_tasks where id = $1", job.id))
            del self.model.jobs[job.id]

    @rule()
    def park(self) -> None:
        self.do(self.queue.park())

    # --- what holds after every step, and at the end

    @invariant()
    def rows_are_as_the_model_says(self) -> None:
        rows = self.do(self.pool.fetch("select * from collection_tasks"))
        real = {r["id"]: (r["status"], r["attempts"], r["lease_seq"], r["records_processed"]) for r in rows}
        assert real == {j.id: (j.status, j.attempts, j.seq, j.records) for j in self.model.jobs.values()}
        for row in rows:
            assert (row["finished_at"] is not None) == (row["status"] in FINAL)
            assert (row["lease_until"] is not None) == (row["status"] in HELD)

    def teardown(self) -> None:
        """Whatever happened: nobody needs a sweep, everything can still be run to its end, no promise was broken."""
        try:
            assert self.do(self.queue.sweep()) == 0
            for source in list(self.model.paused):
                self.pause(source, False)
            self.do(self.pool.execute("update collection_tasks set scheduled_at = null where status = 'queued'"))
            for job in self.model.jobs.values():
                job.due = True
            self.run_all()
            assert {job.status for job in self.model.jobs.values()} <= FINAL
            assert self.do(ledger_oracle.violations(self.pool)) == []
        finally:
            self.do(self.pool.close())
            self.loop.close()

    def run_all(self) -> None:
        while held := [job for job in self.model.jobs.values() if job.status in HELD]:
            self.fall_silent(0)
            assert held
        while self.model.claimable():
            before = len(self.leases)
            self.claim(5)
            for number in range(len(self.leases) - before):
                self.finish(number, "completed")


def test_the_ledger_does_what_its_model_does(pg_cluster: EmbeddedPostgres) -> None:
    """S36–S51, Q16, Q17, Q18, Q28."""
    with database_of(pg_cluster, ledger_oracle.TABLES) as dsn:
        machine = type("Machine", (LedgerMachine,), {"dsn": dsn})
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=30,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking would take minutes
            ),
        )
