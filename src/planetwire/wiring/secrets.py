"""What an installation keeps to itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Secrets:
    """Tokens, the key that signs sessions, and the one that signs what goes to other services."""

    admin_token: str
    ingest_token: str
    session_key: bytes
    changes_bus: str = ""
