"""Changes as signed HTTP requests: port `DataChangeBus`. Headers and signature are those of Standard Webhooks.

`webhook-signature: v1,<base64 of HMAC-SHA256 over "<id>.<timestamp>.<body>">`; a receiver with the secret can verify
that a request is ours, unmodified and recent.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

import httpx

from planetwire import __version__
from planetwire.errors import BusError, SetupError
from planetwire.model import BusMessage
from planetwire.ports import Clock
from planetwire.remote import describe_error, no_cookies, read_bounded, retry_after

DEADLINE_S = 10.0
REST_S = 2.0  # for the response body
CONNECTIONS_MAX = 8
ANSWER_BYTES_MAX = 16 * 1024
LATER = frozenset({408, 425, 429})  # the transient ones of 4xx; all others reject the message itself
SECRET_PREFIX = "whsec_"


def checked_address(text: str) -> str:
    """The address. Raises SetupError unless it is https, or http on loopback, without user and password."""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise SetupError(f"PLANETWIRE_CHANGES_BUS: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise SetupError("PLANETWIRE_CHANGES_BUS: none, or the https:// address of a webhook")
    if parts.username is not None or parts.password is not None:
        raise SetupError("PLANETWIRE_CHANGES_BUS: no user or password in the address; requests are signed instead")
    if parts.scheme == "http" and not _is_loopback(host):
        raise SetupError("PLANETWIRE_CHANGES_BUS: http is for loopback only; use https")
    return text


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """`v1,…`. A secret that begins with `whsec_` is base64, as in Standard Webhooks; any other is used as text."""
    key = secret.encode()
    if secret.startswith(SECRET_PREFIX):
        try:
            key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
        except binascii.Error as error:
            raise SetupError("PLANETWIRE_CHANGES_BUS_SECRET: what follows whsec_ is not base64") from error
    digest = hmac.new(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


class WebhookBus:
    """One POST per message. 2xx: accepted. 3xx is not followed. Connections are reused; nothing is retried here."""

    def __init__(
        self, url: str, secret: str, clock: Clock, *, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        signature(secret, "", 0, b"")  # an unusable secret fails the start
        self._url = checked_address(url)
        self._secret = secret
        self._clock = clock
        self._client = httpx.AsyncClient(
            timeout=DEADLINE_S,
            limits=httpx.Limits(max_connections=CONNECTIONS_MAX, max_keepalive_connections=CONNECTIONS_MAX),
            headers={
                "User-Agent": f"planetwire/{__version__}",
                "Content-Type": "application/json",
                "Accept-Encoding": "identity",
            },
            trust_env=not _is_loopback(urlsplit(url).hostname or ""),  # loopback never goes through a proxy
            cookies=no_cookies(),
            transport=transport,
        )

    async def send(self, message: BusMessage) -> None:
        """See the port."""
        timestamp = int(self._clock.now().timestamp())
        headers = {
            "webhook-id": message.id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature(self._secret, message.id, timestamp, message.body),
            "planetwire-key": message.key,
        }
        try:
            async with (
                asyncio.timeout(DEADLINE_S),
                self._client.stream("POST", self._url, content=message.body, headers=headers) as response,
            ):
                with suppress(httpx.HTTPError, TimeoutError):  # the status suffices
                    async with asyncio.timeout(REST_S):
                        await read_bounded(response, ANSWER_BYTES_MAX)  # so that the connection can be reused
        except TimeoutError as error:
            raise BusError(f"the webhook does not answer within {DEADLINE_S:g} s") from error
        except httpx.HTTPError as error:
            raise BusError(f"the webhook does not answer: {describe_error(error)}") from error
        if not response.is_success:
            raise BusError(
                f"the webhook answered {response.status_code}",
                refused=response.status_code < 500 and response.status_code not in LATER,
                retry_after_s=retry_after(response.headers, self._clock.now()),
            )

    async def aclose(self) -> None:
        """Close the connections; may be called twice."""
        await self._client.aclose()
