"""Two-line element sets: the numbered public bug reports, each with its input and the right answer."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from planetwire.collect.feed_celestrak import CelestrakGp
from planetwire.collect.formats.omm import BadRecord
from planetwire.collect.formats.tle import catalogue_number, checksum, epoch, full_year, with_exponent
from planetwire.model import Parsed

AT = datetime(2026, 11, 29, 12, tzinfo=UTC)
LINE_1 = "1 25544U 98067A   98324.28472222 -.00003657  11563-4  00000+0 0    1"
LINE_2 = "2 25544  51.5908 168.3788 0125362  86.4185 359.7454 16.05064833    0"


def with_checksum(line: str) -> str:
    """The 68 columns and their checksum."""
    return f"{line[:68]}{checksum(line)}"


def put(line: str, column: int, text: str) -> str:
    """The line with `text` written from this column (counted from 1) on."""
    return line[: column - 1] + text + line[column - 1 + len(text) :]


def a_set(line_1: str = LINE_1, line_2: str = LINE_2, name: str | None = "ISS (ZARYA)") -> str:
    """A set with right checksums."""
    lines = [*([name] if name is not None else []), with_checksum(line_1), with_checksum(line_2)]
    return "\n".join(lines) + "\n"


def parsed(text: str) -> Parsed:
    return CelestrakGp().parse(text.encode(), AT)


def only(text: str) -> dict[str, object]:
    result = parsed(text)
    assert [one.reason for one in result.rejects] == []
    assert len(result.rows) == 1
    return result.rows[0].data


@pytest.mark.parametrize(
    ("field", "number"),
    [("T0000", 270_000), ("A0000", 100_000), ("Z9999", 339_999), ("H9999", 179_999), ("J0000", 180_000),
     ("N0000", 220_000), ("P0000", 230_000), ("25544", 25_544), ("   12", 12), ("00005", 5), ("12   ", 12)],
)  # fmt: skip
def test_alpha5_and_spaced_fields_give_the_number(field: str, number: int) -> None:
    """Reports 1, 2, 3: never 0, never the same key for all."""
    assert catalogue_number(field) == number


@pytest.mark.parametrize(
    "field", ["I0000", "O0000", "a0000", "A000", "AA000", "0A000", "1 234", "     ", "-0001", "٢٥٥٤٤"]
)
def test_fields_outside_the_definition_are_refused(field: str) -> None:
    """The letters I and O do not exist in Alpha-5."""
    with pytest.raises(BadRecord):
        catalogue_number(field)


def test_an_alpha5_set_becomes_a_six_digit_key() -> None:
    """Report 1."""
    result = parsed(a_set(put(LINE_1, 3, "T0000"), put(LINE_2, 3, "T0000")))
    assert [row.external_key for row in result.rows] == ["270000"]


def test_a_space_padded_id_and_its_designator_are_read() -> None:
    """Report 3."""
    line_1 = put(put(LINE_1, 3, "   12"), 10, "59001B  ")
    data = only(a_set(line_1, put(LINE_2, 3, "   12")))
    assert (data["NORAD_CAT_ID"], data["OBJECT_ID"]) == (12, "1959-001B")


def test_lines_without_checksum_are_accepted_and_flagged() -> None:
    """Report 5."""
    result = parsed(f"{LINE_1}\n{LINE_2}\n")
    assert len(result.rows) == 1
    assert result.notes["checksum_absent"] == 1


def test_a_minus_counts_one_and_letters_count_nothing() -> None:
    """Report 6."""
    assert checksum("-") == 1
    assert checksum("AZ.+ ") == 0
    assert checksum("1" * 68) == 8
    assert checksum(LINE_1 + "9") == 0  # as the catalogue prints it


def test_a_wrong_checksum_refuses_this_set_alone() -> None:
    """Report 6."""
    broken = with_checksum(LINE_1)[:68] + "7\n" + with_checksum(LINE_2) + "\n"
    result = parsed(broken + a_set(put(LINE_1, 3, "00005"), put(LINE_2, 3, "00005")))
    assert [row.external_key for row in result.rows] == ["5"]
    assert "checksum" in result.rejects[0].reason
    assert result.refused_keys == {"25544"}


def test_a_leading_plus_is_accepted() -> None:
    """Report 7."""
    data = only(a_set(put(LINE_1, 45, "+00000-0 +85771-4")))
    assert (data["BSTAR"], data["MEAN_MOTION_DDOT"]) == (8.5771e-5, 0.0)


@pytest.mark.parametrize(
    ("text", "value"),
    [(" 28098-4", 2.8098e-5), ("-11606-4", -1.1606e-5), (" 00000-0", 0.0), (" 00000+0", 0.0), ("        ", 0.0),
     (" 10000+1", 1.0), ("-00000-0", 0.0)],
)  # fmt: skip
def test_the_assumed_decimal_point_and_exponent(text: str, value: float) -> None:
    assert with_exponent(text) == pytest.approx(value, rel=1e-12)
    assert str(with_exponent(text)) != "-0.0"


def test_an_eccentricity_of_spaces_and_a_zero_is_zero() -> None:
    """Report 8: 0.0, not NaN."""
    assert only(a_set(line_2=put(LINE_2, 27, "      0")))["ECCENTRICITY"] == 0.0


def test_a_blank_eccentricity_is_zero_and_noted() -> None:
    """Report 8."""
    result = parsed(a_set(line_2=put(LINE_2, 27, "       ")))
    assert result.rows[0].data["ECCENTRICITY"] == 0.0
    assert result.notes["eccentricity_blank"] == 1


def test_a_set_without_designator_has_none() -> None:
    """Report 9."""
    assert only(a_set(put(LINE_1, 10, "        ")))["OBJECT_ID"] is None


@pytest.mark.parametrize("line", ["0 ISS (ZARYA)", "ISS (ZARYA)", "ISS (ZARYA)             "])
def test_the_name_loses_its_line_number_and_padding(line: str) -> None:
    """Reports 10, 11."""
    assert only(a_set(name=line))["OBJECT_NAME"] == "ISS (ZARYA)"


def test_a_set_without_name_is_titled_by_its_number() -> None:
    result = parsed(a_set(name=None))
    assert result.rows[0].title == "NORAD 25544"
    assert result.rows[0].data["OBJECT_NAME"] == ""


def test_prose_around_the_sets_is_skipped_and_counted() -> None:
    """Reports 11, 17."""
    other = a_set(put(LINE_1, 3, "00005"), put(LINE_2, 3, "00005"))
    text = f"Bulletin 7\nissued today\n\n{a_set()}\nEnd of bulletin\n{other}Bye\n"
    result = parsed(text)
    assert len(result.rows) == 2
    assert result.notes["prose"] == 4
    assert not result.rejects


def test_html_around_the_sets_is_skipped() -> None:
    """Report 17."""
    result = parsed(f"<html><body><pre>\n{a_set()}</pre></body></html>\n")
    assert [row.title for row in result.rows] == ["ISS (ZARYA)"]


def test_a_comparison_sign_in_a_comment_swallows_no_set() -> None:
    result = parsed(f"# perigee (<98 km)\n{a_set(name=None)}# s4 > 20\n")
    assert len(result.rows) == 1
    assert result.notes["prose"] == 2


def test_crlf_is_the_same_as_lf() -> None:
    """Report 17."""
    assert parsed(a_set().replace("\n", "\r\n")).rows == parsed(a_set()).rows


@pytest.mark.parametrize(("yy", "year"), [(57, 1957), (99, 1999), (0, 2000), (56, 2056), (23, 2023)])
def test_the_epoch_year_pivot(yy: int, year: int) -> None:
    """Report 12."""
    assert full_year(yy) == year


def test_a_short_epoch_is_read() -> None:
    """Report 12: `23156.3` is in 2023."""
    assert epoch("23156.3       ") == datetime(2023, 6, 5, 7, 12, tzinfo=UTC)


def test_the_epoch_is_exact_to_the_microsecond() -> None:
    assert only(a_set())["EPOCH"] == "1998-11-20T06:49:59.999808"


@pytest.mark.parametrize("text", ["23366.50000000", "23000.50000000", "98324.2847222O"])
def test_a_day_the_year_does_not_have_is_refused(text: str) -> None:
    """Report 14."""
    result = parsed(a_set(put(LINE_1, 19, text)))
    assert (len(result.rows), len(result.rejects)) == (0, 1)


def test_a_line_that_lost_a_column_is_refused() -> None:
    shifted = LINE_2[:30] + LINE_2[31:]
    result = parsed(f"{with_checksum(LINE_1)}\n{shifted}5\n")
    assert (len(result.rows), len(result.rejects)) == (0, 1)


def test_a_line_with_a_six_digit_id_written_as_five_is_refused() -> None:
    text = f"1 100000U{LINE_1[8:]}1\n2 100000{LINE_2[7:]}1\n"
    result = parsed(text)
    assert (len(result.rows), len(result.rejects)) == (0, 1)


def test_an_orphan_line_costs_itself_only() -> None:
    lines = a_set().splitlines()
    result = parsed("\n".join([lines[1], *lines, lines[2]]) + "\n")
    assert len(result.rows) == 1
    assert [one.reason for one in result.rejects] == ["line 1 without a line 2", "line 2 without a line 1"]


def test_two_objects_in_one_set_are_refused() -> None:
    result = parsed(a_set(line_2=put(LINE_2, 3, "25545")))
    assert "different objects" in result.rejects[0].reason


def test_a_body_that_ends_in_a_line_1_is_not_whole() -> None:
    assert not parsed(a_set() + with_checksum(LINE_1)).complete


def test_the_newest_epoch_of_an_object_wins_and_the_other_is_counted() -> None:
    newer = put(LINE_1, 19, "98325.28472222")
    for text in (a_set() + a_set(newer), a_set(newer) + a_set()):
        result = parsed(text)
        assert [row.data["EPOCH"][:10] for row in result.rows] == ["1998-11-21"]
        assert result.notes["duplicates"] == 1
