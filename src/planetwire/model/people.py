"""Actors and their roles."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """Rights, each including the ones before: read; run and stop jobs, set sources; everything."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who makes a request, as in the audit log: the name of a token or a person, the role, and the address."""

    who: str
    role: Role
    address: str
