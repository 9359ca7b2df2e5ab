"""The layer of weather stations: one point a city, with its newest temperature."""

from __future__ import annotations

from planetwire.layers.values import joined, text
from planetwire.model import Derived, Fact, LayerAdapter, Provenance


def _derive(fact: Fact) -> Derived:
    """Found by city, airport and code; temperatures change too often to be what a thing is."""
    names = {key: text(fact.data.get(key)) for key in ("airport", "icao", "city", "name_zh")}
    return Derived(
        subtitle=joined(names["airport"], names["icao"], names["name_zh"]),
        properties={key: names[key] or None for key in ("city", "icao")},
    )


WEATHER_STATIONS = LayerAdapter(
    id="weather_stations",
    title="Weather stations",
    title_zh="气象站",
    group="weather",
    kind="point",
    feeds=(("collected_data", "city_observation"), ("resolved_locations", "city_observation")),
    owned_tables=("resolved_locations", "earth_interactables"),
    readings_of=("awc_metar",),
    derive=_derive,
    cache_patterns=("earth:layer:weather_stations:*", "dash:terminal:*"),
    stale_after_s=7200.0,  # an airport reports every half hour or hour
    provenance=Provenance(
        publisher="The weather services and airports behind the Terminal's sources; each station names its own "
        "(`observed_by`), METAR reports come through the U.S. Aviation Weather Center",
        licence="METAR reports: public domain. Readings that others push here: as their senders state",
        coverage="The cities of the Terminal, one station each, shown where the city's airport lies",
        limits="The newest reading alone, at most one a minute and station, as it was reported: neither checked nor "
        "corrected here, and moving only while the Terminal half runs",
        zh=Provenance(
            publisher="终端各数据源背后的气象部门和机场；每个站点注明自己的来源（`observed_by`），"
            "METAR 报文经美国航空气象中心取得",
            licence="METAR 报文：公有领域。由他人推送的观测：以推送方声明为准",
            coverage="终端中的城市，每城一站，显示在该城机场的位置",
            limits="仅最新观测，每站每分钟至多一次，按原样显示，未经本系统校验或订正；仅在终端部分运行时更新",
        ),
    ),
)
