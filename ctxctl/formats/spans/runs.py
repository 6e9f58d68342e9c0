"""Calls of an agent's run of which an export holds the run's own span alone: each answer was one.

pydantic-ai and Logfire put all messages of a run on its span, those of the runs before it too where it went
on from them.  The run's bill is the sum of its calls: it is a call's only where there was one.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from ctxctl.formats.build import Json
from ctxctl.formats.spans import billing, talks
from ctxctl.formats.spans.content import conversation
from ctxctl.formats.spans.span import MODELS, Given, Span, text_of

_SAID: Final = ("assistant", "model", "ai")
"""Roles of answers."""
_KEPT: Final = 64
"""Runs that a later one may go on from."""


class Runs:
    """Makes calls of runs that come in the order in which they were begun."""

    def __init__(self) -> None:
        self.summed = 0
        """Runs whose bill is that of several calls, and so is none's."""
        self._before: deque[list[Json]] = deque(maxlen=_KEPT)

    def calls(self, run: Span) -> list[Span]:
        """The calls of one run; those that it repeats from a run before it are left out."""
        talk = conversation(run)
        old = max(_announced(run), self._repeated(talk.messages))
        self._before.append(talk.messages)
        answers = [at for at, one in enumerate(talk.messages) if at >= old and one.get("role") in _SAID]
        model = text_of(run, *MODELS, "model_name")
        usage = billing.of_span(run.attributes, billing.provider_of(run.attributes), model)
        self.summed += usage is not None and len(answers) > 1
        made = []
        for at in answers:
            call = Span(run.name, {})
            call.trace, call.parent, call.start, call.line = run.trace, run.id, run.start, run.line
            asked = talk._replace(messages=talk.messages[:at])
            bill = usage if len(answers) == 1 else None
            call.given = Given("llm", asked, [talk.messages[at]], bill, model)
            made.append(call)
        if made:
            made[-1].error = run.error
        return made

    def _repeated(self, messages: list[Json]) -> int:
        """How many messages a run before it ended with."""
        return max((len(one) for one in self._before if one == messages[: len(one)]), default=0)


def _announced(run: Span) -> int:
    """How many of its messages the run was given, by pydantic-ai's own word."""
    index: Any = run.attributes.get("pydantic_ai.new_message_index")
    value, _ = talks.limited(run.attributes.get("pydantic_ai.all_messages"))
    if isinstance(index, bool) or not isinstance(index, int) or not isinstance(value, list):
        return 0
    return len(talks.asked(value[: max(index, 0)]).messages)
