"""Text from outside as a terminal, a log or a message may carry it: nothing in it moves the cursor or turns the line.

What cannot be printed – control characters of both sets, marks that change the direction, halves of surrogate pairs,
line ends – is shown as JSON would write it, so that a JSON document stays one.
"""

from __future__ import annotations

import json


def printable(text: str, limit: int | None = None) -> str:
    """On one line; what is beyond `limit` characters is only counted."""
    cut, more = (text, 0) if limit is None else (text[:limit], max(len(text) - limit, 0))
    shown = cut if cut.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in cut)
    return f"{shown}… ({more} more)" if more else shown


def printable_lines(text: str) -> str:
    """Each line by itself: what was laid out in lines stays so."""
    return "\n".join(map(printable, text.split("\n")))
