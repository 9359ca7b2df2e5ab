"""Reports in raw text: the numbered public bug reports, each with its input and the right answer."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from planetwire.collect.feed_metar import AwcMetar
from planetwire.collect.formats.metar_text import BadReport, observed_at

AT = datetime(2026, 11, 29, 12, tzinfo=UTC)


def rows(text: str | bytes, at: datetime = AT) -> list[dict[str, Any]]:
    body = text if isinstance(text, bytes) else text.encode()
    return [row for row in AwcMetar().parse(body, at).rows if isinstance(row, dict)]


def row(text: str | bytes, at: datetime = AT) -> dict[str, Any]:
    found = rows(text, at)
    assert len(found) == 1
    return found[0]


def temps(text: str) -> tuple[float | None, float | None]:
    one = row(text)
    return one["temp_c"], one["dewpoint_c"]


# --- temperature ------------------------------------------------------------------------------------


def test_three_digits_are_no_temperature() -> None:
    """Report 18: null and a flag, the rest kept."""
    one = row("EDDM 022150Z 26006KT CAVOK 201/16 Q1018")
    assert (one["temp_c"], one["dewpoint_c"], one["precision"]) == (None, None, None)
    assert one["flags"] == ["temp_malformed"]
    assert (one["station"], one["wind"]["speed"]) == ("EDDM", 6)


def test_a_remark_that_differs_from_the_body_loses() -> None:
    """Report 19: 34.4 from the remark, the dew point of the body."""
    one = row("KRDU 281551Z 21007KT 10SM FEW055 35/24 A3004 RMK AO2 SLP165 T03440339")
    assert (one["temp_c"], one["dewpoint_c"], one["precision"]) == (34.4, 24.0, 0.1)
    assert one["flags"] == ["dewpoint_t_group_ignored"]


def test_a_remark_of_another_station_loses_altogether() -> None:
    one = row("RJSK 281330Z 22003KT 10SM 15/12 A2987 RMK AO2 T00500022")
    assert (one["temp_c"], one["dewpoint_c"], one["precision"]) == (15.0, 12.0, 1.0)


def test_no_temperature_is_no_error() -> None:
    """Report 21."""
    one = row("KJFX 280135Z AUTO 00000KT 10SM CLR A2993 RMK A02")
    assert (one["temp_c"], one["flags"]) == (None, ["temp_missing"])


def test_a_missing_dew_point_leaves_the_temperature() -> None:
    """Report 22."""
    assert temps("KSMO 281251Z 00000KT 10SM CLR 20/ A3002 RMK A02 T0200 $") == (20.0, None)


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("M02/M03", (-2.0, -3.0)),
        ("17/11", (17.0, 11.0)),
        ("00/M16", (0.0, -16.0)),
        ("M00/M02", (0.0, -2.0)),
        ("20/", (20.0, None)),
        ("20///", (20.0, None)),
        ("20/XX", (20.0, None)),
        ("///M04", (None, -4.0)),
        ("/////", (None, None)),
        ("XX/XX", (None, None)),
        ("//", (None, None)),
        ("5/3", (None, None)),
        ("99/10", (None, 10.0)),
    ],
)
def test_every_form_of_the_body_group(group: str, expected: tuple[float | None, float | None]) -> None:
    """Report 23 and the documented missing forms."""
    assert temps(f"ESSA 281220Z 24005KT 9999 SCT020 {group} Q1010") == expected


def test_minus_zero_is_zero() -> None:
    assert str(temps("ESSA 281220Z 24005KT 9999 M00/M00 Q1010")[0]) == "0.0"
    assert str(temps("KAAA 281220Z 24005KT 10SM M00/M00 A2992 RMK T10001000")[1]) == "0.0"


@pytest.mark.parametrize(
    ("remark", "temp"), [("T10061061", -0.6), ("T////1061", -1.0), ("T1006", -0.6), ("T0", -1.0), ("T99990000", -1.0)]
)
def test_every_form_of_the_remark_group(remark: str, temp: float) -> None:
    assert temps(f"KACY 282354Z 18008KT 10SM CLR M01/M06 A3013 RMK AO2 {remark}")[0] == temp


def test_a_report_without_clouds_keeps_its_tenths() -> None:
    """Report 28."""
    assert temps("PAWI 281756Z AUTO 07008KT 1/4SM SN FZFG M18/M21 A2970 RMK AO2 T11831206") == (-18.3, -20.6)


def test_clouds_with_missing_parts_hide_no_temperature() -> None:
    """Report 29."""
    assert temps("LFPG 281230Z AUTO 24008KT 9999NDV FEW038/// SCT055/// BKN090/// 17/11 Q1012") == (17.0, 11.0)


def test_miles_in_fractions_are_no_temperature() -> None:
    assert temps("KOKK 281256Z AUTO 18006KT 1 1/2 SM BR OVC002 A2981 RMK AO2") == (None, None)
    assert temps("MMTG 281146Z 29002KT 1 1/2SM BR OVC050 22/22 A3001") == (22.0, 22.0)


def test_values_of_a_forecast_or_a_remark_are_not_read_as_the_temperature() -> None:
    assert temps("EGLL 281220Z 24005KT 9999 Q1010 TEMPO 4000 12/10") == (None, None)
    assert temps("CYYZ 281200Z 24005KT 15SM A2992 RMK 12/10") == (None, None)


# --- time -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ddhhmm", "at", "expected"),
    [
        ("310053", datetime(2026, 3, 5, tzinfo=UTC), datetime(2026, 1, 31, 0, 53, tzinfo=UTC)),
        ("312359", datetime(2026, 4, 1, 0, 10, tzinfo=UTC), datetime(2026, 3, 31, 23, 59, tzinfo=UTC)),
        ("010000", datetime(2026, 11, 30, 23, 58, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)),
        ("011148", datetime(2026, 11, 29, 12, tzinfo=UTC), datetime(2026, 11, 1, 11, 48, tzinfo=UTC)),
        ("312350", datetime(2027, 1, 1, 0, 5, tzinfo=UTC), datetime(2026, 12, 31, 23, 50, tzinfo=UTC)),
        ("010005", datetime(2026, 12, 31, 23, 59, tzinfo=UTC), datetime(2027, 1, 1, 0, 5, tzinfo=UTC)),
        ("291200", datetime(2028, 3, 1, tzinfo=UTC), datetime(2028, 2, 29, 12, tzinfo=UTC)),
        ("291200", datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 1, 29, 12, tzinfo=UTC)),
    ],
)
def test_the_month_comes_from_the_reference_time(ddhhmm: str, at: datetime, expected: datetime) -> None:
    """Reports 20 and 30: over the month's end both ways, never a month frozen at the start."""
    assert observed_at(ddhhmm, at) == expected


