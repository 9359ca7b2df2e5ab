"""The findings of the diagnostic and their remedies. Each code is a heading of docs/operations.md.

A fault stops or delays changes on their way to the map; a warning may do so later. A finding caused by another
names it in `because`, so that the verdict is the cause and not its first effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planetwire.model import Json

PAGE = "docs/operations.md"
# The path of a change, in the order in which a person on call would check (S88).
PATH = ("facts", "triggers", "outbox", "adapter", "listener", "websocket", "visualization")


@dataclass(frozen=True, slots=True)
class Kind:
    """The remedy, and whether it is a fault or a warning."""

    advice: str
    fault: bool = True


KINDS = {
    "installation_down": Kind("start it with `planetwire up`"),
    "database_down": Kind(
        "your own server: is it up, and PLANETWIRE_DATABASE_URL right? Embedded: see postgres.log in the data dir;"
        " `planetwire up` restarts it by itself"
    ),
    "schema_behind": Kind("`planetwire migrate`, or restart `planetwire up`, which does it"),
    "step_unanswered": Kind("the database was too slow to say: see “server” below, and what runs in pg_stat_activity"),
    "feed_failed": Kind(
        "look at the failed run: `planetwire jobs ls --status failed`; facts stay until a whole body replaces them"
    ),
    "observations_failed": Kind(
        "see `planetwire sources` and the log of the feed process; the feed tries again by itself, later each time"
    ),
    "declaration_skipped": Kind(
        "the source is not asked and its layer not shown: correct it with `planetwire sources edit`, or remove it",
        fault=False,
    ),
    "source_file_refused": Kind(
        "what ran before goes on; correct the file in sources/ of the data dir, it is read again when it changes",
        fault=False,
    ),
    "plugin_left_out": Kind(
        "its layer is not shown; the rest runs: correct, upgrade or uninstall the package, then restart",
        fault=False,
    ),
    "search_late": Kind(
        "the map has them, search not yet: start `planetwire up` (or `work`), look at the worker's log", fault=False
    ),
    "canary_refused": Kind("no fact can be written: see what locks `collected_data`, whether the server is read-only"),
    "trigger_missing": Kind("make it again: `planetwire migrate --repair`"),
    "trigger_disabled": Kind("somebody switched it off: `planetwire migrate --repair` switches it on again"),
    "trigger_wrong": Kind("it is not ours: `planetwire migrate --repair` replaces it"),
    "partitions_unfollowed": Kind(
        "after making a partition run `planetwire migrate --repair`; a superuser can make that needless with"
        " `select planet_install_hooks()`",
        fault=False,
    ),
    "canary_unwritten": Kind("a write caused no change row: repair the triggers, `planetwire migrate --repair`"),
    "outbox_late": Kind("nobody consumes: look at the step “listener”, at the log of the relay"),
    "outbox_quarantined": Kind(
        "`planetwire outbox peek --quarantined` shows why; `planetwire outbox retry` when the cause is gone"
    ),
    "canary_unpublished": Kind(
        "a relay leads and does not publish: look at its log, restart the process that holds the term"
    ),
    "pair_unmapped": Kind("add the source to a layer's `feeds`, or ignore the pair if that is meant"),
    "canary_unmapped": Kind("the relay that leads is of another version: restart it"),
    "relay_absent": Kind("start `planetwire up` (or `web`, or `relay`)"),
    "listener_silent": Kind(
        "the network to it swallows everything: it reconnects by itself within 20 s; until then polling finds"
        " changes, a second later"
    ),
    "listener_absent": Kind("nobody LISTENs: changes are found by polling, a second later; look at the relay's log"),
    "listener_polls": Kind("for wake-ups name the server's own address in PLANETWIRE_DATABASE_DIRECT_URL", fault=False),
    "websocket_down": Kind("the web process does not accept WebSockets: look at its log, and at a proxy in between"),
    "canary_unheard": Kind("events are logged and not sent: restart the web process, look at its log"),
    "snapshots_down": Kind("is a web process up (`planetwire up` or `web`)? If it is, look at its log"),
    "terminal_down": Kind("is a web process up (`planetwire up` or `web`)? If it is, look at its log"),
    "store_damaged": Kind(
        "stop, put the file aside, start: a new one is made and the feeds fill it;"
        " `sqlite3 old.db .recover` shows what can be saved"
    ),
    "store_unreadable": Kind("see who owns the file and the folder, and whether the disk answers"),
    "disk_full": Kind("make room: nothing can be written; then look at `/readyz`, nothing has to be restarted"),
    "disk_low": Kind("make room, or set PLANETWIRE_DISK_BUDGET_GB so that less is kept in time", fault=False),
    "budget_near": Kind(
        "raise PLANETWIRE_DISK_BUDGET_GB or make do with the shorter times; facts are never touched", fault=False
    ),
    "budget_over": Kind(
        "all that may be shortened is: raise PLANETWIRE_DISK_BUDGET_GB, or clear a source that nobody needs",
        fault=False,
    ),
    "plain_http": Kind(
        "unset PLANETWIRE_PLAIN_HTTP as soon as this version and its uvicorn go together; until then a reverse proxy"
        " with bounds of its own should stand in front",
        fault=False,
    ),
    "not_ready": Kind("look at what it names, and at the log of the web process"),
    "lease_expired": Kind("no worker takes it back: start `planetwire up` (or `work`), look at the worker's log"),
    "jobs_unseen": Kind("no claim sees them; a running worker mends it within minutes: please report it"),
    "jobs_waiting": Kind("more work comes than is done: more `planetwire work`, or a higher concurrency", fault=False),
    "jobs_dead": Kind("`planetwire jobs dead` lists them; `planetwire jobs retry` tries again", fault=False),
    "long_transaction": Kind(
        "what it wrote is not on the map yet, and it keeps old rows alive: end it, `select pg_terminate_backend(pid)`",
        fault=False,
    ),
    "xmin_held": Kind("old rows cannot be cleaned away and everything gets slower: end what holds it", fault=False),
    "index_invalid": Kind("`reindex index concurrently` it, or drop it", fault=False),
    "outlet_paused": Kind(
        "see what the receiver says and mend it; the event is tried every five minutes and never skipped", fault=False
    ),
    "outlet_late": Kind("look at the receiver of PLANETWIRE_CHANGES_BUS; the map is not concerned", fault=False),
    "notify_queue": Kind(
        "a session listens and does not read: end it, `select pg_terminate_backend(pid)`", fault=False
    ),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem found."""

    code: str
    detail: str
    because: str = ""

    def record(self) -> Json:
        """As JSON."""
        kind = KINDS[self.code]
        return {
            "code": self.code,
            "fault": kind.fault,
            "detail": self.detail,
            "because": self.because or None,
            "advice": kind.advice,
            "see": f"{PAGE}#{self.code}",
        }


def step(name: str, title: str, detail: str, findings: Sequence[Finding] = (), *, timings: Json | None = None) -> Json:
    """One step of the report. `number` is its place on the path; `timings` in milliseconds, of the canary."""
    records = [finding.record() for finding in findings]
    found = "; ".join(finding.detail for finding in findings)
    return {
        "step": name,
        "number": PATH.index(name) + 1 if name in PATH else None,
        "title": title,
        "ok": not any(record["fault"] for record in records),
        "detail": f"{found} ({detail})" if found and detail else found or detail,
        "advice": "; ".join(dict.fromkeys(record["advice"] for record in records)),
        "findings": records,
        "timings": timings or {},
    }


def first_broken(steps: Sequence[Json]) -> Json | None:
    """The first step with a fault that no other fault explains; else the first that is not ok; None when all are."""
    broken = [found for found in steps if not found["ok"]]
    codes = {record["code"] for found in broken for record in found["findings"] if record["fault"]}
    for found in broken:
        if any(record["fault"] and record["because"] not in codes for record in found["findings"]):
            return found
    return broken[0] if broken else None
