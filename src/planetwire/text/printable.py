"""Makes text from outside safe for a terminal, log or message: it cannot move the cursor or change the direction.

Unprintable characters – both sets of control characters, bidirectional marks, lone surrogates, line breaks – are
escaped as in JSON, so that a JSON document stays valid.
"""

from __future__ import annotations

import json


def printable(text: str, limit: int | None = None) -> str:
    """On one line; of characters beyond `limit` only the number is shown."""
    cut, more = (text, 0) if limit is None else (text[:limit], max(len(text) - limit, 0))
    shown = cut if cut.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in cut)
    return f"{shown}… ({more} more)" if more else shown


def printable_lines(text: str) -> str:
    """The same, line by line: line breaks are kept."""
    return "\n".join(map(printable, text.split("\n")))
