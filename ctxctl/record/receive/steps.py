"""Calls of models that are over, made into steps of the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ctxctl.formats.spans.inferences import Kept, request
from ctxctl.formats.wire.exchanges import Exchange
from ctxctl.model import vocab
from ctxctl.record.conversations import Conversations
from ctxctl.record.scopes import STEP_FAILED

if TYPE_CHECKING:
    from ctxctl.formats.spans.inferences import Inference
    from ctxctl.record.recorder import Recorder

_DIALECT: Final = Kept()


class Steps:
    """Writes calls in the order in which they come; not for several threads at once."""

    def __init__(self, recorder: Recorder) -> None:
        self._core = recorder._core
        self._conversations = Conversations(recorder)
        self.count = 0

    def lose(self, error: Exception) -> None:
        """Count a call that could not be written, in the trace too."""
        self._core.journal.lose(f"{type(error).__name__} in a span")

    def add(self, call: Inference) -> None:
        """One call: what it was asked, what it answered and billed.

        Its event's time is that of the writing; when it began is in the usage's metadata.
        """
        name = self._core.name
        thread = call.agent
        if thread is None and not call.asked.messages:
            thread = vocab.MAIN_THREAD
        exchange = Exchange(
            request=request(call.asked, call.model),
            response=None,
            line=0,
            native_id=name(call.native_id),
            session=name(call.session),
            thread=name(thread),
            turn=name(call.turn),
            dialect=_DIALECT,
            origin=call.origin,
        )
        asked = self._conversations.ask(exchange, _DIALECT)
        self.count += 1
        if call.usage:
            usage = {**call.usage}
            if call.time is not None:
                metadata = usage.get("metadata")
                usage["metadata"] = {
                    **(metadata if isinstance(metadata, dict) else {}),
                    "began_at": call.time,
                }
            if call.model is not None:
                usage.setdefault("model", call.model)
            self._core.record(vocab.USAGE_REPORTED, usage, asked.place)
        if call.error is not None:
            self._core.record(STEP_FAILED, {"error": call.error}, asked.place)
        answer: dict[str, Any] | None = {"messages": call.answer} if call.answer else None
        self._conversations.answered(asked, answer, cut=False)
