"""Adapts our satellite parser to the conformance kit `gpconf`; it only renames fields."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from planetwire.collect.formats import omm, tle
from planetwire.datasets.satellites.feed import CelestrakGp
from planetwire.model import Fact, Reject

AT = datetime(2026, 11, 29, 12, tzinfo=UTC)
DECLARATION = {"_adapter": {"refusals": True}}


class Adapter:
    """`parse`, and the hooks that we have a function for."""

    def parse(self, raw: bytes, fmt: str) -> list[dict[str, Any]]:
        parsed = CelestrakGp().parse(raw, AT)
        records = [_record(row) for row in parsed.rows if isinstance(row, Fact)]
        refusals = [_refusal(one) for one in parsed.rejects]
        return [DECLARATION, *records, *refusals]

    def alpha5_decode(self, text: str) -> int:
        return tle.catalogue_number(text)

    def two_digit_year(self, text: str) -> int:
        return tle.full_year(int(text))

    def parse_epoch(self, text: str) -> datetime:
        return omm.epoch(text)

    def parse_catalog_id(self, text: str) -> int:
        return omm.catalogue_number(text)


def _refusal(one: Reject) -> dict[str, Any]:
    """With the catalogue field of the refused record, if its sample is an element set or a CSV row."""
    columns = one.sample.split(",")
    field = one.sample[2:7] if one.sample.startswith("1 ") else columns[11] if len(columns) > 11 else ""
    return {"_refused": one.reason, "_input": one.sample[-80:], **({"_field": field} if field.isdigit() else {})}


def _record(row: Fact) -> dict[str, Any]:
    data = {key.lower(): value for key, value in row.data.items()}
    return data | {"epoch": row.observed_at, "object_id": data["object_id"] or ""}
