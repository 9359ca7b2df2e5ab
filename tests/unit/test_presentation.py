"""What the page shows of a layer is checked where it is declared; the message names layer, class or row, and fault."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planetwire.layers.registry import LAYERS
from planetwire.model.presentation import (
    CardRow,
    Choice,
    FixedSize,
    GrowingSize,
    Late,
    Look,
    Paint,
    Scale,
    ScaleClass,
)
from planetwire.model.presentation.faults import CHOICES_MAX, CLASSES_MAX, ROWS_MAX, VALUES_MAX
from planetwire.model.presentation.wire import plain

CLASS = ScaleClass("low", "low", "低", "#0000ff", below=1.0)
REST = ScaleClass("rest", "rest", "其他", "#ff0000")
GROWING = GrowingSize("vei", base_px=3.0, factor=1.3, least_px=3.0, most_px=30.0, else_px=4.0)
ROW = CardRow("ash", "Ash", "火山灰", ("ash_km",))
YES = Choice("yes", "yes", "是")


def scaled(*classes: ScaleClass, by: Any = "value", value: str | None = "ash_km", unknown: Paint | None = None) -> Look:
    return Look(Scale(by, classes, value, unknown))


def numbered(count: int) -> list[ScaleClass]:
    return [replace(CLASS, key=f"c{number}", below=float(number)) for number in range(count)]


@pytest.mark.parametrize(
    ("look", "fault"),
    [
        (scaled(replace(CLASS, color="blue")), "class low: 'blue' is not a colour"),
        (scaled(replace(CLASS, color="#0000FF")), "class low: '#0000FF' is not a colour"),
        (scaled(replace(CLASS, color="#0000ff;")), "is not a colour"),
        (scaled(replace(CLASS, alpha=0.0)), "class low: alpha 0.0"),
        (scaled(replace(CLASS, alpha=1.1)), "class low: alpha 1.1"),
        (scaled(replace(CLASS, label="")), "class low: no English label"),
        (scaled(replace(CLASS, label_zh=" ")), "class low: no Chinese label"),
        (scaled(replace(CLASS, label="x" * 81)), "class low: no English label"),
        (scaled(replace(CLASS, key="a b")), "class a b: the key"),
        (scaled(replace(CLASS, size_px=65.0)), "class low: size_px 65.0"),
        (scaled(replace(CLASS, equals="x")), "class low: `equals` bounds nothing in a scale by value"),
        (scaled(CLASS, CLASS), "class low is there twice"),
        (scaled(CLASS, replace(CLASS, key="b")), "`below` does not rise"),
        (scaled(replace(CLASS, below=float("nan"))), "`below` does not rise"),
        (scaled(replace(CLASS, below=float("inf"))), "`below` does not rise"),
        (scaled(REST, CLASS), "everything else is not the last"),
        (scaled(CLASS, REST, replace(REST, key="more")), "more than one class for everything else"),
        (scaled(), "0 classes"),
        (scaled(*numbered(CLASSES_MAX + 1)), f"{CLASSES_MAX + 1} classes"),
        (scaled(CLASS, value=None), "an age has no value of its own, any other scale names one"),
        (scaled(CLASS, value=" "), "' ' names no value"),
        (scaled(replace(CLASS, below=None, up_to_s=1.0), by="age"), "an age has no value of its own"),
        (scaled(CLASS, by="sum"), "unknown kind 'sum'"),
        (
            scaled(*(replace(CLASS, key=key, below=None, equals="x") for key in "ab"), by="category"),
            "category x is there twice",
        ),
        (scaled(CLASS, unknown=Paint("red")), "unknown: 'red' is not a colour"),
        (Look(size=FixedSize(0.9)), "size: 1 to 64 pixels"),
        (Look(size=FixedSize(float("nan"))), "size: 1 to 64 pixels"),
        (Look(size=replace(GROWING, most_px=65.0)), "size: 1 to 64 pixels"),
        (Look(size=replace(GROWING, least_px=31.0)), "size: least_px is more than most_px"),
        (Look(size=replace(GROWING, factor=0.0)), "size: base_px and factor"),
        (Look(size=replace(GROWING, value="")), "size: '' names no value"),
        (Look(late=Late(0.0, 0.3)), "late: after_s 0.0"),
        (Look(late=Late(60.0, 0.0)), "late: alpha 0.0"),
        (Look(late=Late(60.0, 0.3, "")), "late: '' names no value"),
    ],
)
def test_a_wrong_look_is_refused_by_layer_and_class(look: Look, fault: str) -> None:
    with pytest.raises(ValueError, match=r"^layer earthquakes: ") as refused:
        replace(LAYERS[1], look=look)
    assert fault in str(refused.value)


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (replace(ROW, label=""), "no English label"),
        (replace(ROW, label_zh=""), "no Chinese label"),
        (replace(ROW, values=()), "0 values"),
        (replace(ROW, values=("a",) * (VALUES_MAX + 1)), f"{VALUES_MAX + 1} values"),
        (replace(ROW, values=("",)), "'' names no value"),
        (replace(ROW, unit_from="x" * 65, format="number"), "names no value"),
        (replace(ROW, format="sum"), "unknown format 'sum'"),
        (replace(ROW, decimals=1), "decimals and units are a number's"),
        (replace(ROW, unit="km"), "decimals and units are a number's"),
        (replace(ROW, format="number", decimals=7), "7 decimals"),
        (replace(ROW, format="number", unit="km", unit_from="unit"), "one unit or the other"),
        (replace(ROW, format="number", unit=""), "is not of 1 to"),
        (replace(ROW, format="time", join=" "), "times are not joined"),
        (replace(ROW, format="choice"), "0 choices"),
        (replace(ROW, choices=(YES,)), "1 choices"),
        (replace(ROW, format="flag", choices=(replace(YES, equals="maybe"),)), "a flag is `yes` or `no`"),
        (replace(ROW, format="choice", choices=(YES, YES)), "choice yes is there twice"),
        (replace(ROW, format="choice", choices=(replace(YES, label_zh=""),)), "choice yes: no Chinese label"),
        (
            replace(ROW, format="choice", choices=tuple(replace(YES, equals=str(n)) for n in range(CHOICES_MAX + 1))),
            f"{CHOICES_MAX + 1} choices",
        ),
        (replace(ROW, otherwise="none"), "`otherwise` in one language only"),
    ],
)
def test_a_wrong_row_is_refused_by_layer_and_row(row: CardRow, fault: str) -> None:
    with pytest.raises(ValueError, match=rf"^layer earthquakes: .*row {row.key}: ") as refused:
        replace(LAYERS[1], card=(row,))
    assert fault in str(refused.value)


def test_a_card_is_bounded_and_every_fault_is_told_at_once() -> None:
    rows = tuple(replace(ROW, key=f"r{number}") for number in range(ROWS_MAX))
    assert replace(LAYERS[1], card=rows).card == rows
    with pytest.raises(ValueError, match=f"{ROWS_MAX + 1} rows"):
        replace(LAYERS[1], card=(*rows, ROW))
    with pytest.raises(ValueError, match="row ash is there twice; row ash: no English label") as refused:
        replace(LAYERS[1], look=Look(size=FixedSize(0.9)), card=(ROW, replace(ROW, label="")))
    assert "size: " in str(refused.value)


def test_the_bounds_themselves_are_allowed() -> None:
    for look in (
        scaled(*numbered(CLASSES_MAX)),
        scaled(CLASS),
        scaled(REST, replace(CLASS, below=None, equals="x"), by="category"),
        scaled(replace(CLASS, below=None, up_to_s=60.0), REST, by="age", value=None),
        Look(size=GROWING),
        Look(late=Late(60.0, 1.0)),
    ):
        assert replace(LAYERS[1], look=look).look == look


def test_what_was_not_given_is_not_on_the_wire() -> None:
    assert plain(ROW) == {"key": "ash", "label": "Ash", "label_zh": "火山灰", "values": ["ash_km"], "format": "text"}
    assert plain(()) == []
