"""A fact that the database refuses is skipped and logged; the others of its batch are written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import asyncpg

from planetwire.database.postgres import Connection
from planetwire.log import get_logger
from planetwire.model import Fact

log = get_logger()
T = TypeVar("T")

# Errors that a value can cause; those of the server are not caught.
DATA_FAULTS = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.ProgramLimitExceededError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


async def skipping_refused(
    connection: Connection,
    source: str,
    facts: Sequence[Fact],
    put: Callable[[Sequence[Fact]], Awaitable[T]],
    *,
    doing: str,
) -> list[T]:
    """The result of `put` for all facts; if one of them is faulty, of each half, down to the faulty one, skipped."""
    try:
        async with connection.transaction():
            return [await put(facts)]
    except DATA_FAULTS as error:
        if len(facts) == 1:
            key = facts[0].external_key[:100]
            log.warning("facts.fact.refused", source=source, key=key, doing=doing, error=repr(error)[:500])
            return []
    middle = len(facts) // 2
    return [
        result
        for half in (facts[:middle], facts[middle:])
        for result in await skipping_refused(connection, source, half, put, doing=doing)
    ]
