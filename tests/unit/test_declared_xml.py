"""Declared sources of XML: elements by path, no document types, and nothing that is fetched."""

from __future__ import annotations

from typing import Any

import pytest

from declarations import AT, facts, faults_of, feed_of
from planetwire.collect.feeds import FactFeed
from planetwire.declared.formats.paths import BadPath
from planetwire.declared.formats.xml_source import getter, reader
from planetwire.errors import FeedError

RSS = b"""<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:geo="http://www.w3.org/2003/01/geo/wgs84_pos#" xmlns:media="m"><channel><title>All</title>
<item id="a1"><title>One &amp; only</title><media:title>Other</media:title>
<geo:Point><geo:lat>12.5</geo:lat><geo:long>-61.2</geo:long></geo:Point><when>2026-12-01T10:00:00Z</when></item>
<item id="b2"><title><![CDATA[Two]]></title><geo:Point><geo:lat>-1</geo:lat><geo:long>200</geo:long></geo:Point>
<value kind="mag">5.4</value><value kind="depth">10</value></item>
</channel></rss>"""
FIELDS: dict[str, Any] = {
    "id": "@id",
    "name": "title",
    "media": "media:title",
    "lat": {"path": "geo:Point/geo:lat", "type": "degrees"},
    "lon": {"path": ".//geo:long", "type": "degrees"},
    "mag": {"path": "value[@kind='mag']", "type": "number"},
    "any_lat": {"path": ".//{*}lat", "type": "number"},
}


def xml_feed(records: str = "//item", **other: Any) -> FactFeed:
    return feed_of(**{"kind": "http_xml", "records": records, "fields": FIELDS, **other})


@pytest.mark.parametrize("records", ["//item", "/rss/channel/item", "//channel/item", "item", "/rss/*/item"])
def test_records_and_values_are_found_by_paths_of_elements(records: str) -> None:
    parsed = xml_feed(records).parse(RSS, AT)
    first, second = facts(parsed)
    assert parsed.complete and not parsed.rejects
    assert (first.external_key, first.lat, first.lon) == ("a1", 12.5, -61.2)
    assert (second.external_key, second.lat, second.lon) == ("b2", -1.0, -160.0)
    assert first.data["name"] == "One & only" and first.data["media"] == "Other" and first.data["mag"] is None
    assert second.data["name"] == "Two" and second.data["mag"] == 5.4 and second.data["any_lat"] == -1.0


def test_a_single_byte_encoding_is_that_of_each_record_too() -> None:
    body = '<?xml version="1.0" encoding="ISO-8859-1"?><a><item id="1"><title>Å</title></item></a>'.encode("latin-1")
    assert facts(xml_feed().parse(body, AT))[0].data["name"] == "Å"


@pytest.mark.parametrize(
    "body",
    [
        b'<!DOCTYPE a [<!ENTITY x "y">]><a><item id="1"><title>&x;</title></item></a>',
        b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a><item><title>&x;</title></item></a>',
        b'<!DOCTYPE a SYSTEM "http://127.0.0.1:1/x.dtd"><a/>',
        b'<!DOCTYPE a [<!ENTITY a "1"><!ENTITY b "&a;&a;"><!ENTITY c "&b;&b;">]><a>&c;</a>',
    ],
)
def test_a_document_type_is_refused_whatever_it_declares(body: bytes) -> None:
    with pytest.raises(FeedError, match="document type"):
        xml_feed().parse(body, AT)


@pytest.mark.parametrize("body", [b"{}", b"text", b"<html><body>no</body></html>", b"<a", b"<a>" * 40 + b"</a>" * 40])
def test_what_is_no_xml_of_records_is_a_bad_body(body: bytes) -> None:
    with pytest.raises(FeedError) as caught:
        xml_feed().parse(body, AT)
    assert caught.value.code == "bad_body"


def test_a_body_that_breaks_off_keeps_what_was_whole_and_is_not_whole() -> None:
    parsed = xml_feed(missing="gone").parse(RSS[: RSS.index(b"</channel>") - 20], AT)
    assert [one.external_key for one in facts(parsed)] == ["a1"] and not parsed.complete
    assert [one.code for one in parsed.rejects] == ["broken"]


def test_no_records_in_a_whole_document_are_none_and_all_there_is() -> None:
    parsed = xml_feed().parse(b"<rss><channel/></rss>", AT)
    assert parsed.complete and not parsed.rows and not parsed.rejects


@pytest.mark.parametrize(
    "path",
    [
        "//title",
        ".//a//b",
        "a/" * 20 + "b",
        "title[text()='x']",
        "title[position()<3]",
        "document('x')",
        "../title",
        "a b",
        "@",
        "a/@b/c",
        "title[",
        "",
        "x" * 600,
    ],
)
def test_a_path_beyond_the_bounded_part_of_xpath_is_refused(path: str) -> None:
    with pytest.raises(BadPath):
        getter(path)


@pytest.mark.parametrize("path", ["", "//", "a//b", "item[1]", "@id", "/a/" + "b/" * 20 + "c", "doc('x')"])
def test_a_path_of_records_names_elements_and_nothing_else(path: str) -> None:
    with pytest.raises(BadPath):
        reader(path)


def test_a_source_of_xml_says_which_elements_are_its_records() -> None:
    text = "source: x\nkind: http_xml\nurl: https://example.org/x\nfields: {id: '@id'}\nkey: [id]\nlayer: earthquakes\n"
    assert [(one.code, one.message) for one in faults_of(text).faults] == [("missing", "`records` is missing")]
