"""The two kinds of feed, of facts (run by collect jobs) and of observations, and how their requests are configured."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from planetwire.collect.formats.pieces import Piece
from planetwire.collect.http.client import FetchRules
from planetwire.collect.http.credential import BEARER, Access
from planetwire.collect.http.get import can_be_asked
from planetwire.errors import NotFound, SetupError
from planetwire.model import Json, Parsed, SourceDefaults
from planetwire.observing import ObservedSource
from planetwire.ports import Feed
from planetwire.remote import HEADER_CHARS_MAX, host_of, plain_header
from planetwire.settings import FeedSettings, Settings


class FactFeed(Feed, Protocol):
    """A feed of facts. `sweeps`: a complete body lists all facts, so missing ones are deleted."""

    sweeps: bool
    rules: FetchRules

    def pieces(self, body: bytes, at: datetime, rows: int) -> Iterator[Piece | None]:
        """The result of `parse`, `rows` facts at a time; see `in_pieces`.

        The first step reads the whole body: it is slow, and raises FeedError `bad_body` as `parse` does.
        """


class ObservationFeed(Protocol):
    """A feed of city observations: requested by stations and hours, delivered as ingest patches.

    `observed`: the series and interval of its readings. `default_url` empty: no provider is known, and the feed is off
    until the operator sets an address.
    """

    source: str
    default_url: str
    interval_s: float
    floor_s: float
    rules: FetchRules
    answer_max_rows: int
    observed: ObservedSource

    def url(self, base: str, stations: Sequence[str], hours: int) -> str:
        """The address of one request."""

    def chunks(self, hours: int) -> list[tuple[str, ...]]:
        """The stations, grouped by request."""

    def parse(self, body: bytes, at: datetime) -> Parsed:
        """Rows with at least `station`, `obs_time` (ISO Z), `temp_c`, `corrected`. Raises FeedError."""

    def patches(self, rows: Sequence[Json]) -> tuple[list[Json], Counter[str]]:
        """Ingest patches in time order, and counts of the rows without one."""


def source_defaults(feeds: Iterable[FactFeed], settings: Settings) -> list[SourceDefaults]:
    """The schedule of these feeds with the operator's settings applied, for the ledger."""
    return [_defaults(feed, settings.feed(feed.source)) for feed in feeds]


def _defaults(feed: FactFeed, own: FeedSettings) -> SourceDefaults:
    return SourceDefaults(
        source=feed.source,
        interval_s=feed.interval_s if own.interval_s is None else own.interval_s,
        floor_s=feed.floor_s if own.floor_s is None else own.floor_s,
        enabled=True if own.enabled is None else own.enabled,
    )


def address_of(feed: FactFeed | ObservationFeed, own: FeedSettings) -> str:
    """The address to request, its time slots not filled in yet; empty if there is none."""
    return own.url or feed.default_url


def access_to(feed: FactFeed | ObservationFeed, own: FeedSettings) -> Access:
    """The operator's token in the feed's form, and whether the address is the operator's."""
    token = None if own.token is None else own.token.get_secret_value()
    own_address = own.url is not None or feed.rules.private_ok
    return Access(token, feed.rules.credential or BEARER, own_address=own_address)


def rules_of(feed: FactFeed | ObservationFeed, own: FeedSettings) -> FetchRules:
    """The provider's rules with the operator's limits."""
    rules = feed.rules
    return replace(
        rules,
        deadline_s=rules.deadline_s if own.deadline_s is None else own.deadline_s,
        limit_bytes=rules.limit_bytes if own.max_body_bytes is None else own.max_body_bytes,
    )


def check_feed(feed: FactFeed | ObservationFeed, own: FeedSettings) -> None:
    """Raises SetupError for an invalid address, or a token that would be unused or sent to the wrong host."""
    prefix = f"PLANETWIRE_FEEDS__{feed.source.upper()}__"
    if own.url is not None and not can_be_asked(own.url):
        raise SetupError(f"{prefix}URL: an http:// or https:// address is needed, not {host_of(own.url)}")
    if own.enabled and not address_of(feed, own):
        raise SetupError(f"{prefix}ENABLED: no public service has this shape, so {prefix}URL has to say whom to ask")
    if own.token is None:
        return
    if plain_header(own.token.get_secret_value()) != own.token.get_secret_value():
        raise SetupError(f"{prefix}TOKEN: visible ASCII characters only, at most {HEADER_CHARS_MAX}")
    if feed.rules.credential is None and own.url is None:
        raise SetupError(f"{prefix}TOKEN: this provider takes none; with {prefix}URL it goes to that address as Bearer")


def unknown(source: str, known: Iterable[str]) -> NotFound:
    """The error for an unknown source; it names the most similar one, or all."""
    names = sorted(known)
    close = difflib.get_close_matches(source, names, n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}"
    return NotFound(f"no source {source[:40]!r}; {hint}", code="unknown_source")


def feed_named(source: str, feeds: Mapping[str, FactFeed]) -> FactFeed:
    """The feed of this source. Raises NotFound."""
    if source not in feeds:
        raise unknown(source, feeds)
    return feeds[source]
