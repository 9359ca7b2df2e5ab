"""What uvicorn does not document and we use is there, looks as we take it to look, and is used in one module alone."""

from __future__ import annotations

import ast
import asyncio
import inspect
from collections import deque
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import httptools
import pytest
import uvicorn
from uvicorn.protocols import utils
from uvicorn.protocols.http import flow_control, httptools_impl
from uvicorn.protocols.websockets import websockets_sansio_impl
from uvicorn.server import ServerState

import planetwire
from planetwire.web.http import uvicorn_seam

PACKAGE = Path(planetwire.__file__).parent
SEAM = "web/http/uvicorn_seam.py"
REQUEST = b"GET /a?b HTTP/1.1\r\nhost: localhost\r\n\r\n"
CLASSES = {
    httptools_impl: ("HttpToolsProtocol", "RequestResponseCycle"),
    flow_control: ("FlowControl",),
    websockets_sansio_impl: ("WebSocketsSansIOProtocol",),
    uvicorn.server: ("Server", "ServerState"),
}
# asyncio's and ASGI's, which both document; and attributes of uvicorn.Server that its documentation names.
DOCUMENTED = {name for name in dir(asyncio.Protocol)} | {"transport", "receive", "send", "serve", "should_exit"}
OURS_TOO = {"Server"}  # a name of the seam itself

METHODS = {
    "on_message_begin": (),
    "on_url": ("url",),
    "on_header": ("name", "value"),
    "on_headers_complete": (),
    "on_body": ("body",),
    "on_message_complete": (),
    "on_response_complete": (),
    "_start_asgi_task": ("cycle", "app"),
    "_should_upgrade": (),
    "handle_websocket_upgrade": (),
    "shutdown": (),
}
CONNECTION = {
    "app": object,
    "app_state": dict,
    "access_log": bool,
    "access_logger": object,
    "client": (tuple, type(None)),
    "flow": flow_control.FlowControl,
    "headers": list,
    "loop": asyncio.AbstractEventLoop,
    "parser": httptools.HttpRequestParser,
    "pipeline": deque,
    "scope": dict,
    "server_state": ServerState,
    "tasks": set,
    "url": bytes,
    "cycle": httptools_impl.RequestResponseCycle,
}
CYCLE = {
    "disconnected": bool,
    "keep_alive": bool,
    "message_event": asyncio.Event,
    "on_response": object,
    "response_complete": bool,
    "response_started": bool,
    "scope": dict,
    "transport": object,
}
SCOPE = {"client", "headers", "http_version", "method", "path", "query_string"}
FLOW = {"read_paused": bool, "write_paused": bool}
STATE = {"default_headers": list, "tasks": set, "total_requests": int}
SERVER = {"force_exit": bool, "should_exit": bool}
SOCKET = {"app_state": dict, "config": uvicorn.Config, "conn": object}
CALLS = {
    (httptools_impl.RequestResponseCycle, "receive"): (),
    (flow_control.FlowControl, "pause_reading"): (),
    (flow_control.FlowControl, "resume_reading"): (),
    (uvicorn.Server, "handle_exit"): ("sig", "frame"),
    (utils, "is_ssl"): ("transport",),
    (utils, "get_client_addr"): ("scope",),
    (utils, "get_path_with_query_string"): ("scope",),
    **{(httptools_impl.HttpToolsProtocol, name): parameters for name, parameters in METHODS.items()},
}


class Wire(asyncio.Transport):
    """Takes what is written, and nothing else."""

    def write(self, data: Any) -> None: ...

    def close(self) -> None: ...

    def is_closing(self) -> bool:
        return True


def fault(what: str) -> str:
    return f"uvicorn {uvicorn.__version__}: {what}; {SEAM} has to follow, PLANETWIRE_PLAIN_HTTP=true serves meanwhile"


def calls_that_changed() -> Iterator[str]:
    for (owner, name), wanted in CALLS.items():
        function = getattr(owner, name, None)
        if function is None:
            yield fault(f"{owner.__name__.rpartition('.')[2]}.{name} is gone")
            continue
        given = tuple(parameter for parameter in inspect.signature(function).parameters if parameter != "self")
        if given != wanted:
            yield fault(f"{owner.__name__}.{name} takes {given}, not {wanted}")


def attributes_that_changed(thing: object, wanted: Mapping[str, Any]) -> Iterator[str]:
    for name, kind in wanted.items():
        if not hasattr(thing, name):
            yield fault(f"{type(thing).__name__}.{name} is gone")
        elif not isinstance(getattr(thing, name), kind):
            found = type(getattr(thing, name)).__name__
            yield fault(f"{type(thing).__name__}.{name} is {found}, not {kind}")


def tables_that_changed() -> Iterator[str]:
    if getattr(httptools_impl, "STATUS_LINE", {}).get(404) != b"HTTP/1.1 404 Not Found\r\n":
        yield fault("httptools_impl.STATUS_LINE is gone, or no table of status lines")


async def serve(scope: Any, receive: Any, send: Any) -> None:
    """An application."""
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


async def connection_with_a_request() -> httptools_impl.HttpToolsProtocol:
    """A plain one of uvicorn, without anything of ours."""
    config = uvicorn.Config(serve, ws="websockets-sansio", log_config=None)
    config.load()
    made = httptools_impl.HttpToolsProtocol(config, ServerState(), {})
    made.connection_made(Wire())
    made.data_received(REQUEST)
    return made


