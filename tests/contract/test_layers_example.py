"""The golden example of the list of layers: what the shipped declarations come to, and the schema of it."""

from __future__ import annotations

import json
from pathlib import Path

import orjson
import pytest
from jsonschema import Draft202012Validator

from planetwire.layers.registry import LAYERS
from planetwire.model import Json
from planetwire.model.presentation import CardRow, Choice, Late, Look, Paint, Scale, ScaleClass, faults
from planetwire.model.presentation.wire import look_on_wire, plain
from planetwire.web.earth.layer_snapshots import listed

SPEC = Path(__file__).resolve().parents[2] / "spec"
SCHEMA = json.loads((SPEC / "http/layers.v1.schema.json").read_text(encoding="utf-8"))
EXAMPLE = json.loads((SPEC / "examples/layers.v1.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)
NOW = ("count", "state", "last_success_at")  # what a moment adds to a declaration


def on_wire(value: object) -> object:
    return json.loads(orjson.dumps(value))


def test_the_example_is_what_the_shipped_layers_declare() -> None:
    """S71: the page tests against the same file. Behind the declaration stands a moment's state."""
    VALIDATOR.validate(EXAMPLE)
    declared = [{key: value for key, value in item.items() if key not in NOW} for item in EXAMPLE["items"]]
    assert declared == on_wire([listed(adapter) for adapter in LAYERS])


def test_every_word_of_a_look_and_of_a_card_is_in_the_schema() -> None:
    scale = Scale(
        "value",
        (
            ScaleClass("low", "low", "低", "#0000ff", below=0.5, size_px=2.0),
            ScaleClass("rest", "rest", "其他", "#ff0000"),
        ),
        value="ash_km",
        unknown=Paint("#a8967c", 0.5),
    )
    look = Look(scale, late=Late(60.0, 0.3, value="good_for_s"))
    rows = (
        CardRow("ash", "Ash", "火山灰", ("ash_km", "ash"), "number", join=" / ", decimals=1, unit="km"),
        CardRow("alert", "Alert", "警报", ("alert",), "choice", choices=(Choice("red", "red", "红色"),)),
        CardRow("gas", "Gas", "气体", ("gas",), "number", unit_from="gas_unit", otherwise="none", otherwise_zh="无"),
    )
    layer = EXAMPLE["items"][0] | {"look": on_wire(look_on_wire(look)), "card": on_wire(plain(rows))}
    VALIDATOR.validate({"items": [layer], "next_cursor": None})


def test_the_schema_has_the_bounds_that_declarations_are_held_to() -> None:
    defs = SCHEMA["$defs"]
    row, pixels = defs["row"]["properties"], defs["pixels"]
    assert defs["scale"]["properties"]["classes"]["maxItems"] == faults.CLASSES_MAX
    assert defs["layer"]["properties"]["card"]["maxItems"] == faults.ROWS_MAX
    assert row["values"]["maxItems"] == faults.VALUES_MAX
    assert row["choices"]["maxItems"] == faults.CHOICES_MAX
    assert row["decimals"]["maximum"] == faults.DECIMALS_MAX
    assert (pixels["minimum"], pixels["maximum"]) == faults.SIZES_PX
    assert defs["label"]["maxLength"] == faults.LABEL_MAX


@pytest.mark.parametrize(
    "wrong",
    [
        {"look": None},
        {"look": {"color": {"by": "age", "value": "x", "classes": []}, "size": {"px": 5}, "late": None}},
        {"look": {"color": None, "size": {"px": 0}, "late": None}},
        {"look": {"color": None, "size": {"px": 5}, "late": None, "draw": "code"}},
        {"card": [{"key": "ash", "label": "Ash", "label_zh": "火山灰", "values": [], "format": "number"}]},
        {"card": [{"key": "ash", "label": "Ash", "values": ["ash"], "format": "number"}]},
        {"card": [{"key": "ash", "label": "Ash", "label_zh": "火山灰", "values": ["ash"], "format": "sum"}]},
    ],
)
def test_the_schema_refuses_what_no_declaration_may_say(wrong: Json) -> None:
    assert not VALIDATOR.is_valid({"items": [EXAMPLE["items"][0] | wrong], "next_cursor": None})
