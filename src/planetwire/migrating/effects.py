"""The effects of a migration on existing tables, read from its SQL: locks, rewrites, and whether the previous version
can keep running beside it.

A test applies every migration and compares with the server's locks and files. An unknown statement counts as the worst.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["expand", "contract"]

# Of PostgreSQL, weakest first.
LOCKS = ("row exclusive", "share update exclusive", "share", "share row exclusive", "access exclusive")
_DOLLAR = re.compile(r"\$[A-Za-z_]*\$")
_QUOTED = re.compile(r"'(?:[^']|'')*'")
_NAME = r"(?:public\.)?([a-z_][a-z0-9_]*)"
_BRACKETS = re.compile(r"\((?:[^()]|\([^()]*\))*\)")  # and those within
_VOLATILE = re.compile(r"\b(clock_timestamp|random|gen_random_uuid|nextval|timeofday)\s*\(|\bas identity\b|\bstored\b")
_INDEX = rf"create (?:unique )?index (?:concurrently )?(?:if not exists )?(\S+) on {_NAME}"
_CREATED = re.compile(rf"create (?:unlogged )?table (?:if not exists )?{_NAME}")


@dataclass(slots=True)
class Effects:
    """`locks`: the strongest on each existing table. `contracts`: why the previous version stops working."""

    locks: dict[str, str] = field(default_factory=dict)
    rewrites: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)  # every row, for an index or a check
    writes: set[str] = field(default_factory=set)  # rows
    contracts: list[str] = field(default_factory=list)
    indexes: Mapping[str, tuple[str, bool]] = field(default_factory=dict)  # whose they are, and whether unique
    checks: frozenset[str] = frozenset()
    _new: set[str] = field(default_factory=set)

    @property
    def kind(self) -> Kind:
        """Whether the previous version keeps working while and after it is applied."""
        return "contract" if self.contracts else "expand"

    def lock(self, table: str, mode: str) -> bool:
        """Record the lock; False for a table of the same migration, which no other session can see."""
        if table in self._new:
            return False
        known = self.locks.get(table, LOCKS[0])
        self.locks[table] = max(known, mode, key=LOCKS.index)
        return True

    def created(self, table: str) -> None:
        """A table of this migration."""
        self._new.add(table)


def effects_of(
    script: str, indexes: Mapping[str, tuple[str, bool]] | None = None, checks: frozenset[str] = frozenset()
) -> Effects:
    """Of a PostgreSQL migration; of one for SQLite too, where any change locks the whole file. `indexes`: by name the
    table of each that earlier migrations made, and whether it is unique; `checks`: the names of theirs.
    """
    effects = Effects(indexes=indexes or {}, checks=checks)
    for statement in statements(script):
        _read(statement, effects)
    return effects


def indexes_of(scripts: Iterable[str]) -> dict[str, tuple[str, bool]]:
    """By name the table of each index that migrations make, and whether it is unique."""
    found = (re.match(_INDEX, statement) for script in scripts for statement in statements(script))
    return {match[1]: (match[2], match[0].startswith("create unique")) for match in found if match}


def checks_of(scripts: Iterable[str]) -> frozenset[str]:
    """The names that migrations give to checks."""
    found = (re.findall(r"\bconstraint (\S+) check\b", line) for script in scripts for line in statements(script))
    return frozenset(name for names in found for name in names)


def statements(script: str) -> Iterator[str]:
    """One line each, lower case, without comments and bodies of functions."""
    buffer, at = "", 0
    while at < len(script):
        if script.startswith("--", at):
            at = _until(script, "\n", at)
        elif script[at] == "'" and (quoted := _QUOTED.match(script, at)):
            buffer, at = buffer + quoted[0], quoted.end()
        elif dollar := _DOLLAR.match(script, at):
            buffer, at = buffer + "$$", _until(script, dollar[0], dollar.end()) + len(dollar[0])
        elif script[at] == ";" and not _inside_trigger(buffer):
            yield _plain(buffer)
            buffer, at = "", at + 1
        else:
            buffer, at = buffer + script[at], at + 1
    if buffer.strip():
        yield _plain(buffer)


def _until(script: str, text: str, at: int) -> int:
    found = script.find(text, at)
    return len(script) if found < 0 else found


def _plain(statement: str) -> str:
    return " ".join(statement.lower().split())


def _inside_trigger(buffer: str) -> bool:
    """The bodies of SQLite's triggers are between `begin` and `end`."""
    text = _plain(buffer)
    return text.startswith("create trigger") and " begin " in text and not text.endswith(" end")


def _read(statement: str, effects: Effects) -> None:
    for pattern, note in _KNOWN:
        if found := re.match(pattern, statement):
            note(found, statement, effects)
            return
    effects.contracts.append(f"not known: {statement[:60]}")


