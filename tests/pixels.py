"""Reads the positions of a colour from the pixels of a screenshot."""

from __future__ import annotations

import base64

from playwright.sync_api import Page

NEAR = 60  # per channel: edges are antialiased, thin strokes blend with the background

_DECODED = """const image = new Image();
    image.src = `data:image/png;base64,${png}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, image.width, image.height);"""
_INK = f"""async ([png, colour, near]) => {{
    {_DECODED}
    const found = [];
    for (let i = 0; i < data.length; i += 4)
        if (colour.every((value, channel) => Math.abs(data[i + channel] - value) <= near))
            found.push([(i / 4) % image.width, Math.floor(i / 4 / image.width)]);
    return found;
}}"""
_COLOURS = f"""async (png) => {{
    {_DECODED}
    return new Set(new Uint32Array(data.buffer)).size;
}}"""

_CHANGED = f"""async ([png, other]) => {{
    const pixels = async (png) => {{
        {_DECODED}
        return new Uint32Array(data.buffer);
    }};
    const [before, after] = [await pixels(png), await pixels(other)];
    return before.reduce((sum, pixel, at) => sum + (pixel === after[at] ? 0 : 1), 0);
}}"""


def changed(page: Page, before: bytes, after: bytes) -> int:
    """How many pixels of two pictures of one size differ."""
    return int(page.evaluate(_CHANGED, [base64.b64encode(one).decode() for one in (before, after)]))


def colours(page: Page, png: bytes) -> int:
    """The number of colours of a screenshot: a blank canvas has one."""
    return int(page.evaluate(_COLOURS, base64.b64encode(png).decode()))


def ink(page: Page, png: bytes, colour: str, near: int = NEAR) -> set[tuple[int, int]]:
    """Positions (x, y) of a `#rrggbb` in a screenshot, in its pixels."""
    wanted = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    return {(x, y) for x, y in page.evaluate(_INK, [base64.b64encode(png).decode(), wanted, near])}


def around(places: set[tuple[int, int]], x: float, y: float, reach: float) -> int:
    """How many of them are within `reach` of a point."""
    return sum(abs(at - x) <= reach and abs(level - y) <= reach for at, level in places)
