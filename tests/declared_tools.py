"""Declarations of sources for tests: quakes of the feed server under a name of their own."""

from __future__ import annotations

from planetwire.demo.server import demo_environment

ADDRESS = "https://example.org/quakes.geojson"


def quakes_address(feeds: str) -> str:
    """Where the feed server, reached at `feeds`, has them."""
    return demo_environment(feeds)["PLANETWIRE_FEEDS__USGS_QUAKES__URL"]


def quakes(
    source: str = "my_quakes",
    url: str = ADDRESS,
    *,
    title: str = "My quakes",
    key: str = "id",
    layer: str | None = None,
    interval: str = "1h",
    floor: str = "1s",
) -> str:
    """A declaration with a layer of its own, or in another's."""
    own = f"""
  title: {title}
  title_zh: 我的地震
  group: hazards
  kind: point"""
    return f"""source: {source}
kind: http_geojson
url: {url}
interval: {interval}
floor: {floor}
fields:
  id: $.id
  mag: {{path: $.properties.mag, type: number}}
  place: $.properties.place
  at: {{path: $.properties.time, format: unix_ms}}
key: [{key}]
title: "{{place}}"
time: at
missing: gone
layer:{own if layer is None else f" {layer}"}
search:
  subtitle: [place]
provenance:
  publisher: Somebody
  licence: Public domain
  coverage: Worldwide
  limits: None
  zh:
    publisher: 某人
    licence: 公有领域
    coverage: 全球
    limits: 无
"""
