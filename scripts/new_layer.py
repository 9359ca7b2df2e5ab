"""Writes the two places of a new layer: its declaration and its line in the registry.

What only its author knows is left as `…`; a test of the registry fails until none is left.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
END_OF_NAMES = re.compile(r"(\nNAMES = \(\n(?:    \"\w+\",\n)+)")

DECLARATION = '''"""The layer of {words}: …."""

from __future__ import annotations

from planetwire.layers.places import asked
from planetwire.model import Derived, Fact, LayerAdapter, Provenance
from planetwire.model.presentation import CardRow, FixedSize, Look


def _derive(fact: Fact) -> Derived:
    """Found by title and key; add what else people look for. Without coordinates it lies where its `place` is."""
    return Derived(place=asked(fact, "place"))


{constant} = LayerAdapter(
    id="{name}",
    title="{title}",
    title_zh="…",
    group="…",
    kind="point",
    feeds=(("collected_data", "{source}"), ("resolved_locations", "{source}")),
    owned_tables=("resolved_locations", "earth_interactables"),
    derive=_derive,
    look=Look(size=FixedSize(6.0)),
    card=(
        CardRow("kind", "Kind", "类型", ("kind",)),
        CardRow("observed", "Observed", "观测时间", ("observed_at",), "time"),
    ),
    cache_patterns=("earth:layer:{name}:*",),
    provenance=Provenance(
        publisher="…",
        licence="…",
        coverage="…",
        limits="…",
        zh=Provenance(publisher="…", licence="…", coverage="…", limits="…"),
    ),
)
'''


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="of the layer, in the plural: volcanoes")
    parser.add_argument("source", help="whose facts it shows: usgs_volcanoes")
    parser.add_argument("--root", type=Path, default=ROOT, help="of the repository")
    wish = parser.parse_args()
    for word in (wish.name, wish.source):
        if not NAME.fullmatch(word):
            parser.error(f"{word!r}: lower-case words and digits, joined by _ (NAME=volcanoes SOURCE=usgs_volcanoes)")
    try:
        write(wish.root, wish.name, wish.source)
    except FileExistsError as error:
        sys.exit(f"{error.filename} is there already; nothing was written")


def write(root: Path, name: str, source: str) -> None:
    """Both, or nothing when the declaration exists."""
    declaration = root / "src" / "planetwire" / "layers" / f"{name}.py"
    if declaration.exists():
        raise FileExistsError(None, "exists", str(declaration.relative_to(root)))
    words = name.replace("_", " ")
    title = words.capitalize()
    declaration.write_text(
        DECLARATION.format(name=name, constant=name.upper(), words=words, title=title, source=source)
    )
    registry = declaration.with_name("registry.py")
    text, found = END_OF_NAMES.subn(rf'\g<1>    "{name}",\n', registry.read_text(), count=1)
    assert found == 1, "the registry's list of names was not found"
    registry.write_text(text)
    for file in (declaration, registry):
        print(file.relative_to(root))


if __name__ == "__main__":
    main()
