"""The layer of a declared source: one of its own, or one there is with a further source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from planetwire.declared.model import Declaration, OwnLayer, Search
from planetwire.declared.rows import plain_text
from planetwire.layers.places import asked
from planetwire.layers.values import joined, number, text
from planetwire.model import Derived, Deriver, Fact, LayerAdapter, Provenance

OWNED = ("resolved_locations", "earth_interactables")
STALE_INTERVALS = 6  # without a limit of its own a layer is stale after so many intervals
STALE_LEAST_S = 1_800.0


def own_layer(declaration: Declaration, given: OwnLayer) -> LayerAdapter:
    """Raises ValueError for a look or a card that no page could show."""
    source = declaration.source
    stale_s = declaration.stale_after or max(STALE_LEAST_S, STALE_INTERVALS * declaration.interval)
    return LayerAdapter(
        id=source,
        title=given.title,
        title_zh=given.title_zh,
        group=given.group,
        kind=given.kind,
        feeds=feeds_of(source),
        owned_tables=OWNED,
        derive=deriver(declaration.search),
        look=given.look,
        card=tuple(given.card),
        cache_patterns=(f"earth:layer:{source}:*",),
        stale_after_s=stale_s,
        provenance=provenance_of(declaration),
    )


def feeds_of(source: str) -> tuple[tuple[str, str], ...]:
    """The tables in which a source's rows are, for the layer that shows them."""
    return (("collected_data", source), ("resolved_locations", source))


def provenance_of(declaration: Declaration) -> Provenance:
    """Both languages; the text of the declaration requires them of a layer of its own."""
    given = declaration.provenance
    if given is None:
        raise ValueError("a layer of its own says who publishes its data")
    zh = given.zh
    return Provenance(
        given.publisher,
        given.licence,
        given.coverage,
        given.limits,
        zh=Provenance(zh.publisher, zh.licence, zh.coverage, zh.limits),
    )


def joined_layer(layer: LayerAdapter, source: str) -> LayerAdapter:
    """The layer with a further source of facts."""
    return replace(layer, feeds=(*layer.feeds, *feeds_of(source)))


def with_readings(layer: LayerAdapter, source: str) -> LayerAdapter:
    """The layer of the Terminal's readings with a further source of them."""
    return replace(layer, readings_of=(*layer.readings_of, source))


def deriver(search: Search) -> Deriver:
    """What search finds of a fact, as the declaration names it. Total: a fact may have been typed in by hand."""
    subtitle, properties, severity, place = search.subtitle, search.properties, search.severity, search.place

    def derive(fact: Fact) -> Derived:
        data = fact.data
        return Derived(
            subtitle=joined(*(_words(data, name) for name in subtitle)),
            properties={name: _scalar(data.get(name)) for name in properties},
            severity=None if severity is None else number(data.get(severity)),
            place=asked(fact, *place),
        )

    return derive


def _words(data: Mapping[str, object], name: str) -> str:
    value = data.get(name)
    return text(value) if isinstance(value, str) or value is None else plain_text(value)


def _scalar(value: object) -> object:
    return value if isinstance(value, str | int | float | bool) else None


def merged(layers: Iterable[LayerAdapter]) -> tuple[LayerAdapter, ...]:
    """Layers in their order, those of one name as one: a shipped layer and what several sources add to it."""
    found: dict[str, LayerAdapter] = {}
    for layer in layers:
        before = found.setdefault(layer.id, layer)
        if before is not layer:
            found[layer.id] = replace(
                before,
                feeds=tuple(dict.fromkeys((*before.feeds, *layer.feeds))),
                readings_of=tuple(dict.fromkeys((*before.readings_of, *layer.readings_of))),
            )
    return tuple(found.values())
