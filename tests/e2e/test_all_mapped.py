"""A healthy installation has no change that nobody shows: every feed there is, collected, cleared and repaired."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from fix_installation import Installation, wait_for
from planetwire.datasets.registry import fact_feeds

STATIONS = "city_observation"
REPAIR = """
insert into resolved_locations (source, fact_key, method, lat, lon)
select distinct on (source) source, external_key, 'manual', 1, 2 from collected_data;
update collected_data set title = title || ' (sic)';
delete from resolved_locations"""


def asked(made: Installation, *command: str) -> Any:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PLANETWIRE_")}
    env["PLANETWIRE_DATA_DIR"] = str(made.data_dir)
    words = [sys.executable, "-m", "planetwire", *command, "--json"]
    return json.loads(subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=False).stdout)


def test_every_feed_collected_cleared_and_repaired_leaves_no_unmapped_pair(
    installation: Callable[..., Installation],
) -> None:
    """S73, S75, S82: what `outbox lag`, `outbox peek` and `doctor` would name."""
    made = installation("demo")
    for source in (*fact_feeds(), STATIONS):
        has_some = f"select exists (select from collected_data where source = '{source}')"
        wait_for(lambda query=has_some: made.value(query), within_s=120, what=f"facts of {source}")
    made.execute(REPAIR)
    with made.client() as client:
        for task_type in ("clear_data", "collect"):
            for source in fact_feeds():
                job = made.wait_job(client, made.submit(client, task_type, source), within_s=120)
                assert job["status"] == "completed", job
        made.wait_job(client, made.submit(client, "clear_data", STATIONS))
    made.execute("truncate collected_data")
    wait_for(lambda: asked(made, "outbox", "lag")["pending"] == 0, within_s=60, what="all changes consumed")
    lag = asked(made, "outbox", "lag")
    assert (lag["unmapped"], lag["quarantined"]) == ([], 0)
    assert asked(made, "outbox", "peek", "--unmapped") == []
    adapter = next(step for step in asked(made, "doctor") if step["step"] == "adapter")
    assert adapter["ok"] and adapter["findings"] == [], adapter
