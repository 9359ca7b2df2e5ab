"""Records of CSV bodies and of tables of text: mappings of column names to texts.

Neither has an end mark. A row of another width than the header is a reject; if it is the last, the body is not whole.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from planetwire.collect.formats.body import is_html, sample_of
from planetwire.collect.formats.lines import lines_of, text_of
from planetwire.collect.formats.records import MAX_RECORD_BYTES, Broken, Records
from planetwire.declared.formats.paths import Get
from planetwire.errors import FeedError

Split = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class CsvForm:
    """See `Csv` of the declaration."""

    delimiter: str = ","
    skip: int = 0
    header: Sequence[str] | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class TableForm:
    """See `Table` of the declaration. `columns` None: split at spaces."""

    columns: Mapping[str, Sequence[int]] | None = None
    header: int = 1
    skip: int = 1
    comment: str | None = None


def csv_reader(form: CsvForm, used: Iterable[str], *, sweeps: bool) -> Callable[[bytes], Records]:
    """How a CSV body is read; `used`: columns that it must have, in whatever order. A cell has no line break."""

    def split(line: str) -> Sequence[str]:
        try:
            return next(csv.reader([line], delimiter=form.delimiter), [])
        except csv.Error as error:
            raise Broken(f"no row: {error}") from None

    wanted = frozenset(used)

    def read(body: bytes) -> Records:
        lines = _lines(body, form.comment)
        _skip(lines, form.skip)
        if form.header is None:
            head = next(lines, None)
            if head is None:
                raise FeedError(f"no header line: {sample_of(body)!r}", code="bad_body")
            header = [name.strip() for name in split(_text(body, head))]
        else:
            header = list(form.header)
        _check_header(body, header, wanted)
        return _rows(body, header, lines, split, sweeps=sweeps)

    return read


def table_reader(form: TableForm, used: Iterable[str], *, sweeps: bool) -> Callable[[bytes], Records]:
    """How a table of text is read; `used`: columns that its header must name, where it has one."""
    if form.columns is not None:
        return _fixed_reader(form, form.columns)
    wanted = frozenset(used)

    def read(body: bytes) -> Records:
        header: list[str] = []
        lines = _lines(body, None)
        for number, place in zip(range(1, max(form.skip, form.header) + 1), lines, strict=False):
            if number == form.header:
                header = _text(body, place).lstrip("#").split()
        if not header:
            raise FeedError(f"no header line: {sample_of(body)!r}", code="bad_body")
        _check_header(body, header, wanted)
        return _rows(body, header, _without(body, lines, form.comment), str.split, sweeps=sweeps)

    return read


def _fixed_reader(form: TableForm, columns: Mapping[str, Sequence[int]]) -> Callable[[bytes], Records]:
    cuts = [(name, start, end) for name, (start, end) in columns.items()]

    def record(raw: bytes) -> dict[str, str]:
        line = text_of(raw)
        return {name: line[start:end].strip() for name, start, end in cuts}

    def read(body: bytes) -> Records:
        _check_no_page(body)
        out = Records(body, record)
        lines = _lines(body, None)
        _skip(lines, form.skip)
        for place in _without(body, lines, form.comment):
            out.add(place)
        out.complete = body.endswith((b"\n", b"\r")) or not body
        return out

    return read


def getter(column: str) -> Get:
    """The cell of a column, None where the record has none."""
    return lambda record: record.get(column)


def _lines(body: bytes, comment: str | None) -> Iterator[tuple[int, int]]:
    """Of what is not blank; a line that begins as a comment does is none."""
    return _without(body, lines_of(body), comment)


def _without(body: bytes, lines: Iterator[tuple[int, int]], comment: str | None) -> Iterator[tuple[int, int]]:
    if comment is None:
        return lines
    mark = comment.encode()
    return (place for place in lines if not body.startswith(mark, place[0]))


def _skip(lines: Iterator[tuple[int, int]], count: int) -> None:
    for _ in range(count):
        next(lines, None)


def _line(body: bytes, place: tuple[int, int]) -> str:
    """Of a line that is too long no more is copied than shows that it is. Raises Broken."""
    return text_of(body[place[0] : min(place[1], place[0] + MAX_RECORD_BYTES + 1)])


def _text(body: bytes, place: tuple[int, int]) -> str:
    try:
        return _line(body, place)
    except Broken as broken:
        raise FeedError(broken.reason, code="bad_body") from None


def _check_no_page(body: bytes) -> None:
    if is_html(body):
        raise FeedError(f"expected a table, got HTML: {sample_of(body)!r}", code="bad_body")


def _check_header(body: bytes, header: Sequence[str], wanted: frozenset[str]) -> None:
    _check_no_page(body)
    missing = sorted(wanted - set(header))
    if missing:
        raise FeedError(f"no column {', '.join(missing)[:200]}: {sample_of(body)!r}", code="bad_body")


def _rows(
    body: bytes, header: Sequence[str], lines: Iterator[tuple[int, int]], split: Split, *, sweeps: bool
) -> Records:
    names, width = list(header), len(header)

    def cells(place: tuple[int, int]) -> dict[str, str]:
        row = split(_line(body, place))
        if len(row) != width:
            raise Broken(f"{len(row)} columns instead of {width}")
        return dict(zip(names, row, strict=True))

    out = Records(body, made=cells)
    last: tuple[int, int] | None = None
    for place in lines:
        out.add(place)
        last = place
    if last is not None:
        try:
            cells(last)
        except Broken:
            out.complete = False
        out.complete = out.complete and (not sweeps or body.endswith((b"\n", b"\r")))
    return out
