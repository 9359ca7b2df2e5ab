"""The layer of weather stations: one point a city, with its newest temperature."""

from __future__ import annotations

from planetwire.layers.places import GEONAMES, GEONAMES_LICENCE, GEONAMES_ZH, asked
from planetwire.layers.values import joined, text
from planetwire.model import Derived, Fact, LayerAdapter, Provenance
from planetwire.model.presentation import CardRow, FixedSize, Late, Look, Paint, Scale, ScaleClass


def _derive(fact: Fact) -> Derived:
    """Found by city, airport and code; temperatures change too often to be what a thing is."""
    names = {key: text(fact.data.get(key)) for key in ("airport", "icao", "city", "name_zh")}
    return Derived(
        subtitle=joined(names["airport"], names["icao"], names["name_zh"]),
        properties={key: names[key] or None for key in ("city", "icao")},
        place=asked(fact, "city"),
    )


LOOK = Look(
    color=Scale(
        by="value",
        value="temp_c",
        classes=(
            ScaleClass("freezing", "< 0 °C", "低于 0 °C", "#8fb3ff", below=0.0),
            ScaleClass("cold", "< 10 °C", "低于 10 °C", "#5cc4dd", below=10.0),
            ScaleClass("mild", "< 20 °C", "低于 20 °C", "#56d494", below=20.0),
            ScaleClass("warm", "< 30 °C", "低于 30 °C", "#f0b64a", below=30.0),
            ScaleClass("hot", "≥ 30 °C", "30 °C 及以上", "#ff6f59"),
        ),
        unknown=Paint("#a8967c"),
    ),
    size=FixedSize(7.0),
    late=Late(after_s=3_600.0, alpha=0.35, value="stale_s"),
)
CARD = (
    CardRow("temperature", "Temperature", "气温", ("temp_c",), "temperature"),
    CardRow("observed", "Observed", "观测时间", ("observed_at",), "time"),
    CardRow("station", "Station", "站点", ("station_label", "station_code")),
    CardRow("observed_by", "Observed by", "观测来源", ("observed_by",)),
    CardRow("airport", "Airport", "机场", ("airport", "icao"), join=" · "),
)

WEATHER_STATIONS = LayerAdapter(
    id="weather_stations",
    title="Weather stations",
    title_zh="气象站",
    group="weather",
    kind="point",
    feeds=(("collected_data", "city_observation"), ("resolved_locations", "city_observation")),
    owned_tables=("resolved_locations", "earth_interactables"),
    readings_of=("awc_metar", "runway_obs"),
    derive=_derive,
    look=LOOK,
    card=CARD,
    cache_patterns=("earth:layer:weather_stations:*", "dash:terminal:*"),
    stale_after_s=7200.0,  # an airport reports every half hour or hour
    provenance=Provenance(
        publisher="The weather services and airports behind the Terminal's sources; each station names its own "
        "(`observed_by`), METAR reports come through the U.S. Aviation Weather Center; "
        f"{GEONAMES}",
        licence="METAR reports: public domain. Readings that others push here: as their senders state. "
        f"{GEONAMES_LICENCE}",
        coverage="The cities of the Terminal, one station each, shown where the city's airport lies",
        limits="The newest reading alone, at most one a minute and station, as it was reported: neither checked nor "
        "corrected here, and moving only while the Terminal half runs",
        zh=Provenance(
            publisher="终端各数据源背后的气象部门和机场；每个站点注明自己的来源（`observed_by`），"
            f"METAR 报文经美国航空气象中心取得；{GEONAMES_ZH}",
            licence="METAR 报文：公有领域。由他人推送的观测：以推送方声明为准。" + GEONAMES_LICENCE,
            coverage="终端中的城市，每城一站，显示在该城机场的位置",
            limits="仅最新观测，每站每分钟至多一次，按原样显示，未经本系统校验或订正；仅在终端部分运行时更新",
        ),
    ),
)
