"""The layer behind search and object cards: every object of every layer, with ids that browsers know. Not drawn."""

from __future__ import annotations

from planetwire.model import LayerAdapter, Provenance, Strategy

INTERACTABLES = LayerAdapter(
    id="interactables",
    title="Objects",
    title_zh="对象",
    group="meta",
    kind="meta",
    feeds=(("earth_interactables", "*"),),
    cache_patterns=("earth:layer:interactables:*",),
    default_strategy=Strategy.DELTA,
    provenance=Provenance(
        publisher="Computed here from the facts of the other layers",
        licence="That of the layer an object belongs to",
        coverage="Every object of the layers that can be searched",
        limits="As current as the facts: what a person types into the database is found a moment later",
        zh=Provenance(
            publisher="由本系统根据其他图层的事实生成",
            licence="与对象所属图层相同",
            coverage="各图层中所有可搜索的对象",
            limits="与事实同步：手工写入数据库的内容片刻后即可搜到",
        ),
    ),
)
