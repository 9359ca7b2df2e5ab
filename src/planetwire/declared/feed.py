"""`DeclaredFeed`: a declaration that brings facts, as the collector takes any other feed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, cast

from planetwire.collect.formats.body import is_html, sample_of, without_bom
from planetwire.collect.formats.pieces import Piece, in_pieces
from planetwire.collect.formats.records import Broken, Records, reject
from planetwire.collect.formats.shown import shown
from planetwire.collect.http.client import FetchRules
from planetwire.collect.http.credential import Credential
from planetwire.declared.formats import json_source, text_source, xml_source
from planetwire.declared.formats.geojson import point_of
from planetwire.declared.model import Csv, Declaration, Table, spec_of
from planetwire.declared.rows import Row, RowReader, iso, key_text, stored_names, template, used_columns
from planetwire.errors import FeedError
from planetwire.geometry import BadGeometry, Geometries, is_shape_kind
from planetwire.model import Fact, Json, LayerAdapter, Parsed
from planetwire.model.coordinates import on_earth

KEY_CHARS_MAX = 200
TITLE_CHARS_MAX = 200
CELLS_MAX = 2_000_000  # facts of a body times fields: about 100 MB; of twenty fields as many as a body has records

ReadBody = Callable[[bytes], Records]


def records_reader(declaration: Declaration) -> ReadBody:
    """How the records of a body are found. Raises BadPath."""
    sweeps = declaration.missing == "gone"
    match declaration.kind:
        case "http_geojson":
            return json_source.reader("$.features[*]", named=False)
        case "http_json":
            named = any(spec_of(given).member for given in declaration.fields.values())
            return json_source.reader(declaration.records or "$[*]", named=named)
        case "http_xml":
            return xml_source.reader(declaration.records or "//item")
        case "http_csv":
            return text_source.csv_reader(_csv_form(declaration.csv or Csv()), used_columns(declaration), sweeps=sweeps)
        case "http_text_table":
            return text_source.table_reader(
                _table_form(declaration.table or Table()), used_columns(declaration), sweeps=sweeps
            )


def _csv_form(given: Csv) -> text_source.CsvForm:
    return text_source.CsvForm(given.delimiter, given.skip, given.header, given.comment)


def _table_form(given: Table) -> text_source.TableForm:
    columns = given.columns if isinstance(given.columns, dict) else None
    return text_source.TableForm(columns, given.header, given.skip, given.comment)


def fetch_rules(declaration: Declaration, *, private: bool) -> FetchRules:
    """What is particular about this provider. `private`: its address may lead into a private network."""
    auth = declaration.auth
    credential = None
    if auth is not None:
        place = auth.header or auth.query or ""
        credential = Credential(place, "header" if auth.header is not None else "query", auth.prefix)
    first = {"http_geojson": b"{", "http_json": b"[{", "http_xml": b"<"}.get(declaration.kind, b"")
    return FetchRules(
        first_bytes=first,
        empty_ok=declaration.empty_ok,
        limit_bytes=declaration.max_bytes,
        credential=credential,
        private_ok=private,
    )


@dataclass(slots=True)
class Reading:
    """One body while it is read: its records, what was passed over, and the keys of records that were refused."""

    records: Records
    notes: Counter[str] = field(default_factory=Counter)
    refused: set[str] = field(default_factory=set)


class BodyReader:
    """The rows of a body, each with its record's index. Raises BadPath when it is made."""

    def __init__(self, declaration: Declaration) -> None:
        self._read = records_reader(declaration)
        self._rows = RowReader(declaration)
        self._key = declaration.key
        self._header_row = declaration.header_row
        self._is_xml = declaration.kind == "http_xml"

    def begin(self, body: bytes) -> Reading:
        """Raises FeedError for a body that is none of this source's."""
        body = without_bom(body)
        if is_html(body) and not self._is_xml:
            raise FeedError(f"expected data, got HTML: {sample_of(body)!r}", code="bad_body")
        return Reading(self._read(body) if body.strip() else Records(body))

    def rows(self, reading: Reading, at: datetime) -> Iterator[tuple[int, Any, Row]]:
        """(index, record, row) of records that are wanted, made one by one; one that cannot be used is a reject."""
        records = reading.records
        items = json_source.with_header(records.items()) if self._header_row else records.items()
        read = self._rows.read
        for index, record in items:
            try:
                row = read(record, at, reading.notes)
            except Broken as broken:
                self.refuse(reading, index, record, broken)
                continue
            if row is not None:
                yield index, record, row

    def refuse(self, reading: Reading, index: int, record: Any, why: Broken) -> None:
        """Note that a record gives nothing."""
        reading.records.rejects.append(reject(why.reason, sample_of_record(record), index, why.code))
        key = self._rows.key(record, self._key)
        if key is not None:
            reading.refused.add(key)


def sample_of_record(record: Any) -> Any:
    """What may be quoted of a record: XML as text, anything else as it is."""
    return record if not hasattr(record, "itertext") else " ".join("".join(record.itertext()).split())


