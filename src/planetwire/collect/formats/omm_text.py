"""OMM records from CSV and KVN bodies: keyword mappings, not yet validated.

Neither format has an end mark, so a body counts as complete only if its last line is complete.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from planetwire.collect.formats.lines import csv_row, lines_of, text_of
from planetwire.collect.formats.records import MAX_RECORD_BYTES, Broken, Records

NAMED = "NORAD_CAT_ID"
_KVN_LINE = re.compile(r"\s*([A-Z][A-Z0-9_]*)\s*=(.*)", re.ASCII)
_FIRST_KEYWORDS = frozenset({"CCSDS_OMM_VERS", "OBJECT_NAME"})


def csv_records(body: bytes) -> Records:
    """Rows of a CSV body. A row with a wrong number of columns is a reject. The body is incomplete if its last row is
    such a reject or has no line end, or if it has two headers.
    """
    header: list[str] = []
    out = Records(body, lambda raw: dict(zip(header, csv_row(raw), strict=True)))
    sound = False
    for start, end in lines_of(body):
        sound = _csv_line(out, header, start, end)
        if not header:
            header += _header(body[start:end])
            sound = True
    out.complete = out.complete and sound and body.endswith(b"\n")
    return out


def _header(raw: bytes) -> list[str]:
    return [name.strip().upper() for name in csv_row(raw)]


def _csv_line(out: Records, header: Sequence[str], start: int, end: int) -> bool:
    """Add a line below the header; returns whether it is a complete row."""
    if not header:
        return True
    try:
        row = csv_row(out.body[start : min(end, start + MAX_RECORD_BYTES + 1)])
    except Broken as broken:
        out.refuse_place(broken.code, broken.reason, start, end)
        return False
    if len(row) != len(header):
        out.refuse_place("broken", f"{len(row)} columns instead of {len(header)}", start, end)
        return False
    if row[0].strip().upper() == header[0] and [name.strip().upper() for name in row] == header:
        out.refuse_trailing(start)
        return False
    out.add((start, end, row[header.index(NAMED)] if NAMED in header else None))
    return True


def kvn_records(body: bytes) -> Records:
    """Messages of a KVN body; a message begins at its version line, or at a repeated keyword."""
    out = Records(body, _kvn_record)
    message = _Message()
    sound = False
    for start, end in lines_of(body):
        match = _KVN_LINE.fullmatch(body[start : min(end, start + MAX_RECORD_BYTES)].decode("utf-8", "replace"))
        sound = match is not None
        if match is None or match[1] == "COMMENT":
            continue
        if match[1] in message.begun_by:
            message.close(out)
            message = _Message()
        message.take(match[1], match[2], start, end)
    whole = message.whole
    message.close(out)
    out.complete = sound and whole and body.endswith(b"\n")
    return out


class _Message:
    """The place of a message, and its keywords so far, which show where it ends."""

    def __init__(self) -> None:
        self.begun_by: set[str] = set()
        self.whole = False  # the last of its required keywords was seen
        self._place: tuple[int, int] | None = None
        self._name: Any = None

    def take(self, keyword: str, value: str, start: int, end: int) -> None:
        self.begun_by |= {keyword} & _FIRST_KEYWORDS
        self.whole |= keyword == "MEAN_ANOMALY"
        self._name = _without_unit(value) if keyword == NAMED else self._name
        self._place = (self._place[0] if self._place else start, end)

    def close(self, out: Records) -> None:
        if self._place is None:
            return
        start, end = self._place
        if end - start > MAX_RECORD_BYTES:
            out.refuse_place("too_large", f"a message has at most {MAX_RECORD_BYTES} bytes", start, end)
        else:
            out.add((start, end, self._name))


def _kvn_record(raw: bytes) -> dict[str, object]:
    record: dict[str, object] = {}
    for line in text_of(raw).splitlines():
        match = _KVN_LINE.fullmatch(line)
        if match is not None and match[1] != "COMMENT":
            record[match[1]] = _without_unit(match[2])
    return record


def _without_unit(value: str) -> str:
    value = value.strip()
    opened = value.rfind("[") if value.endswith("]") else -1
    return value if opened < 0 else value[:opened].strip()
