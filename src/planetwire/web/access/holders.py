"""The holders of tokens: those of the settings, and named ones."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field

from planetwire.model import Role
from planetwire.ports import Holder, TokenBook
from planetwire.text.fingerprint import fingerprint

ADMIN = "admin token"


def same(one: str, other: str) -> bool:
    """Compares in constant time."""
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))


class NoTokens:
    """No token has a name."""

    def holders(self) -> Sequence[Holder]:
        """See the port."""
        return ()


@dataclass(slots=True)
class Holders:
    """Tokens of the settings come first: of two equal ones the greater role applies."""

    admin_token: str
    operator_token: str | None = None
    viewer_token: str | None = None
    named: TokenBook = field(default_factory=NoTokens)
    _fixed: tuple[Holder, ...] = ()

    def __post_init__(self) -> None:
        tokens = (
            (ADMIN, Role.ADMIN, self.admin_token),
            ("operator token", Role.OPERATOR, self.operator_token),
            ("viewer token", Role.VIEWER, self.viewer_token),
        )
        self._fixed = tuple(Holder(who, role, fingerprint(token)) for who, role, token in tokens if token)

    def of_token(self, token: str) -> Holder | None:
        """The holder of the token."""
        digest = fingerprint(token)
        found = [known for known in self._fixed if hmac.compare_digest(known.digest, digest)]
        found += [known for known in self.named.holders() if hmac.compare_digest(known.digest, digest)]
        return found[0] if token and found else None

    def of_name(self, who: str) -> Holder | None:
        """The present holder of that name."""
        return next((known for known in (*self._fixed, *self.named.holders()) if known.who == who), None)
