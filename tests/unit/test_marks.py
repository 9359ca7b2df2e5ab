"""The bound on what a body holds: decided in one pass, and as if each kind of mark were counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planetwire.collect.http.marks import check_marks, marks_max
from planetwire.errors import FeedError

GROUPS = (",[{", "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", "<")
PIECES = st.sampled_from([*"".join(GROUPS), "é", "â", "€", "x"])


@given(st.lists(st.tuples(PIECES, st.integers(1, 700)), max_size=12))
def test_a_body_is_refused_for_more_marks_of_one_group_than_its_bound(runs: list[tuple[str, int]]) -> None:
    text = "".join(piece * times for piece, times in runs)
    most = max(sum(text.count(mark) for mark in group) for group in GROUPS)
    if most > marks_max(0):
        with pytest.raises(FeedError, match="more than 1,024 values"):
            check_marks(text.encode(), 0)
    else:
        check_marks(text.encode(), 0)
