"""The law of the stream: snapshot(t0) + events(t0..t1) = snapshot(t1), whatever happens in between.

Short form in the suite, 1,000 runs by `make test-long`; `PLANETWIRE_LONG_LAW_RUNS` is their number, and
`PLANETWIRE_LONG_LAW_SEED` begins elsewhere or repeats a run.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest
import uvloop

from law_client import LawClient
from law_world import NAMES, LawWorld
from live_streams import SseClient
from long_form import amount

RUNS = amount("LAW_RUNS", 25, 1_000)
SEED = amount("LAW_SEED", 1, 1)
RUN_TIMEOUT_S = 60


async def one_run(folder: Path, seed: int) -> Counter[str]:
    """A world, two to four clients, and ten to thirty things that happen to them."""
    dice = random.Random(seed)
    world = LawWorld(folder, dice)
    await world.open()
    clients = [
        LawClient(
            world,
            random.Random(dice.random()),
            dice.sample(NAMES, dice.randint(1, 4)),
            loses=dice.choice([0, 0, 0.1]),
            slow=dice.random() < 0.4,
        )
        for _ in range(dice.randint(2, 4))
    ]
    lives = [asyncio.ensure_future(client.live()) for client in clients]
    try:
        async with asyncio.timeout(RUN_TIMEOUT_S):
            for _ in range(dice.randint(10, 30)):
                await world.step()
                _raise_failed(lives)
            await world.settle(clients)
            await asyncio.gather(*lives)
            await world.check(clients)
    except TimeoutError as error:
        error.add_note(world.where(clients))
        raise
    finally:
        for life in lives:
            life.cancel()
        await asyncio.gather(*lives, return_exceptions=True)
        await SseClient.close_all()
        await world.close(softly=False)
    return world.said


def _raise_failed(lives: list[asyncio.Future[None]]) -> None:
    for life in lives:
        if life.done():
            life.result()


@pytest.mark.timeout(600 + 4 * RUNS)
def test_snapshot_and_events_are_the_next_snapshot(capsys: pytest.CaptureFixture[str]) -> None:
    """S154, S194, S224, Q1–Q6; F1–F14, F16, F22, F23, F26, F33: no gap unseen, no resync without a reason.

    Patches in any order, late ones, corrections and repetitions; disconnects at any byte, frames that a proxy
    dropped, readers that stall; servers that end softly or hard, events that are pruned, a file that is replaced.
    """
    said: Counter[str] = Counter()
    memory = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
    for seed in range(SEED, SEED + RUNS):
        folder = Path(tempfile.mkdtemp(prefix="pw-law-", dir=memory))
        try:
            said += (uvloop.run if seed % 2 else asyncio.run)(one_run(folder, seed))
        except BaseException as error:
            error.add_note(f"repeat: PLANETWIRE_LONG_LAW_SEED={seed} PLANETWIRE_LONG_LAW_RUNS=1")
            raise
        finally:
            shutil.rmtree(folder)
    with capsys.disabled():
        if RUNS > 1_000:
            print(json.dumps({"runs": RUNS, **said}, indent=1))
    for kind in ("disconnects at a random byte", "resync replay_window_exceeded", "gaps found", "restart", "prune"):
        assert said[kind] or RUNS < 50, (kind, said)
