"""The declaration of a source, as it is written: names, types and what each means, from which the schema is made."""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema

from planetwire.model.facts import SOURCE_CHARS_MAX
from planetwire.model.layers import BuiltInKind
from planetwire.model.presentation import CardRow, Look
from planetwire.model.tables import IDENTIFIER

FIELD = r"[a-z][a-z0-9_]{0,39}"
FIELDS_MAX = 64
TEXT_MAX = 500

_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) ?(s|sec|min|h|d)")
_SECONDS = {"s": 1.0, "sec": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}


def seconds(value: object) -> object:
    """`10min`, `2 h`, `90s`, `1d` or a number of seconds; anything else is left for the type to refuse."""
    if isinstance(value, str):
        found = _DURATION.fullmatch(value.strip())
        if found is None:
            raise ValueError("a duration is a number and s, min, h or d, as in `10min`")
        return float(found[1]) * _SECONDS[found[2]]
    if isinstance(value, bool):
        raise ValueError("a duration is a number and s, min, h or d, as in `10min`")
    return value


Duration: TypeAlias = Annotated[
    float,
    BeforeValidator(seconds),
    Field(gt=0, le=366 * 86_400),
    WithJsonSchema(
        {
            "description": "`30s`, `10min`, `2h`, `1d`, or a number of seconds.",
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "pattern": f"^{_DURATION.pattern}$"},
            ],
        }
    ),
]
SourceName: TypeAlias = Annotated[
    str, StringConstraints(pattern=f"^{IDENTIFIER.pattern}$", max_length=SOURCE_CHARS_MAX)
]
FieldName: TypeAlias = Annotated[str, StringConstraints(pattern=f"^{FIELD}$")]
Label: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=80, strip_whitespace=True)]
Words: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=TEXT_MAX, strip_whitespace=True)]
Scalar: TypeAlias = str | int | float | bool | None
Kind: TypeAlias = Literal["http_json", "http_csv", "http_geojson", "http_xml", "http_text_table"]
FieldType: TypeAlias = Literal["any", "text", "number", "integer", "boolean", "time", "degrees"]


