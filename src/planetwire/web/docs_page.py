"""`/api/docs`: the description of the API as a page. Made here, so that it needs no script and no network."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from html import escape

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from planetwire.model import Json
from planetwire.web.openapi import PATH as DOCUMENT

PATH = "/api/docs"
CSP = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
HEADERS = {"Content-Security-Policy": CSP, "Cache-Control": "no-cache"}
STYLE = """
:root{color-scheme:light dark;--line:#8884;--dim:#777}
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{margin-bottom:0}h2{margin-top:2.5rem;border-bottom:1px solid var(--line)}
code,pre{font:13px/1.45 ui-monospace,monospace}pre{overflow:auto;background:#8881;padding:.7rem;border-radius:.3rem}
details{border:1px solid var(--line);border-radius:.4rem;margin:.5rem 0;padding:.4rem .8rem}
summary{cursor:pointer}summary b{display:inline-block;min-width:4.2rem}summary span{color:var(--dim);margin-left:.6rem}
.get{color:#2a7}.post{color:#27c}.patch{color:#b70}.delete{color:#c33}
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.2rem .6rem .2rem 0}
th{color:var(--dim);font-weight:normal}nav a{margin-right:1rem}
"""


def router(document: Callable[[], Json]) -> APIRouter:
    """The page; `document` gives what it shows."""
    routes = APIRouter(include_in_schema=False)

    @routes.get(PATH)
    async def docs() -> HTMLResponse:
        """Every route, by its part."""
        return HTMLResponse(render(document()), headers=HEADERS)

    return routes


def render(document: Json) -> str:
    """The whole page."""
    info, parts = document["info"], _parts(document)
    links = "".join(f'<a href="#{escape(tag)}">{escape(tag)}</a>' for tag in parts)
    body = "".join(
        f'<h2 id="{escape(tag)}">{escape(tag)}</h2>{"".join(operations)}' for tag, operations in parts.items()
    )
    schemas = "".join(_schema(name, schema) for name, schema in document["components"]["schemas"].items())
    title = f"{info['title']} {info['version']}: API"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style><h1>{escape(title)}</h1>'
        f"<p>{_text(info['description'])}</p>"
        f'<p><a href="{DOCUMENT}">{DOCUMENT}</a> is this page for programs (OpenAPI {document["openapi"]}).</p>'
        f"<nav>{links}<a href='#schemas'>schemas</a></nav>{body}<h2 id='schemas'>schemas</h2>{schemas}</html>"
    )


def _parts(document: Json) -> dict[str, list[str]]:
    parts: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tag = (operation.get("tags") or ["other"])[0]
            parts.setdefault(tag, []).append("".join(_operation(method, path, operation)))
    return parts


def _operation(method: str, path: str, operation: Json) -> Iterator[str]:
    yield (
        f'<details id="{escape(operation["operationId"])}"><summary><b class="{method}">{method.upper()}</b>'
        f"<code>{escape(path)}</code><span>{_title(operation)}</span></summary>"
    )
    yield f"<p>{_text(operation.get('description', ''))}</p><p>{_access(operation.get('security'))}</p>"
    rows = "".join(_parameter(one) for one in operation.get("parameters", ()))
    yield f"<table><tr><th>parameter<th>in<th>value<th></tr>{rows}</table>" if rows else ""
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"<p>Body, <code>{escape(kind)}</code>:</p>{_json(content.get('schema', {}))}"
    answers = "".join(_answer(status, answer) for status, answer in operation["responses"].items())
    yield f"<table><tr><th>answer<th>as<th></tr>{answers}</table></details>"


def _title(operation: Json) -> str:
    """The route's own words: a summary of one or two is only its name in the code."""
    summary, about = operation.get("summary", ""), operation.get("description", "")
    return _text(summary if summary.count(" ") > 1 or not about else about.partition("\n")[0].split(". ")[0])


def _access(security: list[Json] | None) -> str:
    if not security or {} in security:
        return "Anybody may ask." if security is None else "Anybody may ask, or with credentials."
    return f"Needs {' or '.join(escape(name) for one in security for name in one)}."


def _parameter(one: Json) -> str:
    must = "required" if one.get("required") else ""
    about = _text(one.get("description", ""))
    value = escape(json.dumps(one.get("schema", {}), ensure_ascii=False))
    return f"<tr><td><code>{escape(one['name'])}</code><td>{one['in']} {must}<td><code>{value}</code><td>{about}</tr>"


def _answer(status: str, answer: Json) -> str:
    kinds = ", ".join(escape(kind) for kind in answer.get("content", {})) or "no body"
    return f"<tr><td><code>{escape(status)}</code><td>{kinds}<td>{_text(answer.get('description', ''))}</tr>"


def _schema(name: str, schema: Json) -> str:
    return (
        f'<details id="schema-{escape(name)}"><summary><code>{escape(name)}</code></summary>{_json(schema)}</details>'
    )


def _json(value: Json) -> str:
    return f"<pre>{escape(json.dumps(value, indent=2, ensure_ascii=False))}</pre>"


def _text(text: str) -> str:
    """Words between backticks as code; nothing else of Markdown is used in our texts."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if n % 2 else piece for n, piece in enumerate(pieces))
