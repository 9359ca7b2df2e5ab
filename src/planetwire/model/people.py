"""Who acts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What somebody may do, each the lesser ones' too: look; run and stop jobs, set sources; everything."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks, as the audit log names them: a token or a person, what they may do, and from which address."""

    who: str
    role: Role
    address: str