class Section(BaseModel):
    """A part of a declaration; a name that it does not have is a fault."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class Auth(Section):
    """How the provider takes its key. The key itself is `PLANETWIRE_FEEDS__<SOURCE>__TOKEN`, never in this text."""

    header: Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9-]{0,63}$")] | None = Field(
        None, description="The header that carries it, such as `Authorization` or `X-API-Key`."
    )
    query: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.~-]{1,64}$")] | None = Field(
        None, description="Or the parameter of the address that does."
    )
    prefix: Annotated[str, StringConstraints(pattern=r"^[!-~][ -~]{0,31}$|^$")] = Field(
        "", description="What stands before it in the header, such as `Bearer `."
    )


class Csv(Section):
    """How a CSV body is written."""

    delimiter: Annotated[str, StringConstraints(min_length=1, max_length=1)] = Field(
        ",", description="What stands between two cells; `\\t` in quotation marks for a tab."
    )
    skip: int = Field(0, ge=0, le=100, description="Lines before the header that are no part of the table.")
    header: list[Label] | None = Field(
        None, min_length=1, max_length=500, description="The names of the columns, of a body without a header line."
    )
    comment: Annotated[str, StringConstraints(min_length=1, max_length=4)] | None = Field(
        None, description="Lines that begin so are passed over."
    )


Column: TypeAlias = Annotated[list[int], Field(min_length=2, max_length=2)]


class Table(Section):
    """How a table of text is written: columns at fixed places, or split at spaces and named by a header line."""

    columns: dict[Label, Column] | Literal["split"] = Field(
        "split",
        description="`split`: cells have spaces between them, the header line names them. Or for each column its first"
        " character, counted from 0, and the one after its last.",
    )
    header: int = Field(1, ge=0, le=100, description="The line with the names, counted from 1; 0: there is none.")
    skip: int = Field(1, ge=0, le=100, description="Lines before the first record, the header among them.")
    comment: Annotated[str, StringConstraints(min_length=1, max_length=4)] | None = Field(
        None, description="Lines after those that begin so are passed over."
    )


class FieldSpec(Section):
    """One value of a record: where it lies, how it is read, in which unit we keep it."""

    path: str | list[str] | None = Field(
        None,
        description="Where it lies in a record. JSON: a JSONPath (`$.properties.mag`). CSV and text tables: the name"
        " of the column. XML: a path of elements (`geo:Point/geo:lat`, `@id`). Several are joined by a space.",
    )
    constant: Scalar = Field(None, description="The same value for every record, instead of a path.")
    member: bool = Field(False, description="The name under which the record itself lies in a JSON object.")
    type: FieldType | None = Field(
        None,
        description="`any`: as it is, without spaces around it. `degrees`: a number, `12.5N`, or degrees, minutes and"
        " seconds. Without: `number` where there is a unit, `time` where there is a format, else `any`.",
    )
    unit: Words | None = Field(None, description="The unit that the publisher writes, such as `degF` or `kt`.")
    unit_path: str | None = Field(None, description="Where a record names its unit, instead (`wmoUnit:degC`).")
    to: Words | None = Field(None, description="The unit that we keep; without: degC, m/s, hPa, m, deg, s, …")
    format: Words | None = Field(
        None, description="Of a time: `iso`, `unix`, `unix_ms`, or a pattern such as `%d/%m/%Y %H:%M`."
    )
    zone: Words | None = Field(None, description="Of a time that names none: an IANA zone; without: UTC.")
    pad: list[Annotated[int, Field(ge=0, le=8)]] | None = Field(
        None, description="For each path, how many digits it has when zeros before it are left out; 0: as it is."
    )
    ahead: Duration | None = Field(None, description="A time later than this after the reading is none.")
    nulls: list[Scalar] = Field(
        default_factory=list, max_length=32, description="Values that mean that there is none: `MM`, -999999, 99.0."
    )
    values: dict[str, Scalar] | None = Field(
        None, description="What to write instead of a value; one that is not listed stays as it is."
    )
    min: float | None = Field(None, description="What is less, in the unit that we keep, is no value.")
    max: float | None = Field(None, description="What is more is no value.")
    decimal: Literal[".", ","] = Field(".", description="The decimal mark of numbers that are texts.")
    required: bool = Field(False, description="A record without it is refused.")
    stored: bool = Field(True, description="Whether it is part of the fact's data; false: only used here.")


class Condition(Section):
    """What must hold of a field. Several in one entry must all hold."""

    field: FieldName = Field(description="The name of the field.")
    equals: Scalar = Field(None, description="It is this.")
    not_equals: Scalar = Field(None, description="It is not this.")
    one_of: list[Scalar] | None = Field(None, min_length=1, max_length=100, description="It is one of these.")
    at_least: float | None = Field(None, description="A number that is not less.")
    at_most: float | None = Field(None, description="A number that is not more.")
    present: bool | None = Field(None, description="True: there is a value; false: there is none.")


class Place(Section):
    """Which fields are the place of a fact, in degrees."""

    lat: FieldName = Field(description="The field of the latitude.")
    lon: FieldName = Field(description="The field of the longitude, -180 … 180 or 0 … 360.")


class Texts(Section):
    """Who publishes the data and what they do not cover, in one language."""

    publisher: Words = Field(description="Who publishes the data.")
    licence: Words = Field(description="Under which terms.")
    coverage: Words = Field(description="What the data cover.")
    limits: Words = Field(description="What must not be expected of them.")


class ProvenanceTexts(Texts):
    """The same in English and Chinese."""

    zh: Texts = Field(description="The same in Chinese.")


class Search(Section):
    """What search and the list of objects know of a fact, beside its title and key."""

    subtitle: list[FieldName] = Field(default_factory=list, max_length=6, description="Fields shown below the title.")
    properties: list[FieldName] = Field(default_factory=list, max_length=12, description="Fields of the object.")
    severity: FieldName | None = Field(None, description="A number: of equally good finds the larger comes first.")
    place: list[FieldName] = Field(
        default_factory=list, max_length=4, description="Names of towns, for facts without coordinates."
    )


class OwnLayer(Section):
    """A layer of this source's own."""

    title: Label = Field(description="In English.")
    title_zh: Label = Field(description="In Chinese.")
    group: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,31}$")] = Field(
        "other", description="Under which heading the page lists it: `hazards`, `weather`, `space`, …"
    )
    kind: BuiltInKind = Field("point", description="What is drawn.")
    rank: int = Field(500, ge=100, le=10_000, description="Its place in the list; smaller comes first.")
    look: Look = Field(default_factory=Look, description="Colours with their legend, sizes, what late looks like.")
    card: list[CardRow] = Field(default_factory=list, max_length=24, description="The rows of an object's card.")


class Freshness(Section):
    """How often a source of readings reports, and up to which age they are fresh, awaited, late."""

    cadence: Duration = Field(600.0, description="How often it reports.")
    fresh: Duration = Field(900.0, description="Up to this age a reading is fresh.")
    grace: Duration = Field(600.0, description="So long after the cadence the next one is awaited.")
    stale: Duration = Field(2_700.0, description="Older ones are stale.")


