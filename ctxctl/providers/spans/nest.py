"""What is around each span of a trace: the calls, agents and sessions that it is in.

Each span asks the one around it once, whatever the depth: a chain of a hundred thousand spans costs what a
hundred thousand spans beside each other do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ctxctl.ingest.lines import Report
from ctxctl.ingest.parents import Kinship, Lineage, circle
from ctxctl.providers.spans.span import Span, text_of

_AGENT: Final = ("invoke_agent", "invoke agent", "agent_run", "agent run")
_SESSIONS: Final = ("gen_ai.conversation.id", "session.id", "gen_ai.session.id", "langfuse.session.id",
                    "traceloop.association.properties.session_id", "ai.telemetry.metadata.sessionId",
                    "ai.telemetry.metadata.threadId", "gcp.vertex.agent.session_id")  # fmt: skip
_Key = tuple[str | None, str | None]


def is_agent(span: Span) -> bool:
    """Whether a span is an agent's run."""
    if span.given is not None:
        return span.given.kind == "agent"
    attributes = span.attributes
    operation = attributes.get("gen_ai.operation.name")
    if isinstance(operation, str):
        return operation == "invoke_agent"
    if (
        attributes.get("openinference.span.kind") == "AGENT"
        or attributes.get("traceloop.span.kind") == "agent"
    ):
        return True
    return span.name.startswith(_AGENT) or "agent_name" in attributes


def session_of(span: Span) -> str | None:
    """The session that a span itself names."""
    return text_of(span, *_SESSIONS)


class Agents:
    """The runs of agents around a span, as a list that those inside go on."""

    __slots__ = ("around", "span")

    def __init__(self, span: Span, around: Agents | None) -> None:
        self.span = span
        self.around = around


class SpanNest:
    """The spans of some traces by what is around them.

    Args:
        spans: All of them.
        known: Those with an id, by trace and id.
        report: Takes the spans that are around themselves (`circular-parents`); these count as the outermost.
    """

    def __init__(self, spans: Iterable[Span], known: dict[_Key, Span], report: Report) -> None:
        self._known = known
        self._session: dict[int, str | None] = {}
        self._agents: dict[int, Agents | None] = {}
        self._owned: dict[int, Agents | None] = {}
        self._owners: set[int] = set()
        self.threads: dict[tuple[str | None, int], tuple[str | None, dict[str, object] | None]] = {}
        """By session and `id` of the agents, the thread that they are."""
        self._named: dict[str | None, set[str]] = {}
        """By trace, the sessions that its spans name."""
        lineage: Lineage[_Key] = Lineage()
        for span in spans:
            if (named := _named(span)) is not None:
                self._named.setdefault(span.trace, set()).add(named)
            if span.id is None or span.parent is None or known.get((span.trace, span.id)) is not span:
                continue
            kinship = lineage.enter((span.trace, span.id), (span.trace, span.parent))
            if kinship is Kinship.CIRCLE:
                report(circle(span.line, 0, f"span {span.id}", f"span {span.parent}", "be the outermost"))
                span.parent = None

    def _above(self, span: Span) -> Span | None:
        found = self._known.get((span.trace, span.parent)) if span.parent is not None else None
        return found if found is not span else None

    def around(self, spans: Iterable[Span]) -> set[int]:
        """The `id`s of all spans around some, up to their agents: what an agent asks is no call around it."""
        found: set[int] = set()
        for span in spans:
            above = self._above(span)
            while above is not None and id(above) not in found:
                found.add(id(above))
                above = None if is_agent(above) else self._above(above)
        return found

    def session(self, span: Span) -> str | None:
        """The session that a span names, or the nearest one around it that names one; else the only one that
        its trace names."""
        found = self._found(span)[0]
        named = self._named.get(span.trace)
        return next(iter(named)) if found is None and named is not None and len(named) == 1 else found

    def own(self, calls: Iterable[Span]) -> None:
        """Let agents be those alone that have one of these calls right inside them."""
        for span in calls:
            agents = self._found(span)[1]
            if agents is not None:
                self._owners.add(id(agents.span))

    def owned(self, span: Span) -> Agents | None:
        """The agents around a span, from the inside out, that have calls."""
        agents = self._found(span)[1]
        waiting: list[Agents] = []
        while agents is not None and id(agents) not in self._owned:
            waiting.append(agents)
            agents = agents.around
        made = self._owned[id(agents)] if agents is not None else None
        for one in reversed(waiting):
            if id(one.span) in self._owners:
                made = Agents(one.span, made)
            self._owned[id(one)] = made
        return made

    def _found(self, span: Span) -> tuple[str | None, Agents | None]:
        """The session of a span and the agents around it."""
        if id(span) not in self._session:
            path = list(self._unknown(span))
            above = self._above(path[-1])
            session = self._session[id(above)] if above is not None else None
            agents = self._agents[id(above)] if above is not None else None
            for one in reversed(path):
                if above is not None and is_agent(above):
                    agents = Agents(above, agents)
                session = _named(one) or session
                self._session[id(one)], self._agents[id(one)] = session, agents
                above = one
        return self._session[id(span)], self._agents[id(span)]

    def _unknown(self, span: Span) -> Iterator[Span]:
        """A span and those around it, up to the first of which everything is known."""
        at: Span | None = span
        while at is not None and id(at) not in self._session:
            yield at
            at = self._above(at)


def _named(span: Span) -> str | None:
    return (span.given.session if span.given is not None else None) or session_of(span)
