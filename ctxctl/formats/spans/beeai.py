"""BeeAI's spans up to the middle of 2025: one for each event of a call, not one for the call.

The span of the `start` event holds the request; those of `success`, `finish` and others tell of the same call
again.  A span is named for the event's path and how often the process met it: `backend.openai.chat.start-3`.
From Arize-ai/openinference, openinference-instrumentation-beeai, `middleware.py` and `id_name_manager.py`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any, Final

from ctxctl.formats.build import Json
from ctxctl.formats.spans.content import content
from ctxctl.formats.spans.span import Span

_EVENT: Final = re.compile(r"(backend\.[\w-]{1,60}\.chat)\.([a-z_]{1,30})-(\d{1,12})")
_START: Final = "start"
_INPUT: Final = ("input.value", "llm.input_messages")
_OUTPUT: Final = "llm.output_messages."


def is_event(name: Any, attributes: Json) -> bool:
    """Whether a span tells of an event after a call was begun, and so is no call itself.

    By its name: what is an attribute of it may have gone, where a span has more of them than it may have.
    """
    if not isinstance(name, str) or not name.startswith("backend."):
        return False
    found = _EVENT.fullmatch(name)
    return found is not None and found[2] != _START and not any(key.startswith(_INPUT) for key in attributes)


def answers(calls: list[Span], found: list[Span]) -> tuple[dict[int, list[Json]], int]:
    """By `id` of the call's span, the answer that a `success` event tells; how many answers were left out.

    The events of a path are counted each for itself, so that equal numbers are the same call only as long as
    none failed: it has to be the last one begun, too.  An answer without its beginning is left out.
    """
    begun: dict[str | None, list[Span]] = {}
    for one in sorted(calls, key=_start):
        if _EVENT.fullmatch(one.name):
            begun.setdefault(one.trace, []).append(one)
    made: dict[int, list[Json]] = {}
    lost = 0
    for span in found if begun else ():
        event = _EVENT.fullmatch(span.name)
        if event is None or event[2] != "success" or not is_event(span.name, span.attributes):
            continue
        answer = content(span).answer
        if not answer:
            continue
        of_trace = begun.get(span.trace, [])
        last = of_trace[bisect_right(of_trace, _start(span), key=_start) - 1 :][:1]
        if last and last[0].name == f"{event[1]}.{_START}-{event[3]}" and _whole(span.attributes):
            made[id(last[0])] = _joined(answer)
        else:
            lost += 1
    return made, lost


def _start(span: Span) -> str:
    return span.start or ""


def _whole(attributes: Json) -> bool:
    """Whether the first message is there: of too many attributes the first ones go."""
    flat = [key for key in attributes if key.startswith(_OUTPUT)]
    return not flat or any(key.startswith(f"{_OUTPUT}0.") for key in flat)


def _joined(answer: list[Json]) -> list[Json]:
    """One message of the pieces of a streamed answer, each of which is told as a message."""
    texts = [one["content"] for one in answer if set(one) <= {"role", "content"}]
    if len(texts) < max(2, len(answer)) or not all(isinstance(text, str) for text in texts):
        return answer
    return [{"role": "assistant", "content": "".join(texts)}]
