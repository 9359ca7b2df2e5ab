"""One event to many readers: CPU per delivery, rate, age, memory, and readers that stop reading.

The neighbours alternate in the same run, on the same cores, with the same number of bytes: nchan (C, messages in
memory), FastAPI with sse-starlette (no log at all), and a C program that only sends. Ours commits every event to
SQLite with a flush to disk before it is sent. 50 topics, with enough events in flight that a server is never idle.
The neighbours have a publisher per topic; ours publishes in process, and by HTTP in a separate figure.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from _fanout import SMALL, Absent, Generator, Server, bare, fastapi, nchan, ours, raise_descriptors, topics
from _running import line

OURS, NCHAN, FASTAPI, FLOOR = "planetwire", "nchan", "FastAPI + sse-starlette", "C writer"
Peer = Callable[[], AbstractContextManager[Server]]

IN_FLIGHT = 50
ROUNDS = 1 if SMALL else 3
SECONDS = 1.0 if SMALL else 3.0
STALL_S = 3.0
STALLED, HEALTHY = 10, 5
STALL_RUN_S = 3.0 if SMALL else 10.0


class Figures:
    """CPU seconds per million deliveries, deliveries per second, kilobytes per connection; medians of the rounds."""

    def __init__(self) -> None:
        self.cpu_s: dict[str, list[float]] = defaultdict(list)
        self.rate: dict[str, list[float]] = defaultdict(list)
        self.memory_kb: dict[str, list[float]] = defaultdict(list)

    def show(self, readers: int) -> None:
        """One line per server."""
        for name, costs in self.cpu_s.items():
            print(
                f"  {readers} readers, {name}: {statistics.median(costs):.2f} CPU-s a million"
                f" ({min(costs):.2f}–{max(costs):.2f}), {statistics.median(self.rate[name]):,.0f} deliveries/s,"
                f" {statistics.median(self.memory_kb[name]):.1f} kB a connection"
            )

    def share(self, of: str) -> tuple[float, str] | None:
        """Our cost relative to another's, the median of the rounds' ratios; None if the other was absent."""
        if of not in self.cpu_s:
            return None
        ratios = [mine / theirs for mine, theirs in zip(self.cpu_s[OURS], self.cpu_s[of], strict=True)]
        return statistics.median(ratios), f"{min(ratios):.2f}–{max(ratios):.2f} in {len(ratios)} rounds"


def saturate(folder: Path, peer: Peer, readers: int, figures: Figures) -> None:
    """Publish as fast as the server accepts, and record its cost."""
    with peer() as server:
        generator = Generator(folder, server, topics())
        try:
            before_kb = server.memory_kb()
            generator.open(0, readers)
            name = server.name
            figures.memory_kb[name].append((server.memory_kb() - before_kb) / readers)
            generator.do("each 1")
            generator.do(f"closed {IN_FLIGHT} {SECONDS / 3}")
            found = generator.do(f"closed {IN_FLIGHT} {SECONDS}")
            _check(name, found)
            figures.cpu_s[name].append(found["cpu_s"] / found["total"] * 1e6)
            figures.rate[name].append(found["delivered"] / found["seconds"])
        finally:
            generator.close()


def _check(name: str, found: dict[str, float]) -> None:
    if found["missing"] or found["gaps"] or found["doubled"]:
        raise RuntimeError(f"{name} lost {found['missing']:.0f} and doubled {found['doubled']:.0f} deliveries")


def in_turns(folder: Path, peers: dict[str, Peer], readers: int) -> Figures:
    """Every peer once per round; absent ones are reported and skipped."""
    figures = Figures()
    for _ in range(ROUNDS):
        for name, peer in list(peers.items()):
            try:
                saturate(folder, peer, readers, figures)
            except Absent as why:
                print(f"  without {name}: {why}")
                del peers[name]
    figures.show(readers)
    return figures


def ages(folder: Path, readers: int, deliveries: float) -> dict[str, float]:
    """The ages of events on arrival, at a steady rate."""
    with ours() as server:
        generator = Generator(folder, server, topics())
        try:
            generator.open(0, readers)
            generator.do("each 2")
            found = generator.do(f"paced {deliveries / readers * 50} {SECONDS * 2}")
            _check(server.name, found)
            return found
        finally:
            generator.close()


def stalled(folder: Path) -> tuple[dict[str, float], float, float]:
    """Fifteen readers of one topic, ten of which stop reading: age for the others, number cut, memory growth."""
    with ours(stall_s=STALL_S) as server:
        generator = Generator(folder, server, topics()[:1])
        try:
            generator.open(0, HEALTHY)
            generator.open(HEALTHY, HEALTHY + STALLED, rcvbuf=8192)
            generator.do("each 10")
            generator.do(f"stall {HEALTHY} {HEALTHY + STALLED}")
            before_kb = server.memory_kb()
            found = generator.do(f"paced 1000 {STALL_RUN_S}")
            _check(server.name, found)
            grown_kb = server.memory_kb() - before_kb
            cut = generator.do(f"cut {HEALTHY} {HEALTHY + STALLED}")["delivered"]
            return found, cut, grown_kb
        finally:
            generator.close()


def many(folder: Path, readers: int) -> dict[str, float]:
    """Ten thousand connections, each with ten events per second."""
    with ours() as server:
        generator = Generator(folder, server, topics())
        try:
            before_kb = server.memory_kb()
            generator.open(0, readers)
            memory_kb = (server.memory_kb() - before_kb) / readers
            generator.do("each 1")
            found = generator.do(f"paced 100 {SECONDS}")
            _check(server.name, found)
            return {**found, "memory_kb": memory_kb}
        finally:
            generator.close()


def against(name: str, figures: Figures, of: str, bound: float) -> bool:
    """Prints a comparison, if the other was present."""
    share = figures.share(of)
    if share is None:
        print(f"{name}: not measured, {of} is absent")
        return True
    return line(name, share[0], bound, f"CPU for each delivery, {share[1]}")


def costs(folder: Path) -> list[bool]:
    """CPU per delivery, alternating with the neighbours; memory; the rate with a POST per event."""
    peers: dict[str, Peer] = {OURS: ours, NCHAN: nchan, FASTAPI: fastapi, FLOOR: lambda: bare(folder)}
    few = in_turns(folder, peers, 1_000)
    met = [
        against("1,000 readers, share of nchan", few, NCHAN, 1.15),
        against("1,000 readers, share of FastAPI", few, FASTAPI, 0.2),
    ]
    peers.pop(FASTAPI, None)
    lots = in_turns(folder, peers, 5_000)
    memory_kb = statistics.median(lots.memory_kb[OURS])
    posted = in_turns(folder, {"POST": lambda: ours(route=True)}, 5_000)
    rate = statistics.median(posted.rate[OURS])
    return [
        *met,
        against("5,000 readers, share of nchan", lots, NCHAN, 1 / 1.2),
        against("5,000 readers, share of the floor", lots, FLOOR, 1 / 0.8),
        line("memory of an idle connection, kB", memory_kb, 10, "5,000 of them"),
        line("a POST for each event, deliveries/s", rate, 80_000, "5,000 readers", at_most=False),
    ]


def main() -> None:
    raise_descriptors()
    with tempfile.TemporaryDirectory(prefix="pw-fanout-") as text:
        folder = Path(text)
        met = costs(folder) + rest(folder)
    sys.exit(0 if all(met) else 1)


def rest(folder: Path) -> list[bool]:
    """Ages, stalled readers, ten thousand connections."""
    steady = ages(folder, 1_000, 5_000)
    found, cut, grown_kb = stalled(folder)
    crowd = many(folder, 10_000)
    return [
        line("age at 5,000 deliveries/s, p99 ms", steady["p99_ms"], 2, f"p50 {steady['p50_ms']:.2f} ms, with commit"),
        line(
            "age beside 10 stalled of 15, p99 ms", found["p99_ms"], 5,
            f"1,000 events/s, p50 {found['p50_ms']:.2f} ms; the server grew by {grown_kb / 1000:.1f} MB",
        ),
        line("stalled readers cut", cut, STALLED, f"of {STALLED}, after {STALL_S:g} s without progress", at_most=False),
        line(
            "10,000 connections, deliveries missing", crowd["missing"] + crowd["gaps"], 0,
            f"{crowd['delivered'] / crowd['seconds']:,.0f} deliveries/s, p50 {crowd['p50_ms']:.1f} ms,"
            f" p99 {crowd['p99_ms']:.1f} ms, {crowd['memory_kb']:.1f} kB a connection",
        ),
    ]  # fmt: skip


if __name__ == "__main__":
    main()
