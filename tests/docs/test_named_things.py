"""What the pages name is there: commands, tables, settings, and every identifier at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from planetwire.cli import app
from planetwire.datasets.registry import layers
from planetwire.diagnosis.path import watched_tables
from planetwire.errors import SetupError
from planetwire.settings import check_environment, variable_names

ROOT = Path(__file__).resolve().parents[2]
# The changelog and the decisions tell of what was; everything else tells of what is.
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    if page.name != "CHANGELOG.md"
)
CONTRACTS = "docs/contracts.md"
SPAN = re.compile(r"```\w*\n(.*?)```|`([^`\n]+)`", re.DOTALL)
DECLARATION = re.compile(r"```yaml\nsource:.*?```", re.DOTALL)  # its names are the reader's; another test reads it
PACKAGE = re.compile(
    r"^## A whole one\n.*?(?=^## )", re.DOTALL | re.MULTILINE
)  # likewise: it is built, installed and run
PRODUCT = ("src/planetwire", "frontend/src", "spec", "scripts", "deploy", "bench")
WRITTEN = {".py", ".sql", ".ts", ".tsx", ".json", ".css", ".toml", ".txt", ".conf", ".service", ".yaml"}
WORD = re.compile(r"\b[A-Za-z]\w*_\w+")
OTHERS = {
    "http_code": "curl's",
    "pg_drop_replication_slot": "PostgreSQL's",
    "vite_law_runs": "of a test",
    "wait_event": "PostgreSQL's",
}
FILE = re.compile(r"(?<![\w/.<>*{…-])[\w./-]+\.(?:py|sql|tsx?|md|toml)(?![\w.])")
STATEMENT = re.compile(r"\b(select|insert|update|delete|truncate)\b", re.IGNORECASE)
TABLE = re.compile(r"\b(?:from|into|join|truncate(?: table)?|^update)\s+(?:public\.)?([a-z_]+)", re.IGNORECASE)
COMMAND = re.compile(r"(?<![\w./~-])planetwire((?: [a-z][a-z|-]*)*)([^\n#]*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def text_of(page: str) -> str:
    """Without the names that are listed because they are old."""
    text = (ROOT / page).read_text(encoding="utf-8").partition("## Older names")[0]
    return PACKAGE.sub("", DECLARATION.sub("", text))


def spans(page: str) -> list[str]:
    """What stands between backticks, blocks line by line; a test's title has its own check."""
    found = (block or inline for block, inline in SPAN.findall(text_of(page)))
    return [line for span in found for line in span.splitlines() if "::" not in line]


@cache
def words_of_the_product() -> frozenset[str]:
    """Every word of what runs, and the names of all files."""
    files = [file for folder in PRODUCT for file in (ROOT / folder).rglob("*") if file.is_file()]
    texts = [
        file for file in files if file.suffix in WRITTEN and "static" not in file.parts and ".test." not in file.name
    ]
    texts += [ROOT / name for name in ("Makefile", "pyproject.toml", ".ci/run")]
    words = {word for file in texts for word in re.findall(r"\w+", file.read_text(encoding="utf-8").lower())}
    named = [file.name.partition(".")[0] for file in [*files, *(ROOT / "tests").rglob("*.py")]]
    return frozenset(word.strip("_") for word in (*words, *named))


@pytest.mark.parametrize("page", PAGES)
def test_what_is_quoted_stands_on_one_line(page: str) -> None:
    """Where it goes on in the next, the checks of this file would read what stands between two quotations."""
    text = re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL)
    assert [line for line in text.splitlines() if line.count("`") % 2] == []


def is_known(identifier: str) -> bool:
    words, name = words_of_the_product(), identifier.lower().strip("_").removesuffix("_total")
    if name in words or name in OTHERS:
        return True
    metric, cuts = name.startswith("planetwire_"), [found.start() for found in re.finditer("_", name)]
    return metric and any(name[:cut] in words and name[cut + 1 :] in words for cut in cuts)  # f"planetwire_disk_{name}"


@cache
def commands() -> dict[tuple[str, ...], frozenset[str]]:
    """Options by command; a group is one itself where it does something without a command."""

    def walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], frozenset[str]]]:
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, (*path, name))
        if not hasattr(command, "commands") or not path or command.invoke_without_command:
            options = (option for one in command.params for option in (*one.opts, *one.secondary_opts))
            yield path, frozenset(option for option in options if option.startswith("--")) | {"--help"}

    return dict(walk(typer.main.get_command(app), ()))


def unknown_commands(span: str) -> list[str]:
    """Of `planetwire jobs ls|show --log`: each name and each option that the program has not."""
    faults = []
    for names, rest in COMMAND.findall(span):
        first, *others = names.split() or [""]
        group = {path[1] for path in commands() if path[0:1] == (first,) and len(path) == 2}
        if first and not group and (first,) not in commands():
            faults.append(f"planetwire {first}")
            continue
        inner = others[0].split("|") if group and others else []
        faults += [f"planetwire {first} {name}" for name in inner if name not in group]
        paths = [(first, name) for name in inner] or [
            path for path in commands() if path[: len(names.split())] == (first,)
        ]
        options = {option for path in [*paths, ()] for option in commands().get(path, frozenset())}
        faults += [f"planetwire {first} {option}" for option in OPTION.findall(rest) if option not in options]
    return faults


