"""What plug-ins bring through entry points, and what this package brings through the same ones.

The plug-ins of this package are named here too, as `pyproject.toml` names them: reading the metadata of
all installed packages takes milliseconds, and a source tree has none.  A test holds both equal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.machinery import PathFinder
from typing import Any, Final, NamedTuple

FORMATS: Final = "ctxctl.formats"
POLICIES: Final = "ctxctl.policies"
BUNDLED: Final[dict[str, dict[str, str]]] = {
    FORMATS: {
        "agent-context": "ctxctl.plugins.agent_context:FORMAT",
        "amplifier": "ctxctl.plugins.amplifier:FORMAT",
        "luminarys": "ctxctl.plugins.luminarys:FORMAT",
        "sanqian": "ctxctl.plugins.sanqian:FORMAT",
        "sibyl": "ctxctl.plugins.sibyl:FORMAT",
    },
    POLICIES: {
        "sanqian": "ctxctl.plugins.sanqian.policy:Sanqian",
        "amplifier": "ctxctl.plugins.amplifier.policy.context_simple:Amplifier",
        "amplifier_contract": "ctxctl.plugins.amplifier.policy.contract:AmplifierContract",
        "sibyl": "ctxctl.plugins.sibyl.policy.packs:Sibyl",
        "luminarys": "ctxctl.plugins.luminarys.policy:Luminarys",
    },
}
"""By group and name, `module:name` of the plug-ins that come with this package, in the order of lists."""


_LONGEST_ERROR: Final = 400
"""Characters of an error's text."""


class Plugin(NamedTuple):
    """What one entry point brought."""

    name: str
    value: str
    """`module:name`, as its package declares it."""
    made: Any = None
    error: str | None = None
    """Why it did not load, or what failed in it since, in one line; None where all is well."""

    @property
    def trouble(self) -> str:
        """What is wrong with it, as the end of a sentence that begins with its name."""
        return f"did not load: {self.error}" if self.made is None else f"failed to detect: {self.error}"


def loaded(value: str) -> Any:
    """What `module:name` names; raises what the import raises, AttributeError where there is no such name.

    Extras behind it (`module:name [extra]`) are passed over, as installers do by now.
    """
    module, _, path = value.partition("[")[0].strip().partition(":")
    found: Any = import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


def bundled(group: str, name: str, accept: Callable[[Any], Any]) -> Plugin:
    """A plug-in that comes with this package, loaded as anybody's."""
    return _plugin(name, BUNDLED[group][name], accept)


def installed(group: str, accept: Callable[[Any], Any]) -> Iterator[Plugin]:
    """The plug-ins of other packages, in the order of their metadata; looks at that of all packages.

    Args:
        group: Of the entry points.
        accept: Makes of what was loaded what is wanted; raises TypeError for anything else.
    """
    if not _may_be_installed(group):
        return
    from importlib.metadata import entry_points

    ours = BUNDLED.get(group, {})
    for point in entry_points(group=group):
        if ours.get(point.name) != point.value:
            yield _plugin(point.name, point.value, accept)


def _may_be_installed(group: str) -> bool:
    """Whether another package declares entry points of a group, or may do so where only the standard library
    can tell: that takes 30 ms to import, a sixth of a command that answers from its cache.
    """
    ours = {f"{name}={value}" for name, value in BUNDLED.get(group, {}).items()}
    if any(hasattr(finder, "find_distributions") for finder in sys.meta_path if finder is not PathFinder):
        return True
    try:
        return any(
            not _declared(data, group) <= ours
            for place in sys.path
            for data in _entry_point_files(place or ".")
            if group.encode() in data
        )
    except OSError:
        return True


def _entry_point_files(place: str) -> Iterator[bytes]:
    """The `entry_points.txt` of each package in a directory of `sys.path`; raises OSError for an archive."""
    if place.endswith(".egg"):
        raise NotADirectoryError(place)
    try:
        with os.scandir(place) as entries:
            packages = [entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info"))]
    except FileNotFoundError:
        return
    for package in packages:
        try:
            with open(os.path.join(package, "entry_points.txt"), "rb", buffering=0) as file:
                yield file.read()
        except (FileNotFoundError, NotADirectoryError):  # it has none; an old .egg-info is a file by itself
            continue


def _declared(data: bytes, group: str) -> set[str]:
    """The lines of one group in an `entry_points.txt`, without spaces."""
    section, found = "", set()
    for line in data.decode("utf-8", "replace").splitlines():
        words = "".join(line.split())
        if words.startswith("["):
            section = words
        elif words and words[0] not in "#;" and section == f"[{group}]":
            found.add(words)
    return found


def _plugin(name: str, value: str, accept: Callable[[Any], Any]) -> Plugin:
    """Load one; somebody else's package must not break ours, whatever it raises."""
    try:
        return Plugin(name, value, accept(loaded(value)))
    except (Exception, SystemExit) as error:
        return Plugin(name, value, error=error_in(error, value))


def error_in(error: BaseException, *values: str) -> str:
    """An error in one line, with the innermost line of code that belongs to one of the plug-in's packages.

    Args:
        error: As it was caught.
        values: The plug-in's own `module:name`.
    """
    roots = {value.partition(":")[0].partition(".")[0].strip() for value in values} - {"ctxctl"}
    place, trace = "", error.__traceback__
    while trace is not None:
        root = str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0]
        if root in roots:
            place = f" ({_short_path(trace.tb_frame.f_code.co_filename, root)}:{trace.tb_lineno})"
        trace = trace.tb_next
    text = " ".join(str(error).split())[:_LONGEST_ERROR]
    return f"{type(error).__name__}{': ' * bool(text)}{text}{place}"


def _short_path(path: str, root: str) -> str:
    """A file's path from its package on, so that no directory of this machine is named."""
    parts = path.replace("\\", "/").split("/")
    within = len(parts) - 1 - parts[::-1].index(root) if root in parts else len(parts) - 1
    return "/".join(parts[within:])
