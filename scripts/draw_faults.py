"""Random places for faults: `plant_faults.py --draw N --seed S` prints the entries.

Round-robin over the stages; within a stage first a kind of fault is drawn, then a place, so that frequent kinds (a
comparison) do not crowd out rare ones (an order). The same tree and seed give the same places.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = "src/planetwire"
# Stage → the files it is drawn from.
BESIDE = ("audit", "database", "diagnosis", "migrating", "model", "runtime", "text", "wiring")  # no stages
PLACES: dict[str, tuple[str, ...]] = {
    "jobs": (f"{PACKAGE}/jobs/*.py", f"{PACKAGE}/jobs/*/*.py"),
    "collect": (f"{PACKAGE}/collect/*.py", f"{PACKAGE}/collect/*/*.py"),
    "facts": (f"{PACKAGE}/facts/*.py", f"{PACKAGE}/facts/*/*.py"),
    "layers": (f"{PACKAGE}/layers/*.py", f"{PACKAGE}/layers/*/*.py"),
    "outbox": (f"{PACKAGE}/outbox/*.py", f"{PACKAGE}/outbox/*/*.py"),
    "relay": (f"{PACKAGE}/relay/*.py", f"{PACKAGE}/relay/*/*.py"),
    "stream": (f"{PACKAGE}/stream/*.py", f"{PACKAGE}/stream/*/*.py"),
    "web": (f"{PACKAGE}/web/*.py", f"{PACKAGE}/web/*/*.py"),
    "supervise": (f"{PACKAGE}/supervise/*.py", f"{PACKAGE}/supervise/*/*.py"),
    "settings": (f"{PACKAGE}/*.py", *(f"{PACKAGE}/{room}/*.py" for room in BESIDE)),
    "schema": (f"{PACKAGE}/_schema/[0-9]*.sql",),
    "queries": (f"{PACKAGE}/[a-z]*/*.sql", f"{PACKAGE}/[a-z]*/*/*.sql"),
    "client": ("frontend/src/client/*.ts",),
    "data": ("frontend/src/data/*.ts",),
    "draw": ("frontend/src/draw/*.ts",),
    "views": ("frontend/src/views/*.ts", "frontend/src/views/*.tsx"),
}
FLIPPED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "===": "!==", "!==": "==="}
FLIPPED |= {"is": "is not", "is not": "is", "in": "not in", "not in": "in", "and": "or", "or": "and", "&&": "||"}
FLIPPED |= {"||": "&&", "desc": "asc", "asc": "desc", "is null": "is not null", "is not null": "is null"}
LOGGED = re.compile(r"^\s*(await )?(\w+\.)?_?log(ger)?\b|console\.")
CONTEXT_MOST = 6
IF = re.compile(r"^\s*(?:\} else )?if \((.+?)\)(?: (?:return|continue|break|throw)\b.*| \{|\s[\w.#]+.*;)$")


@dataclass(frozen=True, order=True)
class Place:
    """`new` replaces the text from `start` to `end`."""

    file: str
    kind: str
    start: int
    end: int
    new: str


def stage_of(file: str) -> str:
    """The first stage that includes this file; empty for none."""
    return next((stage for stage, globs in PLACES.items() for one in globs if Path(file).match(one)), "")


def files_of(root: Path, stage: str) -> list[str]:
    """The stage's files, in order; no tests, no files of another stage, none that only declares types."""
    found = {path.relative_to(root).as_posix() for one in PLACES[stage] for path in root.glob(one)}
    return sorted(name for name in found if ".test." not in name and stage_of(name) == stage)


@cache
def places_of(root: Path, file: str) -> list[Place]:
    """Every place of a file."""
    text = (root / file).read_text(encoding="utf-8")
    if file.endswith(".py"):
        return sorted(_python(file, text))
    return sorted(_sql(file, text) if file.endswith(".sql") else _typescript(file, text))


# ---- Python -----------------------------------------------------------------------------------------------------


