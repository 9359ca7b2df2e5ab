"""The layer of satellites: mean elements, turned into positions by the browser."""

from __future__ import annotations

from planetwire.datasets.dataset import Dataset
from planetwire.datasets.satellites.derive import ORBITS, derive
from planetwire.datasets.satellites.feed import CelestrakGp
from planetwire.model import LayerAdapter, Provenance
from planetwire.model.presentation import CardRow, Choice, FixedSize, Look, Scale, ScaleClass

# What is in lower case is worked out by the page's drawing of satellites, from the elements and the time.
LOOK = Look(
    color=Scale(
        by="category",
        value="regime",
        classes=(
            ScaleClass("LEO", "LEO", "低轨", "#5cc4dd", alpha=0.78, size_px=2.0),
            ScaleClass("MEO", "MEO", "中轨", "#f0b64a", equals="MEO"),
            ScaleClass("GEO", "GEO", "同步轨道", "#b79bff", equals="GEO"),
            ScaleClass("HEO", "HEO", "大椭圆", "#e58fd0", equals="HEO"),
        ),
    ),
    size=FixedSize(3.0),
)
REGIMES = (
    Choice("LEO", "LEO · low Earth orbit", "LEO · 近地轨道"),
    Choice("MEO", "MEO · medium Earth orbit", "MEO · 中地球轨道"),
    Choice("GEO", "GEO · geosynchronous", "GEO · 地球同步轨道"),
    Choice("HEO", "HEO · highly elliptical", "HEO · 大椭圆轨道"),
)
CARD = (
    CardRow("norad", "NORAD id", "NORAD 编号", ("NORAD_CAT_ID",)),
    CardRow("designator", "Designator", "国际编号", ("OBJECT_ID",)),
    CardRow(
        "altitude",
        "Altitude",
        "高度",
        ("altitude_km",),
        "number",
        decimals=0,
        unit="km",
        otherwise="no position",
        otherwise_zh="没有位置",
    ),
    CardRow("regime", "Regime", "轨道类型", ("regime",), "choice", choices=REGIMES),
    CardRow(
        "heights",
        "Perigee × apogee",
        "近地点 × 远地点",
        ("perigee_km", "apogee_km"),
        "number",
        join=" × ",
        decimals=0,
        unit="km",
    ),
    CardRow("inclination", "Inclination", "倾角", ("inclination_deg",), "number", unit="°"),
    CardRow("period", "Period", "周期", ("period_min",), "number", unit="min"),
    CardRow("epoch", "Elements", "轨道根数", ("EPOCH", "observed_at"), "time"),
)

LAYER = LayerAdapter(
    id="satellites",
    title="Satellites",
    title_zh="卫星",
    group="space",
    kind="satellite",
    feeds=(
        ("collected_data", CelestrakGp.source),
        (ORBITS.name, CelestrakGp.source),
        ("resolved_locations", CelestrakGp.source),
    ),
    owned_tables=(ORBITS.name, "resolved_locations", "earth_interactables"),
    tables=(ORBITS,),
    derive=derive,
    look=LOOK,
    card=CARD,
    aliases={"celestrak_tle": CelestrakGp.source},
    cache_patterns=("earth:layer:satellites:*",),
    stale_after_s=24 * 3600.0,  # the feed runs every few hours; elements older than a day drift by kilometres
    provenance=Provenance(
        publisher="CelesTrak (celestrak.org), from data of 18th Space Defense Squadron",
        licence="Free to use; credit CelesTrak",
        coverage="Catalogued objects of the group asked for, worldwide",
        limits="Positions are computed by SGP4 from elements of the last hours: good to about a kilometre near the "
        "epoch, worse with age; manoeuvres show only with the next elements",
        zh=Provenance(
            publisher="CelesTrak（celestrak.org），数据来自美国第 18 太空防御中队",
            licence="可自由使用，须注明 CelesTrak",
            coverage="所选目录组中的在编目标，全球",
            limits="位置由 SGP4 按最近数小时的轨道根数推算：历元附近误差约一公里，随时间增大；"
            "机动要到下一组根数才会体现",
        ),
    ),
)

DATASET = Dataset(LAYER, rank=10, fact_feeds=(CelestrakGp(),))
