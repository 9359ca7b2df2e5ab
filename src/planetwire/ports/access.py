"""Who is let in, and how often: limits, sessions, login codes and the tokens that have names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from planetwire.model import Role


class Limit(StrEnum):
    """What is counted, each for itself."""

    SIGN_IN = "sign_in"  # wrong secrets, and login codes whether right or wrong
    INGEST = "ingest"  # pushes of observations
    STREAM = "stream"  # openings of live connections


class Limits(Protocol):
    """So much of a kind per key and minute; the minute begins with the first. Several processes count together."""

    async def take(self, kind: Limit, key: str, cost: int = 1) -> float:
        """0.0: taken. Else nothing was, and these seconds pass until it can be. More than fits a minute costs a minute.

        Never raises: a store that is away leaves each process with its own count.
        """


@dataclass(frozen=True, slots=True)
class Session:
    """What is kept of a sign-in. `who` names the token or code; `bound` says which token it was, and which admin's."""

    who: str
    bound: str
    expires_at: float


class Sessions(Protocol):
    """Sign-ins by the hash of their secret id: at most 1,000, the one that ends first makes room.

    Each method raises BackendError `sessions_unavailable` when the store cannot tell.
    """

    async def open(self, key: str, session: Session) -> None:
        """From now on it is found, by every process, also after a restart."""

    async def find(self, key: str) -> Session | None:
        """None: never opened, ended or expired."""

    async def end(self, key: str) -> None:
        """It is not found any more. Idempotent."""

    async def end_all(self) -> int:
        """How many were ended."""


class LoginCodes(Protocol):
    """One-time codes. Each is taken at most once, in whatever process, and only for ten minutes."""

    async def offer(self, code: str) -> None:
        """From now on it can be taken."""

    async def take(self, code: str) -> bool:
        """Whether it was offered and not taken yet; it is taken then."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a token. `digest` is the SHA-256 of the token, in hex; the token itself is not kept."""

    who: str
    role: Role
    digest: str


class TokenBook(Protocol):
    """Tokens with names, as they are now: what was added or removed is seen at the next look."""

    def holders(self) -> Sequence[Holder]:
        """In name order, at most 100."""
