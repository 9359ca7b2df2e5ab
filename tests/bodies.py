"""Small complete bodies in the formats of feeds."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from typing import Any

AT = datetime(2026, 11, 29, 12, tzinfo=UTC)
RECORD: dict[str, Any] = {
    "OBJECT_NAME": "ONE", "OBJECT_ID": "1998-067A", "EPOCH": "2026-11-29T04:10:11.123456", "MEAN_MOTION": 15.49,
    "ECCENTRICITY": 0.0004, "INCLINATION": 51.63, "RA_OF_ASC_NODE": 12.5, "ARG_OF_PERICENTER": 90.0,
    "MEAN_ANOMALY": 270.0, "NORAD_CAT_ID": 1,
}  # fmt: skip
NUMBERS = range(1, 21)
RECORDS = [RECORD | {"NORAD_CAT_ID": number} for number in NUMBERS]
QUAKES = {
    "type": "FeatureCollection",
    "features": [
        {"type": "Feature", "id": f"us{n}", "properties": {"time": 1_779_789_720_123, "mag": 4.0}, "geometry": None}
        for n in NUMBERS
    ],
    "bbox": [1, 2, 3],
}
METARS = [
    {"icaoId": "KLGA", "obsTime": 1_780_000_000 + 60 * n, "rawOb": f"KLGA 2811{n:02}Z 00000KT 10SM 12/02 A2992"}
    for n in NUMBERS
]
RUNWAYS = [
    {"airport": "RKSI", "runway": "15R/33L", "time": 1_780_000_000 + 60 * n, "tdz_temp_c": 12.5, "wind_speed_mps": 4}
    for n in NUMBERS
]
TLE = (
    "ISS (ZARYA)\n"
    "1 25544U 98067A   98324.28472222 -.00003657  11563-4  00000+0 0    10\n"
    "2 25544 051.5908 168.3788 0125362 086.4185 359.7454 16.05064833    05\n"
)


def as_csv(records: list[dict[str, Any]]) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(records[0]))
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue().encode()


def as_kvn(records: list[dict[str, Any]]) -> bytes:
    return "".join(
        "CCSDS_OMM_VERS = 2.0\n" + "".join(f"{key} = {value}\n" for key, value in record.items()) for record in records
    ).encode()


def as_xml(records: list[dict[str, Any]]) -> bytes:
    return (
        "<ndm>"
        + "".join(
            "<omm><body>" + "".join(f"<{key}>{value}</{key}>" for key, value in record.items()) + "</body></omm>"
            for record in records
        )
        + "</ndm>"
    ).encode()
