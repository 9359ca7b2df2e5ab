"""OMM records from XML bodies: the place of each `<omm>`, and its leaves as keyword mappings, not yet validated."""

from __future__ import annotations

from xml.parsers import expat

from planetwire.collect.formats.records import MAX_RECORD_BYTES, Broken, Records
from planetwire.errors import FeedError

CHUNK_BYTES = 64 * 1024
MAX_TAG_BYTES = 4 * CHUNK_BYTES  # for an unfinished tag the parser starts over with each chunk
MAX_DEPTH = 32
RECORD = "omm"


class _Refused(Exception):
    """Aborts a parse from a callback."""


class _Places:
    """Records the places of records during the parse of a body."""

    def __init__(self, body: bytes) -> None:
        self.out = Records(body, leaves_of)
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = _no_document_type
        self._depth = 0
        self._at: int | None = None

    def feed(self) -> None:
        """Raises ExpatError and _Refused where the body is broken."""
        body = self.out.body
        for fed in range(0, len(body), CHUNK_BYTES):
            self.parser.Parse(body[fed : fed + CHUNK_BYTES], False)
            if fed - self.parser.CurrentByteIndex > MAX_TAG_BYTES:
                raise _Refused(f"a tag of more than {MAX_TAG_BYTES} bytes")
        self.parser.Parse(b"", True)

    def _start(self, name: str, attributes: object) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _Refused("nested too deeply")
        if _local(name) == RECORD and self._at is None:
            self._at = self.parser.CurrentByteIndex

    def _end(self, name: str) -> None:
        self._depth -= 1
        if _local(name) != RECORD or self._at is None:
            return
        start, self._at = self._at, None
        end = self.out.body.find(b">", self.parser.CurrentByteIndex) + 1
        if end - start > MAX_RECORD_BYTES:
            self.out.refuse_place("too_large", f"a record has at most {MAX_RECORD_BYTES} bytes", start, end)
        else:
            self.out.add((start, end, _named(self.out.body[start:end])))


def xml_records(body: bytes) -> Records:
    """`<omm>` elements of an XML body, in any namespace. Of a truncated body the complete ones are kept.

    Raises FeedError `bad_body` for a document type declaration: a feed needs no entities.
    """
    places = _Places(body)
    try:
        places.feed()
    except (expat.ExpatError, _Refused) as error:
        out = places.out
        out.complete = False
        at = max(0, places.parser.ErrorByteIndex)
        out.refuse_place("broken", f"broken XML: {error}", at, len(body))
    return places.out


def _no_document_type(*_: object) -> None:
    raise FeedError("XML with a document type declaration is refused", code="bad_body")


def leaves_of(raw: bytes) -> dict[str, object]:
    """Local name and text of every element without child elements. Raises Broken."""
    leaves: dict[str, object] = {}
    texts: list[str] = []
    is_leaf = False

    def start(name: str, attributes: object) -> None:
        nonlocal is_leaf
        is_leaf = True
        texts.clear()

    def end(name: str) -> None:
        nonlocal is_leaf
        if is_leaf:
            leaves[_local(name)] = "".join(texts).strip()
        is_leaf = False

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = texts.append
    try:
        parser.Parse(raw, True)
    except expat.ExpatError as error:
        raise Broken(f"broken XML: {error}") from None
    return leaves


def _named(raw: bytes) -> object:
    try:
        return leaves_of(raw).get("NORAD_CAT_ID")
    except Broken:
        return None


def _local(name: str) -> str:
    return name.rpartition(":")[2]
