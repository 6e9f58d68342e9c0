"""Which conversation a model event belongs to: the spans that it stands in, and its first message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ctxctl.formats.build import Json
from ctxctl.formats.kit.parts import string

_MAX_DEPTH: Final = 50
_AGENTS: Final = ("agent", "subtask", "fork", "handoff")


class Span(NamedTuple):
    """An open span."""

    ident: str
    kind: str
    name: str
    parent: str | None


class Spans:
    """The spans of a sample, and those of older logs, whose steps nest by order."""

    def __init__(self) -> None:
        self._spans: dict[str, Span] = {}
        self._steps: list[Span] = []

    def walk(self, events: Any, depth: int = 0) -> Iterator[tuple[Json, tuple[Span, ...]]]:
        """Each event that is no span, with the spans that it is in, outermost first."""
        for event in events if isinstance(events, list) else ():
            if not isinstance(event, dict) or self._mark(event):
                continue
            yield event, self._path(event)
            inner = event.get("events")
            if isinstance(inner, list) and inner and depth < _MAX_DEPTH:
                # Older logs keep what a tool or a subtask did inside its event.
                kind = string(event.get("event")) or "tool"
                name = string(event.get("name")) or string(event.get("function")) or kind
                span = Span(string(event.get("id")) or name, "subtask", name, None)
                self._steps.append(span)
                yield from self.walk(inner, depth + 1)
                self._steps.remove(span)

    def _mark(self, event: Json) -> bool:
        kind = event.get("event")
        if kind == "span_begin":
            ident = string(event.get("id"))
            if ident is not None:
                fields = string(event.get("type")) or "", string(event.get("name")) or ""
                self._spans[ident] = Span(ident, *fields, string(event.get("parent_id")))
            return True
        if kind == "step":
            fields = string(event.get("type")) or "", string(event.get("name")) or ""
            if event.get("action") == "begin":
                self._steps.append(Span(f"{fields[1]}-{len(self._steps)}", *fields, None))
            elif self._steps:
                self._steps.pop()
            return True
        return kind == "span_end"

    def _path(self, event: Json) -> tuple[Span, ...]:
        found: list[Span] = []
        ident = string(event.get("span_id"))
        while ident is not None and len(found) < _MAX_DEPTH:
            span = self._spans.get(ident)
            if span is None or span in found:
                break
            found.append(span)
            ident = span.parent
        return (*self._steps, *reversed(found))


class Home(NamedTuple):
    """A conversation by its spans."""

    name: str | None
    """Thread name; None: the sample's own."""
    kind: str | None
    """What sort of agent it is."""


def home(path: tuple[Span, ...], role: str | None) -> Home:
    """A scorer's conversation, a sub-agent's, a model role's, or the sample's."""
    for span in path:
        if span.kind in ("scorer", "scorers") and span.name != "scorers":
            return Home(f"scorer-{_safe(span.name)}", "scorer")
    agents = [span for span in path if span.kind in _AGENTS]
    if any(span.kind == "scorers" for span in path):
        return Home("scorers", "scorer")
    # The agent that solves the sample is itself a span; those inside it are its sub-agents.
    inner = agents if agents and agents[0].kind != "agent" else agents[1:]
    if inner:
        return Home(f"{_safe(inner[-1].name)}-{inner[-1].ident[:8]}", inner[-1].name or inner[-1].kind)
    if role is not None:
        return Home(f"role-{_safe(role)}", role)
    return Home(None, None)


def _safe(name: str) -> str:
    return name.replace("/", "_").replace(":", "_")[:60] or "unnamed"
