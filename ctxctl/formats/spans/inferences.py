"""From model calls as observability tools record them to steps."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from ctxctl.formats.about import IN_USAGE
from ctxctl.formats.build import Json
from ctxctl.formats.kit.run import Run
from ctxctl.formats.lines import Line
from ctxctl.formats.spans.dialect import Kept, request
from ctxctl.formats.spans.talks import Talk
from ctxctl.formats.wire.exchange import Exchange
from ctxctl.formats.wire.exchanges import Exchanges
from ctxctl.model import vocab

_DIALECT: Final = Kept()
_SHOWN: Final = 160


class Inference(NamedTuple):
    """One call of a model."""

    asked: Talk
    answer: list[Json]
    """Messages; empty where none is recorded."""
    usage: Json | None
    model: str | None
    line: int
    time: str | None
    native_id: str | None
    session: str | None
    turn: str | None
    """Of the trace that it is in."""
    agent: str | None = None
    """Thread of the agent that asked, where the spans tell it; `main` for the outermost one."""
    origin: Json | None = None
    """Of that thread: `parent_thread`, `parent_tool_call`, `agent_type`."""
    error: str | None = None
    answer_line: int = 0
    """Line of the answer, where it is another one."""


class Inferences:
    """Makes steps of calls that come in the order in which they were begun."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.exchanges = Exchanges(run)
        self.count = 0

    def add(self, call: Inference) -> None:
        """The next call; where neither agent nor content tells its thread, it is the main one's."""
        self.count += 1
        thread = call.agent
        if thread is None and not call.asked.messages:
            thread = vocab.MAIN_THREAD
        self.exchanges.add(
            Exchange(
                request=request(call.asked, call.model),
                response={"messages": call.answer, "usage": call.usage},
                line=call.line,
                time=call.time,
                native_id=call.native_id,
                session=call.session,
                thread=thread,
                turn=call.turn,
                error=call.error,
                answer_line=call.answer_line,
                dialect=_DIALECT,
                origin=call.origin,
            )
        )

    def summed(self, runs: int) -> None:
        """Say that the bills of agents' runs are sums, which are no call's (`summed-usage`)."""
        if runs:
            whose = (
                "the bill of an agent's run is the sum" if runs == 1 else f"bills of {runs:,} runs are sums"
            )
            message = f"{whose} of calls that are not in the file: given to none of them"
            self.run.problem("summed-usage", message, Line(0, 0, b""))
            self.run.understood.explained.update(IN_USAGE)

    def unpaired(self, answers: int) -> None:
        """Say that answers in spans of their own were left out (`unpaired-answers`)."""
        if answers:
            whose = "an answer" if answers == 1 else f"{answers:,} answers"
            message = (
                f"{whose} in a span apart from the call: without its beginning, or of no call for certain"
            )
            self.run.problem("unpaired-answers", f"{message}; left out", Line(0, 0, b""))

    def finish(self, held: str) -> Iterator[Json]:
        """Hand on the rest; `held`: what there is, where no call is (`no-model-calls`)."""
        self.exchanges.finish()
        if not self.count:
            self.run.problem("no-model-calls", f"no call of a model in it: {held}"[:_SHOWN])
        yield from self.run.finish()


def moment(value: Any) -> str | None:
    """A time as RFC 3339: text, nanoseconds, milliseconds or seconds since 1970, or a pair of the SDK's.

    None for what is no time.
    """
    if isinstance(value, list) and len(value) == 2:
        value = value[0] + value[1] / 1e9 if all(_number(part) for part in value) else None
    elif isinstance(value, str) and value.isdigit() and len(value) < 24:
        value = int(value)
    if isinstance(value, str):
        return value.replace(" ", "T", 1) if len(value) >= 19 and value[4:5] == "-" else None
    if not _number(value):
        return None
    for scale in (1e9, 1e6, 1e3, 1):
        seconds = value / scale
        if 1e8 < seconds < 2**33:
            return datetime.fromtimestamp(seconds, UTC).isoformat()
    return None


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value
