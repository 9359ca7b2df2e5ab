"""Parses the query of `/api/events`, with the errors of the contract. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import parse_qs

from planetwire.errors import InputError
from planetwire.model import parse_cursor
from planetwire.web.http.legible import check_text

CITIES_MAX = 50
REPLAY_DEFAULT = 500
REPLAY_MAX = 2000
FIELDS_MAX = 100  # query parameters read at all
FOREIGN = "foreign"  # the epoch of an invalid Last-Event-ID: never equal to a real one

_INTEGER = re.compile(r"[+-]?\d{1,100}")


@dataclass(frozen=True, slots=True)
class SseQuery:
    """City keys in the order asked for, names we do not know, the cursor (None: live only), the replay limit.

    Without cities: from a page that does not know the parameter. Its other parameters are ignored then.
    """

    cities: tuple[str, ...]
    unknown: tuple[str, ...]
    since: tuple[str | None, int] | None
    limit: int

    @property
    def topics(self) -> tuple[str, ...]:
        """The cities' topics."""
        return tuple(f"city:{key}" for key in self.cities)


def parse_query(
    query_string: bytes, headers: Iterable[tuple[bytes, bytes]], resolve_city: Callable[[str], str | None]
) -> SseQuery:
    """Raises InputError: `bad_characters`, `no_cities`, `unknown_cities`, `too_many_cities`, `bad_cursor`,
    `bad_replay_limit`.
    """
    check_text("query", query_string)
    try:
        fields = parse_qs(query_string.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=FIELDS_MAX)
    except ValueError:
        raise InputError("too many query parameters") from None
    if "cities" not in fields:
        return SseQuery((), (), None, REPLAY_DEFAULT)
    cities, unknown = _cities(",".join(fields.get("cities", [])), resolve_city)
    last_id = next((value for name, value in headers if name == b"last-event-id"), b"").decode("latin-1").strip()
    since = _from_header(last_id) if last_id else _from_url(fields.get("since_revision", []))
    return SseQuery(cities, unknown, since, _limit(fields.get("replay_limit", [])))


def _cities(text: str, resolve_city: Callable[[str], str | None]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    known: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for name in filter(None, (part.strip() for part in text.split(","))):
        key = resolve_city(name)
        if key is None:
            unknown[name] = None
        else:
            known[key] = None
        if len(known) + len(unknown) > CITIES_MAX:
            raise InputError(f"at most {CITIES_MAX} cities on one stream", code="too_many_cities")
    if not known and unknown:
        raise InputError(f"no known city among: {', '.join(unknown)[:200]}", code="unknown_cities")
    if not known:
        raise InputError("cities= names no city", code="no_cities")
    return tuple(known), tuple(unknown)


def _from_header(text: str) -> tuple[str | None, int]:
    """Sent by the browser, not by our code: an invalid value is answered by a resync, not by an error."""
    try:
        return parse_cursor(text)
    except InputError:
        return FOREIGN, 0


def _from_url(values: list[str]) -> tuple[str | None, int] | None:
    return parse_cursor(values[-1]) if values and values[-1].strip() else None


def _limit(values: list[str]) -> int:
    if not values:
        return REPLAY_DEFAULT
    if not _INTEGER.fullmatch(values[-1].strip()):
        raise InputError("replay_limit is not an integer", code="bad_replay_limit")
    return min(max(int(values[-1]), 1), REPLAY_MAX)
