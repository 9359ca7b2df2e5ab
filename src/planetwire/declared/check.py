"""What is wrong with a declaration whose words and types are right: what its parts say of each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from urllib.parse import urlsplit

from planetwire.cities import resolve
from planetwire.collect.http.addresses import ip_of, is_public
from planetwire.collect.http.get import can_be_asked
from planetwire.collect.http.slots import CODES, bad_slot, filled
from planetwire.datasets.registry import datasets, feeds
from planetwire.declared import times
from planetwire.declared.faults import Fault, nearest, quoted
from planetwire.declared.feed import records_reader
from planetwire.declared.formats.paths import BadPath
from planetwire.declared.marked import Loc, Marked
from planetwire.declared.model import Declaration, FieldSpec, OwnLayer, paths_of, spec_of, type_of
from planetwire.declared.rows import fields_in, path_getter, stored_names
from planetwire.declared.units import OTHER_NAMES, UNITS, conversion, named, ours
from planetwire.model.presentation import PLAIN
from planetwire.model.presentation.faults import check as check_presentation
from planetwire.remote import host_of

OF_THE_FACT = ("observed_at", "kind")
NO_PATH_KINDS = ("http_csv", "http_text_table", "http_geojson")


def shipped_names() -> frozenset[str]:
    """Names that no declared source may have: those of sources, their other spellings, and layers."""
    layers = [one.layer for one in datasets()]
    return frozenset(
        {
            *feeds(),
            *(source for layer in layers for source in (*layer.sources, *layer.aliases, *layer.readings_of)),
            *(layer.id for layer in layers),
        }
    )


def faults_of(declaration: Declaration, marked: Marked, *, private: bool) -> Iterator[Fault]:
    """In no order."""
    for part in (_source, _address, _auth, _cadence, _records, _fields, _roles, _filters, _layer, _series):
        yield from part(declaration, marked)
    if not private:
        yield from _private_address(declaration, marked)


def _source(given: Declaration, marked: Marked) -> Iterator[Fault]:
    if given.source in shipped_names():
        message = f"{quoted(given.source)} is the name of a source or layer of Planetwire or of a plug-in"
        yield marked.fault(("source",), "name_taken", message, f"another name, such as `my_{given.source}`"[:80])


def _address(given: Declaration, marked: Marked) -> Iterator[Fault]:
    slot = bad_slot(given.url)
    if slot is not None:
        remedy = f"`{{now:%Y%m%d}}`, `{{now-1h/10min:%H%M}}`; codes: {' '.join('%' + code for code in sorted(CODES))}"
        yield marked.fault(("url",), "bad_slot", f"{quoted(slot)} is no time slot", remedy)
        return
    if not can_be_asked(filled(given.url, datetime.now(UTC))):
        yield marked.fault(
            ("url",), "bad_address", f"{host_of(given.url)} cannot be asked", "an http:// or https:// address"
        )
    elif urlsplit(given.url).username is not None:
        remedy = "leave user and password out: `auth` says how a key is sent, a setting holds it"
        yield marked.fault(("url",), "secret_in_text", "an address with a user or password", remedy)


def _private_address(given: Declaration, marked: Marked) -> Iterator[Fault]:
    """What the text says already; where a name leads is looked at with each connection."""
    try:
        host = urlsplit(given.url).hostname or ""
    except ValueError:  # `_address` says so
        return
    address = ip_of(host)
    if host == "localhost" or host.endswith(".localhost") or (address is not None and not is_public(address)):
        remedy = "PLANETWIRE_SOURCES_PRIVATE=true allows private addresses"
        yield marked.fault(("url",), "private_address", f"{host} is not in the open network", remedy)


def _auth(given: Declaration, marked: Marked) -> Iterator[Fault]:
    if given.auth is None:
        return
    if (given.auth.header is None) == (given.auth.query is None):
        yield marked.fault(("auth",), "bad_auth", "a key goes into a header or a parameter", "give `header` or `query`")
    if given.auth.query is not None and given.auth.prefix:
        yield marked.fault(("auth", "prefix"), "bad_auth", "only a header has a prefix", "leave `prefix` out")


def _cadence(given: Declaration, marked: Marked) -> Iterator[Fault]:
    if given.interval < given.floor:
        message = f"`interval` ({given.interval:g} s) is less than `floor` ({given.floor:g} s)"
        yield marked.fault(("interval",), "below_floor", message, "ask no more often than the provider allows")


def _records(given: Declaration, marked: Marked) -> Iterator[Fault]:
    for name, kind in (("csv", "http_csv"), ("table", "http_text_table")):
        if getattr(given, name) is not None and given.kind != kind:
            yield marked.fault((name,), "not_of_kind", f"`{name}` belongs to `kind: {kind}`", "leave it out")
    if given.header_row and given.kind != "http_json":
        yield marked.fault(("header_row",), "not_of_kind", "`header_row` belongs to `kind: http_json`", "leave it out")
    if given.records is not None and given.kind in NO_PATH_KINDS:
        yield marked.fault(("records",), "not_of_kind", f"`{given.kind}` knows where its records lie", "leave it out")
    elif given.kind == "http_xml" and given.records is None:
        yield marked.fault((), "missing", "`records` is missing", "which elements: `records: //item`")
    yield from _table(given, marked)
    try:
        records_reader(given)
    except BadPath as bad:
        yield marked.fault(("records",), bad.code, str(bad), _path_remedy(given.kind, records=True))


def _table(given: Declaration, marked: Marked) -> Iterator[Fault]:
    table = given.table
    if table is None:
        return
    if table.columns == "split" and not 1 <= table.header <= max(table.skip, table.header):
        yield marked.fault(("table", "header"), "bad_table", "split cells need a header line", "`header: 1`")
    if isinstance(table.columns, dict):
        for name, (start, end) in table.columns.items():
            if not 0 <= start < end <= 10_000:
                yield marked.fault(("table", "columns", name), "bad_table", f"{start} to {end} is no column", "[0, 5]")


def _path_remedy(kind: str, *, records: bool = False) -> str:
    if kind == "http_xml":
        return "`//item`, `/rss/channel/item`" if records else "`title`, `geo:Point/geo:lat`, `@id`"
    if kind in ("http_json", "http_geojson"):
        return "`$[*]`, `$.data.items[*]`" if records else "`$.name`, `$.properties.mag`, `$.position[0]`"
    return "the name of a column as the header has it"


def _fields(given: Declaration, marked: Marked) -> Iterator[Fault]:
    for name, raw in given.fields.items():
        spec, loc = spec_of(raw), ("fields", name)
        yield from _paths(given, spec, loc, marked)
        yield from _units(spec, loc, marked)
        yield from _times(spec, loc, marked)
        if spec.min is not None and spec.max is not None and spec.min > spec.max:
            yield marked.fault((*loc, "min"), "bad_range", "`min` is more than `max`")


def _paths(given: Declaration, spec: FieldSpec, loc: Loc, marked: Marked) -> Iterator[Fault]:
    origins = [spec.path is not None, "constant" in spec.model_fields_set, spec.member]
    if sum(origins) != 1:
        remedy = _path_remedy(given.kind)
        yield marked.fault(loc, "no_path", "a field has a `path`, or is `constant`, or is the `member`'s name", remedy)
    if spec.member and given.kind != "http_json":
        yield marked.fault((*loc, "member"), "not_of_kind", "`member` belongs to `kind: http_json`")
    paths = paths_of(spec)
    if spec.pad is not None and (isinstance(spec.path, str) or len(spec.pad) != len(paths)):
        yield marked.fault((*loc, "pad"), "bad_pad", "`pad` has one number for each of several paths")
    for path in (*paths, *([] if spec.unit_path is None else [spec.unit_path])):
        try:
            path_getter(given.kind, path)
        except BadPath as bad:
            yield marked.fault((*loc, "path"), bad.code, f"{quoted(path)}: {bad}", _path_remedy(given.kind))


def _units(spec: FieldSpec, loc: Loc, marked: Marked) -> Iterator[Fault]:
    if spec.unit is not None and spec.unit_path is not None:
        yield marked.fault((*loc, "unit_path"), "two_units", "`unit` or `unit_path`, not both")
    if (spec.unit or spec.unit_path) and type_of(spec) not in ("number", "integer"):
        yield marked.fault((*loc, "unit"), "not_of_type", f"a unit belongs to a number, not to {type_of(spec)}")
    for key in ("unit", "to"):
        word = getattr(spec, key)
        if word is not None and named(word) is None:
            message = f"{quoted(word)} is no unit that is known"
            yield marked.fault((*loc, key), "unknown_unit", message, nearest(word, (*UNITS, *OTHER_NAMES)))
            return
    if spec.to is not None and spec.unit is None and spec.unit_path is None:
        yield marked.fault((*loc, "to"), "no_unit", "`to` needs the `unit` that the publisher writes")
    elif spec.unit is not None and spec.to is not None:
        given, wanted = named(spec.unit) or "", named(spec.to) or ""
        if conversion(given, wanted) is None:
            remedy = f"`to: {ours(given)}`"
            yield marked.fault((*loc, "to"), "unlike_units", f"{given} and {wanted} measure different things", remedy)


def _times(spec: FieldSpec, loc: Loc, marked: Marked) -> Iterator[Fault]:
    if type_of(spec) != "time":
        for key in ("format", "zone", "ahead"):
            if getattr(spec, key) is not None:
                yield marked.fault((*loc, key), "not_of_type", f"`{key}` belongs to `type: time`")
        return
    if spec.zone is not None and times.zone_named(spec.zone) is None:
        remedy = "an IANA name: `Asia/Hong_Kong`, `America/New_York`, `UTC`"
        yield marked.fault((*loc, "zone"), "unknown_zone", f"{quoted(spec.zone)} is no time zone", remedy)
    form = spec.format or "iso"
    bad = times.bad_code(form)
    if form not in ("iso", "unix", "unix_ms") and (bad is not None or "%" not in form):
        remedy = nearest(form, ("iso", "unix", "unix_ms")) if "%" not in form else "such as `%d/%m/%Y %H:%M`"
        yield marked.fault((*loc, "format"), "bad_format", f"{quoted(bad or form)} is no form of a time", remedy)


def _roles(given: Declaration, marked: Marked) -> Iterator[Fault]:
    """Every name that stands for a field is one."""
    named_fields: list[tuple[Loc, str]] = [(("key", at), name) for at, name in enumerate(given.key)]
    named_fields += [] if given.time is None else [(("time",), given.time)]
    named_fields += (
        [] if given.place is None else [(("place", "lat"), given.place.lat), (("place", "lon"), given.place.lon)]
    )
    named_fields += [(("filter", at, "field"), one.field) for at, one in enumerate(given.filter)]
    for key in ("title", "thing"):
        text = getattr(given, key)
        if text is not None and text.count("{") != text.count("}"):
            yield marked.fault((key,), "bad_text", "a brace is open", "`{name}`")
        elif text is not None:
            named_fields += [((key,), name) for name in fields_in(text)]
    for loc, name in named_fields:
        if name not in given.fields:
            yield marked.fault(loc, "no_field", f"there is no field {quoted(name)}", nearest(name, given.fields))
    if given.time in given.fields and type_of(spec_of(given.fields[given.time or ""])) != "time":
        yield marked.fault(("time",), "not_of_type", f"{quoted(given.time)} is no time", "`type: time` for that field")
    if given.valid_for is not None and given.time is None:
        yield marked.fault(("valid_for",), "no_time", "`valid_for` counts from `time`, and there is none")
    yield from _place(given, marked)
    yield from _search(given, marked)


def _search(given: Declaration, marked: Marked) -> Iterator[Fault]:
    """What is derived of a fact is in its data."""
    search, stored = given.search, stored_names(given)
    named_fields: list[tuple[Loc, str]] = []
    for key, names in (("subtitle", search.subtitle), ("properties", search.properties), ("place", search.place)):
        named_fields += [(("search", key, at), name) for at, name in enumerate(names)]
    named_fields += [] if search.severity is None else [(("search", "severity"), search.severity)]
    for loc, name in named_fields:
        if name not in stored:
            message = f"there is no field {quoted(name)} in a fact's data"
            yield marked.fault(loc, "no_field", message, nearest(name, stored))


def _place(given: Declaration, marked: Marked) -> Iterator[Fault]:
    if given.place is None:
        return
    for key, name in (("lat", given.place.lat), ("lon", given.place.lon)):
        spec = spec_of(given.fields[name]) if name in given.fields else FieldSpec(type="number")
        if type_of(spec) not in ("number", "degrees"):
            remedy = f"`{name}: {{path: …, type: degrees}}`"
            yield marked.fault(("place", key), "not_of_type", f"{quoted(name)} is read as {type_of(spec)}", remedy)


def _filters(given: Declaration, marked: Marked) -> Iterator[Fault]:
    for at, one in enumerate(given.filter):
        if not one.model_fields_set - {"field"}:
            remedy = "`equals`, `not_equals`, `one_of`, `at_least`, `at_most` or `present`"
            yield marked.fault(("filter", at), "no_condition", "a field and nothing that is asked of it", remedy)


def _layer(given: Declaration, marked: Marked) -> Iterator[Fault]:
    layer = given.layer
    if (layer is None) == (given.series is None):
        remedy = "`layer:` with `title` and `title_zh`, or the name of a layer; or `series:` for readings of cities"
        yield marked.fault((), "no_layer", "a source has a `layer` or a `series`", remedy)
    if isinstance(layer, str):
        known = [one.layer.id for one in datasets() if one.fact_feeds]
        if layer not in known:
            yield marked.fault(("layer",), "unknown_layer", f"there is no layer {quoted(layer)}", nearest(layer, known))
    elif layer is not None:
        yield from _own_layer(given, layer, marked)


def _own_layer(given: Declaration, layer: OwnLayer, marked: Marked) -> Iterator[Fault]:
    if given.provenance is None:
        remedy = "`publisher`, `licence`, `coverage`, `limits`, and the same under `zh`"
        yield marked.fault((), "missing", "`provenance` is missing", remedy)
    if layer.kind != "point" and given.kind != "http_geojson":
        remedy = "`kind: http_geojson`, or `kind: point` for the layer"
        yield marked.fault(("layer", "kind"), "no_geometry", "lines and areas come as GeoJSON", remedy)
    if layer.kind != "point" and "geometry" in given.fields:
        yield marked.fault(
            ("fields", "geometry"), "name_taken", "`geometry` is the line or area itself", "another name"
        )
    try:
        check_presentation(given.source, layer.look, ())
    except ValueError as error:
        yield marked.fault(("layer", "look"), "bad_look", _without_layer(error))
    for at, row in enumerate(layer.card):
        loc = ("layer", "card", at)
        try:
            check_presentation(given.source, PLAIN, (row,))
        except ValueError as error:
            yield marked.fault(loc, "bad_card", _without_layer(error))
        yield from _shown(given, row.values, (*loc, "values"), marked)
    yield from _look_fields(given, layer, marked)


def _look_fields(given: Declaration, layer: OwnLayer, marked: Marked) -> Iterator[Fault]:
    look = layer.look
    if look.color is not None and look.color.value is not None:
        yield from _shown(given, [look.color.value], ("layer", "look", "color", "value"), marked)
    value = getattr(look.size, "value", None)
    if value is not None:
        yield from _shown(given, [value], ("layer", "look", "size", "value"), marked)


def _shown(given: Declaration, names: Iterable[str], loc: Loc, marked: Marked) -> Iterator[Fault]:
    """What a page is asked to show is in a fact's data, or a column that it knows."""
    known = [*OF_THE_FACT, *stored_names(given)]
    for name in names:
        if name not in known:
            remedy = "`observed_at` is the fact's time" if name == given.time else nearest(name, known)
            yield marked.fault(loc, "no_field", f"there is no field {quoted(name)} to show", remedy)


