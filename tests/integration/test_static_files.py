"""The page's files over HTTP: coding, tag, lifetime and type of each, and nothing that the build did not make."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import httpx
import pytest
import zstandard
from fastapi import FastAPI

from missing import built_page
from planetwire.web import app as web_app
from planetwire.web import spa
from planetwire.web.http import problems
from planetwire.web.http.head import HeadAsGet
from planetwire.web.static_files import MEDIA_TYPES, PIECE_BYTES, UNKNOWN, InPieces, read
from small_build import BROTLI, BROWSER, FONT, FOR_EVER, INDEX, SCRIPT, build

MOVED = ("etag", "cache-control", "vary", "content-encoding", "content-type", "content-length")


def served(static: Path) -> FastAPI:
    app = FastAPI()
    app.add_middleware(HeadAsGet)
    problems.install(app)
    app.include_router(spa.router(static))
    return app


async def ask(app: FastAPI, path: str, *, method: str = "GET", codings: str | None = None, **headers: str) -> Any:
    """`codings` None: no Accept-Encoding at all. The raw bytes are in `raw`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if codings is not None:
        named["accept-encoding"] = codings
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        client.headers.clear()
        async with client.stream(method, path, headers=named) as answer:
            answer.raw = b"".join([piece async for piece in answer.aiter_raw()])  # type: ignore[attr-defined]
            return answer


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    return served(build(tmp_path))


OPENED = {
    None: lambda raw: raw,
    "gzip": gzip.decompress,
    "zstd": lambda raw: zstandard.ZstdDecompressor().decompress(raw),
    "br": lambda raw: SCRIPT if raw == BROTLI else raw,
}


@pytest.mark.parametrize(
    ("codings", "coding"),
    [
        (BROWSER, "br"),
        ("gzip, deflate", "gzip"),
        ("gzip, zstd", "zstd"),
        ("br;q=0.5, gzip;q=0.6", "gzip"),
        ("zstd, br;q=0.9", "zstd"),
        ("*", "gzip"),
        ("*, gzip;q=0", "br"),
        ("deflate", None),
        ("identity", None),
        ("", None),
        (None, None),
        ("br;q=0", None),
        ("identity;q=0", 406),
        ("*;q=0", 406),
    ],
)
async def test_a_file_is_sent_in_the_coding_that_is_wanted_most(app: FastAPI, codings: str | None, coding: Any) -> None:
    answer = await ask(app, "/assets/app-1a2b.js", codings=codings)
    if coding == 406:
        assert (answer.status_code, answer.headers["content-type"]) == (406, "application/problem+json")
        return
    assert (answer.status_code, answer.headers.get("content-encoding")) == (200, coding)
    assert OPENED[coding](answer.raw) == SCRIPT
    assert int(answer.headers["content-length"]) == len(answer.raw)
    assert (answer.headers["vary"], answer.headers["cache-control"]) == ("Accept-Encoding", FOR_EVER)
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"


async def test_each_coding_has_a_strong_tag_of_its_own_and_is_not_sent_again_to_who_has_it(app: FastAPI) -> None:
    tags = {}
    for coding in ("br", "zstd", "gzip", "identity"):
        tags[coding] = (await ask(app, "/assets/app-1a2b.js", codings=coding)).headers["etag"]
    assert len(set(tags.values())) == 4
    assert all(tag.startswith('"') and tag.endswith('"') for tag in tags.values())
    for coding, tag in tags.items():
        for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
            again = await ask(app, "/assets/app-1a2b.js", codings=coding, if_none_match=known)
            assert (again.status_code, again.raw) == (304, b"")
            assert (again.headers["etag"], again.headers["vary"]) == (tag, "Accept-Encoding")
            assert again.headers["cache-control"] == FOR_EVER
    other = await ask(app, "/assets/app-1a2b.js", codings="br", if_none_match=tags["gzip"])
    assert (other.status_code, other.raw) == (200, BROTLI)


@pytest.mark.parametrize("codings", [BROWSER, "gzip", ""])
@pytest.mark.parametrize("path", ["/assets/app-1a2b.js", "/index.html", "/", "/terminal", "/assets/text-3c4d.woff2"])
async def test_head_says_what_get_says(app: FastAPI, path: str, codings: str) -> None:
    got = await ask(app, path, codings=codings)
    head = await ask(app, path, method="HEAD", codings=codings)
    assert head.status_code == got.status_code == 200
    assert {name: head.headers.get(name) for name in MOVED} == {name: got.headers.get(name) for name in MOVED}


async def test_the_page_is_asked_for_again_and_the_rest_is_kept_by_its_name(app: FastAPI) -> None:
    for path in ("/", "/index.html", "/earth", "/terminal", "/sources"):
        page = await ask(app, path, codings=BROWSER)
        assert (page.status_code, page.headers["cache-control"]) == (200, "no-cache")
        assert (page.headers["content-encoding"], gzip.decompress(page.raw)) == ("gzip", INDEX)
        known = await ask(app, path, codings=BROWSER, if_none_match=page.headers["etag"])
        assert (known.status_code, known.raw) == (304, b"")
    icon = await ask(app, "/favicon.svg", codings=BROWSER)
    assert (icon.headers["cache-control"], icon.headers["content-type"]) == ("no-cache", "image/svg+xml")


