"""What people do to declared sources: everything is checked before it is stored, and what it deletes is told before."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from planetwire.catalogue.catalogue import Catalogue, Declared, Snapshot
from planetwire.catalogue.compose import Read, ReadDeclaration, read_as
from planetwire.errors import ConfirmNeeded, InputError, NotFound, PlanetwireError, StateError
from planetwire.model import Actor, TaskType
from planetwire.model.facts import STORE, Declaration, RowsOf, rows_record


class DeclarationStore(Protocol):
    """Where they are kept. Each change is one transaction with its audit row. Each raises BackendError."""

    async def get(self, name: str) -> Declaration | None:
        """One of them."""

    async def put(
        self,
        by: Actor,
        name: str,
        text: str,
        *,
        enabled: bool,
        origin: str,
        expected: int | None,
        jobs: Sequence[TaskType] = (),
    ) -> Declaration:
        """`expected`: the revision that is replaced, None: there is none yet. `jobs`: of the source, in order.

        Raises Outdated, StateError.
        """

    async def remove(self, by: Actor, name: str, *, expected: int | None, clear: bool) -> None:
        """`expected` None: whatever its revision. Raises NotFound, Outdated."""


class DeclaredSources:
    """Port SourceDesk."""

    def __init__(self, store: DeclarationStore, read: Read, catalogue: Catalogue, rows_of: RowsOf) -> None:
        self._store = store
        self._read = read
        self._catalogue = catalogue
        self.rows_of = rows_of

    async def get(self, name: str) -> Declaration:
        """See the port."""
        found = await self._store.get(name)
        if found is None:
            raise NotFound(f"no source {name[:63]!r} is declared", code="unknown_source")
        return found

    def fault(self, name: str) -> PlanetwireError | None:
        """See the port."""
        return self._catalogue.current.faults.get(name)

    async def name_of(self, text: str) -> str:
        """The name that a text declares. Raises InputError with all that is wrong with it."""
        return (await asyncio.to_thread(read_as, self._read, text, None)).source

    async def put(
        self,
        by: Actor,
        name: str,
        text: str,
        *,
        expected: int | None,
        enabled: bool = True,
        confirm: bool = False,
        origin: str = STORE,
    ) -> Declaration:
        """See the port."""
        read, before = await self.check(name, text, origin=origin)
        clear = before is not None and await self._replaces(before, read, confirm=confirm)
        collect = enabled and bool(read.dataset.fact_feeds)  # readings of cities have no jobs
        jobs = [TaskType.CLEAR_DATA] * clear + [TaskType.COLLECT] * collect
        return await self._store.put(by, name, text, enabled=enabled, origin=origin, expected=expected, jobs=jobs)

    async def check(self, name: str, text: str, *, origin: str) -> tuple[ReadDeclaration, Declaration | None]:
        """What it says, and what is stored. Raises InputError, StateError for what `put` would refuse."""
        read = await asyncio.to_thread(read_as, self._read, text, name)
        self._check_together(name, read)
        before = await self._store.get(name)
        if before is not None:
            check_origin(before, origin)
        return read, before

    async def remove(self, by: Actor, name: str, *, expected: int | None, clear: bool, origin: str = STORE) -> None:
        """See the port."""
        check_origin(await self.get(name), origin)
        await self._store.remove(by, name, expected=expected, clear=clear)

    def _check_together(self, name: str, read: ReadDeclaration) -> None:
        """Raises InputError for what contradicts another source or layer."""
        others = {other: one for other, one in self._catalogue.current.declared.items() if other != name}
        try:
            Snapshot(0, {**others, name: Declared(read.dataset, "")})
        except ValueError as error:
            raise InputError(str(error), code="contradiction") from error

    async def _replaces(self, before: Declaration, read: ReadDeclaration, *, confirm: bool) -> bool:
        """Whether facts are to be deleted first: under other keys, or in another layer, they would stay beside the new
        ones. Raises ConfirmNeeded unless that is meant.
        """
        try:
            was = await asyncio.to_thread(self._read, before.text, name=before.name)
            same = (was.keys, was.dataset.layer.id) == (read.keys, read.dataset.layer.id)
        except PlanetwireError:
            same = False
        if same:
            return False
        rows = rows_record(before.name, await self.rows_of(before.name))
        if not rows["rows"]:
            return False
        if not confirm:
            why = f"its key or its layer changes: the {rows['facts']:,} records of {before.name} are deleted"
            raise ConfirmNeeded(f"{why}, and what it brings next takes their place; confirm it if that is meant", rows)
        return True


def check_origin(stored: Declaration, origin: str) -> None:
    """Whoever brought a source changes it. Raises StateError for everybody else."""
    if stored.origin == origin:
        return
    if stored.origin == STORE:
        raise StateError(
            f"{stored.name} is in the store already; export it into the file and remove it there, "
            "and the file brings it from then on",
            code="kept_in_store",
        )
    raise StateError(
        f"{stored.name} comes from a file: change or remove sources/{stored.name}.yaml in the data dir",
        code="kept_in_file",
    )
