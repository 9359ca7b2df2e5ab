"""What is asked of a dataset without a server: its examples, its texts, what it derives, what its card names. Pure.

Each check fails with an AssertionError in words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources.abc import Traversable

from planetwire.collect.feeds import FactFeed, ObservationFeed
from planetwire.model import Fact, LayerAdapter, Parsed, Provenance
from planetwire.model.presentation import GrowingSize
from planetwire.model.presentation.faults import check as check_presentation
from planetwire.testing.said import expect, parsed, shown

NAMES = ("full", "minimal", "empty", "broken")
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
OF_THE_FACT = ("observed_at", "kind", "title", "lat", "lon")
# What a fact may hold that somebody typed into the database.
STRANGE: tuple[object, ...] = (
    None,
    "",
    " ",
    "x" * 10_000,
    -1,
    10**400,
    float("nan"),
    float("inf"),
    True,
    [],
    [[]],
    {},
    {"a": None},
    "\x00",
)

Feed = FactFeed | ObservationFeed
Bodies = Mapping[str, bytes]


def bodies_in(folder: Traversable) -> dict[str, bytes]:
    """The bodies of a folder by name, whatever their ending."""
    return {entry.name.partition(".")[0]: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}


def check_examples(feed: Feed, bodies: Bodies) -> None:
    """Each is read as it is called; `broken` is `full` with something broken in it, which costs itself alone."""
    expect(set(bodies) == set(NAMES), f"{feed.source}: the examples are {shown(NAMES)}, not {shown(bodies)}")
    read = {name: parsed(feed, name, body, AT) for name, body in bodies.items()}
    for name in ("full", "minimal", "empty"):
        _check_good(f"{feed.source}/{name}", read[name])
    expect(
        len(read["full"].rows) > 1, f"{feed.source}/full: gives {len(read['full'].rows)} rows, more than 1 are needed"
    )
    expect(len(read["minimal"].rows) == 1, f"{feed.source}/minimal: gives {len(read['minimal'].rows)} rows, not 1")
    expect(not read["empty"].rows, f"{feed.source}/empty: gives {len(read['empty'].rows)} rows")
    broken = read["broken"]
    expect(broken.complete, f"{feed.source}/broken: is a whole body (`complete`) with broken records in it")
    expect(broken.rejects, f"{feed.source}/broken: no record is refused; each that cannot be read is a Reject")
    expect(
        list(broken.rows) == list(read["full"].rows),
        f"{feed.source}/broken: a broken record costs itself and nothing else, so the rows are those of `full`",
    )


def _check_good(name: str, read: Parsed) -> None:
    expect(read.complete, f"{name}: is read to its end, so `complete` is True")
    refused = "; ".join(one.reason for one in read.rejects[:3])
    expect(not read.rejects, f"{name}: has nothing broken in it, and these are refused: {refused}")


def check_pieces(feed: FactFeed, bodies: Bodies) -> None:
    """`pieces` gives the facts of `parse`, so many at a time, the last piece alone with an end."""
    for name, body in bodies.items():
        whole = parsed(feed, name, body, AT)
        pieces = [piece for piece in feed.pieces(body, AT, 1) if piece is not None]
        facts = [fact for piece in pieces for fact in piece.facts]
        expect(facts == list(whole.rows), f"{feed.source}/{name}: `pieces` gives other facts than `parse`")
        ends = [piece.end is not None for piece in pieces]
        expect(ends == [False] * (len(ends) - 1) + [True], f"{feed.source}/{name}: the last piece alone has an `end`")
        expect(
            all(len(piece.facts) <= 1 for piece in pieces), f"{feed.source}/{name}: a piece has at most `rows` facts"
        )
        told = {piece.whole for piece in pieces}
        expect(
            told == {whole.complete}, f"{feed.source}/{name}: `whole` of each piece is what `complete` is at the end"
        )


def check_keys(feed: FactFeed, bodies: Bodies) -> None:
    """Each fact has a key of its own, and stands on the Earth at an aware time."""
    for name, body in bodies.items():
        facts = [fact for fact in parsed(feed, name, body, AT).rows if isinstance(fact, Fact)]
        keys = [fact.external_key for fact in facts]
        twice = {key for key in keys if keys.count(key) > 1}
        expect(not twice, f"{feed.source}/{name}: two facts have one key: {shown(twice)}")
        for fact in facts:
            where = f"{feed.source}/{name}, fact {fact.external_key!r}"
            expect(fact.external_key.strip() and fact.kind and fact.title, f"{where}: has a key, a kind and a title")
            expect((fact.lat is None) == (fact.lon is None), f"{where}: lat and lon come together or not at all")
            on_earth = fact.lat is None or fact.lon is None or (-90 <= fact.lat <= 90 and -180 <= fact.lon <= 180)
            expect(on_earth, f"{where}: {fact.lat}, {fact.lon} is not on the Earth")
            expect(fact.observed_at is None or fact.observed_at.tzinfo, f"{where}: observed_at has no time zone")


def check_texts(layer: LayerAdapter) -> None:
    """Title and provenance are there in both languages."""
    about = layer.provenance
    expect(about.zh is not None, f"layer {layer.id}: `provenance.zh` is missing; the page is in Chinese too")
    texts = {"title": layer.title, "title_zh": layer.title_zh, "group": layer.group, **_said("provenance", about)}
    texts |= _said("provenance.zh", about.zh) if about.zh else {}
    empty = [name for name, text in texts.items() if not text.strip() or "…" in text]
    expect(not empty, f"layer {layer.id}: {shown(empty)}: empty, or left as …")


def _said(name: str, about: Provenance) -> dict[str, str]:
    return {f"{name}.{part}": getattr(about, part) for part in ("publisher", "licence", "coverage", "limits")}


def check_look_and_card(layer: LayerAdapter) -> None:
    """The page can draw it; a layer's own rows have labels in both languages."""
    try:
        check_presentation(layer.id, layer.look, layer.card)
    except ValueError as error:
        raise AssertionError(str(error)) from error
    expect(
        layer.card, f"layer {layer.id}: its card has no row; `card=(CardRow(…), …)` says what a person sees of a fact"
    )


