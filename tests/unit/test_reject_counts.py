"""The counts of refused records, written into a job's message and read back."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planetwire.text.reject_counts import rejected_in, rejected_text

CODES = st.from_regex(r"[a-z_]+", fullmatch=True)


@given(st.dictionaries(CODES, st.integers(1, 10**9), min_size=1, max_size=12))
def test_what_was_written_is_read_among_the_rest_of_a_message(codes: dict[str, int]) -> None:
    message = f"49 records, {rejected_text(codes)}, 2 no city, the body was not whole, nothing was swept"
    assert rejected_in(message) == codes


def test_the_most_frequent_code_comes_first() -> None:
    assert rejected_text(Counter(no_record=2, bad_value=3, bad_key=2)) == (
        "7 rejected (bad_value 3, bad_key 2, no_record 2)"
    )


@pytest.mark.parametrize("message", [None, "", "49 records", "49 records, 1 rejected", "rejected (bad_value x)"])
def test_a_message_without_counts_has_none(message: str | None) -> None:
    assert rejected_in(message) == {}
