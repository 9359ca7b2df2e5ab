"""Plants one fault at a time in a copy and runs the tests that the coverage page names for the lines it breaks.

`plant_faults.py [--only NAME …] [--jobs N]` runs and writes docs/planted-faults.md; `--list` shows the faults;
`--draw N --seed S` prints places for new ones. Exit 0: every fault was detected; 1: one was not, or a named test fails
without any; 2: the list does not match the tree.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import draw_faults
from fault_copy import Copy, end_running, is_whole
from fault_list import ROOT, Fault, Named, load, problems, tests_of
from fault_table import Outcome, write

# Ranks of tests that run together: cheap ones, those with a server, whole installations.
PHASES = ((0, 1, 2), (3, 4, 5), (6, 7, 8))


class Planting:
    """Runs each fault's tests, cheap ones first; a detected fault needs no more expensive ones."""

    def __init__(
        self, faults: list[Fault], jobs: int, say: Callable[[str], None], keep: Callable[[dict[str, Outcome]], None]
    ) -> None:
        """`say` is called for each fault, `keep` after each phase with all outcomes so far."""
        self.left = list(faults)
        self.outcomes: dict[str, Outcome] = {}
        self.not_green: set[str] = set()
        self._jobs = jobs
        self._say = say
        self._keep = keep
        self._copies: SimpleQueue[Copy] = SimpleQueue()

    def run(self) -> None:
        copies: list[Copy] = []
        try:
            for _ in range(self._jobs):
                copies.append(Copy())
                self._copies.put(copies[-1])
            for phase in PHASES:
                self._phase(phase)
                self._keep(self.outcomes)
        finally:
            for copy in copies:
                copy.remove()
        for fault in self.left:
            self.outcomes[fault.name] = Outcome("survived", "")
            self._say(f"SURVIVED  {fault.name}")
        self._keep(self.outcomes)

    def _phase(self, phase: tuple[int, ...]) -> None:
        tests = {fault.name: [test for test in tests_of(fault) if test.rank in phase] for fault in self.left}
        green = self._green({test for some in tests.values() for test in some})
        with ThreadPoolExecutor(self._jobs) as pool:
            fit = {name: [test for test in some if str(test) in green] for name, some in tests.items()}
            planted = [pool.submit(self._plant, fault, fit[fault.name]) for fault in self.left if fit[fault.name]]
            try:
                for one in planted:
                    one.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                end_running()
                raise
        self.left = [fault for fault in self.left if fault.name not in self.outcomes]

    def _green(self, tests: set[Named]) -> frozenset[str]:
        """The tests that pass without a fault; the others prove nothing."""
        if not tests:
            return frozenset()
        copy = self._copies.get()
        try:
            began = time.monotonic()
            alone = self._jobs == 1 or any(is_whole(test) for test in tests)  # browsers share no process with others
            ran = copy.run(sorted(tests), first_red_ends=False, workers=0 if alone else self._jobs)
        finally:
            self._copies.put(copy)
        bad = {str(test) for test in tests} - ran.green
        self.not_green |= bad
        self._say(f"{len(ran.green)} named tests are green without a fault ({time.monotonic() - began:.0f} s)")
        for name in sorted(bad):
            self._say(f"NOT GREEN without a fault: {name}")
        if bad:
            self._say(ran.output[-3000:])
        return ran.green

    def _plant(self, fault: Fault, tests: list[Named]) -> None:
        copy = self._copies.get()
        began = time.monotonic()
        try:
            with copy.planted(fault, tests):
                ran = copy.run(tests, first_red_ends=True)
        except BaseException as error:
            self._say(f"ERROR     {fault.name}: {error!r}")
            raise
        finally:
            self._copies.put(copy)
        if ran.red or ran.hung:
            by = ran.red[0] if ran.red else str(tests[0])
            kind = "hung" if ran.hung else "caught"
            self.outcomes[fault.name] = Outcome(kind, by)
            self._say(f"{kind:9} {fault.name}  {by}  ({time.monotonic() - began:.0f} s)")
        else:
            self._say(f"green     {fault.name}: {len(tests)} tests ({time.monotonic() - began:.0f} s)")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME", nargs="+", help="these faults; their rows of the table alone change")
    parser.add_argument("--jobs", type=int, default=2, help="copies at once (2)")
    parser.add_argument("--list", action="store_true", help="the faults, their lines and tests; nothing is run")
    parser.add_argument("--draw", type=int, metavar="N", help="print N places for new faults; nothing is run")
    parser.add_argument("--seed", type=int, default=10, help="of --draw (10)")
    return parser.parse_args()


def listed(faults: list[Fault]) -> str:
    return "\n".join(
        f"{fault.name}  {' '.join(fault.lines)}  {fault.file}\n    {fault.what}"
        + "".join(f"\n    {test}" for test in tests_of(fault) if not fault.equivalent)
        for fault in faults
    )


def main() -> int:
    chosen = arguments()
    if chosen.draw:
        print("\n".join(draw_faults.entry(ROOT, place) for place in draw_faults.draw(ROOT, chosen.draw, chosen.seed)))
        return 0
    every = load()
    found = problems(every)
    unknown = set(chosen.only or ()) - {fault.name for fault in every}
    if found or unknown:
        print("\n".join([*found, *(f"{name}: no such fault" for name in sorted(unknown))]), file=sys.stderr)
        return 2
    faults = [fault for fault in every if not chosen.only or fault.name in chosen.only]
    if chosen.list:
        print(listed(faults))
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    planted = [fault for fault in faults if not fault.equivalent]
    planting = Planting(planted, chosen.jobs, lambda text: print(text, flush=True), lambda found: write(every, found))
    planting.run()
    return 1 if planting.not_green or any(one.kind == "survived" for one in planting.outcomes.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
