"""Resets what a test run may inherit from its parent process, before anything else.

A background job of a shell ignores SIGINT, a service has no standard input, and a person has a time zone, a locale, a
umask and a shell full of settings. None of that must affect the tests, and child processes inherit all of it.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

OURS = ("PLANETWIRE_", "POLYWEATHER_", "PG")
KEPT = ("PLANETWIRE_LONG",)  # meant for the tests


def put_right() -> None:
    """Signals with their default action, three open descriptors, umask 022, UTC, UTF-8, none of our settings."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD, signal.SIGALRM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for descriptor in range(3):
        if not Path(f"/dev/fd/{descriptor}").exists():
            os.open(os.devnull, os.O_RDONLY if descriptor == 0 else os.O_WRONLY)  # the lowest free descriptor: this one
    os.umask(0o022)
    for name in list(os.environ):
        if name.startswith(OURS) and not name.startswith(KEPT):
            del os.environ[name]
    os.environ |= {"TZ": "UTC", "LC_ALL": "C.UTF-8"}
    os.environ.pop("LANGUAGE", None)
    time.tzset()