def _new_table(found: re.Match[str], statement: str, effects: Effects) -> None:
    effects.created(found[1])
    for table in re.findall(rf" references {_NAME}", statement):
        effects.lock(table, "share row exclusive")


def _new_index(found: re.Match[str], statement: str, effects: Effects) -> None:
    table = found[2]
    if effects.lock(table, "share"):
        effects.reads.add(table)
        if statement.startswith("create unique"):
            effects.contracts.append(f"makes rows unique in {table}")


def _new_trigger(found: re.Match[str], statement: str, effects: Effects) -> None:
    effects.lock(found[1], "share row exclusive")


def _changed_rows(found: re.Match[str], statement: str, effects: Effects) -> None:
    if effects.lock(found[1], "row exclusive"):
        effects.writes.add(found[1])


def _changed_table(found: re.Match[str], statement: str, effects: Effects) -> None:
    table, actions = found[1], found[2]
    for action in _actions(actions):
        mode, contract = _action(action)
        if (gone := re.match(r"drop constraint (\S+)", action)) and _is_check(gone[1], effects):
            contract = ""  # empty: rows that the previous version writes are still valid
        if not effects.lock(table, mode):
            continue
        if contract:
            effects.contracts.append(f"{contract} {table}")
        if (action.startswith("add column") and _VOLATILE.search(action)) or contract.startswith("changes the type"):
            effects.rewrites.add(table)
        if re.search(r"set not null|add (constraint|check|primary|unique|foreign)|\bcheck\b", action):
            effects.reads.add(table)


def _is_check(name: str, effects: Effects) -> bool:
    """By a name from a migration, or by the pattern of names that the server generates."""
    return name in effects.checks or name.endswith("_check")


def _actions(text: str) -> list[str]:
    """At commas outside of brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


_ACTIONS = (
    (r"(enable|disable) .*trigger", "share row exclusive", ""),
    (r"add column (?!.*\b(default|generated)\b).* not null", "access exclusive", "wants a value in each new row of"),
    (r"add column", "access exclusive", ""),
    (r"set \(", "share update exclusive", ""),
    (r"alter (column )?\S+ set (statistics|storage|compression)", "share update exclusive", ""),
    (r"alter (column )?\S+ (set|drop) default", "access exclusive", ""),
    (r"alter (column )?\S+ drop not null", "access exclusive", ""),
    (r"alter (column )?\S+ (set data )?type", "access exclusive", "changes the type of a column of"),
    (r"alter (column )?\S+ set not null", "access exclusive", "wants a value in each row of"),
    (r"drop", "access exclusive", "takes away from"),
    (r"rename", "access exclusive", "renames in"),
    (r"add ", "access exclusive", "narrows what rows may be of"),
)


def _action(action: str) -> tuple[str, str]:
    bare = _BRACKETS.sub("()", action)  # `not null` inside a check is not the constraint
    for pattern, mode, contract in _ACTIONS:
        if re.match(pattern, bare):
            return mode, contract
    return "access exclusive", "does something that is not known to"


def _dropped(found: re.Match[str], statement: str, effects: Effects) -> None:
    what, names = found[1], [name.strip().removeprefix("public.") for name in found[2].split(",")]
    known = [effects.indexes[name] for name in names if what == "index" and name in effects.indexes]
    # Without a plain index an older process is only slower; a unique one is a constraint that `on conflict` needs.
    if len(known) < len(names) or any(unique for _, unique in known):
        effects.contracts.append(f"drops {what} {found[2][:60]}")
    tables = names if what == "table" else [table for table, _ in known]
    for table in tables:
        effects.lock(table, "access exclusive")
    if what == "trigger" and (on := re.search(rf" on {_NAME}", statement)):
        effects.lock(on[1], "access exclusive")


def _program(found: re.Match[str], statement: str, effects: Effects) -> None:
    """Functions of our own are known by name: those that make triggers lock what they watch, and nothing else."""


def _harmless(found: re.Match[str], statement: str, effects: Effects) -> None:
    """New objects, which no process uses yet, and replaced functions with the same arguments."""


_KNOWN = (
    (_CREATED.pattern, _new_table),
    (_INDEX, _new_index),
    (rf"create (?:or replace )?(?:constraint )?trigger \S+ .*? on {_NAME}", _new_trigger),
    (r"create (?:or replace )?(function|procedure|view|type|sequence|extension)\b", _harmless),
    (rf"alter table (?:only )?(?:if exists )?{_NAME} (.*)", _changed_table),
    (rf"(?:insert into|update(?: only)?|delete from) {_NAME}", _changed_rows),
    (r"drop (table|index|trigger|function|procedure|view|type|sequence)(?: if exists)? (.*)", _dropped),
    (r"select planet_(watch_tree|install_hooks)\(", _program),
    (r"(grant|comment|analyze|pragma|set) ", _harmless),
)
