"""`python -m planetwire.demo`: runs the feed server, prints its address and ends with its parent."""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import json
import os
import signal
import sys
from collections.abc import Sequence
from socket import socket

from planetwire.demo.server import FeedServer
from planetwire.demo.simclock import SimClock, parse_start
from planetwire.demo.world import World
from planetwire.log import configure_logging

PR_SET_PDEATHSIG = 1


def _die_with_parent(parent: int) -> None:
    """Linux only; elsewhere the parent has to end it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            sys.exit(0)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="planetwire.demo", description="Simulated feeds in the real formats.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 takes a free one")
    parser.add_argument("--fd", type=int, default=None, help="inherited socket that listens; says nothing then")
    parser.add_argument("--seed", type=int, default=1, help="which world; the same seed tells the same story")
    parser.add_argument("--at", type=parse_start, default=None, metavar="ISO", help="start of simulated time; now")
    parser.add_argument("--rate", type=float, default=1.0, help="simulated seconds a real second; 0 stands still")
    parser.add_argument("--cadence", type=int, default=60, metavar="S", help="seconds between a station's reports")
    parser.add_argument("--strict", action="store_true", help="refuse a repeated download as the GP provider does")
    return parser.parse_args(argv)


async def _serve(server: FeedServer, *, announce: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await server.start()
    if announce:
        print(json.dumps({"url": server.url, "pid": os.getpid()}), flush=True)
    await stop.wait()
    await server.stop()


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until signalled; returns the exit status."""
    parent = os.getppid()
    arguments = _arguments(argv)
    _die_with_parent(parent)
    configure_logging("console", "warning", role="feeds")
    try:
        clock = SimClock(arguments.at, arguments.rate)
        world = World(arguments.seed, clock, cadence_s=arguments.cadence, strict=arguments.strict)
        sock = socket(fileno=arguments.fd) if arguments.fd is not None else None
        server = FeedServer(world, host=arguments.host, port=arguments.port, sock=sock)
        asyncio.run(_serve(server, announce=sock is None))
    except (OSError, ValueError) as error:
        print(f"planetwire.demo: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
