"""Access control: rate limits, sessions, login codes and named tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from planetwire.model import Role


class Limit(StrEnum):
    """The kinds of limit, counted separately."""

    SIGN_IN = "sign_in"  # wrong secrets, and all login codes
    INGEST = "ingest"  # pushes of observations
    STREAM = "stream"  # openings of live connections


class Limits(Protocol):
    """Limits per kind, key and minute, from the first use on. Several processes count together."""

    async def take(self, kind: Limit, key: str, cost: int = 1) -> float:
        """0.0: taken. Else nothing was taken, and it is the wait in seconds. A cost above the limit costs a minute.

        Never raises: without the store each process has its own count.
        """


@dataclass(frozen=True, slots=True)
class Session:
    """A stored sign-in. `who` names the token or code; `bound` identifies the token, and the admin's."""

    who: str
    bound: str
    expires_at: float


class Sessions(Protocol):
    """Sign-ins by the hash of their secret id: at most 1,000, the first to expire is evicted.

    Each method raises BackendError `sessions_unavailable` if the store is unavailable.
    """

    async def open(self, key: str, session: Session) -> None:
        """Store it: from now on every process finds it, also after a restart."""

    async def find(self, key: str) -> Session | None:
        """None: never opened, ended or expired."""

    async def end(self, key: str) -> None:
        """Delete it. Idempotent."""

    async def end_all(self) -> int:
        """Delete all; returns how many."""


class LoginCodes(Protocol):
    """One-time codes. Each is taken at most once, in any process, and only for ten minutes."""

    async def offer(self, code: str) -> None:
        """Make the code available."""

    async def take(self, code: str) -> bool:
        """Take the code; returns whether it was offered and not yet taken."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of a token. `digest`: the SHA-256 of the token, in hex; the token itself is not stored."""

    who: str
    role: Role
    digest: str


class TokenBook(Protocol):
    """Named tokens, always current: an added or removed one takes effect at the next call."""

    def holders(self) -> Sequence[Holder]:
        """In name order, at most 100."""
