"""Pages that would be wrong one day if nobody compared them with the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from planetwire import __version__

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "planetwire"
LEVELS = {"debug", "info", "warning", "error", "exception"}
SCHEMA = PACKAGE / "_schema"
MADE = (
    r"^\s*create (?:or replace )?(?:unlogged )?(?:function|trigger|table|view|(?:unique )?index) (?:public\.)?{name}\b"
)
GONE = r"^\s*drop (?:function|trigger|table|view|index) (?:if exists )?(?:public\.)?{name}\b"
STEP = re.compile(r"`((?:src/planetwire|frontend/src)/[\w./]+\.(?:py|ts|tsx|sql)):([\w.]+)`")
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")


def log_calls() -> Iterator[tuple[str, str]]:
    """(event name, level) of every log line in the package."""
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS):
                continue
            if ast.unparse(node.func.value) in ("log", "self._log"):
                for name in literals(node.args[0]):
                    yield name, node.func.attr


def literals(node: ast.expr) -> list[str]:
    if isinstance(node, ast.IfExp):
        return [*literals(node.body), *literals(node.orelse)]
    assert isinstance(node, ast.Constant) and isinstance(node.value, str), ast.unparse(node)
    return [node.value]


def test_every_log_event_is_on_the_operations_page_and_no_other() -> None:
    """S83–S87."""
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `([a-z_.]+)` \| (\w+) \|", page, re.MULTILINE))
    logged = {name: "error" if level == "exception" else level for name, level in log_calls()}
    assert listed == logged


def test_log_events_are_named_area_noun_verb() -> None:
    allowed = {"data_job.started", "data_job.completed"}
    for name, _ in log_calls():
        assert name in allowed or re.fullmatch(r"[a-z_]+\.[a-z_]+\.[a-z_]+", name), name


def test_every_step_of_the_life_of_a_datum_exists() -> None:
    page = (ROOT / "docs" / "life-of-a-datum.md").read_text(encoding="utf-8")
    steps = STEP.findall(page)
    assert len(steps) >= 30
    for file, name in steps:
        text = (ROOT / file).read_text(encoding="utf-8")
        assert defined(file, text, name), f"{file}: {name}"


def live_migration(name: str, engine: str, folder: Path = SCHEMA) -> str | None:
    """The migration whose text is in force for a function, trigger, table or index: the last one that makes it."""
    found = None
    for file in sorted(folder.glob(f"[0-9]*.{engine}.sql")):
        text = file.read_text(encoding="utf-8")
        for line in re.finditer(f"{MADE}|{GONE}".format(name=re.escape(name)), text, re.MULTILINE | re.IGNORECASE):
            found = None if line[0].lstrip().lower().startswith("drop") else file.name
    return found


def test_a_step_names_the_migration_whose_text_is_in_force() -> None:
    """A later one that replaces a function makes the page wrong."""
    page = (ROOT / "docs" / "life-of-a-datum.md").read_text(encoding="utf-8")
    steps = [(Path(file).name, name) for file, name in STEP.findall(page) if "/_schema/" in file]
    assert len(steps) >= 4
    for file, name in steps:
        assert live_migration(name, file.split(".")[-2]) == file, f"{file}: {name}"
        assert re.search(rf"\b{name}\b", (SCHEMA / "head.sql").read_text(encoding="utf-8")), (
            f"{name} is not in the schema"
        )


def test_what_a_later_migration_replaces_or_drops_is_not_in_force(tmp_path: Path) -> None:
    (tmp_path / "0001_a.postgres.sql").write_text(
        "create function f() returns void\n;create table t (id int);\ncreate function f_more() returns void"
    )
    assert live_migration("f", "postgres", tmp_path) == "0001_a.postgres.sql"
    (tmp_path / "0002_b.postgres.sql").write_text(
        "create or replace function f() returns void\n;drop table if exists t;"
    )
    assert live_migration("f", "postgres", tmp_path) == "0002_b.postgres.sql"
    assert live_migration("t", "postgres", tmp_path) is None


def defined(file: str, text: str, name: str) -> bool:
    if file.endswith(".sql"):
        return (
            re.search(rf"(-- name: {name}$|\b(function|trigger|table|index) {name}\b)", text, re.MULTILINE) is not None
        )
    if file.endswith(".py"):
        return name in set(python_names(ast.parse(text)))
    last = name.split(".")[-1]
    return (
        re.search(
            rf"\b(function|class|const|interface|type) {last}\b|^\s+(async |get |private |readonly )*{last}\(",
            text,
            re.M,
        )
        is not None
    )


def python_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{node.name}.{item.name}"


@pytest.mark.parametrize(
    "page", sorted(p.relative_to(ROOT).as_posix() for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
)
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    file = ROOT / page
    for target in LINK.findall(file.read_text(encoding="utf-8")):
        assert (file.parent / target).exists(), f"{page}: {target}"


def test_each_stage_has_one_sentence_that_says_what_it_takes_and_gives() -> None:
    for stage in ("jobs", "collect", "facts", "layers", "outbox", "relay", "stream", "web"):
        doc = ast.get_docstring(ast.parse((PACKAGE / stage / "__init__.py").read_text(encoding="utf-8"))) or ""
        assert doc.startswith("Takes ") and "gives" in doc, stage


def test_the_two_readmes_name_the_same_commands() -> None:
    commands = re.compile(r"^(make \w+|pip install \S+|planetwire \w+[ \w]*)", re.MULTILINE)
    english, chinese = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh.md"))
    assert {c.split("  ")[0].strip() for c in commands.findall(english)} == {
        c.split("  ")[0].strip() for c in commands.findall(chinese)
    }


def test_the_two_readmes_show_a_picture_that_moves_and_is_small() -> None:
    """`make picture` records it."""
    for name in ("README.md", "README.zh.md"):
        [picture] = re.findall(r"^!\[[^\]]+\]\(([^)]+)\)$", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        with Image.open(ROOT / picture) as opened:
            assert opened.n_frames > 20 and opened.width >= 800  # type: ignore[attr-defined]
        assert (ROOT / picture).stat().st_size <= 1_000_000


def test_the_readmes_install_the_wheel_of_this_version() -> None:
    for name in ("README.md", "README.zh.md"):
        assert f"pip install planetwire-{__version__}-py3-none-any.whl" in (ROOT / name).read_text(encoding="utf-8")


def test_no_queue_of_others_is_a_dependency() -> None:
    """S3, S109."""
    locked = (ROOT / "requirements" / "run.lock").read_text(encoding="utf-8")
    names = set(re.findall(r"^([a-z0-9-]+)==", locked, re.MULTILINE))
    assert names.isdisjoint({"kafka-python", "aiokafka", "confluent-kafka", "celery", "rq", "dramatiq", "redis"})