async def test_what_the_build_did_not_pack_is_sent_as_it_is(app: FastAPI) -> None:
    font = await ask(app, "/assets/text-3c4d.woff2", codings=BROWSER)
    assert (font.raw, font.headers["content-type"]) == (FONT, "font/woff2")
    assert "content-encoding" not in font.headers
    assert font.headers["cache-control"] == FOR_EVER
    archive = await ask(app, "/assets/old.tar.gz", codings=BROWSER)
    assert (archive.status_code, archive.headers.get("content-encoding")) == (200, None)
    assert (await ask(app, "/empty.txt")).raw == b""


async def test_a_build_without_packed_files_is_served_too(tmp_path: Path) -> None:
    static = build(tmp_path)
    for packed in (*static.rglob("*.gz"), *static.rglob("*.br"), *static.rglob("*.zst")):
        packed.unlink()
    answer = await ask(served(static), "/assets/app-1a2b.js", codings=BROWSER)
    assert (answer.status_code, answer.raw, answer.headers.get("content-encoding")) == (200, SCRIPT, None)


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/assets/../../secret.txt",
        "/assets/..%2f..%2fsecret.txt",
        "/..%5csecret.txt",
        "/%252e%252e/secret.txt",
        "/assets/%2e%2e/index.html",
        "//secret.txt",
        "//etc/passwd",
        "/%2fetc%2fpasswd",
        "/assets",
        "/assets/",
        "/index.html/",
        "/index.html.gz",
        "/assets/app-1a2b.js.br",
        "/ASSETS/app-1a2b.js",
        "/%00",
        "/a%00b",
        "/index.html%00",
        "/%ff%fe",
        "/%ed%a0%80",
        "/" + "n" * 300,
        "/" + "a/" * 3_000,
        "/" + "%2e%2e/" * 500,
    ],
)
async def test_a_path_that_is_no_file_of_the_build_is_404(app: FastAPI, path: str) -> None:
    """What held, and E11: nobody looks on the disk for what was asked."""
    answer = await ask(app, httpx.URL("http://test").copy_with(raw_path=path.encode()))  # type: ignore[arg-type]
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    assert len(answer.raw) < 1_000
    html = await ask(app, httpx.URL("http://test").copy_with(raw_path=path.encode()), accept="text/html")  # type: ignore[arg-type]
    assert (html.status_code, html.raw) == (200, INDEX)


async def test_a_running_server_serves_one_build_whole(tmp_path: Path) -> None:
    """Files that come, change or go meanwhile are another build's."""
    static = build(tmp_path)
    app = served(static)
    (static / "assets" / "app-1a2b.js").unlink()
    (static / "assets" / "app-1a2b.js.br").write_bytes(b"of another build")
    (static / "assets" / "new-5e6f.js").write_bytes(b"of another build")
    assert (await ask(app, "/assets/app-1a2b.js", codings=BROWSER)).raw == BROTLI
    assert (await ask(app, "/assets/new-5e6f.js")).status_code == 404


async def test_without_a_build_the_page_says_what_to_do_and_the_rest_is_404(tmp_path: Path) -> None:
    app = served(tmp_path / "nothing")
    page = await ask(app, "/", accept="text/html")
    assert page.status_code == 503 and b"make setup" in page.raw
    assert (await ask(app, "/assets/app-1a2b.js")).status_code == 404


async def test_who_does_not_read_holds_one_piece_and_not_the_file() -> None:
    """A large file to many who read nothing: the server waits after each piece, as its connection tells it."""
    sent: list[int] = []

    async def send(message: Any) -> None:
        sent.append(len(message.get("body", b"")))

    await InPieces(b"x" * (3 * PIECE_BYTES + 1))({"type": "http"}, send, send)  # type: ignore[arg-type]
    assert sent == [0, PIECE_BYTES, PIECE_BYTES, PIECE_BYTES, 1]


# --- the build of this tree


def test_every_file_of_the_build_has_a_type_that_browsers_run_or_show() -> None:
    files = read(built_page())
    assert len(files) > 20
    assert [name for name, file in files.items() if file.media_type == UNKNOWN] == []
    assert MEDIA_TYPES[".wasm"] == "application/wasm"  # else it is not compiled while it comes


def test_what_is_text_was_packed_by_the_build_and_opens_to_the_same_bytes() -> None:
    for name, file in read(built_page()).items():
        if len(file.plain.body) > 1_000 and not name.endswith((".png", ".jpg", ".woff2")):
            assert {"br", "gzip"} <= file.packed.keys(), name
        for form in file.packed.values():
            assert len(form.body) < len(file.plain.body)
        if "gzip" in file.packed:
            assert gzip.decompress(file.packed["gzip"].body) == file.plain.body
        if "zstd" in file.packed:
            assert zstandard.ZstdDecompressor().decompress(file.packed["zstd"].body) == file.plain.body


def test_the_first_load_of_the_globe_is_a_quarter_of_its_plain_bytes() -> None:
    """Scripts, styles and the map: a browser with brotli fetches less than 0.25 of them, with gzip less than 0.3."""
    files = [file for name, file in read(built_page()).items() if name.startswith("assets/")]
    plain = sum(len(file.plain.body) for file in files)
    for coding, share in (("br", 0.25), ("gzip", 0.30)):
        sent = [dict(file.packed).get(coding, file.plain) for file in files]
        assert sum(len(form.body) for form in sent) < share * plain


async def test_the_application_serves_the_build_last(tmp_path: Path) -> None:
    built_page()
    app = web_app.create([], "0")
    page = await ask(app, "/terminal", codings="br")
    assert (page.status_code, page.headers.get("content-encoding")) == (200, "br")
    assert (await ask(app, "/api/nothing")).status_code == 404
