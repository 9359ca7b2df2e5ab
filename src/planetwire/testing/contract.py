"""The contract as classes of pytest tests; see docs/plugins.md."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from importlib.resources.abc import Traversable
from typing import ClassVar

import pytest

from planetwire.collect.feeds import FactFeed, ObservationFeed
from planetwire.datasets.dataset import Dataset
from planetwire.datasets.plugins import faults
from planetwire.model import Fact
from planetwire.testing import examples as checks
from planetwire.testing.databases import Databases, shared
from planetwire.testing.feeds import run_case

FACT_FEED, ANY_FEED = "fact_feed", "feed"


class ExamplesContract:
    """What is asked without a server. Inherit from it in a class `Test…` with `dataset` and `examples`.

    `examples`: the folder with a folder of bodies for each source. `plugin` False: the dataset is a shipped one.
    `computed`: values that the page works out for a kind of its own.
    """

    dataset: ClassVar[Dataset]
    examples: ClassVar[Traversable]
    plugin: ClassVar[bool] = True
    computed: ClassVar[Collection[str]] = ()

    @classmethod
    def pytest_generate_tests(cls, metafunc: pytest.Metafunc) -> None:
        """A test of a feed runs over each of the dataset."""
        feeds = {feed.source: feed for feed in cls.dataset.fact_feeds}
        observed = {feed.source: feed for feed in cls.dataset.observation_feeds}
        for name, of_it in ((FACT_FEED, feeds), (ANY_FEED, feeds | observed)):
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, list(of_it.values()), ids=list(of_it))

    def bodies(self, feed: FactFeed | ObservationFeed) -> Mapping[str, bytes]:
        """The examples of a feed by name."""
        return checks.bodies_in(self.examples / feed.source)

    @cached_property
    def facts(self) -> list[Fact]:
        """All that the good examples give."""
        found = [
            row
            for feed in self.dataset.fact_feeds
            for name in ("full", "minimal")
            for row in feed.parse(self.bodies(feed)[name], checks.AT).rows
        ]
        return [row for row in found if isinstance(row, Fact)]

    def test_it_is_what_a_plugin_may_be(self) -> None:
        """One layer of a built-in kind, facts in collected_data, names of its own."""
        if self.plugin:
            why = "; ".join(faults(self.dataset.layer.id, self.dataset))
            assert not why, f"Planetwire leaves it out: {why}"

    def test_the_examples_of_a_feed_are_read_as_they_are_called(self, feed: FactFeed | ObservationFeed) -> None:
        """`full`, `minimal` (one row), `empty`, and `broken`, which is `full` with something broken in it."""
        checks.check_examples(feed, self.bodies(feed))

    def test_pieces_are_the_facts_of_parse_some_at_a_time(self, fact_feed: FactFeed) -> None:
        """So that the database writes one piece while the next is read."""
        checks.check_pieces(fact_feed, self.bodies(fact_feed))

    def test_every_fact_has_a_key_of_its_own_and_a_place_on_earth_or_none(self, fact_feed: FactFeed) -> None:
        """A key names the same thing in every body."""
        checks.check_keys(fact_feed, self.bodies(fact_feed))

    def test_title_and_provenance_are_complete_in_both_languages(self) -> None:
        """Publisher, licence, coverage and limits are shown with every layer."""
        checks.check_texts(self.dataset.layer)

    def test_the_page_can_draw_it_and_has_a_card(self) -> None:
        """Within the bounds of look and card."""
        checks.check_look_and_card(self.dataset.layer)

    def test_derive_raises_for_no_fact(self) -> None:
        """Facts may be typed in by hand."""
        if self.dataset.fact_feeds:
            checks.check_derive(self.dataset.layer, self.facts)

    def test_what_card_and_colours_name_is_in_the_facts(self) -> None:
        """A row that no fact has is never shown."""
        if self.dataset.fact_feeds:
            checks.check_card_values(self.dataset.layer, self.facts, self.computed)


class DatasetContract(ExamplesContract):
    """All of it: the examples, and what each feed makes of what providers do, on a real server and PostgreSQL."""

    @pytest.fixture(scope="session")
    def databases(self) -> Databases:
        """PostgreSQL, started once a process and shared by all datasets that are tested in it."""
        return shared()

    def case(self, name: str, feed: FactFeed, databases: Databases) -> None:
        """One of `cases.CASES`."""
        run_case(name, feed, self.bodies(feed), layer=self.dataset.layer, databases=databases)

    def test_a_fresh_body_becomes_rows(self, fact_feed: FactFeed, databases: Databases) -> None:
        """Each fact one row, one request."""
        self.case("fresh", fact_feed, databases)

    def test_304_writes_nothing(self, fact_feed: FactFeed, databases: Databases) -> None:
        """And the request was conditional."""
        self.case("not_modified", fact_feed, databases)

    def test_a_changed_body_brings_what_is_new_and_takes_what_is_gone(
        self, fact_feed: FactFeed, databases: Databases
    ) -> None:
        """The latter only if the feed sweeps."""
        self.case("changed", fact_feed, databases)

    def test_half_a_body_deletes_nothing_and_is_not_remembered(self, fact_feed: FactFeed, databases: Databases) -> None:
        """Cut on the way, or sent as a whole."""
        self.case("truncated", fact_feed, databases)

    def test_html_with_status_200_is_a_failure_that_changes_nothing(
        self, fact_feed: FactFeed, databases: Databases
    ) -> None:
        """And so is a sentence."""
        self.case("html", fact_feed, databases)

    def test_after_429_the_provider_is_left_alone_for_as_long_as_it_says(
        self, fact_feed: FactFeed, databases: Databases
    ) -> None:
        """Facts stay."""
        self.case("too_many", fact_feed, databases)

    def test_403_changes_nothing(self, fact_feed: FactFeed, databases: Databases) -> None:
        """A failure, unless the feed's rules know better."""
        self.case("refused", fact_feed, databases)

    def test_a_job_cancelled_after_its_second_batch_keeps_two(self, fact_feed: FactFeed, databases: Databases) -> None:
        """The next run brings the rest."""
        self.case("cancelled", fact_feed, databases)

    def test_the_same_body_again_writes_no_row(self, fact_feed: FactFeed, databases: Databases) -> None:
        """Known by its sum, or read anew."""
        self.case("duplicate", fact_feed, databases)

    def test_a_body_of_less_than_half_deletes_nothing(self, fact_feed: FactFeed, databases: Databases) -> None:
        """Two of three things do not vanish at once; a broken provider is likelier."""
        self.case("shrunk", fact_feed, databases)
