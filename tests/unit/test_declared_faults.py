"""What is wrong with a declaration: each fault has its line, its column and a remedy, and all are told at once."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from declarations import SMALLEST, faults_of
from planetwire.collect.feeds import access_to
from planetwire.collect.http.slots import bad_slot, filled, has_slots
from planetwire.declared.faults import FAULTS_MAX, DeclarationFaults
from planetwire.declared.formats.paths import BadPath, getter, query
from planetwire.declared.marked import read_marked
from planetwire.declared.read import read
from planetwire.declared.schema import ID, schema_text
from planetwire.model import Json
from planetwire.settings import FeedSettings

SPEC = Path(__file__).resolve().parents[2] / "spec" / "sources"
FULL = (SPEC / "full.v1.yaml").read_text(encoding="utf-8")
GOLDEN = sorted(SPEC.glob("*.yaml"))

# What is written in place of what, and the fault: line, column, code, and words that the message or the remedy has.
BROKEN: dict[str, tuple[str, str, int, int, str, str]] = {
    "a name with a slip": ("\nurl:", "\nulr:", 6, 1, "unknown_name", "did you mean `url`?"),
    "a kind that is none": ("http_geojson", "geojson", 5, 1, "unknown_word", "did you mean `http_geojson`?"),
    "an address of another scheme": ("https://earth", "ftp://earth", 6, 1, "bad_address", "http:// or https://"),
    "a slot that is none": ("all_day.geo", "{today}.geo", 6, 1, "bad_slot", "{now:%Y%m%d}"),
    "a private address": ("earthquake.usgs.gov", "192.168.1.1", 6, 1, "private_address", "PLANETWIRE_SOURCES_PRIVATE"),
    "a password in the text": ("//earth", "//me:secret@earth", 6, 1, "secret_in_text", "auth"),
    "oftener than allowed": ("interval: 2min", "interval: 20s", 8, 1, "below_floor", "floor"),
    "a duration without a unit": ("interval: 2min", "interval: 2 mins", 8, 1, "bad_value", "10min"),
    "a path that is none": ("$.properties.magType", "properties.magType", 16, 3, "bad_path", "begins with `$`"),
    "a pattern": ("$.properties.type", "$[?search(@.type,'q')]", 21, 3, "costly_path", "run for ever"),
    "a unit that is none": ("unit: km, to: km", "unit: kmm, to: km", 17, 49, "unknown_unit", "did you mean `"),
    "units of different things": ("to: km", "to: degC", 17, 59, "unlike_units", "different things"),
    "a key that is no field": ("key: [id]", "key: [ids]", 25, 7, "no_field", "did you mean `id`?"),
    "a title of no field": ("title: '{spot}'", "title: '{sport}'", 26, 1, "no_field", "did you mean `spot`?"),
    "a form of time that is none": ("unix_ms, required", "unixms, required", 23, 45, "bad_format", "unix_ms"),
    "a code of time that is none": ("unix_ms, required", "'%Q', required", 23, 45, "bad_format", "%d/%m/%Y"),
    "a card of no field": ("values: [mag]", "values: [magn]", 52, 56, "no_field", "did you mean `mag`?"),
    "a card of a column": ("values: [mag]", "values: [at]", 52, 56, "no_field", "`observed_at`"),
    "a subtitle of a column": ("subtitle: [mag, status]", "subtitle: [mag, at]", 62, 19, "no_field", "fact's data"),
    "a colour that is none": ("'#ff9a4d'", "orange", 40, 3, "bad_look", "no"),
    "a value twice": ("missing: kept", "missing: kept\nmissing: gone", 34, 1, "twice", "leave one"),
    "a key that goes nowhere": ("{header: X-API-Key}", "{prefix: 'Bearer '}", 7, 1, "bad_auth", "header"),
    "no Chinese": ("title_zh: 我的地震", "title_z: 我的地震", 36, 3, "unknown_name", "title_zh"),
    "a layer of no source": ("source: my_quakes", "source: usgs_quakes", 4, 1, "name_taken", "another name"),
    "a bracket left open": ("key: [id]", "key: [id", 26, 6, "no_yaml", "quotation marks"),
    "an alias": ("nulls: [n/a]", "nulls: &n [n/a]", 12, 8, "no_alias", "write it out"),
    "a tag": ("nulls: [n/a]", "nulls: !!python/name:os.system [n/a]", 12, 8, "no_tag", "leave the tag out"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_declaration_names_line_column_and_remedy(name: str) -> None:
    old, new, line, column, code, words = BROKEN[name]
    assert old in FULL
    found = faults_of(FULL.replace(old, new, 1)).faults
    told = [(one.line, one.column, one.code) for one in found]
    assert (line, column, code) in told, found
    fault = found[told.index((line, column, code))]
    assert words in f"{fault.message} {fault.remedy}", fault
    assert f"x.yaml:{line}:{column}: " in faults_of(FULL.replace(old, new, 1)).message


def test_all_faults_are_told_at_once_in_the_order_of_the_text() -> None:
    text = FULL
    for name in ("a path that is none", "a unit that is none", "a key that is no field", "a card of no field"):
        text = text.replace(BROKEN[name][0], BROKEN[name][1], 1)
    found = faults_of(text)
    assert [one.code for one in found.faults] == ["bad_path", "unknown_unit", "no_field", "no_field"]
    assert found.told["faults"] == [one.record() for one in found.faults]


def test_more_faults_than_anybody_reads_are_counted() -> None:
    given = SMALLEST | {f"name_{n}": n for n in range(FAULTS_MAX + 20)}
    found = faults_of(json.dumps(given))
    assert len(found.faults) == FAULTS_MAX and found.more == 20


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"interval": -5}, "more than 0 is needed, not `-5`"),
        ({"interval": True}, "a duration is a number and s, min, h or d, as in `10min`, not `True`"),
        ({"interval": [1]}, "a number is needed, not `[1]`"),
        ({"key": []}, "at least 1 of them are needed, not `[]`"),
        ({"key": "id"}, "a list is needed, not `id`"),
        ({"url": "x"}, "a text of at least 8 characters is needed, not `x`"),
        ({"fields": {}}, "at least 1 of them are needed, not `{}`"),
        ({"fields": {"ID": "$.id"}}, "`ID` is no name for this"),
        ({"fields": {"id": 5}}, "a text is needed, not `5`"),
        ({"source": "City Bikes"}, "`City Bikes` is no name for this"),
        ({"layer": {"title": "x", "title_zh": "x", "rank": "first"}}, "a whole number is needed, not `first`"),
    ],
)
def test_what_the_types_say_is_said_in_our_words(part: Json, message: str) -> None:
    found = faults_of(json.dumps(SMALLEST | part)).faults
    assert message in [one.message for one in found], found


def test_a_field_that_is_missing_is_named_where_it_should_be() -> None:
    for name in ("source", "kind", "url", "fields", "key", "provenance"):
        found = faults_of(json.dumps({key: value for key, value in SMALLEST.items() if key != name}))
        assert any(one.message == f"`{name}` is missing" for one in found.faults), found.message


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "no_mapping"),
        ("- a\n- b\n", "no_mapping"),
        ("just words", "no_mapping"),
        ("a: [", "no_yaml"),
        ("a: b: c", "no_yaml"),
        ("\x00", "no_yaml"),
        ("a: \ud800", "no_yaml"),
        ("? [a, b]\n: c\n", "bad_name"),
        ("a: 1\n---\nb: 2\n", "two_documents"),
        ("a: &x [1]\nb: *x\n", "no_alias"),
        ("a: " + "[" * 100_000, "too_large"),
        ("a: " + "[" * 5_000, "too_deep"),
        ("a: " + "{b: " * 5_000, "too_deep"),
        ("a: [" + "1," * 30_000 + "]", "too_large"),
        ("a: !!python/object/apply:os.system [true]", "no_tag"),
    ],
)
def test_a_text_that_is_no_declaration_is_refused_before_anything_is_made_of_it(text: str, code: str) -> None:
    assert code in [one.code for one in faults_of(text).faults]


def test_a_bomb_of_aliases_is_refused_at_its_first_anchor() -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))]
    assert [(one.line, one.code) for one in faults_of("\n".join(lines)).faults] == [(1, "no_alias")]


def test_plain_words_are_what_yaml_1_2_says_they_are() -> None:
    text = "a: no\nb: 12:30\nc: 2026-11-30\nd: 010\ne: 1_000\nf: 0x1f\ng: true\nh: ~\ni: 1e3\nj: '5'\nk: -999999\n"
    assert read_marked(text, "x").value == {
        "a": "no", "b": "12:30", "c": "2026-11-30", "d": 10, "e": "1_000", "f": "0x1f", "g": True, "h": None,
        "i": 1000.0, "j": "5", "k": -999999,
    }  # fmt: skip


def test_json_indented_by_tabs_is_read_and_its_faults_have_places() -> None:
    text = json.dumps(SMALLEST | {"ulr": 1}, indent="\t")
    fault = faults_of(text).faults[0]
    assert fault.message == "`ulr` is not known here"
    assert text.splitlines()[fault.line - 1].startswith('"ulr"', fault.column - 1)


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.name)
def test_the_golden_examples_are_good_for_us_and_for_the_published_schema(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert read(text).source
    validator = jsonschema.Draft202012Validator(json.loads((SPEC / ID).read_bytes()))
    assert not list(validator.iter_errors(read_marked(text, file.name).value))


def test_the_published_schema_is_that_of_the_model() -> None:
    assert (SPEC / ID).read_text(encoding="utf-8") == schema_text(), "run scripts/write_source_schema.py"


def test_the_schema_refuses_unknown_names_and_explains_every_name() -> None:
    schema = json.loads(schema_text())
    sections = [schema, *schema["$defs"].values()]
    assert all(one["additionalProperties"] is False for one in sections)
    ours = [one for name, one in schema["$defs"].items() if name in ("FieldSpec", "Csv", "Table", "Readings", "Auth")]
    for section in (schema, *ours):
        for name, given in section["properties"].items():
            assert given.get("description") or "$ref" in given or "allOf" in given, name
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(SMALLEST | {"ulr": 1}, schema)


@pytest.mark.parametrize(
    "path",
    [
        "$..a..b",
        "$..[?@..x]",
        "$[?$.a == 1]",
        "$[?count($..x) > 1]",
        "$[*,*][*,*][*,*]",
        "$.a[?match(@.b, '(a|aa)+b')]",
        "$.a[?search(@.b, '(a|aa)+b')]",
        "$" + ".a" * 40,
        "$[?" + "(" * 300 + "@.a" + ")" * 300 + "]",
        "$." + "a" * 600,
        "a.b",
        "",
        "$.",
        "$.a~",
        "$.a | $.b",
    ],
)
def test_a_query_that_could_cost_more_than_its_record_is_refused(path: str) -> None:
    with pytest.raises(BadPath):
        query(path)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$.a", 1),
        ("$['a']", 1),
        ("$.b.c", 2),
        ("$.b.c.d", None),
        ("$.l[0]", 3),
        ("$.l[-1]", 4),
        ("$.l[9]", None),
        ("$.a[0]", None),
        ("$.s[0]", None),
        ("$.b['e f']", 5),
        ("$..c", 2),
        ("$.l[?@ > 3]", 4),
        ("$.l[0:1]", 3),
        ("$.none.at.all", None),
        ("$", {"a": 1, "b": {"c": 2, "e f": 5}, "l": [3, 4], "s": "text"}),
    ],
)
def test_a_path_gives_the_first_value_that_it_names(path: str, expected: Any) -> None:
    record = {"a": 1, "b": {"c": 2, "e f": 5}, "l": [3, 4], "s": "text"}
    assert getter(path)(record) == expected
    assert all(getter(path)(other) is None for other in (None, 5, "text", [], True)) or path == "$"


def test_the_key_of_a_source_goes_where_it_declares_and_is_no_part_of_the_text() -> None:
    for auth, place in (({"header": "X-Key", "prefix": "Key "}, "header"), ({"query": "api_key"}, "query")):
        feed = read(json.dumps(SMALLEST | {"auth": auth})).feed
        own = FeedSettings.model_validate({"token": "a-secret-of-somebody"})
        access = access_to(feed, own)
        assert (access.token, access.credential.place, access.own_address) == ("a-secret-of-somebody", place, False)
        assert "secret" not in json.dumps(SMALLEST | {"auth": auth})


@pytest.mark.parametrize(
    ("address", "codes"),
    [
        ("http://localhost/x", ["private_address"]),
        ("http://LOCALHOST:80/x", ["private_address"]),
        ("http://127.0.0.1/x", ["private_address"]),
        ("http://[::1]/x", ["private_address"]),
        ("http://[::1]:8080/x", ["private_address"]),
        ("http://[::ffff:10.0.0.1]/x", ["private_address"]),
        ("http://169.254.169.254/latest/meta-data", ["private_address"]),
        ("https://10.1.2.3:8443/", ["private_address"]),
        ("https://me@example.org/", ["secret_in_text"]),
        ("https://:secret@example.org/", ["secret_in_text"]),
        ("http://[::1/x", ["bad_address"]),
        ("https://", ["bad_address"]),
        ("file:///etc/passwd", ["bad_address"]),
        ("https://example.org/@me", []),
        ("https://93.184.216.34/x", []),
    ],
)
def test_what_an_address_says_of_itself_is_looked_at(address: str, codes: list[str]) -> None:
    text = json.dumps(SMALLEST | {"url": address})
    assert (codes and [one.code for one in faults_of(text).faults]) == codes
    if not codes:
        assert read(text).feed.default_url == address


def test_a_private_address_is_allowed_only_where_whoever_reads_the_declaration_says_so() -> None:
    text = json.dumps(SMALLEST | {"url": "http://127.0.0.1:8080/x.json"})
    with pytest.raises(DeclarationFaults):
        read(text)
    feed = read(text, private=True).feed
    assert access_to(feed, FeedSettings()).own_address
    assert not access_to(read(json.dumps(SMALLEST), private=False).feed, FeedSettings()).own_address


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://x.org/{now:%Y%m%d}.json", "https://x.org/20261201.json"),
        ("https://x.org/{now-1d:%Y/%j}", "https://x.org/2026/334"),
        ("https://x.org/{now+9h/3h:%Y%m%d_%H}", "https://x.org/20261201_21"),
        ("https://x.org/{now/10min:%H%M00}", "https://x.org/125000"),
        ("https://x.org/{now:%Q}{x}", "https://x.org/{now:%Q}{x}"),
    ],
)
def test_the_time_of_the_request_fills_an_address(address: str, expected: str) -> None:
    at = datetime(2026, 12, 1, 12, 56, 7, tzinfo=UTC)
    assert filled(address, at) == expected
    assert has_slots(address) and (bad_slot(address) is None) is ("%Q" not in address)
