"""What a process says of its plug-ins: in the log, in lists and in the diagnostic."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from planetwire.datasets.plugins import Origin
from planetwire.datasets.registry import plugin_named, plugins
from planetwire.log import get_logger
from planetwire.model import Json
from planetwire.model.finding import Finding, step

log = get_logger()


@cache
def tell_plugins() -> None:
    """One line each in the log, once a process."""
    for one in plugins().used:
        log.info("datasets.plugin.used", plugin=one.name, **_record(one.origin))
    for left in plugins().left_out:
        log.warning("datasets.plugin.left_out", plugin=left.name, error=left.why, **_record(left.origin))


def with_plugin(record: Json, name: str) -> Json:
    """The record of a layer or source, and which package brings it; null for those that none brings."""
    plugin = plugin_named(name)
    return record | {"plugin": None if plugin is None else {"name": plugin.name, **_record(plugin.origin)}}


def with_plugins(table: str) -> str:
    """The table, and below it a line for each plug-in, used or not."""
    used = [f"plug-in {one.name}: {one.origin}, licence {one.origin.licence}" for one in plugins().used]
    return "\n".join([table, *([""] if used or plugins().left_out else []), *used, *left_out_lines()])


def left_out_lines() -> list[str]:
    """For people: a line for each plug-in that is not used."""
    return [f"plug-in left out: {one}" for one in plugins().left_out]


def plugins_step() -> Sequence[Json]:
    """Of the diagnostic; none where no package brings anything."""
    found = plugins()
    if not found.used and not found.left_out:
        return []
    detail = ", ".join(f"{one.name} of {one.origin}" for one in found.used) or "none is used"
    findings = [Finding("plugin_left_out", str(one)) for one in found.left_out]
    return [step("plugins", "Plug-ins can be used", detail, findings)]


def _record(origin: Origin) -> Json:
    return {"package": origin.package, "version": origin.version, "licence": origin.licence}