class _Offsets:
    """Absolute character offsets of an AST's nodes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def at(self, line: int, column_bytes: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column_bytes].decode())

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)


def _python(file: str, text: str) -> Iterator[Place]:
    where = _Offsets(text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield from _between(file, where, "comparison", node.left, node.comparators[0])
        if isinstance(node, ast.BoolOp):
            yield from _between(file, where, "connective", node.values[0], node.values[1])
        if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.Constant):
            start, end = where.span(node.test)
            yield Place(file, "negated", start, end, f"not ({text[start:end]})")
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            value = node.value.value
            if isinstance(target, ast.Name) and type(value) in (int, float):
                start, end = where.span(node.value)
                yield Place(file, "bound", start, end, _other(text[start:end]))
        for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(body, list):
                yield from _statements(file, where, body)


def _between(file: str, where: _Offsets, kind: str, left: ast.expr, right: ast.expr) -> Iterator[Place]:
    start, end = where.span(left)[1], where.span(right)[0]
    found = re.fullmatch(r"(\)*\s+)([a-z<>=! ]+?)(\s+\(*)", where.text[start:end])
    if found and found[2] in FLIPPED:
        yield Place(file, kind, start + found.start(2), start + found.end(2), FLIPPED[found[2]])


def _statements(file: str, where: _Offsets, body: list[ast.stmt]) -> Iterator[Place]:
    simple = [_simple(node) and not LOGGED.match(where.text[slice(*where.span(node))]) for node in body]
    for i, node in enumerate(body):
        start, end = where.span(node)
        if simple[i] and isinstance(node, ast.Expr):
            yield Place(file, "dropped", start, end, "pass")
        if i and simple[i] and simple[i - 1]:
            before, its_end = where.span(body[i - 1])
            between = where.text[its_end:start]
            yield Place(file, "order", before, end, where.text[start:end] + between + where.text[before:its_end])


def _simple(node: ast.stmt) -> bool:
    """A statement with an effect that could also be elsewhere."""
    value = node.value if isinstance(node, ast.Expr | ast.Assign) else None
    return isinstance(value.value if isinstance(value, ast.Await) else value, ast.Call)


def _other(number: str) -> str:
    """A limit without effect: a hundred times as much; for 0 and 1 the other one."""
    plain = number.replace("_", "")
    return {"0": "1", "1": "0"}.get(plain) or (f"{number}00" if plain.isdigit() else f"{number} * 100")


# ---- TypeScript and SQL: by their lines ------------------------------------------------------------------------------


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for line in text.splitlines(keepends=True):
        yield start, line.rstrip("\n")
        start += len(line)


def _typescript(file: str, text: str) -> Iterator[Place]:
    call = re.compile(r"^\s+(?:await )?(?!return\b|throw\b|super\b)[\w.#?!]+\([^{}]*\);$")
    before: tuple[int, str] | None = None
    for start, line in _lines(text):
        bare = line.split("//")[0]
        if bare.lstrip().startswith(("*", "/*", "import ", "export type", "type ")):
            continue
        for found in re.finditer(r" (===|!==|<=|>=|<|>) ", bare):
            yield Place(file, "comparison", start + found.start(1), start + found.end(1), FLIPPED[found[1]])
        for found in re.finditer(r" (&&|\|\|) ", bare):
            yield Place(file, "connective", start + found.start(1), start + found.end(1), FLIPPED[found[1]])
        found = IF.match(bare)
        if found and found[1].count("(") == found[1].count(")"):
            yield Place(file, "negated", start + found.start(1), start + found.end(1), f"!({found[1]})")
        if found := re.match(r"^(?:export )?const [A-Z][A-Z_a-z0-9]+ = ([\d_.]+);", bare):
            yield Place(file, "bound", start + found.start(1), start + found.end(1), _other(found[1]))
        if call.match(bare) and not LOGGED.search(bare):
            indent = len(bare) - len(bare.lstrip())
            yield Place(file, "dropped", start + indent, start + len(bare), ";")
            if before and call.match(before[1]) and before[0] + len(before[1]) + 1 == start:
                yield Place(file, "order", before[0], start + len(line), f"{line}\n{before[1]}")
        before = (start, line)


def _sql(file: str, text: str) -> Iterator[Place]:
    for start, line in _lines(text):
        bare = line.split("--")[0]
        for found in re.finditer(r" (<=|>=|<|>) ", bare):
            yield Place(file, "comparison", start + found.start(1), start + found.end(1), FLIPPED[found[1]])
        for found in re.finditer(r" (is null|is not null|desc)\b", bare):
            yield Place(file, "comparison", start + found.start(1), start + found.end(1), FLIPPED[found[1]])
        found = re.match(r"^\s+(and .+?)(?:;|\)+;?|loop|then)?$", bare)
        if found and found[1].count("(") == found[1].count(")"):
            yield Place(file, "condition", start + found.start(1), start + found.end(1), "")
        for found in re.finditer(r"for (?:no key )?update(?: of \w+)?(?: skip locked)?|skip locked", bare):
            yield Place(file, "condition", start + found.start(), start + found.end(), "")
        if found := re.match(r"^\s*(?:els)?if (.+) then$", bare):
            yield Place(file, "negated", start + found.start(1), start + found.end(1), f"not ({found[1]})")
        if found := re.match(r"^\s+((?:perform|delete|insert|update|notify) .+;)$", bare):
            yield Place(file, "dropped", start + found.start(1), start + found.end(1), "")


# ---- The draw -------------------------------------------------------------------------------------------------------


def draw(root: Path, number: int, seed: int) -> list[Place]:
    """`number` places, stage by stage; at most one per file as long as other files are left."""
    drawn: list[Place] = []
    streams = {stage: _stream(root, stage, seed) for stage in PLACES}
    while len(drawn) < number and streams:
        for stage in list(streams):
            place = next(streams[stage], None)
            if place is None:
                del streams[stage]
            elif len(drawn) < number:
                drawn.append(place)
    return drawn


def _stream(root: Path, stage: str, seed: int) -> Iterator[Place]:
    chance = random.Random(f"{seed} {stage}")
    left = [place for file in files_of(root, stage) for place in places_of(root, file)]
    taken: set[str] = set()
    while left:
        fresh = [place for place in left if place.file not in taken] or left
        kind = chance.choice(sorted({place.kind for place in fresh}))
        place = chance.choice([one for one in fresh if one.kind == kind])
        left.remove(place)
        taken.add(place.file)
        yield place


def anchored(text: str, place: Place) -> tuple[str, str]:
    """Whole lines around the place that occur once, and the same lines with the fault."""
    start = text.rfind("\n", 0, place.start) + 1
    end = text.find("\n", place.end)
    end = len(text) if end < 0 else end
    for _ in range(CONTEXT_MOST):
        if text.count(text[start:end]) == 1:
            break
        start = text.rfind("\n", 0, start - 1) + 1 if start else 0
    find = text[start:end]
    return find, text[start : place.start] + place.new + text[place.end : end]


def entry(root: Path, place: Place) -> str:
    """The place as a fault in TOML; a person fills in its requirement lines and its description."""
    find, replace = anchored((root / place.file).read_text(encoding="utf-8"), place)
    name = f"{stage_of(place.file)}-{Path(place.file).stem}-{place.kind}"
    return "\n".join(
        [
            "[[fault]]",
            f'name = "{name}"',
            f'file = "{place.file}"',
            f"find = '''\n{find}'''",
            f"replace = '''\n{replace}'''",
            "lines = []",
            'what = ""',
            "",
        ]
    )