class Readings(Section):
    """Temperatures of the Terminal's cities, instead of facts on the globe."""

    city: FieldName | None = Field(None, description="The field with the city's name or code.")
    cities: dict[str, Words] | None = Field(
        None, max_length=200, description="For each value of `station` the city that it belongs to; others are left."
    )
    station: FieldName = Field(description="The field with the station's code.")
    label: FieldName | None = Field(None, description="The field with the station's name.")
    temperature: FieldName = Field(description="The field with the temperature; its unit becomes degC.")
    series: Literal["airport_primary", "settlement", "metar", "reference"] = Field(
        "reference", description="Which curve it is; `reference` never counts for the headline."
    )
    freshness: Freshness = Field(default_factory=Freshness)


class Declaration(Section):
    """A source of Planetwire as data."""

    version: Literal[1] = Field(1, description="Of this format.")
    source: SourceName = Field(description="Its name in rows, jobs and settings: lower-case words joined by `_`.")
    kind: Kind = Field(description="What the address answers with.")
    url: str = Field(
        min_length=8,
        max_length=2_000,
        description="An http:// or https:// address in the open network. `{now:%Y%m%d}` is the time of the request in"
        " UTC, `{now-1h/10min:%H%M}` an hour before it, rounded down to ten minutes.",
    )
    auth: Auth | None = Field(None, description="How a key is sent, for a provider who wants one.")
    interval: Duration = Field(600.0, description="How often it is asked.")
    floor: Duration = Field(60.0, description="The least time between two requests: the provider's rule.")
    max_bytes: int = Field(16 * 1024 * 1024, ge=1_024, le=16 * 1024 * 1024, description="The largest body.")
    empty_ok: bool = Field(False, description="Whether an empty answer means that there is nothing, and is no fault.")
    records: str | None = Field(
        None,
        description="Where the records lie. JSON: a JSONPath, `$[*]` without. GeoJSON: its features, without being"
        " told. XML: a path of elements, `//item`. CSV and text tables: their lines.",
    )
    csv: Csv | None = Field(None, description="Of `http_csv`.")
    table: Table | None = Field(None, description="Of `http_text_table`.")
    header_row: bool = Field(
        False, description="Of `http_json`: records may be lists, the first of them then holds the names."
    )
    nulls: list[Scalar] = Field(default_factory=list, max_length=32, description="Nulls of every field.")
    fields: dict[FieldName, FieldSpec | str] = Field(
        min_length=1, max_length=FIELDS_MAX, description="By name; a text alone is a path."
    )
    key: list[FieldName] = Field(
        min_length=1, max_length=6, description="Fields that together name one thing, and the same thing next time."
    )
    title: Words | None = Field(None, description="A text with fields in braces: `{name}`; without: the key.")
    thing: Words | None = Field(None, description="What a fact is, a word or a field in braces; without: the layer.")
    time: FieldName | None = Field(None, description="The field that says when it was observed.")
    valid_for: Duration | None = Field(None, description="How long after that a fact holds.")
    place: Place | None = Field(None, description="Where it is; of GeoJSON its geometry, without being told.")
    filter: list[Condition] = Field(
        default_factory=list, max_length=16, description="Records of which any of these does not hold are left out."
    )
    missing: Literal["kept", "gone"] = Field(
        "kept",
        description="`kept`: a body is a window, what is not in it is old. `gone`: a body is everything, so what is"
        " missing from it is deleted.",
    )
    layer: OwnLayer | SourceName | None = Field(None, description="A layer of its own, or the name of one there is.")
    search: Search = Field(default_factory=Search)
    stale_after: Duration | None = Field(None, description="Without news for so long its layer is stale.")
    series: Readings | None = Field(None, description="Instead of a layer: readings of the Terminal's cities.")
    provenance: ProvenanceTexts | None = Field(None, description="Shown beside the data, in both languages.")


def spec_of(given: FieldSpec | str) -> FieldSpec:
    """A field as a whole; a text alone is its path."""
    return FieldSpec(path=given) if isinstance(given, str) else given


def paths_of(spec: FieldSpec) -> list[str]:
    """Where the field lies: one place, several that are joined, or none."""
    return [spec.path] if isinstance(spec.path, str) else spec.path or []


def type_of(spec: FieldSpec) -> FieldType:
    """What it is read as, where it does not say."""
    if spec.type is not None:
        return spec.type
    if spec.unit is not None or spec.unit_path is not None:
        return "number"
    return "time" if spec.format is not None or spec.zone is not None else "any"
