"""`read`: the text of a declaration in, a dataset out, or everything that is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from planetwire.collect.feeds import FactFeed, ObservationFeed
from planetwire.datasets.dataset import Dataset
from planetwire.datasets.registry import datasets
from planetwire.declared.check import faults_of
from planetwire.declared.faults import DeclarationFaults
from planetwire.declared.feed import DeclaredFeed
from planetwire.declared.layer import joined_layer, own_layer, with_readings
from planetwire.declared.marked import read_marked
from planetwire.declared.model import Declaration, OwnLayer
from planetwire.declared.readings import DeclaredReadings
from planetwire.declared.shape import shape_faults


@dataclass(frozen=True, slots=True)
class Declared:
    """A source as data. `dataset` behaves as a shipped one does.

    `joins`: the name of the shipped layer that its dataset extends; None: the layer is its own.
    """

    source: str
    text: str
    dataset: Dataset
    declaration: Declaration
    joins: str | None = None

    @property
    def feed(self) -> FactFeed | ObservationFeed:
        """The one feed of its dataset."""
        return self.dataset.fact_feeds[0] if self.dataset.fact_feeds else self.dataset.observation_feeds[0]


def read(text: str, *, name: str | None = None, private: bool = False) -> Declared:
    """Raises DeclarationFaults with every fault found. `name`: of the file, for messages.

    `private`: the address may lead into a private network.
    """
    called = name or "declaration"
    marked = read_marked(text, called)
    try:
        declaration = Declaration.model_validate(marked.value)
    except ValidationError as error:
        raise DeclarationFaults([*marked.faults, *shape_faults(error, marked)], called) from None
    found = [*marked.faults, *faults_of(declaration, marked, private=private)]
    if found:
        raise DeclarationFaults(found, called)
    try:
        return _compiled(declaration, text, private=private)
    except ValueError as error:  # what the parts say together and no check of one part sees
        raise DeclarationFaults([marked.fault((), "bad_declaration", str(error))], called) from None


def _compiled(declaration: Declaration, text: str, *, private: bool) -> Declared:
    source = declaration.source
    if declaration.series is not None:
        shipped = next(one for one in datasets() if one.observation_feeds)
        layer = with_readings(shipped.layer, source)
        readings = DeclaredReadings(declaration, declaration.series, private=private)
        dataset = Dataset(layer, shipped.rank, observation_feeds=(readings,))
        return Declared(source, text, dataset, declaration, layer.id)
    if isinstance(declaration.layer, OwnLayer):
        layer, rank, joins = own_layer(declaration, declaration.layer), declaration.layer.rank, None
    else:
        shipped = next(one for one in datasets() if one.layer.id == declaration.layer)
        layer, rank, joins = joined_layer(shipped.layer, source), shipped.rank, shipped.layer.id
    feed = DeclaredFeed(declaration, layer, private=private)
    return Declared(source, text, Dataset(layer, rank, fact_feeds=(feed,)), declaration, joins)
