"""One METAR report of a station, as raw text and as the service's decoded row. The two agree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from planetwire.demo.providers.weather import Station, Weather

_HPA_PER_INHG = 33.8639
_KT_PER_MPS = 1.943844


@dataclass(frozen=True, slots=True)
class Report:
    """The station's measurements, rounded as reported. `temp_c` None: the sensor was out of order."""

    station: Station
    obs_s: int
    receipt_s: float
    temp_c: float | None
    dew_c: float | None
    wind_deg: int
    wind: int
    gust: int | None
    visibility_m: int
    altim_hpa: float
    wx: str
    sky: str
    layers: tuple[tuple[str, int], ...]
    kind: str = "METAR"
    corrected: bool = False

    @property
    def american(self) -> bool:
        """Whether it reports tenths, statute miles and inches of mercury."""
        return self.station.style == "us"

    @property
    def obs_text(self) -> str:
        """Observation time in the cache file's format."""
        return _iso(self.obs_s)


def _iso(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def half_up(value: float) -> int:
    """Rounds as weather services do: halves towards the warmer value."""
    return math.floor(value + 0.5)


def observe(station: Station, air: Weather, obs_s: int, receipt_s: float) -> Report:
    """The station's report of this air."""
    gap_c = air.temp_c - air.dew_c
    wx, visibility_m = _present(air, gap_c)
    sky, layers = _sky(air.cloud, gap_c)
    if station.style != "us" and visibility_m >= 9_999 and not wx and all(base > 5_000 for _, base in layers):
        sky, layers = "CAVOK", ()
    unit = _KT_PER_MPS if station.style == "mps" else 1.0
    step = 10 if station.style == "us" else 1
    calm = air.wind_kt < 1.5
    return Report(
        station,
        obs_s,
        receipt_s,
        half_up(air.temp_c * step) / step,
        half_up(air.dew_c * step) / step,
        0 if calm else air.wind_deg,
        0 if calm else max(1, round(air.wind_kt / unit)),
        None if calm or air.gust_kt is None else round(air.gust_kt / unit),
        visibility_m,
        round(round(air.pressure_hpa / _HPA_PER_INHG, 2) * _HPA_PER_INHG, 1)
        if station.style == "us"
        else float(math.floor(air.pressure_hpa)),
        wx,
        sky,
        layers,
    )


def _present(air: Weather, gap_c: float) -> tuple[str, int]:
    if air.cloud > 0.93:
        heavy = "" if air.cloud > 0.99 else "-"
        return f"{heavy}{'SN' if air.temp_c < 0.8 else 'RA'}", 4_000 if air.temp_c < 0.8 else 7_000
    return ("BR", 3_000) if gap_c < 1.0 else ("", 9_999)


def _sky(cloud: float, gap_c: float) -> tuple[str, tuple[tuple[str, int], ...]]:
    """Cover and layers; bases follow from the air's distance from saturation."""
    if cloud < 0.1:
        return "CLR", ()
    cover = "FEW" if cloud < 0.3 else "SCT" if cloud < 0.55 else "BKN" if cloud < 0.88 else "OVC"
    base_ft = max(300, round(gap_c * 400 / 100) * 100)
    low = [("FEW" if cover == "BKN" else "SCT", base_ft)] if cover in ("BKN", "OVC") else []
    return cover, (*low, (cover, base_ft + 1_200 if low else base_ft))


def _celsius(value: float) -> str:
    return f"{'M' if value < 0 else ''}{abs(half_up(value)):02d}"


def _tenths(value: float) -> str:
    return f"{int(value < 0)}{abs(round(value * 10)):03d}"


def _wind(report: Report) -> str:
    gust = "" if report.gust is None else f"G{report.gust:02d}"
    return f"{report.wind_deg:03d}{report.wind:02d}{gust}{'MPS' if report.station.style == 'mps' else 'KT'}"


def _miles(visibility_m: int) -> str:
    return "10SM" if visibility_m >= 9_999 else f"{max(1, round(visibility_m / 1_609.344))}SM"


def as_raw(report: Report) -> str:
    """The report as sent, prefixed by the service with `METAR ` or `SPECI `."""
    us = report.american
    words = [report.kind]
    words += ["COR"] if report.corrected and not us else []
    words += [report.station.icao, datetime.fromtimestamp(report.obs_s, UTC).strftime("%d%H%MZ")]
    words += ["COR"] if report.corrected and us else []
    words.append(_wind(report))
    if report.sky == "CAVOK":
        words.append("CAVOK")
    else:
        words.append(_miles(report.visibility_m) if us else f"{report.visibility_m:04d}")
        words += [report.wx] if report.wx else []
        words += [f"{cover}{base // 100:03d}" for cover, base in report.layers] or ["CLR" if us else "NSC"]
    if report.temp_c is None or report.dew_c is None:
        words += [] if us else ["/////"]
    else:
        words.append(f"{_celsius(report.temp_c)}/{_celsius(report.dew_c)}")
    words.append(f"A{round(report.altim_hpa / _HPA_PER_INHG * 100):04d}" if us else f"Q{report.altim_hpa:04.0f}")
    return " ".join(words + (_remarks(report) if us else []))


def _remarks(report: Report) -> list[str]:
    words = ["RMK", "AO2", f"SLP{round(report.altim_hpa * 10) % 1000:03d}"]
    if report.temp_c is not None and report.dew_c is not None:
        words.append(f"T{_tenths(report.temp_c)}{_tenths(report.dew_c)}")
    return words


def _plain(value: float | None) -> float | int | None:
    """Whole numbers without a fraction, as the service does."""
    return None if value is None else int(value) if value == int(value) else round(value, 1)


def _category(report: Report, miles: float) -> str:
    ceiling_ft = min((base for cover, base in report.layers if cover in ("BKN", "OVC")), default=99_999)
    for name, least_ft, least_miles in (("LIFR", 500, 1.0), ("IFR", 1_000, 3.0), ("MVFR", 3_001, 5.01)):
        if ceiling_ft < least_ft or miles < least_miles:
            return name
    return "VFR"


def _sight(report: Report) -> tuple[str | float, float]:
    """Visibility in the row's form, and in miles."""
    if report.visibility_m >= 9_999:
        return ("10+", 10.0) if report.american else ("6+", 6.2)
    miles = round(report.visibility_m / 1_609.344, 2)
    stated = float(_miles(report.visibility_m)[:-2]) if report.american else miles
    return stated if stated != int(stated) else int(stated), stated


def as_row(report: Report) -> dict[str, Any]:
    """The decoded row, keys in the service's order; unknown values have no key, but temperatures are null."""
    stated, miles = _sight(report)
    unit = _KT_PER_MPS if report.station.style == "mps" else 1.0
    late = report.obs_s % 3_600 >= 3_000
    row: dict[str, Any] = {
        "icaoId": report.station.icao,
        "receiptTime": _iso(report.receipt_s),
        "obsTime": report.obs_s,
        "reportTime": _iso(report.obs_s // 3_600 * 3_600 + 3_600 if late else report.obs_s),
        "temp": _plain(report.temp_c),
        "dewp": _plain(report.dew_c),
        "wdir": report.wind_deg,
        "wspd": round(report.wind * unit),
        "wgst": None if report.gust is None else round(report.gust * unit),
        "visib": stated,
        "altim": _plain(report.altim_hpa),
        "slp": _plain(report.altim_hpa) if report.american else None,
        "qcField": 4 if report.american else 2,
        "wxString": report.wx or None,
        "metarType": report.kind,
        "rawOb": as_raw(report),
        "lat": report.station.lat,
        "lon": report.station.lon,
        "elev": report.station.elev_m,
        "name": report.station.name,
        "cover": report.sky,
        "clouds": [{"cover": cover, "base": base} for cover, base in report.layers],
        "fltCat": _category(report, miles),
    }
    kept = {"temp", "dewp"}
    return {key: value for key, value in row.items() if value is not None or key in kept}