class DeclaredFeed:
    """A feed of facts. Where several records have one key the newest counts, of equally new ones the last."""

    def __init__(self, declaration: Declaration, layer: LayerAdapter, *, private: bool = False) -> None:
        self.source = declaration.source
        self.kind = layer.id
        self.default_url = declaration.url
        self.interval_s = declaration.interval
        self.floor_s = declaration.floor
        self.sweeps = declaration.missing == "gone"
        self.rules = fetch_rules(declaration, private=private)
        self._reader = BodyReader(declaration)
        self._facts = FactMaker(declaration, layer)
        self._most = CELLS_MAX // len(declaration.fields)

    def parse(self, body: bytes, at: datetime) -> Parsed:
        """Facts of one body; `at` is what times are compared with that must not lie ahead."""
        reading = self._reader.begin(body)
        facts: dict[str, Fact] = {}
        make, geometries = self._facts.fact, Geometries()
        for index, record, row in self._reader.rows(reading, at):
            try:
                fact = make(row, record, geometries)
            except Broken as broken:
                self._reader.refuse(reading, index, record, broken)
                continue
            before = facts.setdefault(fact.external_key, fact)
            if len(facts) > self._most:
                raise FeedError(f"more than {self._most} facts of so many fields in one body", code="bad_body")
            if before is not fact:
                reading.notes["duplicates"] += 1
                if not _is_newer(before, fact):
                    facts[fact.external_key] = fact
        return Parsed(
            rows=list(facts.values()),
            rejects=sorted(reading.records.rejects, key=lambda one: one.offset),
            complete=reading.records.complete,
            notes=dict(reading.notes),
            refused_keys=frozenset(reading.refused),
        )

    def pieces(self, body: bytes, at: datetime, rows: int) -> Iterator[Piece | None]:
        """The same piece by piece. All of it is made at first: any record may replace one before it."""
        parsed = self.parse(body, at)
        facts = cast("Sequence[Fact]", parsed.rows)
        yield from in_pieces(
            facts, rows, whole=parsed.complete, total=facts.__len__, end=lambda rest: replace(parsed, rows=rest)
        )


def _is_newer(one: Fact, other: Fact) -> bool:
    return one.observed_at is not None and other.observed_at is not None and one.observed_at > other.observed_at


class FactMaker:
    """Rows as facts."""

    def __init__(self, declaration: Declaration, layer: LayerAdapter) -> None:
        self._data = stored_names(declaration)
        self._key = list(declaration.key)
        self._title = None if declaration.title is None else template(declaration.title)
        self._thing = None if declaration.thing is None else template(declaration.thing)
        self._layer = layer.id
        self._shape = layer.kind if is_shape_kind(layer.kind) else None
        self._time = declaration.time
        self._valid = None if declaration.valid_for is None else timedelta(seconds=declaration.valid_for)
        self._place = None if declaration.place is None else (declaration.place.lat, declaration.place.lon)
        self._geojson = declaration.kind == "http_geojson" and declaration.place is None

    def fact(self, row: Row, record: Any, geometries: Geometries) -> Fact:
        """Raises Broken for a key, or a place, that cannot be. `geometries`: those of the body."""
        key = key_text([row[name] for name in self._key])
        if not 0 < len(key) <= KEY_CHARS_MAX or not key.isprintable():
            raise Broken(f"no key of 1 to {KEY_CHARS_MAX} characters: {shown(key)}", "bad_key")
        data = self._stored(row)
        lat: float | None
        lon: float | None
        if self._shape is not None:
            data["geometry"], lat, lon = _shape(record, self._shape, geometries)
        else:
            lat, lon = self._where(row, record)
        at = None if self._time is None else row[self._time]
        title = "" if self._title is None else self._title(row)[:TITLE_CHARS_MAX]
        return Fact(
            external_key=key,
            kind=self._layer if self._thing is None else self._thing(row)[:TITLE_CHARS_MAX] or self._layer,
            title=title or key,
            data=data,
            lat=lat,
            lon=lon,
            observed_at=at,
            valid_until=None if at is None or self._valid is None else at + self._valid,
        )

    def _stored(self, row: Row) -> Json:
        data: Json = {}
        for name in self._data:
            value = row[name]
            data[name] = iso(value) if value.__class__ is datetime else value
        return data

    def _where(self, row: Row, record: Any) -> tuple[float | None, float | None]:
        """Both or neither. Off the Earth is no place, and says that something else is wrong with the record."""
        if self._geojson:
            lat, lon = point_of(record)
        elif self._place is not None:
            lat, lon = row[self._place[0]], row[self._place[1]]
        else:
            return None, None
        if lat is None or lon is None:
            return None, None
        place = on_earth(float(lat), float(lon))
        if place is None:
            raise Broken(f"no place on the Earth: {shown(lat)}, {shown(lon)}", "out_of_range")
        return place


def _shape(record: Any, kind: str, geometries: Geometries) -> tuple[Json, float, float]:
    try:
        return geometries.read(record.get("geometry") if isinstance(record, dict) else None, kind)
    except BadGeometry as bad:
        raise Broken(str(bad), bad.code) from None
