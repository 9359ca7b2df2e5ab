"""Writes the files of a new dataset: its folder, and the simulation of its provider for the demo.

It works at once on an invented format, a JSON list of `{id, name, lat, lon, time}`, with a `geometry` in place of `lat`
and `lon` for lines and areas: collected, searched, on the globe, served by the demo. Unknown texts are left as `…`; a
test of the declarations fails until none is left.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
KINDS = ("point", "line", "area")
RANK = re.compile(r"\brank=([0-9]+)")
RANK_STEP = 10

PACKAGE = '''"""{title}: …."""
'''

DECLARATION = '''"""The layer of {words}: …."""

from __future__ import annotations

from planetwire.datasets.dataset import Dataset
from planetwire.datasets.{name}.derive import derive
from planetwire.datasets.{name}.feed import {camel}
from planetwire.model import LayerAdapter, Provenance
from planetwire.model.presentation import CardRow, FixedSize, Look

LAYER = LayerAdapter(
    id="{name}",
    title="{title}",
    title_zh="…",
    group="…",
    kind="{kind}",
    feeds=(("collected_data", {camel}.source), ("resolved_locations", {camel}.source)),
    owned_tables=("resolved_locations", "earth_interactables"),
    derive=derive,
    look=Look(size=FixedSize({size})),
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

DATASET = Dataset(LAYER, rank={rank}, fact_feeds=({camel}(),))
'''

DERIVE = '''"""What is made of one of the {words}: how it is found."""

from __future__ import annotations

from planetwire.layers.places import asked
from planetwire.model import Derived, Fact


def derive(fact: Fact) -> Derived:
    """Found by title and key; add what else people look for. Without coordinates it lies where its `place` is."""
    return Derived(place=asked(fact, "place"))
'''

FEED = '''"""`{source}`: {words}, as …."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime

from planetwire.collect.formats.body import without_bom
from planetwire.collect.formats.json_records import json_records
from planetwire.collect.formats.pieces import Piece, all_at_once, in_pieces
from planetwire.collect.formats.records import Records, {number}reject
from planetwire.collect.http.client import FetchRules
{imports}

class BadRecord(ValueError):
    """Why a record is refused."""

    code = "broken"


class {camel}:
    """The whole list in one body, so what is missing from it is gone."""

    source = "{source}"
    kind = "{name}"
    default_url = "https://example.org/{name}.json"  # …
    interval_s = 3600.0
    floor_s = 600.0
    sweeps = True
    rules = FetchRules()

    def parse(self, body: bytes, at: datetime) -> Parsed:
        """The records of one JSON list; `at` is not needed, times are whole."""
        return all_at_once(self.pieces(body, at, sys.maxsize))

    def pieces(self, body: bytes, at: datetime, rows: int) -> Iterator[Piece | None]:
        """The same piece by piece."""
        records = json_records(without_bom(body))
        refused: set[str] = set()

        def end(rest: list[Fact]) -> Parsed:
            rejects = sorted(records.rejects, key=lambda one: one.offset)
            return Parsed(rest, rejects, records.complete, refused_keys=frozenset(refused))

        total = lambda: records.count - len(records.rejects)  # noqa: E731
        yield from in_pieces(_facts(records, refused), rows, whole=records.complete, total=total, end=end)


def _facts(records: Records, refused: set[str]) -> Iterator[Fact | None]:
    """One of each id; a record that cannot be read costs itself. `refused`: the ids of those, whose facts stay."""
    seen: set[str] = set()
{setup}    for index, item in records.items():
        try:
            fact = _fact({arguments})
            if fact.external_key in seen:
                raise BadRecord("this id was there before")
            seen.add(fact.external_key)
            yield fact
        except {errors} as bad:
            records.rejects.append(reject(str(bad), item, index, bad.code))
            if isinstance(item, dict) and isinstance(item.get("id"), str):
                refused.add(item["id"])
            yield None


def _fact({parameters}) -> Fact:
    if not isinstance(item, dict) or not isinstance(item.get("id"), str) or not item["id"]:
        raise BadRecord("no id")
    name = item.get("name") if isinstance(item.get("name"), str) else item["id"]
{place}    return Fact(item["id"], "{name}", str(name), {data}, lat, lon, _time(item.get("time")))


def _time(value: object) -> datetime | None:
    """An instant with its zone, as `2026-11-30T12:00:00Z`."""
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return at if at is not None and at.tzinfo is not None else None
'''

SIMULATION = '''"""Simulated {words}: …."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from planetwire.demo.providers.answer import JSON, Answer, Query
from planetwire.demo.providers.noise import spread
from planetwire.demo.providers.simulation import Simulation

THERE_ARE = 40
MOVES_EVERY_S = 600


def _answer(seed: int, query: Query, now_s: float) -> Answer:
    """The same for the same ten minutes."""
    at = datetime.fromtimestamp(now_s - now_s % MOVES_EVERY_S, UTC).isoformat()
    records = [{{"id": str(n), "name": f"{title} {{n}}", **_place(seed, n), "time": at}} for n in range(THERE_ARE)]
    return Answer(json.dumps(records).encode(), JSON)


def _place(seed: int, n: int) -> dict[str, object]:
    lat, lon = spread(-60, 60, seed, n, 1), spread(-180, 180, seed, n, 2)
{geometry}


SIMULATION = Simulation("{source}", "/{name}.json", interval_s=60, answer=_answer)
'''

# What differs from kind to kind: pieces of the texts above, and of the examples.
POINT = {
    "size": "6.0",
    "number": "number, ",
    "imports": """from planetwire.model import Fact, Parsed
