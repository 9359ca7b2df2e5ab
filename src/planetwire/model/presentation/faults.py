"""Validates the look and the card that a layer declares.

The limits are those of `spec/http/layers.v1.schema.json` and of the page. The page drops what exceeds them, so it is
refused here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import get_args

from planetwire.model.presentation.card import CardRow, Format
from planetwire.model.presentation.look import By, FixedSize, GrowingSize, Late, Look, Paint, Scale, ScaleClass

CLASSES_MAX = 16
ROWS_MAX = 24
VALUES_MAX = 8
CHOICES_MAX = 32
DECIMALS_MAX = 6
SIZES_PX = (1.0, 64.0)
LABEL_MAX = 80
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
_NAME = re.compile(r"\S(?:.{0,62}\S)?")
_COLOR = re.compile(r"#[0-9a-f]{6}")
_BOUNDS: dict[By, str] = {"age": "up_to_s", "value": "below", "category": "equals"}


def check(layer: str, look: Look, card: Sequence[CardRow]) -> None:
    """Raises ValueError that names the layer, the class or row, and every fault of it."""
    faults = [*_look_faults(look), *_card_faults(card)]
    if faults:
        raise ValueError(f"layer {layer}: {'; '.join(faults)}")


def _look_faults(look: Look) -> Iterator[str]:
    if look.color is not None:
        yield from _scale_faults(look.color)
    yield from (f"size: {fault}" for fault in _size_faults(look.size))
    if look.fill_alpha is not None:
        yield from (f"fill: {fault}" for fault in _alpha_faults(look.fill_alpha))
    if look.late is not None:
        yield from (f"late: {fault}" for fault in _late_faults(look.late))


def _scale_faults(scale: Scale) -> Iterator[str]:
    if scale.by not in get_args(By):
        yield f"scale: unknown kind {scale.by!r}"
        return
    if (scale.by == "age") != (scale.value is None):
        yield "scale: an age has no value of its own, any other scale names one"
    if scale.value is not None and not _NAME.fullmatch(scale.value):
        yield f"scale: {scale.value!r} names no value"
    if not 1 <= len(scale.classes) <= CLASSES_MAX:
        yield f"scale: {len(scale.classes)} classes, 1 to {CLASSES_MAX}"
    yield from _repeated("class", [one.key for one in scale.classes])
    for one in scale.classes:
        yield from (f"class {one.key}: {fault}" for fault in _class_faults(one, scale.by))
    yield from _order_faults(scale)
    if scale.unknown is not None:
        yield from (f"unknown: {fault}" for fault in _paint_faults(scale.unknown))


def _class_faults(one: ScaleClass, by: By) -> Iterator[str]:
    yield from _key_and_labels(one.key, one.label, one.label_zh)
    yield from _paint_faults(one)
    for other, bound in _BOUNDS.items():
        if other != by and getattr(one, bound) is not None:
            yield f"`{bound}` bounds nothing in a scale by {by}"
    if one.size_px is not None and not _is_size(one.size_px):
        yield f"size_px {one.size_px!r} is not {SIZES_PX[0]:g} to {SIZES_PX[1]:g}"


def _order_faults(scale: Scale) -> Iterator[str]:
    """Bounds rise, categories differ, and at most one class holds everything else."""
    bounds = [getattr(one, _BOUNDS[scale.by]) for one in scale.classes]
    given = [bound for bound in bounds if bound is not None]
    if len(bounds) - len(given) > 1:
        yield "scale: more than one class for everything else"
    if scale.by == "category":
        yield from _repeated("category", given)
    elif None in bounds[:-1]:
        yield "scale: the class for everything else is not the last"
    elif not all(map(math.isfinite, given)) or any(a >= b for a, b in pairwise(given)):
        yield f"scale: `{_BOUNDS[scale.by]}` does not rise from class to class"


def _paint_faults(paint: ScaleClass | Paint) -> Iterator[str]:
    if not _COLOR.fullmatch(paint.color):
        yield f"{paint.color!r} is not a colour like #5cc4dd"
    yield from _alpha_faults(paint.alpha)


def _alpha_faults(alpha: float) -> Iterator[str]:
    if not 0.0 < alpha <= 1.0:
        yield f"alpha {alpha!r} is not above 0, at most 1"


def _is_size(px: float) -> bool:
    return SIZES_PX[0] <= px <= SIZES_PX[1]


def _size_faults(size: FixedSize | GrowingSize) -> Iterator[str]:
    sizes = [size.px] if isinstance(size, FixedSize) else [size.least_px, size.most_px, size.else_px]
    if not all(map(_is_size, sizes)):
        yield f"{SIZES_PX[0]:g} to {SIZES_PX[1]:g} pixels, not {sizes!r}"
    if isinstance(size, GrowingSize):
        if not _NAME.fullmatch(size.value):
            yield f"{size.value!r} names no value"
        if not (0.0 < size.base_px < math.inf and 0.0 < size.factor < math.inf):
            yield "base_px and factor are above 0"
        if size.least_px > size.most_px:
            yield "least_px is more than most_px"


def _late_faults(late: Late) -> Iterator[str]:
    if not 0.0 < late.after_s < math.inf:
        yield f"after_s {late.after_s!r} is not above 0"
    if late.value is not None and not _NAME.fullmatch(late.value):
        yield f"{late.value!r} names no value"
    yield from _alpha_faults(late.alpha)


def _card_faults(card: Sequence[CardRow]) -> Iterator[str]:
    if len(card) > ROWS_MAX:
        yield f"card: {len(card)} rows, at most {ROWS_MAX}"
    yield from _repeated("row", [row.key for row in card])
    for row in card:
        yield from (f"row {row.key}: {fault}" for fault in (*_row_faults(row), *_format_faults(row)))


def _row_faults(row: CardRow) -> Iterator[str]:
    yield from _key_and_labels(row.key, row.label, row.label_zh)
    if not 1 <= len(row.values) <= VALUES_MAX:
        yield f"{len(row.values)} values, 1 to {VALUES_MAX}"
    for name in (*row.values, *([] if row.unit_from is None else [row.unit_from])):
        if not _NAME.fullmatch(name):
            yield f"{name!r} names no value"
    if (row.otherwise is None) != (row.otherwise_zh is None):
        yield "`otherwise` in one language only"
    for text in (row.join, row.unit, row.otherwise, row.otherwise_zh):
        if text is not None and not 0 < len(text) <= LABEL_MAX:
            yield f"{text[:20]!r} is not of 1 to {LABEL_MAX} characters"


def _format_faults(row: CardRow) -> Iterator[str]:
    """Each format requires its own options, and permits no others."""
    if row.format not in get_args(Format):
        yield f"unknown format {row.format!r}"
        return
    if row.format != "number" and (row.decimals, row.unit, row.unit_from) != (None, None, None):
        yield "decimals and units are a number's"
    if row.decimals is not None and not 0 <= row.decimals <= DECIMALS_MAX:
        yield f"{row.decimals!r} decimals, 0 to {DECIMALS_MAX}"
    if row.unit is not None and row.unit_from is not None:
        yield "one unit or the other"
    if row.format == "time" and row.join is not None:
        yield "times are not joined"
    yield from _choice_faults(row)


def _choice_faults(row: CardRow) -> Iterator[str]:
    wanted = row.format in ("choice", "flag")
    if wanted != bool(row.choices) or len(row.choices) > CHOICES_MAX:
        yield f"{len(row.choices)} choices; a choice or a flag has 1 to {CHOICES_MAX}, nothing else has any"
    names = [choice.equals for choice in row.choices]
    if row.format == "flag" and not {*names} <= {"yes", "no"}:
        yield "a flag is `yes` or `no`"
    yield from _repeated("choice", names)
    for choice in row.choices:
        yield from (f"choice {choice.equals}: {fault}" for fault in _label_faults(choice.label, choice.label_zh))


def _key_and_labels(key: str, label: str, label_zh: str) -> Iterator[str]:
    if not _KEY.fullmatch(key):
        yield "the key is not a word of letters, digits and _"
    yield from _label_faults(label, label_zh)


def _label_faults(*labels: str) -> Iterator[str]:
    for language, label in zip(("English", "Chinese"), labels, strict=True):
        if not 0 < len(label.strip()) <= LABEL_MAX:
            yield f"no {language} label of 1 to {LABEL_MAX} characters"


def _repeated(what: str, names: Sequence[str]) -> Iterator[str]:
    yield from (f"{what} {name} is there twice" for name in dict.fromkeys(names) if names.count(name) > 1)
