"""From a trajectory's steps to the windows of its requests."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from ctxctl.formats import wire
from ctxctl.formats.build import Block, Json
from ctxctl.formats.kit.chat import Chat, texts, thoughts, tools
from ctxctl.formats.kit.conversation import Conversation
from ctxctl.formats.kit.parts import Part, call_title, string
from ctxctl.formats.kit.usage import clock, usage_record

if TYPE_CHECKING:
    from ctxctl.formats.kit.run import Run


class Reading:
    """What has been read of one thread, over its continuations."""

    def __init__(self, run: Run, thread: Conversation, file: str | None) -> None:
        self.run = run
        self.thread = thread
        self._file = file
        self._chat = Chat()
        self._part = 0
        """Number of the continuation."""
        self._turn: str | None = None
        self._model: str | None = None
        self._asked = False
        self._copied: list[Part] | None = None
        """Steps that a continuation copied from before; None outside of one."""
        self._bodies = False
        """Steps keep the requests themselves, so other steps add nothing to the window."""
        self._exact = False
        self._last = False
        self._ended: Json = {}
        """The summarisation that a continuation follows."""
        self.continues = False
        """A continuation will be read: the window after a last summarisation is told there."""

    def go_on(self, file: str) -> None:
        """The next document continues this one."""
        self._file = file
        self._part += 1
        self._copied = []
        # What it copied holds the same calls again.
        self._chat = Chat()

    def steps(self, trajectory: Json) -> Iterator[Json]:
        """The events of a document."""
        agent = trajectory.get("agent")
        agent = agent if isinstance(agent, dict) else {}
        self._model = string(agent.get("model_name")) or self._model
        if not self._part:
            self.thread.append(*tools(agent.get("tool_definitions")))
        found = trajectory.get("steps")
        steps = [step for step in found if isinstance(step, dict)] if isinstance(found, list) else []
        self._bodies = any(_body(step) is not None for step in steps)
        for number, step in enumerate(steps, 1):
            self._last = number == len(steps)
            self.run.make.at(string(step.get("timestamp")) or clock(step.get("timestamp")))
            ident = step.get("step_id")
            name = (
                str(ident) if isinstance(ident, int | str) and not isinstance(ident, bool) else f"n{number}"
            )
            self._step(step, f"{self._part}.{name}" if self._part else name)
            yield from self.run.drain()
        self._settle()

    def _step(self, step: Json, name: str) -> None:
        copied = step.get("is_copied_context") is True
        if self._copied is not None and not copied:
            self._settle()
        source = _source(step)
        body = _body(step)
        if body is not None:
            self.thread.replace(_sent(body))
            self._exact = True
        if source == "agent":
            self._answer(step, name, copied)
        elif body is None and not self._bodies:
            self._told(step, name, "system" if source == "system" else "user", copied)
        if not copied and source == "user" and not (self._bodies and body is None):
            self._turn = f"step-{name}"

    def _told(self, step: Json, name: str, role: str, copied: bool) -> None:
        if role == "system" and _is_compaction(step):
            self._compact(step, name)
            return
        kind = "user_message"
        if role == "system":
            kind = "policy_note" if self._asked else "system_prompt"
            self._asked = self._asked or bool(step.get("message"))
        self._add(texts(step.get("message"), kind, role), name, copied)
        self._add(self._results(step), f"{name}/observation", copied)

    def _answer(self, step: Json, name: str, copied: bool) -> None:
        calls = step.get("llm_call_count")
        self._asked = True
        if not copied and calls != 0:
            self.thread.turn = self._turn
            model = string(step.get("model_name")) or self._model
            self.thread.request(f"step-{name}", model=model, derived=None if self._exact else True)
            self._exact = False
            if not (isinstance(calls, int) and calls > 1):
                self.thread.usage(_bill(step.get("metrics"), model))
        parts = [*thoughts(step), *texts(step.get("message"), "assistant_message", "assistant")]
        found = step.get("tool_calls")
        for call in found if isinstance(found, list) else ():
            if isinstance(call, dict):
                flat = {
                    "id": call.get("tool_call_id"),
                    "name": call.get("function_name"),
                    "arguments": call.get("arguments"),
                }
                parts.append(self._chat.call(flat))
        self._add(parts, name, copied)
        self._add(self._results(step), f"{name}/observation", copied)

    def _results(self, step: Json) -> list[Part]:
        observation = step.get("observation")
        results = observation.get("results") if isinstance(observation, dict) else None
        parts: list[Part] = []
        for result in results if isinstance(results, list) else ():
            content = result.get("content") if isinstance(result, dict) else None
            if content is None:
                continue
            call = string(result.get("source_call_id"))
            found = self._chat.result(call, content, role="user" if call is None else "tool")
            for part in found if call is None else ():
                part.title = _only_call(step)
            parts += found
        return parts

    def _add(self, parts: list[Part], name: str, copied: bool) -> None:
        unnamed = 0
        for part in parts:
            if not part.item:
                part.place = f"step-{name}" if not unnamed else f"step-{name}/{unnamed}"
                unnamed += 1
        if copied and self._copied is not None:
            # Which of the items before they are is told when all have been read.
            self._copied += parts
        else:
            self.thread.append(*parts)

    # -- compaction ---------------------------------------------------------------------------------------

    def _compact(self, step: Json, name: str) -> None:
        """A summarisation: with a continuation the window follows there, else what stays is not recorded."""
        self._ended = {"compaction_id": f"step-{name}", "trigger": string(step.get("message"))}
        if self.continues and self._last:
            return
        first = next((b.item for b, kind in self.thread.rows if kind == "user_message"), None)
        standing = {b.item for b, kind in self.thread.rows if kind in ("system_prompt", "tool_definition")}
        standing |= {first} if first is not None else set()
        note = "what stays beside the system prompt and the first message is not recorded"
        self.thread.compact(
            [],
            keep=standing.__contains__,
            loss_notes=[note],
            metadata={"ctxctl": {"derived": True}},
            **self._ended,
        )

    def _settle(self) -> None:
        """A continuation's copied steps are the window that it goes on with."""
        copied, self._copied = self._copied, None
        if not copied:
            return
        thread = self.thread
        before = [block for block, _ in thread.rows]
        again = {(part.role, part.mark) for part in copied}
        at = sum(1 for _ in takewhile(lambda row: _stands(row, again), thread.rows))
        thread.identify(copied, at=at, fresh=True)
        held = {block.item for block in before}
        summary = next((part for part in copied if part.role == "user" and part.item not in held), None)
        if summary is not None:
            summary.kind = "thread_summary"
        thread.replace(copied, at=at, fresh=True)
        stays = {block.item for block, _ in thread.rows}
        refs = [block.ref for block in before if block.item not in stays]
        if refs or summary is not None:
            into = summary.block().ref if summary is not None else None
            thread.compacted(refs, into, **self._ended)


