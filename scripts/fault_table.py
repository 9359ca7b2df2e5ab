"""docs/planted-faults.md: the outcome of each fault. A run of some faults updates only their rows."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fault_list import ROOT, Fault

PAGE = ROOT / "docs" / "planted-faults.md"
ROW = re.compile(r"^\| `([\w.-]+)` \|.*\| (caught|hung|survived|not run|equivalent)(?: `(.+?)`)? \|$", re.MULTILINE)
HEAD = """# Planted faults

Each fault below was planted alone in a copy of the tree, and the tests that [the coverage
page](requirements-coverage.md) names for the lines it breaks were run, the cheap ones first, until one was red.
`scripts/plant_faults.py` plants, runs and writes this page. The faults are in `scripts/faults/`: `known.toml` holds
those that named tests once let pass, `drawn.toml` those whose places were drawn by a seed
(`scripts/plant_faults.py --draw {drawn} --seed 10`, on the tree of d76ddb0).

"""


@dataclass(frozen=True)
class Outcome:
    """`by`: the first red test."""

    kind: str
    by: str


def kept() -> dict[str, Outcome]:
    """The outcomes on the present page."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return {name: Outcome(kind, by) for name, kind, by in ROW.findall(text)}


def write(faults: list[Fault], outcomes: dict[str, Outcome]) -> None:
    """Rewrite the page with the new outcomes and the known ones of the other faults."""
    known = kept() | outcomes
    rows = {fault.name: _outcome(fault, known) for fault in faults}
    counts = {
        kind: sum(one.kind == kind for one in rows.values()) for kind in ("caught", "hung", "survived", "not run")
    }
    equivalent = [fault for fault in faults if fault.equivalent]
    figures = f"{len(faults)} faults: {counts['caught']} caught, {counts['hung']} hung, {counts['survived']} survived"
    figures += f", {counts['not run']} not run, {len(equivalent)} equivalent (no difference that could be observed)."
    drawn = sum(fault.origin == "drawn" for fault in faults)
    lines = [
        HEAD.format(drawn=drawn) + figures,
        "",
        "| fault | what | file | lines | outcome |",
        "|---|---|---|---|---|",
    ]
    for fault in faults:
        outcome = rows[fault.name]
        seen = f"{outcome.kind} `{outcome.by}`" if outcome.by else outcome.kind
        place = fault.file.removeprefix("src/planetwire/").removeprefix("frontend/src/")
        lines.append(f"| `{fault.name}` | {fault.what} | `{place}` | {', '.join(fault.lines)} | {seen} |")
    lines += ["", "## Equivalent", ""]
    lines += [f"- `{fault.name}`: {fault.equivalent}" for fault in equivalent]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _outcome(fault: Fault, known: dict[str, Outcome]) -> Outcome:
    return Outcome("equivalent", "") if fault.equivalent else known.get(fault.name, Outcome("not run", ""))
