"""Reports once which tests were skipped for a missing program, and permits no skips in CI."""

from __future__ import annotations

import os

import pytest

from missing import said_once


def _skipped(config: pytest.Config) -> list[str]:
    """The reasons of skipped tests, in the process that counts them: not in a parallel run's workers."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter is not None else []
    return [str(report.longrepr[-1]) if isinstance(report.longrepr, tuple) else "" for report in reports]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what is missing on this machine, and how to install it, in one line."""
    line = said_once(_skipped(config))
    if line is not None:
        terminalreporter.write_line(line, yellow=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI nothing is skipped: `.ci/run` installs what a new machine needs."""
    if os.environ.get("CI") and _skipped(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
