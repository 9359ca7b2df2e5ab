"""Every dataset by itself: its folder, its examples, and what of it the rest of the program may know."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import pytest

from planetwire.collect.feeds import FactFeed, ObservationFeed
from planetwire.datasets.registry import datasets
from planetwire.model import Fact, Parsed

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
EXAMPLES = ("full", "minimal", "empty", "broken")
FEEDS = [(one, feed) for one in datasets() for feed in (*one.fact_feeds, *one.observation_feeds)]
each_feed = pytest.mark.parametrize(
    ("name", "feed"), [(one.layer.id, feed) for one, feed in FEEDS], ids=[feed.source for _, feed in FEEDS]
)


def examples(name: str, feed: FactFeed | ObservationFeed) -> dict[str, Traversable]:
    folder = files("planetwire.datasets") / name / "examples" / feed.source
    return {entry.name.partition(".")[0]: entry for entry in folder.iterdir()}


def parsed(name: str, feed: Any) -> dict[str, Parsed]:
    return {which: feed.parse(entry.read_bytes(), AT) for which, entry in examples(name, feed).items()}


@each_feed
def test_the_examples_of_a_feed_are_read_as_they_are_called(name: str, feed: FactFeed | ObservationFeed) -> None:
    """`broken` is `full` with something broken in it, which costs itself and nothing else."""
    read = parsed(name, feed)
    assert sorted(read) == sorted(EXAMPLES)
    assert len(read["full"].rows) > 1 and read["full"].complete and not read["full"].rejects
    assert len(read["minimal"].rows) == 1 and read["minimal"].complete and not read["minimal"].rejects
    assert not read["empty"].rows and read["empty"].complete and not read["empty"].rejects
    assert read["broken"].rejects and read["broken"].complete
    assert list(read["broken"].rows) == list(read["full"].rows)


def facts() -> Iterator[tuple[str, Any, Fact]]:
    for one in datasets():
        for feed in one.fact_feeds:
            for which in ("full", "minimal"):
                for fact in parsed(one.layer.id, feed)[which].rows:
                    yield one.layer.id, one.layer, fact


def test_what_a_dataset_derives_of_its_examples_fits_the_tables_that_it_declares() -> None:
    seen = 0
    for name, layer, fact in facts():
        made = layer.derive(fact)
        widths = {table.name: len(table.columns) for table in layer.tables}
        assert {table: len(row) for table, row in made.rows.items()}.items() <= widths.items(), name
        seen += len(made.rows)
    assert seen > 0


def test_ranks_are_the_order_of_the_page_and_no_two_are_alike() -> None:
    ranks = [one.rank for one in datasets()]
    assert ranks == sorted(set(ranks))
