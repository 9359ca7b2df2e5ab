"""The bill of materials of an installation (CycloneDX): the locked Python packages, and the page's npm packages."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

LOCKED = re.compile(r"^([a-z0-9.-]+)==(\S+).*$")
VIA = re.compile(r"^    # +(?:via )?([a-z0-9.-]+)(?: \(pyproject\.toml\))?$")
LICENCE_NAME_MAX = 80  # older metadata have the whole text in this field
_LICENCES = LicenseFactory()
Wanted = dict[str, set[str]]  # by a component's reference: its dependencies


def bill(tree: Path, name: str, version: str, commit: str, at: datetime) -> str:
    """The document as JSON. Reproducible for one commit and one set of installed packages."""
    root = Component(
        name=name,
        version=version,
        type=ComponentType.APPLICATION,
        bom_ref=name,
        purl=PackageURL("pypi", name=name, version=version),
        licenses=[_LICENCES.make_from_string("Apache-2.0")],
    )
    made = Bom(serial_number=uuid5(NAMESPACE_URL, f"{name}@{commit}"))
    made.metadata.component, made.metadata.timestamp = root, at
    components, wanted = python_packages((tree / "requirements" / "run.lock").read_text(encoding="utf-8"), root)
    of_page, wanted_by_page = npm_packages(json.loads((tree / "frontend" / "package-lock.json").read_bytes()), root)
    by_ref = {str(one.bom_ref): one for one in (root, *components, *of_page)}
    made.components.update([*components, *of_page])
    for ref, one in by_ref.items():
        needs = wanted.get(ref, set()) | wanted_by_page.get(ref, set())
        made.register_dependency(one, [by_ref[need] for need in sorted(needs)])
    return JsonV1Dot6(made).output_as_string(indent=2) + "\n"


def python_packages(lock: str, root: Component) -> tuple[list[Component], Wanted]:
    """From a lock file whose comments name the dependents of each package."""
    components: dict[str, Component] = {}
    wanted: Wanted = {}
    name = ""
    for line in lock.splitlines():
        if locked := LOCKED.match(line):
            name, version = locked.groups()
            purl = PackageURL("pypi", name=name, version=version)
            components[name] = _component(name, version, purl, python_licence(name))
        elif (via := VIA.match(line)) and via[1] != "via":
            wanted.setdefault(via[1], set()).add(str(components[name].bom_ref))
    refs = {root.name: str(root.bom_ref)} | {key: str(one.bom_ref) for key, one in components.items()}
    return list(components.values()), {refs[who]: needs for who, needs in wanted.items()}


def python_licence(name: str) -> str | None:
    """The licence of the installed package; None if it is not installed on this system."""
    try:
        package = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    classifiers = [
        text.rpartition(" :: ")[2] for text in package.get_all("Classifier") or [] if text.startswith("License")
    ]
    short = [
        text
        for text in (package.get("License-Expression"), package.get("License"))
        if text and len(text) <= LICENCE_NAME_MAX
    ]
    return next(iter([*short, *classifiers]), None)


def npm_packages(lock: dict[str, Any], root: Component) -> tuple[list[Component], Wanted]:
    """The page's dependencies, direct and indirect, without build tools."""
    shipped = {
        path: entry
        for path, entry in lock["packages"].items()
        if path and not any(entry.get(mark) for mark in ("dev", "devOptional", "optional"))
    }
    components = {path: _npm_component(path, entry) for path, entry in shipped.items()}

    def found(name: str, path: str) -> Iterable[str]:
        """Resolved as Node does: the nearest folder upwards."""
        while True:
            inner = f"{path}/node_modules/{name}".lstrip("/")
            if inner in components:
                return [str(components[inner].bom_ref)]
            if not path:
                return []
            path = path.rpartition("/node_modules/")[0]

    wanted: Wanted = {str(root.bom_ref): set()}
    for path, entry in {"": lock["packages"][""], **shipped}.items():
        ref = str(components[path].bom_ref if path else root.bom_ref)
        wanted[ref] = {need for name in entry.get("dependencies", {}) for need in found(name, path)}
    return list(components.values()), wanted


def _npm_component(path: str, entry: dict[str, Any]) -> Component:
    name = path.rpartition("node_modules/")[2]
    group, _, short = name.rpartition("/")
    purl = PackageURL("npm", namespace=group or None, name=short, version=entry["version"])
    algorithm, _, digest = entry["integrity"].partition("-")
    assert algorithm == "sha512", f"{name}: {algorithm}"
    hashed = HashType(alg=HashAlgorithm.SHA_512, content=base64.b64decode(digest).hex())
    return _component(name, entry["version"], purl, entry.get("license"), hashed)


def _component(name: str, version: str, purl: PackageURL, licence: str | None, *hashes: HashType) -> Component:
    return Component(
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        bom_ref=str(purl),
        purl=purl,
        licenses=[_licence(licence)] if licence else [],
        hashes=hashes,
    )


def _licence(text: str) -> License:
    return _LICENCES.make_from_string(text)