def _without_layer(error: ValueError) -> str:
    return str(error).partition(": ")[2]


def _series(given: Declaration, marked: Marked) -> Iterator[Fault]:
    series = given.series
    if series is None:
        return
    roles = {"station": series.station, "temperature": series.temperature}
    roles |= {} if series.city is None else {"city": series.city}
    roles |= {} if series.label is None else {"label": series.label}
    for key, name in roles.items():
        if name not in given.fields:
            yield marked.fault(
                ("series", key), "no_field", f"there is no field {quoted(name)}", nearest(name, given.fields)
            )
    if (series.city is None) == (series.cities is None):
        remedy = "`city`, a field, or `cities`, a city for each station"
        yield marked.fault(("series",), "no_city", "whose temperature it is", remedy)
    for station, city in (series.cities or {}).items():
        if resolve(city) is None:
            yield marked.fault(("series", "cities", station), "unknown_city", f"there is no city {quoted(city)}")
    if given.time is None:
        yield marked.fault(("series",), "no_time", "a reading has a `time`", "`time:` with the name of a field")
    if series.temperature in given.fields:
        spec = spec_of(given.fields[series.temperature])
        unit = None if spec.unit is None else named(spec.unit)
        if spec.unit_path is None and (
            unit is None or ours(unit) != "degC" or spec.to not in (None, "degC", "C", "°C")
        ):
            remedy = "`unit: degC`, `degF` or `K`"
            yield marked.fault(("series", "temperature"), "no_unit", "a temperature has a unit, kept as degC", remedy)