async def changed() -> list[str]:
    """What is not as the seam takes it to be."""
    connection = await connection_with_a_request()
    tasks = set(connection.tasks)
    try:
        found = [*calls_that_changed(), *tables_that_changed(), *attributes_that_changed(connection, CONNECTION)]
        found += attributes_that_changed(connection.server_state, STATE)
        found += attributes_that_changed(connection.flow, FLOW)
        if (cycle := getattr(connection, "cycle", None)) is not None:
            found += attributes_that_changed(cycle, CYCLE)
        found += [fault(f"an HTTP scope has no {key!r}") for key in SCOPE - set(connection.scope)]
        socket = websockets_sansio_impl.WebSocketsSansIOProtocol(connection.config, connection.server_state, {})
        found += attributes_that_changed(socket, SOCKET)
        found += attributes_that_changed(uvicorn.Server(connection.config), SERVER)
        return found
    finally:
        await asyncio.gather(*tasks)


async def test_all_that_the_seam_uses_is_there_and_looks_as_it_is_taken_to_look() -> None:
    assert await changed() == []


@pytest.mark.parametrize(
    ("owner", "name"),
    [*((owner, name) for owner, name in CALLS), (httptools_impl, "STATUS_LINE")],
    ids=lambda value: value if isinstance(value, str) else value.__name__.rpartition(".")[2],
)
def test_what_a_release_takes_away_is_named(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    monkeypatch.delattr(owner, name)
    (line,) = [*calls_that_changed(), *tables_that_changed()]
    assert f"{owner.__name__.rpartition('.')[2]}.{name} is gone" in line
    assert uvicorn.__version__ in line and SEAM in line


async def test_an_attribute_that_a_release_renames_or_changes_is_named() -> None:
    connection = await connection_with_a_request()
    await asyncio.gather(*connection.tasks)
    connection.queue = connection.__dict__.pop("pipeline")  # type: ignore[attr-defined]
    connection.url = "/a"  # type: ignore[assignment]
    gone, other = attributes_that_changed(connection, CONNECTION)
    assert "HttpToolsProtocol.pipeline is gone" in gone
    assert "HttpToolsProtocol.url is str" in other
    assert uvicorn.__version__ in gone and SEAM in gone


# --- who uses it


@cache
def tree(path: Path) -> ast.Module:
    """Of a module, read once."""
    return ast.parse(path.read_text(encoding="utf-8"))


def own_names() -> set[str]:
    """Every name that uvicorn's classes give themselves."""
    found: set[str] = set()
    for module, classes in CLASSES.items():
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.ClassDef) and node.name in classes:
                found |= set(named(node, of=("self",)))
    return {name for name in found if not name.startswith("__")} - DOCUMENTED


def named(root: ast.AST, of: tuple[str, ...]) -> Iterator[str]:
    """What is defined in classes, and what is asked of these names and of `super()`."""
    for node in ast.walk(root):
        if isinstance(node, ast.ClassDef):
            yield from (item.name for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef))
        elif isinstance(node, ast.Attribute):
            owner = node.value.func if isinstance(node.value, ast.Call) else node.value
            if isinstance(owner, ast.Name) and owner.id in (*of, "super"):
                yield node.attr


@cache
def classes(path: Path) -> list[ast.ClassDef]:
    return [node for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]


@cache
def heirs() -> list[Path]:
    """Modules with a class that is one of uvicorn's, at whatever distance; and those that make its server."""
    kin, found = {"HttpConnection", "SocketConnection"}, set()
    grown = True
    while grown:
        grown = False
        for path in sorted(PACKAGE.rglob("*.py")):
            for node in classes(path):
                if kin & {getattr(base, "id", "") for base in node.bases}:
                    grown |= node.name not in kin
                    kin.add(node.name)
                    found.add(path)
    return sorted(found - {PACKAGE / SEAM})


def test_no_other_module_names_what_uvicorn_does_not_document() -> None:
    """A class of ours that is one of theirs asks itself for what the seam gives, and defines none of their names."""
    theirs = own_names()
    assert {"pipeline", "cycle", "_start_asgi_task", "write_paused", "handle_exit", "default_headers"} <= theirs
    assert len(heirs()) >= 4
    for path in heirs():
        used = set(named(tree(path), of=("self", "cls")))
        assert sorted(used & theirs) == [], path


def test_no_other_module_imports_more_of_uvicorn_than_its_package() -> None:
    """Nor reaches through something else for the names that can be nobody else's."""
    unmistakable = {"server_state", "app_state", "handle_exit", "force_exit", "write_paused", "default_headers"}
    for path in sorted(PACKAGE.rglob("*.py")):
        if path == PACKAGE / SEAM:
            continue
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom):
                assert not (node.module or "").startswith("uvicorn"), path
            elif isinstance(node, ast.Import):
                assert not [alias.name for alias in node.names if alias.name.startswith("uvicorn.")], path
            elif isinstance(node, ast.Attribute):
                assert node.attr not in unmistakable, (path, node.lineno)


def test_all_that_the_seam_uses_is_looked_at() -> None:
    """So that this list cannot fall behind it."""
    used = {node.attr for node in ast.walk(tree(PACKAGE / SEAM)) if isinstance(node, ast.Attribute)} & own_names()
    looked_at = {name for _, name in CALLS} | {*CONNECTION, *CYCLE, *FLOW, *STATE, *SERVER, *SOCKET}
    assert used - looked_at - set(vars(uvicorn_seam.Exchange)) - OURS_TOO == set()
