"""What the stages may know of queues, databases and layers: ports, and nothing behind them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from planetwire import ports
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.layers.registry import LAYERS, EarthLayerAdapterRegistry
from planetwire.outbox.changelog_postgres import PostgresChangeLog
from planetwire.relay.bus_webhook import WebhookBus
from planetwire.stream.log_postgres import PostgresEventLog
from planetwire.stream.log_sqlite import SqliteEventLog

PACKAGE = Path(ports.__file__).parent.parent
STAGES = ("jobs", "collect", "facts", "layers", "outbox", "relay", "stream", "web")
DRIVERS = {"asyncpg", "psycopg", "sqlite3", "redis", "kafka", "aiokafka", "nats"}


def modules(*stages: str) -> Iterator[tuple[str, ast.Module]]:
    """(path inside the package, syntax) of each module of the stages."""
    for stage in stages:
        for file in sorted((PACKAGE / stage).rglob("*.py")):
            yield file.relative_to(PACKAGE).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def constants(tree: ast.Module) -> set[str]:
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def members(port: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(port, inspect.isfunction) if not name.startswith("_")}


def test_no_stage_knows_another_or_a_driver_outside_its_backends() -> None:
    """S89: a stage meets the others in ports and model; a technology is one file behind a port."""
    seen = 0
    for path, tree in modules(*STAGES):
        seen += 1
        stage, names = path.partition("/")[0], imported(tree)
        others = {f"planetwire.{other}" for other in STAGES if other != stage}
        assert not {name for name in names if ".".join(name.split(".")[:2]) in others}, path
        if not path.endswith(("_postgres.py", "_sqlite.py", "_redis.py")):
            assert not {name.partition(".")[0] for name in names} & DRIVERS, path
    assert seen > 80


@pytest.mark.parametrize(
    ("port", "backends", "needed"),
    [
        (ports.JobQueue, [PostgresJobQueue], {"submit", "claim", "cancel", "finish"}),
        (ports.ChangeLog, [PostgresChangeLog], {"pending", "publish"}),
        (ports.DataChangeBus, [WebhookBus], {"send"}),
        (ports.LayerRegistry, [EarthLayerAdapterRegistry], {"layers_of", "adapter"}),
        (ports.EventLog, [SqliteEventLog, PostgresEventLog], {"head", "check", "page"}),
    ],
    ids=["JobQueue", "ChangeLog", "DataChangeBus", "EarthLayerAdapterRegistry", "EventLog"],
)
def test_each_boundary_is_a_port_that_its_backends_fill(port: type, backends: list[type], needed: set[str]) -> None:
    """S90, S91, S92, S106: what a queue of another make would have to offer is written in one place, and is little."""
    assert needed <= members(port)
    for backend in backends:
        for name in members(port):
            wanted, given = inspect.signature(getattr(port, name)), inspect.signature(getattr(backend, name))
            assert list(given.parameters)[: len(wanted.parameters)] == list(wanted.parameters), (backend, name)


def test_no_layer_is_named_outside_the_registry() -> None:
    """S72, S74: who writes rows, runs jobs or relays changes asks the registry and has no branch for a layer."""
    named = {adapter.id for adapter in LAYERS}
    for path, tree in modules("jobs", "collect", "facts", "outbox", "relay", "stream", "web"):
        assert not named & constants(tree), path


def test_only_the_relay_makes_events_of_layers() -> None:
    """S33, S72: no button handler, collector or job broadcasts by itself."""
    makers = [path for path, tree in modules(*STAGES) if "earth.layer.changed" in constants(tree)]
    assert makers == ["relay/payload.py"]