@pytest.mark.parametrize("ddhhmm", ["001200", "321200", "282400", "281260"])
def test_an_impossible_time_is_refused(ddhhmm: str) -> None:
    with pytest.raises(BadReport):
        observed_at(ddhhmm, AT)


def test_each_call_has_its_own_reference_time() -> None:
    """Report 30."""
    text = "KUAO 310053Z 00000KT 10SM CLR 05/04 A3000"
    assert row(text, datetime(2026, 1, 31, 1, tzinfo=UTC))["obs_time"] == "2026-01-31T00:53:00Z"
    assert row(text, datetime(2026, 3, 31, 1, tzinfo=UTC))["obs_time"] == "2026-03-31T00:53:00Z"


# --- frame ------------------------------------------------------------------------------------------


def test_two_reports_on_one_line_are_two_observations() -> None:
    """Report 24."""
    found = rows("KLAX 281153Z 00000KT 10SM 16/12 A2992 KLAX 281253Z 00000KT 10SM 15/12 A2993\n")
    assert [(one["obs_time"][11:16], one["temp_c"]) for one in found] == [("11:53", 16.0), ("12:53", 15.0)]


@pytest.mark.parametrize(
    "text",
    ["CYZU 280100Z CCA 12003KT 15SM 05/04 A2992", "METAR COR ESNS 281420Z 12003KT 9999 05/04 Q0992",
     "MRLB COR 281700Z 12003KT 9999 05/04 Q0992", "KDLF 281156Z COR 10009KT 10SM 05/04 A3001",
     "COR ESNS 281420Z 12003KT 9999 05/04 Q0992", "SACN32 CWAO 280100 CCA\nCYZU 280100Z 12003KT 15SM 05/04 A2992=",
     "METAR COR\nCYZU 280100Z 12003KT 15SM 05/04 A2992="],
)  # fmt: skip
def test_a_correction_is_seen_in_every_position(text: str) -> None:
    """Report 25."""
    assert row(text)["corrected"] is True
    assert row(text)["temp_c"] == 5.0


def test_a_correction_in_the_remarks_alone_is_none() -> None:
    assert row("KDLF 281156Z 10009KT 10SM 05/04 A3001 RMK COR 1158")["corrected"] is False


@pytest.mark.parametrize("prefix", ["", "METAR ", "SPECI "])
def test_the_prefix_changes_only_the_kind(prefix: str) -> None:
    """Report 31."""
    one = row(f"{prefix}KJFK 281251Z AUTO 18008KT 10SM FEW025 07/02 A3014 RMK T00720022")
    assert (one["temp_c"], one["dewpoint_c"], one["auto"]) == (7.2, 2.2, True)
    assert one["kind"] == (prefix.strip() or "METAR")


