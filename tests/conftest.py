"""Lists the fixture modules; fixtures live in `fix_*.py`, by what they need."""

import inspect

import httpx
import pytest
from hypothesis import HealthCheck, settings

import inherited
import seed_cluster

inherited.put_right()

# No deadline: the duration of an example depends on the machine's load; speed is measured in bench/.
settings.register_profile("planetwire", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("planetwire")

# The default timeout of HTTP requests is a minute, not five seconds: the machine may be busy.
_usual = inspect.signature(httpx.get).parameters["timeout"].default
for _part in ("connect", "read", "write", "pool"):
    setattr(_usual, _part, 60.0)

pytest_plugins = [
    "fix_browser",
    "fix_earth",
    "fix_feeds",
    "fix_installation",
    "fix_missing",
    "fix_observations",
    "fix_pgbouncer",
    "fix_postgres",
    "fix_proxies",
    "fix_roles",
    "fix_valkey",
]


def pytest_configure(config: pytest.Config) -> None:
    """Prepare what all processes of the run share."""
    if seed_cluster.prepare():
        config.add_cleanup(seed_cluster.remove)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests last: their driver keeps an event loop in the main thread, where no other can run then.

    Tests that share an expensive fixture run in one process, so that it is created once.
    """
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)
    for item in items:
        if isinstance(item, pytest.Function) and (group := _shared_by(item)):
            item.add_marker(pytest.mark.xdist_group(group))


@pytest.hookimpl(trylast=True, specname="pytest_collection_modifyitems")
def pytest_groups_stay_together(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Fails if pytest-xdist does not put groups into the tests' ids: each process would create all fixtures again."""
    if getattr(config.option, "loadgroup", False):
        apart = [item.nodeid for item in items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid]
        assert not apart, f"pytest {pytest.__version__} and pytest-xdist: {apart[0]} is in no group"


def _shared_by(item: pytest.Function) -> str | None:
    if "demo_installation" in item.fixturenames:
        return "demo"
    found = (item._fixtureinfo.name2fixturedefs.get(name, ()) for name in item.fixturenames)
    return item.path.name if any(made[-1].scope == "module" for made in found if made) else None


@pytest.fixture(autouse=True)
def _logging_of_the_process_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command run in the test process would configure logging for good: loggers are cached at their first use."""
    monkeypatch.setattr("planetwire.supervise.commands.command.configure_logging", lambda *_, **__: None)