from planetwire.model.coordinates import on_earth
""",
    "setup": "",
    "arguments": "item",
    "parameters": "item: object",
    "errors": "BadRecord",
    "place": """    place = on_earth(number(item.get("lat")), number(item.get("lon")))
    lat, lon = (None, None) if place is None else place
""",
    "data": "item",
    "geometry": """    return {"lat": lat, "lon": lon}""",
}
SHAPE = {
    "number": "",
    "imports": """from planetwire.geometry import BadGeometry, Geometries
from planetwire.model import Fact, Parsed
""",
    "setup": "    shapes = Geometries()  # of this body, which together have a bound\n",
    "arguments": "item, shapes",
    "parameters": "item: object, shapes: Geometries",
    "errors": "(BadRecord, BadGeometry)",
    "data": "data",
}
PLACED = """    data, lat, lon = item, None, None
    if item.get("geometry") is not None:
        shape, lat, lon = shapes.read(item["geometry"], "{kind}")
        data = item | {{"geometry": shape}}
"""
LINE = SHAPE | {
    "size": "2.0",
    "place": PLACED.format(kind="line"),
    "geometry": """    bends = [spread(-9, 9, seed, n, 3 + step) for step in range(4)]
    line = [[lon + 8 * step, lat + bend] for step, bend in enumerate(bends)]
    return {"geometry": {"type": "LineString", "coordinates": line}}""",
}
AREA = SHAPE | {
    "size": "1.5",
    "place": PLACED.format(kind="area"),
    "geometry": """    wide, high = spread(3, 12, seed, n, 3), spread(3, 9, seed, n, 4)
    ring = [[lon - wide, lat - high], [lon + wide, lat - high], [lon + wide, lat + high], [lon - wide, lat + high]]
    return {"geometry": {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}}""",
}
PIECES = {"point": POINT, "line": LINE, "area": AREA}
PLACES: dict[str, dict[str, object]] = {
    "point": {"lat": 37.75, "lon": 14.99},
    "line": {"geometry": {"type": "LineString", "coordinates": [[170.0, 10.0], [-170.0, 20.0]]}},
    "area": {"geometry": {"type": "Polygon", "coordinates": [[[0.0, 60.0], [9.0, 60.0], [9.0, 65.0], [0.0, 60.0]]]}},
}
TIME = "2026-11-30T12:00:00Z"


def examples(kind: str) -> dict[str, list[dict[str, object]]]:
    """Bodies by what they are called."""
    one = {"id": "1", "name": "One", **PLACES[kind], "time": TIME}
    full = [one, {"id": "2", "name": "Two", "place": "Paris", "time": TIME}, {"id": "3", "name": "Three", "time": TIME}]
    nowhere = {"id": "4", "geometry": {"type": "LineString", "coordinates": []}}
    broken = [{"name": "without an id"}, *([] if kind == "point" else [nowhere])]
    return {"full": full, "minimal": [{"id": "1"}], "empty": [], "broken": [*full, *broken]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="of the dataset and its layer, in the plural: volcanoes")
    parser.add_argument("--kind", default="point", help="what is drawn: point, line or area")
    parser.add_argument("--source", help="what its feed is called: usgs_volcanoes (default: the name)")
    parser.add_argument("--root", type=Path, default=ROOT, help="of the repository")
    wish = parser.parse_args()
    source = wish.source or wish.name
    for word in (wish.name, source):
        if not NAME.fullmatch(word):
            parser.error(f"{word!r}: lower-case words and digits, joined by _ (NAME=volcanoes SOURCE=usgs_volcanoes)")
    if wish.kind not in KINDS:
        parser.error(f"KIND={wish.kind}: one of {', '.join(KINDS)}")
    try:
        write(wish.root, wish.name, source, wish.kind)
    except FileExistsError as error:
        sys.exit(f"{error.filename} is there already; nothing was written")


def write(root: Path, name: str, source: str, kind: str) -> None:
    """Writes all files, or none if the folder or the simulation exists."""
    package = root / "src" / "planetwire"
    folder, simulation = package / "datasets" / name, package / "demo" / "providers" / f"{name}.py"
    for place in (folder, simulation):
        if place.exists():
            raise FileExistsError(None, "exists", str(place.relative_to(root)))
    words = name.replace("_", " ")
    camel = "".join(part.capitalize() for part in source.split("_"))
    values = {"name": name, "source": source, "kind": kind, "words": words, "title": words.capitalize(), "camel": camel}
    values |= {"rank": str(next_rank(package / "datasets"))} | PIECES[kind]
    texts = {"__init__.py": PACKAGE, "declaration.py": DECLARATION, "derive.py": DERIVE, "feed.py": FEED}
    files = {folder / file: text.format(**values) for file, text in texts.items()}
    files |= {folder / "examples" / source / f"{one}.json": json.dumps(body) for one, body in examples(kind).items()}
    files[simulation] = SIMULATION.format(**values)
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
        print(file.relative_to(root))


def next_rank(datasets: Path) -> int:
    """Below all that are there."""
    texts = [file.read_text(encoding="utf-8") for file in datasets.glob("*/declaration.py")]
    ranks = [int(rank) for text in texts for rank in RANK.findall(text)]
    return max(ranks, default=0) + RANK_STEP


if __name__ == "__main__":
    main()
