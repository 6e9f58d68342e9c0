"""Foreign formats: what an importer is, which ones there are, and which one a file needs.

A plug-in brings another importer through the entry point group ``ctxctl.formats``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final, Protocol, runtime_checkable

from ctxctl.errors import UsageError
from ctxctl.formats.claude_code import ClaudeCode
from ctxctl.formats.lines import Report
from ctxctl.formats.sanqian import Sanqian
from ctxctl.trace.guess import is_native
from ctxctl.trace.source import Source

GROUP: Final = "ctxctl.formats"
HEAD: Final = 64 * 1024
"""Bytes of a file that detection looks at."""
_THRESHOLD = 50


@runtime_checkable
class Format(Protocol):
    """One foreign runtime's trace format."""

    name: str
    """As `--format` takes it."""
    title: str
    """For people."""
    default_policy: str
    """The policy that replays such a trace unless another is asked for."""

    def detect(self, head: bytes) -> int:
        """How sure the content looks like this format: 0 (not at all) to 100."""
        ...

    def events(self, source: Source, report: Report) -> Iterator[dict[str, Any]]:
        """The file as complete `context_event` records, in an order that replay can follow.

        Problems name the line and byte of the foreign file.  Nothing in the file raises.
        """
        ...


FORMATS: Final[tuple[Format, ...]] = (ClaudeCode(), Sanqian())


@cache
def available() -> tuple[Format, ...]:
    """The built-in formats and those that plug-ins bring; a plug-in that fails to load is left out."""
    # Slow to import, and needed only where no format of ours claims a file.
    from importlib.metadata import entry_points

    found = list(FORMATS)
    for point in entry_points(group=GROUP):
        try:
            made = point.load()
            candidate = made() if isinstance(made, type) else made
        except Exception:
            # Somebody else's package must not break ours.
            continue
        if isinstance(candidate, Format) and all(candidate.name != f.name for f in found):
            found.append(candidate)
    return tuple(found)


def detect(source: Source) -> Format | None:
    """The format of a file by its content; None for a native trace, and for what nobody knows.

    Plug-ins are asked about what no built-in format claims.
    """
    head = source.read(0, HEAD)
    if is_native(head):
        return None
    return _surest(FORMATS, head) or _surest(available(), head)


def _surest(formats: Sequence[Format], head: bytes) -> Format | None:
    best: Format | None = None
    top = _THRESHOLD - 1
    for candidate in formats:
        score = candidate.detect(head)
        if score > top:
            best, top = candidate, score
    return best


def events(importer: Format, source: Source, report: Report) -> Iterator[dict[str, Any]]:
    """A capture's events; the first one names the format, and the policy that the format is replayed under.

    So an imported trace replays as the capture itself does.
    """
    for number, event in enumerate(importer.events(source, report)):
        if not number:
            ours = event.setdefault("metadata", {}).setdefault("ctxctl", {})
            ours["format"] = importer.name
            ours["policy"] = importer.default_policy
        yield event


def by_name(name: str) -> Format:
    """A format by its `--format` name; raises UsageError("unknown-format") naming what there is."""
    for candidate in available():
        if candidate.name == name:
            return candidate
    known = ", ".join(f.name for f in available())
    raise UsageError("unknown-format", f"no format named {name!r}", hint=f"known formats: {known}")
