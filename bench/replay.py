"""Five hundred readers reconnect at once and each has missed a thousand events: seconds until the last has them all.

Compared with nchan, which keeps its messages in memory, in the same run. Meanwhile other readers receive live events,
whose age is measured. No event may be lost or duplicated for any reader.
"""

from __future__ import annotations

import socket
import statistics
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from _fanout import SMALL, Absent, Generator, Server, nchan, ours, raise_descriptors, topics
from _running import line

TOPICS = 10
BACK = 500
LIVE = 50
MISSED = 100 if SMALL else 1_000
LIVE_RATE = 50
ROUNDS = 1 if SMALL else 3
TIMEOUT_S = 40
GOAL_S = 0.5
GOAL_TIMES = 5


def cursors(generator: Generator, server: Server, names: list[str]) -> list[str]:
    """The `id:` of one event per topic, published for this purpose."""
    with ExitStack() as stack:
        readers = []
        for number, name in enumerate(names):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 10))
            request = server.get.replace("{topic}", name).replace("{number}", str(number)).replace("\\r\\n", "\r\n")
            sock.sendall(request.encode())
            reader = stack.enter_context(sock.makefile("rb"))
            assert b" 200 " in reader.readline(), f"{server.name} refused a reader"
            readers.append(reader)
        generator.do("each 1")
        return [_first_id(reader) for reader in readers]


def _first_id(reader: socket.SocketIO) -> str:
    for raw in reader:
        if raw.startswith(b"id:"):
            return raw[3:].strip().decode()
    raise RuntimeError("the stream ended")


def storm(folder: Path, peer: Callable[[], AbstractContextManager[Server]]) -> dict[str, float]:
    """Seconds until all have caught up, and the errors."""
    with peer() as server:
        names = topics()[:TOPICS]
        generator = Generator(folder, server, names)
        try:
            for number, cursor in enumerate(cursors(generator, server, names)):
                generator.tell(f"cursor {number} {cursor}")
            generator.do(f"each {MISSED}")
            generator.open(0, LIVE)
            generator.do("each 1")
            generator.tell(f"get {server.get_after}")
            return generator.do(f"storm {LIVE} {LIVE + BACK} {LIVE_RATE} {TIMEOUT_S}")
        finally:
            generator.close()


def show(name: str, found: dict[str, float]) -> None:
    """One line."""
    print(
        f"  {name}: all caught up after {found['caught_up_s']:.2f} s, {found['cpu_s']:.2f} CPU-s,"
        f" missing {found['missing']:.0f}, gaps {found['gaps']:.0f}, doubled {found['doubled']:.0f},"
        f" live p50 {found['p50_ms']:.1f} ms, p99 {found['p99_ms']:.1f} ms",
        flush=True,
    )


def rounds(folder: Path) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    """Ours and nchan's, alternating; nchan's empty if it is absent."""
    mine, theirs = [], []
    for _ in range(ROUNDS):
        mine.append(storm(folder, ours))
        show("planetwire", mine[-1])
        try:
            theirs.append(storm(folder, nchan))
            show("nchan", theirs[-1])
        except Absent as why:
            print(f"  without nchan: {why}")
    return mine, theirs


def main() -> None:
    raise_descriptors()
    with tempfile.TemporaryDirectory(prefix="pw-replay-") as folder:
        mine, theirs = rounds(Path(folder))
    took_s = statistics.median(each["caught_up_s"] for each in mine)
    wrong = sum(each["missing"] + each["gaps"] + each["doubled"] for each in mine)
    live_ms = statistics.median(each["p99_ms"] for each in mine)
    detail = f"{BACK} readers, {MISSED} events each"
    if theirs:
        ratios = [his["caught_up_s"] / own["caught_up_s"] for own, his in zip(mine, theirs, strict=True)]
        detail += f", all caught up after {took_s:.2f} s; {min(ratios):.1f}–{max(ratios):.1f} in {ROUNDS} rounds"
        caught_up = line("storm, times nchan", statistics.median(ratios), GOAL_TIMES, detail, at_most=False)
    else:
        caught_up = line("storm, all caught up, s", took_s, GOAL_S, detail)
    met = [
        caught_up,
        line("lost or doubled", wrong, 0, f"of {BACK * MISSED * len(mine):,}"),
        line("age of live events meanwhile, p99 ms", live_ms, 50, f"{LIVE} other readers, {LIVE_RATE} events/s"),
    ]
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
