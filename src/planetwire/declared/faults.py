"""What is wrong with a declaration: each fault with its place in the text and its remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planetwire.errors import InputError
from planetwire.model import Json
from planetwire.text.printable import printable

FAULTS_MAX = 50  # told of one declaration
SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. Lines and columns begin at 1; `code` is for programs, `remedy` says what to write instead."""

    line: int
    column: int
    code: str
    message: str
    remedy: str = ""

    def record(self) -> Json:
        """As JSON."""
        return {
            "line": self.line,
            "column": self.column,
            "code": self.code,
            "message": self.message,
            "remedy": self.remedy,
        }

    def text(self, name: str) -> str:
        """As compilers write it: `name:line:column: message`, the remedy on a line of its own."""
        told = f"{name}:{self.line}:{self.column}: {self.message} [{self.code}]"
        return f"{told}\n  → {self.remedy}" if self.remedy else told


class DeclarationFaults(InputError):
    """A declaration that cannot be used. `faults`: all that were found, in the order of the text, at most FAULTS_MAX.

    `more`: how many were left off.
    """

    code = "bad_declaration"

    def __init__(self, faults: Iterable[Fault], name: str = "declaration") -> None:
        found = sorted(set(faults), key=lambda one: (one.line, one.column, one.code, one.message))
        self.faults: Sequence[Fault] = tuple(found[:FAULTS_MAX])
        self.more = len(found) - len(self.faults)
        self.name = name
        super().__init__("\n".join(one.text(name) for one in self.faults))
        self.extensions = {"faults": [one.record() for one in self.faults]}


def nearest(word: str, known: Iterable[str]) -> str:
    """`did you mean x?`, or which words there are; empty when there are none."""
    words = sorted(set(known))
    close = difflib.get_close_matches(word.lower()[:SHOWN_CHARS], words, n=1, cutoff=0.6)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"known here: {', '.join(words)}" if words else ""


def quoted(value: object) -> str:
    """A value of the declaration as a message shows it."""
    return f"`{printable(str(value), SHOWN_CHARS)}`"
