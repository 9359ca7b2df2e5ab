"""The page on scaling out names a series for every signal, and /metrics has each of them."""

from __future__ import annotations

import re
from pathlib import Path

import httpx

from fix_earth import Earth
from ledger_tools import until

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scale-out.md"
SERIES = re.compile(r"`(planetwire_\w+)[`{]")
ADD = "insert into collected_data (source, external_key, kind) values ('usgs_quakes', '1', 'k')"
OUTLET = "planetwire_outlet_"  # only where an outlet is switched on; tests/integration/test_outlet_wiring.py


def test_every_signal_has_a_series_of_its_own() -> None:
    """S93-S99."""
    rows = [line.split("|") for line in PAGE.read_text(encoding="utf-8").splitlines() if re.search(r"\| S9\d \|", line)]
    assert [row[2].strip() for row in rows] == [f"S{number}" for number in range(93, 100)]
    assert all(SERIES.search(row[3]) and row[4].strip() and row[5].strip() for row in rows)


async def test_metrics_show_every_series_that_the_page_names(earth: Earth) -> None:
    """S93-S99."""
    named = {name for name in SERIES.findall(PAGE.read_text(encoding="utf-8")) if not name.startswith(OUTLET)}
    assert len(named) >= 12
    async with httpx.AsyncClient(base_url=earth.url, trust_env=False) as http:
        await earth.pool.execute(
            "insert into collected_data (source, external_key, kind) values ('usgs_quakes','1','k')"
        )

        async def consumed() -> bool:
            assert (await http.get("/api/v1/visualization/earthquakes")).status_code == 200
            return "planetwire_relay_changes_total 1.0" in (await http.get("/metrics")).text

        await until(consumed)
        text = (await http.get("/metrics")).text
    shown = set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE))
    assert named <= shown
    assert re.search(r'^planetwire_snapshot_read_seconds\{layer="earthquakes"\} \d', text, re.MULTILINE)
    assert re.search(r'^planetwire_table_bytes\{table="collected_data"\} [1-9]', text, re.MULTILINE)
    assert "planetwire_relay_leads 1.0" in text
