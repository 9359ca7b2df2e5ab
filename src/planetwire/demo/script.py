"""Overrides of the server's normal service: scripted answers and fixed bodies; and counts of requests."""

from __future__ import annotations

import base64
import binascii
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from planetwire.demo.providers.answer import TEXT, Answer
from planetwire.errors import InputError

STEPS_MAX = 1_000
DELAY_MAX_S = 600.0


@dataclass(frozen=True)
class Step:
    """One answer that differs from normal service. Unset fields keep the normal behaviour.

    `body` without a status is a 200; a status without a body has an empty one. `cut_at_byte` announces the full length
    and closes after so many body bytes on the wire. `gzip` forces or forbids compression whatever the client accepts.
    `validators` False leaves ETag and Last-Modified out and never answers 304. `times` repeats the step.
    """

    status: int | None = None
    body: bytes | None = None
    content_type: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    cut_at_byte: int | None = None
    gzip: bool | None = None
    chunked: bool = False
    validators: bool = True
    times: int = 1

    def replaces(self) -> bool:
        """Whether it replaces the normal answer."""
        return self.status is not None or self.body is not None

    def answer(self) -> Answer:
        """The replacement; only if `replaces`."""
        return Answer(
            self.body or b"", self.content_type or TEXT, 200 if self.status is None else self.status,
            headers=dict(self.headers),
        )  # fmt: skip


@dataclass
class Counts:
    """Requests of one path. `bytes`: body bytes on the wire; `by_status` counts answers."""

    requests: int = 0
    bytes: int = 0
    by_status: dict[int, int] = field(default_factory=dict)

    @property
    def ok(self) -> int:
        """Answers with 200."""
        return self.by_status.get(200, 0)

    @property
    def not_modified(self) -> int:
        """Answers with 304."""
        return self.by_status.get(304, 0)

    def as_json(self) -> dict[str, Any]:
        """For the control interface."""
        return {
            "requests": self.requests,
            "200": self.ok,
            "304": self.not_modified,
            "bytes": self.bytes,
            "by_status": {str(status): count for status, count in sorted(self.by_status.items())},
        }


class CountTable(Mapping[str, Counts]):
    """Counts by path; a path that was never requested has zeros."""

    def __init__(self) -> None:
        self._counts: dict[str, Counts] = {}

    def __getitem__(self, path: str) -> Counts:
        return self._counts.get(path, Counts())

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._counts))

    def __len__(self) -> int:
        return len(self._counts)

    def asked(self, path: str) -> None:
        """Count a request."""
        self._counts.setdefault(path, Counts()).requests += 1

    def answered(self, path: str, status: int, sent_bytes: int) -> None:
        """Count an answer about to be sent, whole or cut."""
        counts = self._counts.setdefault(path, Counts())
        counts.by_status[status] = counts.by_status.get(status, 0) + 1
        counts.bytes += sent_bytes

    def clear(self) -> None:
        """Reset all counts."""
        self._counts.clear()


class Scripts:
    """Steps and fixed bodies by path (without query). Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._steps: dict[str, deque[Step]] = {}
        self._bodies: dict[str, Answer] = {}

    def add(self, path: str, steps: Iterable[Step]) -> int:
        """Queue steps after those waiting; returns how many wait now. Raises InputError beyond the limit."""
        with self._lock:
            waiting = self._steps.setdefault(path, deque())
            flat = [step for step in steps for _ in range(step.times)]
            if len(waiting) + len(flat) > STEPS_MAX:
                raise InputError(f"at most {STEPS_MAX} steps can wait for a path", code="too_many_steps")
            waiting.extend(flat)
            return len(waiting)

    def take(self, path: str) -> Step:
        """The next step, or one that changes nothing."""
        with self._lock:
            waiting = self._steps.get(path)
            return waiting.popleft() if waiting else Step()

    def fix(self, path: str, answer: Answer | None) -> None:
        """Serve exactly this at the path from now on; None returns to the simulation."""
        with self._lock:
            if answer is None:
                self._bodies.pop(path, None)
            else:
                self._bodies[path] = answer

    def fixed(self, path: str) -> Answer | None:
        """The fixed answer of the path, if any."""
        with self._lock:
            return self._bodies.get(path)

    def clear(self) -> None:
        """Return to normal service everywhere."""
        with self._lock:
            self._steps.clear()
            self._bodies.clear()


def bytes_of(given: Mapping[str, Any]) -> bytes | None:
    """`body` (text) or `body_b64` of a control message. Raises InputError."""
    if "body_b64" in given:
        try:
            return base64.b64decode(str(given["body_b64"]), validate=True)
        except binascii.Error as error:
            raise InputError("body_b64 is not base64", code="bad_body") from error
    return str(given["body"]).encode() if given.get("body") is not None else None


def step_of(given: Any) -> Step:
    """A step from its JSON form. Raises InputError for unknown keys and impossible values."""
    if not isinstance(given, dict):
        raise InputError("a step is an object", code="bad_step")
    unknown = set(given) - {one.name for one in fields(Step)} - {"body_b64"}
    if unknown:
        raise InputError(f"a step has no {', '.join(sorted(unknown))}", code="bad_step")
    plain = {key: value for key, value in given.items() if key not in ("body", "body_b64")}
    return checked(Step(**plain, body=bytes_of(given)))


def checked(step: Step) -> Step:
    """The step itself. Raises InputError if it cannot be executed."""
    good = (
        (step.status is None or (isinstance(step.status, int) and 200 <= step.status <= 599))
        and isinstance(step.delay_s, int | float)
        and 0 <= step.delay_s <= DELAY_MAX_S
        and (step.cut_at_byte is None or (isinstance(step.cut_at_byte, int) and step.cut_at_byte >= 0))
        and isinstance(step.times, int)
        and 1 <= step.times <= STEPS_MAX
        and isinstance(step.headers, Mapping)
    )
    if not good:
        raise InputError(f"impossible step: {step}", code="bad_step")
    return step
