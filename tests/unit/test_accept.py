"""Ingest over a store in memory: the order of results, what reaches the store, what is counted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from planetwire.collect.push.accept import Ingest
from planetwire.datasets.registry import observed_sources
from planetwire.errors import BackendError
from planetwire.model import Appended, ObservationPatch
from planetwire.runtime.clock import ManualClock

SOURCES = observed_sources()

CLOCK = ManualClock(datetime(2026, 5, 26, 10, tzinfo=UTC))


class RecordingStore:
    """Takes patches; every second one is a duplicate."""

    def __init__(self, *, failing: bool = False) -> None:
        self.calls: list[list[ObservationPatch]] = []
        self.failing = failing

    async def append(self, patches: Sequence[ObservationPatch]) -> Sequence[Appended]:
        if self.failing:
            raise BackendError("no disk")
        self.calls.append(list(patches))
        return [Appended(number, number % 2 == 0, None) for number, _ in enumerate(patches, start=1)]


def ingest_over(store: Any) -> Ingest:
    return Ingest(store, CLOCK, SOURCES)


def patch(city: str, temp: object = 1.0) -> dict[str, object]:
    return {"city": city, "changes": {"temp": temp}}


@pytest.mark.parametrize("copies", [1, 20])
async def test_results_keep_the_order_of_the_patches(copies: int) -> None:
    """S189: few patches are read on the loop, many in a thread; refused ones do not shift the others."""
    store = RecordingStore()
    raws = [patch("seoul"), patch("atlantis"), patch("taipei"), patch("london", "x")] * copies
    results = await ingest_over(store).accept(raws)
    assert [result.get("code") for result in results] == [None, "unknown_city", None, "invalid_temp"] * copies
    assert [result["revision"] for result in results if "revision" in result] == list(range(1, 2 * copies + 1))
    assert [[p.city for p in call] for call in store.calls] == [["seoul", "taipei"] * copies]


async def test_a_store_that_fails_is_not_hidden() -> None:
    """S190."""
    with pytest.raises(BackendError):
        await ingest_over(RecordingStore(failing=True)).accept([patch("seoul")])


@pytest.mark.parametrize("raw", [{"city": "seoul", "changes": {"temp": 1, "x": 2**70}}, {"a": object()}, {1: 2}])
async def test_what_is_no_json_is_refused(raw: object) -> None:
    """S189: also from a caller of this process."""
    (result,) = await ingest_over(RecordingStore()).accept([raw])
    assert result["code"] == "bad_patch"