@cache
def tables() -> frozenset[str]:
    """Of both databases, as the migrations leave them."""
    heads = (ROOT / "src" / "planetwire" / "_schema").glob("head*.sql")
    made = re.compile(r"^create (?:unlogged )?(?:table|view) (?:public\.)?\"?(\w+)", re.IGNORECASE | re.MULTILINE)
    return frozenset(name for head in heads for name in made.findall(head.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", PAGES)
def test_every_identifier_is_one_of_the_product(page: str) -> None:
    named = {part for span in spans(page) for word in WORD.findall(span) for part in word.split("__")}
    found = {name for name in named if "_" in name.strip("_") and not name.startswith("PLANETWIRE_")}
    assert sorted(name for name in found if not is_known(name)) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_command_and_option_exists(page: str) -> None:
    assert [fault for span in spans(page) for fault in unknown_commands(span)] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_file_exists(page: str) -> None:
    """By its path from the root, or from a folder that everybody knows; what a reader is to make has a `<…>` in it."""
    package = ROOT / "src" / "planetwire"
    places = [ROOT, package, *package.iterdir(), *(ROOT / name for name in (*PRODUCT, "docs", "scripts/faults"))]
    named = {name for span in spans(page) for name in FILE.findall(span)}
    assert sorted(name for name in named if not any((place / name).exists() for place in places)) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_make_target_exists(page: str) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {name for span in spans(page) for name in re.findall(r"^\s*make ([a-z0-9-]+)", span)}
    assert named - targets == set()


@pytest.mark.parametrize("page", PAGES)
def test_every_table_that_a_statement_names_exists(page: str) -> None:
    named = {name for span in spans(page) if STATEMENT.search(span) for name in TABLE.findall(span)}
    assert {name for name in named if not name.startswith("pg_")} - tables() == set()


@pytest.mark.parametrize("page", PAGES)
def test_every_setting_exists(page: str) -> None:
    """`PLANETWIRE_LIMITS__…` stands for its section; `make` and the benchmarks have variables of their own."""
    beside = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "bench/_running.py"))
    for name in sorted(set(re.findall(r"\bPLANETWIRE_\w+", text_of(page)))):
        if name.endswith("__") and any(known.startswith(name.rstrip("_")) for known in variable_names()):
            continue
        if name not in beside:
            try:
                check_environment({name: "1"})
            except SetupError as error:
                pytest.fail(f"{page}: {error}")


def test_a_name_that_is_not_there_is_noticed() -> None:
    """The checks above can fail, each."""
    assert not is_known("natural_events") and not is_known("planetwire_disk_thoughts")
    assert is_known("planetwire_disk_used_bytes") and is_known("collected_data")
    assert unknown_commands("planetwire check-sources FILE") == ["planetwire check-sources"]
    assert unknown_commands("planetwire jobs show|shew --log") == ["planetwire jobs shew"]
    assert unknown_commands("planetwire doctor --no-canary --now") == ["planetwire doctor --now"]
    assert unknown_commands("planetwire jobs retry --dead") == unknown_commands("planetwire --version") == []
    assert "sensor_latest" not in tables() and {"observation_recent", "job_log_lines"} <= tables()


def section(number: int) -> str:
    return text_of(CONTRACTS).partition(f"\n## {number}. ")[2].partition("\n## ")[0]


def test_the_contracts_name_tables_that_exist_and_every_derived_one() -> None:
    cells = [row.split("|")[1] for row in section(1).splitlines() if row.startswith("| `")]
    named = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert len(named) >= 15 and named <= tables()
    derived = re.search(r"^\| derived \| (.*?)\. ", section(1), re.MULTILINE)
    assert derived and set(re.findall(r"`(\w+)`", derived[1])) == set(watched_tables()) - {"collected_data"}


def test_the_contracts_name_every_layer_with_its_sources() -> None:
    line = re.search(r"^Layer ← source: (.*)$", section(1), re.MULTILINE)
    assert line
    bare = re.sub(r" \([^)]*\)", "", line[1])  # without aliases and remarks
    told = {ids[0]: set(ids[1:]) for ids in (re.findall(r"`(\w+)`", part) for part in bare.split(" · "))}
    assert told.keys() == {layer.id for layer in layers()}
    for layer in layers():
        sources = {source for table, source in layer.feeds if table == "collected_data"}
        assert told[layer.id] - {"earth_interactables"} == sources, layer.id


def test_the_contracts_list_every_command_and_no_other() -> None:
    rows = re.findall(r"^\| `planetwire ([^`]+)` \|", section(7).replace("\\|", "|"), re.MULTILINE)
    told = set()
    for row in rows:
        words = re.match(r"([a-z-]+)(?: ([a-z][a-z|-]*))?", row)
        assert words, row
        groups = {path[0] for path in commands() if len(path) == 2}
        told |= {(words[1], name) for name in words[2].split("|")} if words[1] in groups and words[2] else {(words[1],)}
    assert told == set(commands()) - {()}
