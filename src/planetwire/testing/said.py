"""How a test of the contract fails: in words that say what a dataset has to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime

from planetwire.collect.feeds import FactFeed, ObservationFeed
from planetwire.errors import FeedError, PlanetwireError
from planetwire.model import Parsed

SHOWN_MAX = 5
RAISES = (
    "a feed raises FeedError for a body that is none of its own, counts a record that it cannot read as a reject, and"
    " raises nothing else"
)


def expect(holds: object, words: str) -> None:
    """Raises AssertionError with the words. Not `assert`, which `python -O` leaves out."""
    __tracebackhide__ = True  # pytest then shows the case, not this line
    if not holds:
        raise AssertionError(words)


def shown(names: Iterable[str]) -> str:
    """The first of them, in order."""
    listed = sorted(names)
    more = f" and {len(listed) - SHOWN_MAX} more" if len(listed) > SHOWN_MAX else ""
    return ", ".join(listed[:SHOWN_MAX]) + more


@contextmanager
def raising_feed_errors_only() -> Iterator[None]:
    """Whatever else the feed raises becomes an AssertionError."""
    try:
        yield
    except (PlanetwireError, AssertionError):
        raise
    except Exception as error:
        raise AssertionError(f"the feed raised {type(error).__name__}: {error}; {RAISES}") from error


def parsed(feed: FactFeed | ObservationFeed, name: str, body: bytes, at: datetime) -> Parsed:
    """What the feed makes of a good body of this name."""
    try:
        with raising_feed_errors_only():
            return feed.parse(body, at)
    except FeedError as error:
        raise AssertionError(f"{feed.source}/{name}: is refused as a whole: {error.message}") from error
