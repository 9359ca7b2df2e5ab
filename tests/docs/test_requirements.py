"""`docs/requirements-coverage.md` says where each requirement is held; this keeps it from saying what is not so."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NUMBERS = range(1, 230)
NEW = (*range(182, 206), *range(220, 226), *range(227, 230))  # flows, errors and acceptance of the weather half
ROW = re.compile(r"^\| S(\d+) \| (.+?) \| (.*?) ?\|$", re.MULTILINE)
TEST = re.compile(r"`([\w./]+\.(?:py|ts|tsx))::(.+?)`")
OPENS = re.compile(r"(?P<indent>\s*)(?P<kind>describe|it)(?P<each>\.each)?\(")
SPAN = re.compile(r"\bS(\d+)(?:\s*[–-]\s*S?(\d+))?")


def rows() -> list[tuple[int, str, str]]:
    """Number, held by, remark."""
    page = (ROOT / "docs" / "requirements-coverage.md").read_text(encoding="utf-8")
    return [(int(number), held, remark) for number, held, remark in ROW.findall(page)]


def named_tests() -> list[tuple[str, str, frozenset[int]]]:
    """File, name and the numbers it holds, for each test on the page."""
    found: dict[tuple[str, str], set[int]] = {}
    for number, held, _ in rows():
        for file, name in TEST.findall(held):
            found.setdefault((file, name), set()).add(number)
    return [(file, name, frozenset(numbers)) for (file, name), numbers in found.items()]


def numbers_in(text: str) -> set[int]:
    """S24–S30 and S24-30 are all of them."""
    found: set[int] = set()
    for first, last in SPAN.findall(text):
        found.update(range(int(first), int(last or first) + 1))
    return found


def label(value: str | frozenset[int]) -> str:
    """The same in every process of a parallel run."""
    return value if isinstance(value, str) else ",".join(f"S{number}" for number in sorted(value))


@cache
def python_tests(file: str) -> dict[str, str]:
    """Docstring by name of each test of a file."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name: ast.get_docstring(node) or "" for node in functions if node.name.startswith("test_")}


def test_every_requirement_is_in_the_table_once() -> None:
    """S226: none is forgotten, and each is either held by a test or said to come later with what it waits for."""
    assert [number for number, _, _ in rows()] == list(NUMBERS)
    stated = (ROOT / "spec" / "requirements.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^- (S\d+) ", stated, re.MULTILINE)) == {f"S{number}" for number in NUMBERS}
    for number, held, remark in rows():
        if held == "later":
            assert remark, f"S{number}: later, but with what?"
        else:
            assert re.sub(TEST, "", held).replace("<br>", "") == "" and TEST.findall(held), f"S{number}: {held}"


@cache
def script_tests(file: str) -> dict[str, str]:
    """By title what names a test's numbers: the describes around it, the comment above it, and all of its own lines.

    Biome lays them out, so that whatever opens with an indentation ends at the next line that has the same and `}`.
    """
    tests: dict[str, str] = {}
    around: list[tuple[str, str]] = []
    comment: list[str] = []
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        opened = OPENS.match(line)
        if opened is None:
            around = [one for one in around if not line.startswith(f"{one[0]}}}")]
            comment = [*comment, line] if line.lstrip().startswith(("//", "/*", "*")) else []
            continue
        indent, kind = opened["indent"], opened["kind"]
        if kind == "describe":
            around.append((indent, line))
        else:
            rest = lines[number:]
            end = 1 if line.endswith(");") else next(n for n, at in enumerate(rest) if at.startswith(f"{indent}}}")) + 1
            before = r"\)\(" if opened["each"] else r"\("
            title = re.search(before + r'\s*["`]((?:[^"`\\]|\\.)*)["`]', "\n".join(rest[:end]))
            assert title, f"{file}:{number + 1} has no title"
            tests[title[1]] = "\n".join([*(head for _, head in around), *comment, *rest[:end]])
        comment = []
    return tests


@pytest.mark.parametrize(("file", "name", "numbers"), named_tests(), ids=label)
def test_a_number_is_named_by_each_test_that_holds_it(file: str, name: str, numbers: frozenset[int]) -> None:
    """S226: the test is there, and says itself what it is for; what its file says elsewhere does not count."""
    tests = python_tests(file) if file.endswith(".py") else script_tests(file)
    assert name in tests, f"no such test: {file}::{name}"
    assert numbers <= numbers_in(tests[name]), f"{file}::{name} does not name {numbers - numbers_in(tests[name])}"


def test_a_number_beside_a_test_is_not_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S226: of a neighbour, of the file's head and of a helper; its own are in its title, text, comment or describe."""
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "a.test.ts").write_text(
        "// S1\n"
        'describe("one (S2)", () => {\n'
        '  const helper = () => "S3";\n'
        "\n"
        "  // S4\n"
        '  it("first", () => {\n'
        "    if (helper()) {\n"
        "      expect(1).toBe(1); // S5\n"
        "    }\n"
        "  });\n"
        "  // S6, of nothing\n"
        "\n"
        '  it.each([1])("second (S7)", () => {\n'
        "  });\n"
        "});\n"
        'it("third", () => expect(helper()).toBe("S8"));\n'
    )
    found = {name: numbers_in(text) for name, text in script_tests("a.test.ts").items()}
    assert found == {"first": {2, 4, 5}, "second (S7)": {2, 7}, "third": {8}}


def test_each_new_behaviour_has_a_test_of_its_own() -> None:
    """S226: one that runs the product and is counted for no other of them, so that none hides behind its neighbour."""
    held = {
        number: [one for one in TEST.findall(tests) if not one[0].startswith("tests/docs/")]
        for number, tests, _ in rows()
    }
    owner: dict[tuple[str, str], int] = {}

    def has_own(number: int, asked: set[tuple[str, str]]) -> bool:
        """Whose test is wanted takes another of its own, if there is one."""
        for test in held[number]:
            if test not in asked:
                asked.add(test)
                if test not in owner or has_own(owner[test], asked):
                    owner[test] = number
                    return True
        return False

    assert [number for number in NEW if not has_own(number, set())] == []
    assert all(any(test in held[number] for number in NEW) for test in held[226])


def test_older_names_lead_to_modules_that_exist() -> None:
    """S19, S20, S158, S160, S162, S165, S170, S174, S176: whoever knows a part by its old name finds it."""
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").partition("## Older names")[2]
    cells = [row.split("|")[2] for row in page.splitlines() if row.startswith("| `")]
    named = [path for cell in cells for path in re.findall(r"`((?:[\w-]+/)+[\w.-]*)`", cell)]
    assert len(named) >= 12
    for path in named:
        places = (ROOT / path, ROOT / "src" / "planetwire" / path)
        assert any(place.exists() for place in places), path