@pytest.mark.parametrize(
    "text", ["METAR SVMC 281200Z NIL=", "SVMC 281200Z NIL=", "METAR SVMC NIL=", "SVMC 281200Z AUTO NIL="]
)
def test_a_report_that_says_nil_is_counted_and_neither_row_nor_reject(text: str) -> None:
    result = AwcMetar().parse(text.encode(), AT)
    assert (list(result.rows), list(result.rejects), result.notes) == ([], [], {"nil": 1})


def test_controls_nul_and_hard_spaces_are_spaces() -> None:
    body = (
        b"\x01\r\r\n671 \r\r\nSAUS46 KSGX 281401\r\r\nMTRNZY\r\r\n"
        b"SPECI KNZY 281401Z AUTO 17004KT 5SM BR OVC010\xc2\xa016/13 A2994 RMK\x00AO2 $\r\r\n\x03"
    )
    one = row(body)
    assert (one["station"], one["kind"], one["temp_c"], one["raw"][:10]) == ("KNZY", "SPECI", 16.0, "SPECI KNZY")


def test_the_kind_of_a_bulletin_holds_until_the_next_heading() -> None:
    text = (
        "877 \nSPUS70 KWBC 281200\nSPECI\nKSLK 281156Z AUTO 20003KT 1SM 14/13 A2999=\n\n\n"
        "878 \nSAUS70 KWBC 281200\nKALO 281154Z AUTO 20003KT 1SM 15/13 A2999=\n"
    )
    assert [one["kind"] for one in rows(text)] == ["SPECI", "METAR"]


def test_a_broken_line_gives_its_values_to_nobody() -> None:
    result = AwcMetar().parse(
        b"KTKC 281155Z AUTO 33015KT 2SM OVC004 A2996 RMK AO2\nKXXX 2811Z 00000KT 30/20 A2992\n"
        b"KLGA 281151Z 00000KT 10SM 12/02 A2992\n",
        AT,
    )
    assert [(one["station"], one["temp_c"]) for one in result.rows] == [("KTKC", None), ("KLGA", 12.0)]
    assert [one.reason for one in result.rejects] == ["no station and time"]


def test_indented_lines_go_on_with_the_report() -> None:
    assert temps("KSFY 281155Z AUTO 33003KT 10SM SCT041\n     21/20 A3007\n     RMK AO2 T02090199\n") == (20.9, 19.9)


def test_a_time_in_the_remarks_begins_no_report() -> None:
    assert len(rows("KXYZ 281155Z 33003KT 10SM 21/20 A3007 RMK LAST 281155Z NEXT 291200Z\n")) == 1


def test_a_correction_replaces_what_it_corrects() -> None:
    text = "KDLF 281156Z 10009KT 22/19 A3001\nKDLF 281156Z COR 10009KT 20/19 A3001\n"
    for order in (text, "".join(reversed(text.splitlines(keepends=True)))):
        result = AwcMetar().parse(order.encode(), AT)
        assert [(one["temp_c"], one["corrected"]) for one in result.rows] == [(20.0, True)]
        assert result.notes == {"duplicates": 1}


@pytest.mark.parametrize(
    "text", ["QQQQ 081354Z=", "QQQQ O81354Z AUTO 17027G37KT=", "1QQQ 081354Z AUTO=", "WXL SA 1400 AUTO8="]
)
def test_what_is_no_report_is_refused_with_its_text(text: str) -> None:
    result = AwcMetar().parse(text.encode(), AT)
    assert not result.rows
    assert result.rejects[0].sample == text[:-1]


# --- wind -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "speed", "gust", "unit"),
    [
        ("UUEE 281200Z 27006MPS 9999 10/05 Q1010", 6, None, "MPS"),
        ("UUEE 281200Z 00000MPS 9999 10/05 Q1010", 0, None, "MPS"),
        ("KMWN 281200Z 31037G65KT 0000 M15/M15 RMK", 37, 65, "KT"),
        ("KPIT 281200Z 34026G45 10SM 10/05 A2992", 26, 45, "KT"),
        ("PHNL 281200Z VRB03KT 10SM 27/21 A2997", 3, None, "KT"),
    ],
)
def test_wind_keeps_its_unit(text: str, speed: int, gust: int | None, unit: str) -> None:
    """Reports 26, 27."""
    wind = row(text)["wind"]
    assert (wind["speed"], wind["gust"], wind["unit"]) == (speed, gust, unit)


def test_wind_without_a_unit_is_null_outside_the_united_states() -> None:
    """Report 27: never m/s by guess."""
    assert row("EDDF 281200Z 34026G45 9999 10/05 Q1010")["wind"] is None
    assert row("URMO 281200Z AUTO /////MPS 9999 10/05 Q1010")["wind"] is None