def _stands(row: tuple[Block, str], copied: set[tuple[str, str]]) -> bool:
    """Whether a row of the window's head stays in front of what was copied."""
    block, kind = row
    mark = block.ref[len(block.item) + 1 :]
    return kind in ("tool_definition", "system_prompt") and (block.role, mark) not in copied


def _only_call(step: Json) -> str | None:
    """The title of a step's call, where it made one: results without a call's id are its."""
    calls = step.get("tool_calls")
    call = calls[0] if isinstance(calls, list) and len(calls) == 1 else None
    name = string(call.get("function_name")) if isinstance(call, dict) else None
    return call_title(name, call.get("arguments")) if name is not None and isinstance(call, dict) else None


def _source(step: Json) -> str:
    """Whose step it is; one that says nothing known is the agent's if a model answered it."""
    source = step.get("source")
    if source in ("system", "user", "agent"):
        return str(source)
    return "agent" if isinstance(step.get("metrics"), dict) or step.get("tool_calls") else "user"


def _is_compaction(step: Json) -> bool:
    extra = step.get("extra")
    management = extra.get("context_management") if isinstance(extra, dict) else None
    if isinstance(management, dict) and management.get("type") == "compaction":
        return True
    message = step.get("message")
    return isinstance(message, str) and message.startswith("Performed context summarization")


def _body(step: Json) -> Json | None:
    """The request itself, where an exporter kept it."""
    extra = step.get("extra")
    body = extra.get("llm_request") if isinstance(extra, dict) else None
    return body if isinstance(body, dict) and wire.of_body(body) is not None else None


def _sent(body: Json) -> list[Part]:
    dialect = wire.of_body(body)
    return dialect.cut(body) if dialect is not None else []


def _bill(metrics: Any, model: str | None) -> Json | None:
    if not isinstance(metrics, dict):
        return None
    extra = metrics.get("extra")
    extra = extra if isinstance(extra, dict) else {}
    cached = metrics.get("cached_tokens")
    return usage_record(
        input_tokens=metrics.get("prompt_tokens"),
        output_tokens=metrics.get("completion_tokens"),
        cached=cached if cached is not None else extra.get("cache_read_tokens"),
        cache_write=extra.get("cache_creation_input_tokens", extra.get("cache_write_tokens")),
        reasoning=extra.get("reasoning_tokens"),
        model=model,
        bill={**extra, **metrics},
    )
