"""The redactor of a trace that redacts nothing, and which of the two a trace has.

Most traces redact nothing, and what masks takes as long to load as a small replay.
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
    """Gives every text and record of a trace as it stands; `RedactionFilter` says what each method is for."""

    news = 0

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __bool__(self) -> bool:
        return False

    def hides(self, _content: Content) -> bool:
        """No content is hidden."""
        return False

    def holds(self, _text: str) -> bool:
        """No text holds something that was redacted."""
        return False

    def touches(self, _content: Content) -> bool:
        """In no content something is masked."""
        return False

    def returns(self, _event: Event) -> Iterator[Problem]:
        """No event says again what was redacted."""
        return iter(())

    def text(self, content: Content) -> str:
        """The text of a content."""
        return self._trace.contents.text(content)

    def words(self, text: str) -> str:
        """The same text."""
        return text

    def name(self, text: str) -> str:
        """The same name."""
        return text

    def value(self, value: Any, _depth: int = 0) -> Any:
        """The same value."""
        return value

    def struct(self, record: _Any) -> _Any:
        """The same record."""
        return record

    def params(self, params: Params) -> Params:
        """The same parameters."""
        return params

    def events(self, events: list[Event]) -> list[Event]:
        """The same events."""
        return events

    def problem(self, problem: Problem) -> Problem:
        """The same problem."""
        return problem


Redactor: TypeAlias = "RedactionFilter | Untouched"


def redactor_of(trace: Trace) -> Redactor:
    """What takes out of a trace what was redacted in it; of a growing one that may still come."""
    if type(trace) is Trace and not trace_redacts(trace.source):  # no `GrowingTrace`, which is slow to load
        return Untouched(trace)
    from ctxctl.session.redaction.masking import RedactionFilter

    return RedactionFilter(trace)
