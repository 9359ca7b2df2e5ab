"""How fast a source declared as data is parsed, as a share of the hand-written feed: the same quakes, read both ways.

The declaration is the golden example, with the fields that the hand-written feed keeps too. Both make the same number
of facts of one body of 12,000 quakes; they take turns, so that a machine that is busy for a while is busy for both.
"""

from __future__ import annotations

import gc
import json
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path

from _running import SMALL, verdict

from planetwire.collect.feeds import FactFeed
from planetwire.datasets.registry import fact_feeds
from planetwire.declared.read import read

QUAKES = 1_200 if SMALL else 12_000
RUNS = 9
GOAL = 0.5
AT = datetime(2026, 12, 1, 12, tzinfo=UTC)
ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "src" / "planetwire" / "demo" / "samples" / "usgs_summary.geojson"


def body() -> bytes:
    """The sample's quakes over and over, each with an id, a time and a place of its own."""
    sample = json.loads(SAMPLE.read_bytes())
    features = []
    for n in range(QUAKES):
        one = json.loads(json.dumps(sample["features"][n % len(sample["features"])]))
        one["id"] = f"bn{n:08}"
        one["properties"] |= {"ids": f",bn{n:08},", "time": one["properties"]["time"] + n, "mag": 1.0 + n % 50 / 10}
        one["geometry"] = {"type": "Point", "coordinates": [n % 360 - 180.0, n % 180 - 90.0, n % 100 + 0.5]}
        features.append(one)
    return json.dumps(sample | {"features": features, "metadata": {"count": QUAKES}}).encode()


def seconds(feed: FactFeed, raw: bytes) -> float:
    """Of one parse; every record gave a fact."""
    gc.collect()
    began = time.perf_counter()
    parsed = feed.parse(raw, AT)
    took = time.perf_counter() - began
    assert len(parsed.rows) == QUAKES and not parsed.rejects and parsed.complete, parsed.rejects[:1]
    return took


def main() -> None:
    by_hand = fact_feeds()["usgs_quakes"]
    as_data = read((ROOT / "spec" / "sources" / "full.v1.yaml").read_text(encoding="utf-8")).dataset.fact_feeds[0]
    raw = body()
    seconds(by_hand, raw), seconds(as_data, raw)
    pairs = [(seconds(by_hand, raw), seconds(as_data, raw)) for _ in range(RUNS)]
    hand_ms, data_ms = (statistics.median(took) * 1000 for took in zip(*pairs, strict=True))
    ratios = [hand / data for hand, data in pairs]
    detail = (
        f"{QUAKES} quakes: {data_ms:.0f} ms declared, {hand_ms:.0f} ms by hand; "
        f"pairs {min(ratios):.2f} to {max(ratios):.2f}"
    )
    verdict(
        "speed of a declared source, times the hand-written", statistics.median(ratios), GOAL, detail, at_most=False
    )


if __name__ == "__main__":
    main()
