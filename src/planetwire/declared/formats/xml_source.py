"""Records of an XML body, by a bounded part of XPath: no document types, so no entities, and nothing is fetched.

Paths are those of the standard library's `ElementTree`, with `@name` at the end. A prefix is that which the document
writes (`geo:lat`); `{*}lat` is in any namespace, `lat` in none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

from planetwire.collect.formats.body import is_html, sample_of
from planetwire.collect.formats.records import MAX_RECORD_BYTES, MAX_RECORDS, Broken, Records
from planetwire.declared.formats.paths import PATH_CHARS_MAX, STEPS_MAX, BadPath, Get
from planetwire.errors import FeedError

CHUNK_BYTES = 64 * 1024
MAX_TAG_BYTES = 4 * CHUNK_BYTES
MAX_DEPTH = 32
_NAME = r"(?:\{\*\})?[A-Za-z_][\w.-]*(?::[A-Za-z_][\w.-]*)?"
_RECORDS = re.compile(rf"(//|/)?({_NAME}|\*)(/({_NAME}|\*))*")
_WORD = r"'[^'\"\[\]]{0,100}'"
_STEP = re.compile(
    rf"(?:{_NAME}|\*|\.)(?:\[(?:@{_NAME}(?:={_WORD})?|{_NAME}(?:={_WORD})?|[1-9][0-9]{{0,3}}|last\(\))\])?"
)
_PREFIX = re.compile(r"([A-Za-z_][\w.-]*):")
_UTF16 = re.compile(r"utf-?16|ucs", re.IGNORECASE)


class _Refused(Exception):
    """Ends a parse from within."""


def reader(path: str) -> Callable[[bytes], Records]:
    """How a body is read. `path`: `//item` at any depth, `/rss/channel/item` from the top. Raises BadPath."""
    if len(path) > PATH_CHARS_MAX or not _RECORDS.fullmatch(path):
        raise BadPath("records of XML are named by elements: `//item`, `/rss/channel/item`")
    names = [name for name in path.split("/") if name]
    from_top = path.startswith("/") and not path.startswith("//")
    if len(names) > STEPS_MAX:
        raise BadPath(f"more than {STEPS_MAX} steps", "costly_path")

    def matches(above: Sequence[str]) -> bool:
        if len(above) < len(names) or (from_top and len(above) != len(names)):
            return False
        return all(_is_named(one, name) for one, name in zip(above[-len(names) :], names, strict=True))

    def read(body: bytes) -> Records:
        if is_html(body):
            raise FeedError(f"expected XML, got HTML: {sample_of(body)!r}", code="bad_body")
        return _Places(body, matches).read()

    return read


def _is_named(element: str, name: str) -> bool:
    return name in ("*", element) or (name.startswith("{*}") and element.rpartition(":")[2] == name[3:])


class _Places:
    """Notes where records lie while the parser passes through a body."""

    def __init__(self, body: bytes, matches: Callable[[Sequence[str]], bool]) -> None:
        self.encoding: str | None = None
        self.out = Records(body, lambda raw: element_of(raw, self.encoding), MAX_RECORDS)
        self._matches = matches
        self._above: list[str] = []
        self._at: int | None = None
        self._within = 0
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.XmlDeclHandler = self._declared
        self._parser.StartDoctypeDeclHandler = _no_document_type

    def read(self) -> Records:
        body, out = self.out.body, self.out
        try:
            for fed in range(0, len(body), CHUNK_BYTES):
                self._parser.Parse(body[fed : fed + CHUNK_BYTES], False)
                if fed - self._parser.CurrentByteIndex > MAX_TAG_BYTES:
                    raise _Refused(f"a tag of more than {MAX_TAG_BYTES} bytes")
            self._parser.Parse(b"", True)
        except (expat.ExpatError, _Refused, ValueError, LookupError) as error:
            if not out.count:
                raise FeedError(f"no XML: {sample_of(body)!r}", code="bad_body") from error
            out.complete = False
            out.refuse_place("broken", f"broken XML: {error}", max(0, self._parser.ErrorByteIndex), len(body))
        return out

    def _declared(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and _UTF16.match(encoding):
            raise _Refused("only encodings of single bytes are read")
        self.encoding = encoding

    def _start(self, name: str, attributes: object) -> None:
        self._above.append(name)
        if len(self._above) > MAX_DEPTH:
            raise _Refused("nested too deeply")
        if self._at is None and self._matches(self._above):
            self._at, self._within = self._parser.CurrentByteIndex, len(self._above)

    def _end(self, name: str) -> None:
        if self._at is not None and len(self._above) == self._within:
            start, self._at = self._at, None
            end = self.out.body.find(b">", self._parser.CurrentByteIndex) + 1
            if end - start > MAX_RECORD_BYTES:
                self.out.refuse_place("too_large", f"a record has at most {MAX_RECORD_BYTES} bytes", start, end)
            else:
                self.out.add((start, end))
        self._above.pop()


def _no_document_type(*_: object) -> None:
    raise FeedError("XML with a document type declaration is refused", code="bad_body")


def element_of(raw: bytes, encoding: str | None = None) -> ElementTree.Element:
    """The element that these bytes are; `geo:lat` has the tag `{geo}lat`. Raises Broken."""
    builder = ElementTree.TreeBuilder()
    parser = expat.ParserCreate(encoding)
    parser.buffer_text = True
    parser.StartElementHandler = lambda name, attributes: builder.start(
        _tag(name), {_tag(key): value for key, value in attributes.items()}
    )
    parser.EndElementHandler = lambda name: builder.end(_tag(name))
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(raw, True)
        return builder.close()
    except (expat.ExpatError, AssertionError, ValueError, LookupError) as error:
        raise Broken(f"broken XML: {error}") from None


def _tag(name: str) -> str:
    prefix, colon, local = name.partition(":")
    return f"{{{prefix}}}{local}" if colon else name


def getter(path: str) -> Get:
    """The text of the first element, or the attribute, that the path names in a record. Raises BadPath."""
    if not 0 < len(path) <= PATH_CHARS_MAX:
        raise BadPath(f"a path has 1 to {PATH_CHARS_MAX} characters")
    inner, attribute = _parted(path.removesuffix("/text()"))
    _check(inner, attribute)
    namespaces = {prefix: prefix for prefix in _PREFIX.findall(re.sub(_WORD, "", inner))}
    try:
        ElementTree.Element("x").find(inner, namespaces)
    except (SyntaxError, ValueError, KeyError) as error:
        raise BadPath(f"no path of elements: {error}") from None
    key = None if attribute is None else _tag(attribute)

    def get(record: Any) -> Any:
        found = record if inner == "." else record.find(inner, namespaces)
        if found is None:
            return None
        return "".join(found.itertext()) if key is None else found.get(key)

    return get


def _parted(path: str) -> tuple[str, str | None]:
    """The path of the element, and the name of its attribute."""
    before, at, name = path.rpartition("@")
    if not at or "]" in name:
        return path or ".", None
    return before.rstrip("/") or ".", name


def _check(inner: str, attribute: str | None) -> None:
    if inner.startswith("/"):
        raise BadPath("a path of XML begins in the record: `title`, `.//title`, `@id`")
    if inner.count("//") > 1:
        raise BadPath("one `//` in a path is the most: each further one multiplies the work", "costly_path")
    steps = inner.replace("//", "/").split("/")
    if len(steps) > STEPS_MAX:
        raise BadPath(f"more than {STEPS_MAX} steps", "costly_path")
    bad = next((step for step in steps if not _STEP.fullmatch(step)), None)
    if bad is not None:
        raise BadPath(f"no step of a path: `{bad}`; names, `*`, `@name`, `[1]`, `[@name='text']` are")
    if attribute is not None and not re.fullmatch(_NAME, attribute):
        raise BadPath(f"no name of an attribute: `{attribute}`")
