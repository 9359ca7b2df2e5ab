"""The errors that cross a boundary, with their HTTP status and a stable `code`.

PlanetwireError
├── InputError            400   the caller sent something we cannot accept
│   ├── TooLarge          413
│   ├── Unauthorised      401   no or wrong credentials
│   ├── Forbidden         403   known caller, not allowed
│   ├── NotFound          404
│   ├── NotAcceptable     406   the caller accepts none of our formats
│   └── Unconditional     428   it replaces something without If-Match
├── StateError            409   the request is valid, the present state forbids it
│   ├── ConfirmNeeded     409   it deletes rows, and was not confirmed
│   ├── Outdated          412   somebody else changed it since the caller read it
│   └── LeaseLost         409   this worker no longer owns the job; its batch was rolled back
├── FeedError             –     an outside feed failed; the job ends failed or backs off, facts stay
├── SetupError            –     the installation cannot start as configured; the message says what to do
└── BackendError          503   our own store or bus failed; retry later
    ├── BusError          503   an outlet's receiver did not accept a message
    └── LogWriteFailed    500   a write to the event log failed; nothing was broadcast
"""

from __future__ import annotations

from collections.abc import Mapping


class PlanetwireError(Exception):
    """Base. `code` is stable and machine-readable; the message is for people."""

    status = 500
    code = "internal"
    extensions: Mapping[str, object] = {}  # extension members of the problem document (RFC 9457)

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code


class InputError(PlanetwireError):
    """The caller sent something we cannot accept."""

    status = 400
    code = "bad_request"


class TooLarge(InputError):
    """The body is larger than the route allows."""

    status = 413
    code = "too_large"


class Unauthorised(InputError):
    """No credentials, or wrong ones."""

    status = 401
    code = "unauthorised"


class Forbidden(InputError):
    """The caller is known and may not do this."""

    status = 403
    code = "forbidden"


class NotFound(InputError):
    """No such thing."""

    status = 404
    code = "not_found"


class NotAcceptable(InputError):
    """The caller accepts none of our formats."""

    status = 406
    code = "not_acceptable"


class Unconditional(InputError):
    """The caller replaces something without saying what he has seen of it (`If-Match`)."""

    status = 428
    code = "precondition_required"


class StateError(PlanetwireError):
    """The present state forbids the request."""

    status = 409
    code = "conflict"


class ConfirmNeeded(StateError):
    """It deletes rows and was not confirmed. `extensions`: how many rows, and the source."""

    code = "confirm_needed"

    def __init__(self, message: str, extensions: Mapping[str, object]) -> None:
        super().__init__(message)
        self.extensions = extensions


class Outdated(StateError):
    """Somebody else changed it since the caller looked."""

    status = 412
    code = "revision_moved"


class LeaseLost(StateError):
    """The worker no longer owns the job: its lease was taken, or the job is being cancelled."""

    code = "lease_lost"


class FeedError(PlanetwireError):
    """An outside feed gave no usable body. Nothing is deleted because of it.

    Codes: `auth_refused`, `bad_body`, `transient`, `truncated`, `not_found`, `redirect_refused`.
    `retry_after_s`: the provider's Retry-After, or None; `sample`: at most 200 characters of the faulty part.
    `answered` is False when the request never got an answer: then it does not count towards the provider's floor.
    """

    code = "transient"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        retry_after_s: float | None = None,
        sample: str | None = None,
        answered: bool = True,
    ) -> None:
        super().__init__(message, code=code)
        self.retry_after_s = retry_after_s
        self.sample = sample
        self.answered = answered

    @property
    def passing(self) -> bool:
        """Whether the failure is transient: the same request may succeed in a minute."""
        return not self.answered or self.code in ("transient", "truncated")


class SetupError(PlanetwireError):
    """The installation cannot start as configured."""

    code = "setup"


class BackendError(PlanetwireError):
    """Our own store or bus failed; the same request may succeed later."""

    status = 503
    code = "backend_unavailable"


class LogWriteFailed(BackendError):
    """A write to the event log failed: nothing of it was stored and nothing was broadcast."""

    status = 500
    code = "log_write_failed"


class BusError(BackendError):
    """An outlet's receiver did not confirm a message; it may or may not have it.

    `refused`: it rejects this message for good, not just now. `retry_after_s`: its Retry-After, or None.
    """

    code = "bus_failed"

    def __init__(self, message: str, *, refused: bool = False, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.refused = refused
        self.retry_after_s = retry_after_s
