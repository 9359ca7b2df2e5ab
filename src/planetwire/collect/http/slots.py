"""Times within an address: `{now:%Y%m%d}` is when it is asked, in UTC.

`{now-1h:%H}` is an hour earlier, `{now/10min:%H%M}` rounded down to ten minutes, `{now-3h/3h:%Y%m%d_%H}` both.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_SECONDS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}
_NOW = re.compile(r"\{now(?:([+-])(\d{1,4})(s|min|h|d))?(?:/(\d{1,3})(min|h|d))?:([^{}]{1,60})\}", re.ASCII)
_BRACED = re.compile(r"\{[^{}]*\}?|\}")
_CODE = re.compile(r"%(.?)")
CODES = frozenset("YmdHMSjy%")


def filled(address: str, at: datetime) -> str:
    """The address at that time. What is no slot stays as it is."""
    return _NOW.sub(lambda found: _time(found, at.astimezone(UTC)), address) if "{now" in address else address


def has_slots(address: str) -> bool:
    """Whether it is another one at another time."""
    return _NOW.search(address) is not None


def bad_slot(address: str) -> str | None:
    """The first thing in braces that is no slot; None: all are."""
    rest = _NOW.sub(lambda found: "" if _codes_are_known(found[6]) else found[0], address)
    found = _BRACED.search(rest)
    return found[0] if found else None


def _codes_are_known(form: str) -> bool:
    return all(code in CODES for code in _CODE.findall(form))


def _time(found: re.Match[str], at: datetime) -> str:
    sign, count, unit, every, every_unit, form = found.groups()
    if count is not None:
        shift = timedelta(seconds=int(count) * _SECONDS[unit])
        at = at - shift if sign == "-" else at + shift
    if every is not None:
        step_s = max(1, int(every) * _SECONDS[every_unit])
        at = datetime.fromtimestamp(at.timestamp() // step_s * step_s, UTC)
    return at.strftime(form) if _codes_are_known(form) else found[0]