def check_derive(layer: LayerAdapter, facts: Collection[Fact]) -> None:
    """`derive` raises for no fact: those of the examples, and those with any value typed over by hand."""
    expect(facts, f"layer {layer.id}: its examples give no fact")
    if layer.derive is None:
        return
    for fact in (*facts, *(strange for one in facts for strange in typed_over(one))):
        try:
            layer.derive(fact)
        except Exception as error:
            raise AssertionError(
                f"layer {layer.id}: derive raised {type(error).__name__}: {error} for {str(fact)[:300]}; facts may be"
                " typed into the database by hand, so `derive` takes any (layers/values.py has number, text, joined)"
            ) from error


def typed_over(fact: Fact) -> Iterator[Fact]:
    """The fact with nothing in it, and with each value in turn replaced by strange ones."""
    yield replace(fact, data={}, title="", lat=None, lon=None, observed_at=None)
    for name in fact.data:
        yield from (replace(fact, data={**fact.data, name: value}) for value in STRANGE)


def check_card_values(layer: LayerAdapter, facts: Collection[Fact], computed: Collection[str] = ()) -> None:
    """What card, colours and sizes name is in some fact. `computed`: what the page works out for a kind of its own."""
    there = {name for fact in facts for name in fact.data} | set(OF_THE_FACT) | set(computed)
    for row in layer.card:
        named = [*row.values, *([row.unit_from] if row.unit_from else [])]
        lost = [name for name in named if name not in there]
        expect(not lost, f"layer {layer.id}, card row {row.key}: no fact of the examples has {shown(lost)} in its data")
    scale, size, late = layer.look.color, layer.look.size, layer.look.late
    looks = {"color": scale and scale.value, "late": late and late.value}
    looks |= {"size": size.value} if isinstance(size, GrowingSize) else {}
    lost = [f"{part} by {name}" for part, name in looks.items() if name and name not in there]
    expect(not lost, f"layer {layer.id}, look: no fact of the examples has the value of {shown(lost)}")
