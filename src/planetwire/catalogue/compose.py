"""Makes a snapshot of what is stored. A declaration that cannot be used is left out and named; it stops nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from planetwire.catalogue.catalogue import Declared, Snapshot
from planetwire.datasets.dataset import Dataset
from planetwire.datasets.registry import feeds, layer_registry, plugin_named
from planetwire.errors import InputError, PlanetwireError
from planetwire.log import get_logger
from planetwire.model.facts import Declaration, Declarations

log = get_logger()


@dataclass(frozen=True, slots=True)
class ReadDeclaration:
    """What a text declares. `keys`: equal as long as the same thing has the same key."""

    source: str
    dataset: Dataset
    keys: object


class Read(Protocol):
    """Reads a text."""

    def __call__(self, text: str, *, name: str | None = None) -> ReadDeclaration:
        """`name`: for messages. Raises InputError with all that is wrong."""


@dataclass(slots=True)
class Composer:
    """Reads a text once: 200 sources of which one changed cost one reading. `quiet`: what is skipped is not logged."""

    read: Read
    quiet: bool = False
    _known: dict[tuple[str, str], Declared | PlanetwireError] = field(default_factory=dict)
    _told: set[tuple[str, str]] = field(default_factory=set)

    def __call__(self, stored: Declarations) -> Snapshot:
        """Those that are enabled, each for itself and then together."""
        on = [one for one in stored.all if one.enabled]
        self._known = {(one.name, one.sha256): self._read(one) for one in on}
        good = {name: found for (name, _), found in self._known.items() if isinstance(found, Declared)}
        faults = {name: found for (name, _), found in self._known.items() if isinstance(found, PlanetwireError)}
        snapshot = _together(stored.revision, good, faults)
        if not self.quiet:
            self._tell({one.name: one.sha256 for one in on}, snapshot.faults)
        return snapshot

    def _read(self, one: Declaration) -> Declared | PlanetwireError:
        known = self._known.get((one.name, one.sha256))
        if known is not None:
            return known
        try:
            read = read_as(self.read, one.text, one.name)
        except PlanetwireError as error:
            return error
        except Exception as error:  # a fault of ours, or of a later version's text: no process ends for it
            log.exception("sources.declaration.crashed", source=one.name, error=repr(error)[:300])
            return PlanetwireError(f"an error of ours: {type(error).__name__}")
        return Declared(read.dataset, one.sha256)

    def _tell(self, sums: Mapping[str, str], faults: Mapping[str, PlanetwireError]) -> None:
        """Each once, until it is another text."""
        now = {(name, sums[name]) for name in faults}
        for name, _ in sorted(now - self._told):
            log.warning("sources.declaration.skipped", source=name, error=faults[name].message[:500])
        self._told = now


def read_as(read: Read, text: str, name: str | None) -> ReadDeclaration:
    """What a text declares. `name`: of the source that it must be, None for any. Raises InputError."""
    found = read(text, name=name)
    if name is not None and found.source != name:
        raise InputError(f"it declares {found.source}, not {name}", code="other_name")
    check_name(found.source)
    return found


def check_name(name: str) -> None:
    """Raises InputError for the name of a source of a shipped dataset or a plug-in, or an other spelling of one."""
    plugin = plugin_named(name)
    if plugin is not None:
        message = f"{name} is a name of the plug-in {plugin.name} ({plugin.origin}); give yours another name"
        raise InputError(message, code="name_taken")
    if name in feeds() or layer_registry().canonical(name) != name:
        raise InputError(
            f"{name} is a source that Planetwire brings itself; give yours another name", code="name_taken"
        )


def _together(revision: int, good: Mapping[str, Declared], faults: Mapping[str, PlanetwireError]) -> Snapshot:
    """All of them, or, where two contradict each other, those that fit to the ones before them by name."""
    try:
        return Snapshot(revision, good, faults)
    except ValueError:
        fitting: dict[str, Declared] = {}
        found = dict(faults)
        for name in sorted(good):
            try:
                Snapshot(revision, {**fitting, name: good[name]})
            except ValueError as error:
                found[name] = InputError(str(error), code="contradiction")
            else:
                fitting[name] = good[name]
        return Snapshot(revision, fitting, found)
