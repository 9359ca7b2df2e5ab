"""OMM records out of CSV, KVN and XML bodies: keyword mappings with their index, still unchecked."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from xml.etree import ElementTree

from planetwire.collect.records import Records, reject
from planetwire.errors import FeedError

_KVN_LINE = re.compile(r"\s*([A-Z][A-Z0-9_]*)\s*=(.*)")
_KVN_UNIT = re.compile(r"\s*\[[^\]]*\]\s*$")
_FIRST_KEYWORDS = frozenset({"CCSDS_OMM_VERS", "OBJECT_NAME"})


def csv_records(text: str) -> Records:
    """Rows of a CSV body. A row of another width is a reject; a body whose last line is open is incomplete."""
    out = Records()
    reader = csv.reader(io.StringIO(text, newline=""))
    header: list[str] = []
    index = 0
    for row in reader:
        if not "".join(row).strip():
            continue
        if not header:
            header = [name.strip().upper() for name in row]
        elif len(row) == len(header):
            out.items.append((index, dict(zip(header, row, strict=True))))
            index += 1
        else:
            out.rejects.append(reject(f"{len(row)} columns instead of {len(header)}", ",".join(row), index))
            index += 1
    out.complete = text.endswith("\n")
    return out


def kvn_records(text: str) -> Records:
    """Messages of a KVN body; a message begins at its version line, or where a keyword comes again."""
    out = Records()
    record: dict[str, object] = {}
    for line in text.splitlines():
        match = _KVN_LINE.fullmatch(line)
        if match is None or match[1] == "COMMENT":
            continue
        name, value = match[1], _KVN_UNIT.sub("", match[2]).strip()
        if name in record and name in _FIRST_KEYWORDS:
            out.items.append((len(out.items), record))
            record = {}
        record[name] = value
    if record:
        out.items.append((len(out.items), record))
        out.complete = text.endswith("\n") and "MEAN_ANOMALY" in record
    return out


def xml_records(body: bytes) -> Records:
    """`<omm>` elements of an XML body, in any namespace. A body that breaks off keeps what was whole.

    Raises FeedError `bad_body` for a document type declaration: entities have no place in a feed.
    """
    if b"<!DOCTYPE" in body or b"<!ENTITY" in body:
        raise FeedError("XML with a document type declaration is refused", code="bad_body")
    out = Records()
    try:
        for element in _omm_elements(body):
            out.items.append((len(out.items), _leaves(element)))
            element.clear()
    except ElementTree.ParseError as error:
        out.complete = False
        out.rejects.append(reject(f"broken XML: {error}", body[-200:].decode("utf-8", "replace"), len(out.items)))
    return out


def _omm_elements(body: bytes) -> Iterator[ElementTree.Element]:
    for _, element in ElementTree.iterparse(io.BytesIO(body), events=("end",)):
        if _local(element.tag) == "omm":
            yield element


def _leaves(element: ElementTree.Element) -> dict[str, object]:
    return {_local(leaf.tag): (leaf.text or "").strip() for leaf in element.iter() if len(leaf) == 0}


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]
