"""The cost of a new revision of `satellites` (at least 12,000 objects): reading it, and each content coding of it.

CPU time of the web process's own threads and of PostgreSQL, from the kernel's scheduler, over consecutive revisions;
ratios are of the same revision. Bytes are those that a client receives.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

import httpx
from _running import line, running
from idle_cpu import family

from fix_installation import wait_for

ROUNDS = 9
PATH = "/api/v1/visualization/satellites"
BYTES_GOAL, CPU_GOAL = 1.0, 0.25


def cpu_ms(pids: list[int]) -> float:
    """CPU time of all threads so far."""
    spent = 0
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            spent += int((thread / "schedstat").read_text().split()[0])
    return spent / 1e6


def revision(client: httpx.Client) -> int:
    return int(client.get(f"{PATH}?limit=1").json()["revision"])


def first(client: httpx.Client, web: list[int], postgres: list[int], coding: str) -> dict[str, Any]:
    """The first request for a coding of a revision."""
    before = cpu_ms(web), cpu_ms(postgres)
    with client.stream("GET", PATH, headers={"Accept-Encoding": coding}) as answer:
        size = sum(len(chunk) for chunk in answer.iter_raw())
    assert answer.headers.get("content-encoding", "identity") == coding
    return {"bytes": size, "web": cpu_ms(web) - before[0], "postgres": cpu_ms(postgres) - before[1]}


def main() -> None:
    rounds = []
    with running("demo", "--only", "earth") as made, made.client() as client:
        wait_for(lambda: client.get(f"{PATH}?limit=1").json()["total"] >= 12_000, within_s=90, what="12,000 satellites")
        client.patch("/api/v1/sources/celestrak_gp", json={"enabled": False}).raise_for_status()
        web, postgres = [made.children()["web"]], family(made.children()["postgres"])
        for _ in range(ROUNDS):
            known = revision(client)
            body = {"task_type": "earth_refresh", "source": "celestrak_gp"}
            client.post("/api/v1/jobs", json=body).raise_for_status()
            wait_for(lambda known=known: revision(client) > known, within_s=30, what="the next revision")
            rounds.append({coding: first(client, web, postgres, coding) for coding in ("identity", "gzip", "zstd")})

    def median(coding: str, what: str) -> float:
        return statistics.median(each[coding][what] for each in rounds)

    sizes = ", ".join(f"{coding} {median(coding, 'bytes') / 1e6:.2f} MB" for coding in rounds[0])
    costs = ", ".join(f"{coding} {median(coding, 'web'):.0f} ms" for coding in ("gzip", "zstd"))
    read = f"reading it {median('identity', 'web'):.0f} ms and PostgreSQL {median('identity', 'postgres'):.0f} ms"
    smaller = statistics.median(each["zstd"]["bytes"] / each["gzip"]["bytes"] for each in rounds)
    cheaper = statistics.median(each["zstd"]["web"] / each["gzip"]["web"] for each in rounds)
    met = line("zstd's bytes over gzip's", smaller, BYTES_GOAL, sizes)
    met &= line("zstd's CPU over gzip's, once a revision", cheaper, CPU_GOAL, f"{costs}; {read}")
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
