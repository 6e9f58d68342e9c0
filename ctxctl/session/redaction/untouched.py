"""The redactor of a trace without redactions, and the choice between the two redactors.

Most traces redact nothing, and loading the masking code takes as long as a small replay.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ctxctl.session.redaction.noticing import trace_redacts
from ctxctl.trace.reader import Trace

if TYPE_CHECKING:
    from ctxctl.model.content import Content
    from ctxctl.model.event import Event
    from ctxctl.model.problem import Problem
    from ctxctl.session.params import Params
    from ctxctl.session.redaction.masking import RedactionFilter

_Any = TypeVar("_Any")


class Untouched:
    """Returns every text and record unchanged; see `RedactionFilter` for the methods."""

    news = 0

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __bool__(self) -> bool:
        return False

    def hides(self, _content: Content) -> bool:
        """Return False."""
        return False

    def holds(self, _text: str) -> bool:
        """Return False."""
        return False

    def touches(self, _content: Content) -> bool:
        """Return False."""
        return False

    def returns(self, _event: Event) -> Iterator[Problem]:
        """Return nothing."""
        return iter(())

    def text(self, content: Content) -> str:
        """Return the text of a content."""
        return self._trace.contents.text(content)

    def words(self, text: str) -> str:
        """Return the same text."""
        return text

    def name(self, text: str) -> str:
        """Return the same name."""
        return text

    def value(self, value: Any, _depth: int = 0) -> Any:
        """Return the same value."""
        return value

    def struct(self, record: _Any) -> _Any:
        """Return the same record."""
        return record

    def params(self, params: Params) -> Params:
        """Return the same parameters."""
        return params

    def events(self, events: list[Event]) -> list[Event]:
        """Return the same events."""
        return events

    def problem(self, problem: Problem) -> Problem:
        """Return the same problem."""
        return problem


Redactor: TypeAlias = "RedactionFilter | Untouched"


def redactor_of(trace: Trace) -> Redactor:
    """Return the redactor of a trace. A growing trace may still redact something."""
    if type(trace) is Trace and not trace_redacts(trace.source):  # not `GrowingTrace`, which is slow to load
        return Untouched(trace)
    from ctxctl.session.redaction.masking import RedactionFilter

    return RedactionFilter(trace)
