"""From spans, in whatever order they were exported, to model calls in the order in which they were begun.

A call is an inference span without another one inside it: the spans of a framework, an agent or a workflow
around it repeat its tokens and texts.

Of some agents' runs an export holds the run's own span alone; each answer on it was one call.  pydantic-ai
and Logfire put all messages of a run on its span, and those of earlier runs that it went on from.  The run's
bill is the sum of its calls, so it is given to a call only where there was one.

BeeAI wrote one span for each event of a call up to the middle of 2025.  The span of the `start` event holds
the request; those of `success`, `finish` and others tell of the same call again.  A span is named for the
event's path and for how often the process met it: `backend.openai.chat.start-3`.  From
Arize-ai/openinference, openinference-instrumentation-beeai, `middleware.py` and `id_name_manager.py`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any, Final

from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import string
from ctxctl.model import vocab
from ctxctl.model.problem import Problem
from ctxctl.providers.spans import billing, chat_values
from ctxctl.providers.spans.content import content, conversation
from ctxctl.providers.spans.inferences import Inference, Inferences
from ctxctl.providers.spans.nest import Agents, SpanNest, is_agent
from ctxctl.providers.spans.span import MODELS, ReadBeside, Span, text_of
from ctxctl.providers.usage import stated_record, total_of

_ASKS: Final = (
    "chat",
    "generate_content",
    "text_completion",
    "completion",
    "message",
    "messages",
    "responses",
)
_NOT: Final = (
    "embeddings",
    "embedding",
    "execute_tool",
    "create_agent",
    "invoke_workflow",
    "retrieval",
    "rerank",
)
_DETAILS: Final = "gen_ai.client.inference.operation.details"
MAX_HELD: Final = 16 << 20
"""Bytes of spans that wait for those that were begun before them."""
_REMEMBERED: Final = 10_000
_Key = tuple[str | None, str | None]
"""Trace and id of a span."""
_Thread = tuple[str | None, Json | None]
"""The name of an agent's thread, and where it comes from."""
_SHOWN: Final = 40


class Traces:
    """Takes spans; gives calls to `Inferences` in their order."""

    def __init__(self, calls: Inferences) -> None:
        self._calls = calls
        self._spans: list[Span] = []
        self._logs: list[Span] = []
        self._held = 0
        self._seen: set[int] = set()
        self._waiting: dict[_Key, Span] = {}
        """Those of the spans that have ids, by these."""
        self._called: dict[str | None, None] = {}
        """Traces that have spans of calls: what their agents' spans repeat of these is nothing new."""
        self._runs = AgentRuns()
        self._agents: dict[str | None, str] = {}
        """By session: the agent that its main thread is of."""
        self._threads: dict[tuple[str | None, str], str] = {}
        self._named: Counter[tuple[str | None, str]] = Counter()
        """By session and name, how many threads have it, with a number behind it or without."""
        self.others = 0
        """Spans that are no calls of a model."""
        self._answers: dict[int, list[Json]] = {}
        """By `id` of a call's span: the answer that a span of its own tells."""
        self.unpaired = 0
        """Answers in spans of their own that were left out."""

    def add(self, span: Span, size: int) -> Iterator[Json]:
        """The next span of the file; `size`: about how many bytes it is."""
        if not span.is_log and span.id is not None:
            key = span.trace, span.id
            if hash(key) in self._seen:
                self._again(span, self._waiting.get(key))
                return
            self._seen.add(hash(key))
            self._waiting[key] = span
        (self._logs if span.is_log else self._spans).append(span)
        self._held += size
        self._runs.room += size // _BYTES_SAID
        if self._held > MAX_HELD:
            yield from self.flush()

    def _again(self, span: Span, first: Span | None) -> None:
        """Report a span that has the id of an earlier one, and other contents."""
        if first is None or (span.name, span.parent, span.start) == (first.name, first.parent, first.start):
            return  # exporters send a span again where they are not sure that it came
        what = "another parent" if span.name == first.name and span.start == first.start else "other contents"
        message = f"span {str(span.id)[:_SHOWN]} was there before, with {what}: the first one counts"
        self._calls.run.report(Problem(span.line, 0, "duplicate-uuid", message))

    def _too_large(self, run: Span, count: int) -> None:
        calls = f"{count:,} calls of it are" if count > 1 else "a call of it is"
        message = (
            f"the span of one run holds so many answers, each to all that stands before it, that {calls}"
        )
        self._calls.run.report(Problem(run.line, 0, "windows-too-large", f"{message} left out"))

    @property
    def summed(self) -> int:
        """Runs of agents whose bill is the sum of calls that the file does not hold."""
        return self._runs.summed

    def forget(self) -> None:
        """Forget which spans were taken, and of too many sessions which agents they had."""
        self._seen.clear()
        if len(self._agents) + len(self._threads) > _REMEMBERED:
            self._agents.clear()
            self._threads.clear()
            self._named.clear()

    def flush(self) -> Iterator[Json]:
        """Make calls of what was taken."""
        found, logs = self._spans, self._logs
        self._spans, self._logs, self._held = [], [], 0
        known, self._waiting = self._waiting, {}
        found += _of_logs(logs, known)
        nest = SpanNest(found, known, self._calls.run.report)
        around = nest.around(span for span in found if is_call(span))
        # Without the spans inside, the AI SDK's outer ones are all there is of their calls.
        inside = any(is_call(span) and "ai.operationId" in span.attributes for span in found)
        calls = [
            span for span in found
            if id(span) not in around and (is_call(span) or (is_outer(span) and not inside))
        ]  # fmt: skip
        self._answers, unpaired = answers_of_events(calls, found)
        self.unpaired += unpaired
        self._called.update((span.trace, None) for span in calls)
        for trace in list(self._called)[:-_REMEMBERED]:
            del self._called[trace]
        alone = [
            span for span in found
            if is_agent(span) and span.given is None and span.trace not in self._called
        ]  # fmt: skip
        for span in sorted(alone, key=lambda one: one.start or ""):
            calls += self._runs.calls(span)
            if self._runs.left_out:
                self._too_large(span, self._runs.left_out)
                self._runs.left_out = 0
        self.others += len(found) - len(calls)
        nest.own(calls)
        order = {id(span): at for at, span in enumerate(found)}
        for span in sorted(calls, key=lambda one: (one.start or "", order.get(id(one), 0))):
            self._calls.add(self._call(span, nest))
            yield from self._calls.run.drain()

    def _call(self, span: Span, nest: SpanNest) -> Inference:
        given = span.given or _given(span)
        session = given.session or nest.session(span)
        agent, origin = self._agent(session, nest.owned(span), nest.threads)
        agent = given.thread or agent
        answer = given.answer or self._answers.get(id(span), [])
        return Inference(
            asked=given.asked, answer=answer, usage=given.usage, model=given.model, line=span.line,
            time=span.start, native_id=given.native_id or span.id, session=session, turn=span.trace,
            agent=agent, origin=origin, error=span.error, answer_line=span.answer_line,
        )  # fmt: skip

    def _agent(
        self, session: str | None, inner: Agents | None, known: dict[tuple[str | None, int], _Thread]
    ) -> _Thread:
        """The thread of the innermost agent, and where it comes from.

        The first agent's calls are the main thread; each run of an agent inside another one is its own.
        """
        told: _Thread = None, None
        unknown: list[Agents] = []
        while inner is not None:
            if (session, id(inner)) in known:
                told = known[session, id(inner)]
                break
            unknown.append(inner)
            inner = inner.around
        for one in reversed(unknown):
            told = known[session, id(one)] = self._thread(session, one, told[0])
        return told

    def _thread(self, session: str | None, agents: Agents, parent: str | None) -> _Thread:
        span = agents.span
        name = text_of(span, "gen_ai.agent.name", "agent_name", "agent.name", "gen_ai.agent.id") or span.name
        if agents.around is None:
            first = self._agents.setdefault(session, name)
            return (vocab.MAIN_THREAD, None) if first == name else (name, {"agent_type": name})
        key = session, f"{span.trace}/{span.id}"
        if key not in self._threads:
            again = self._named[session, name]
            made = self._threads[key] = name if not again else f"{name}-{again + 1}"
            stem, _, number = made.rpartition("-")
            for taken in {made, stem} if number.isdigit() else {made}:
                self._named[session, taken] += 1
        return self._threads[key], {"parent_thread": parent or vocab.MAIN_THREAD, "agent_type": name}


def _given(span: Span) -> ReadBeside:
    """What the attributes and events of a span say of its call."""
    attributes = span.attributes
    model = text_of(span, *MODELS)
    held = content(span)
    usage = billing.of_span(attributes, billing.provider_of(attributes), model)
    if is_summed(span):
        usage = stated_record(total_of("turn", usage))
    native_id = text_of(span, "gen_ai.response.id", "ai.response.id", "llm.response.id")
    return ReadBeside("llm", held.asked, held.answer, usage, model, None, native_id)


def _of_logs(logs: list[Span], known: dict[_Key, Span]) -> list[Span]:
    """Log records given to their spans; those that tell of a call themselves become spans."""
    made: dict[_Key, Span] = {}
    details: dict[int, tuple[Span, list[Json]]] = {}
    for log in logs:
        attributes = log.attributes
        name = log.name or string(attributes.get("event.name")) or ""
        if not name.startswith("gen_ai."):
            continue
        key = log.trace, log.id
        owner = known.get(key) or made.get(key)
        if owner is None:
            owner = log if name == _DETAILS else Span("", dict(attributes))
            if owner is not log:
                owner.trace, owner.id, owner.start, owner.line = log.trace, log.id, log.start, log.line
                owner.attributes["gen_ai.operation.name"] = "chat"
            made[key if log.id is not None else (name, str(len(made)))] = owner
        if name == _DETAILS:
            details.setdefault(id(owner), (owner, []))[1].append(attributes)
        else:
            owner.events.append((name, attributes))
            if name == "gen_ai.choice":
                owner.answer_line = log.line
            else:
                owner.line = log.line
    for owner, told in details.values():
        merged: Json = {}
        for attributes in (*reversed(told), owner.attributes):
            merged.update(attributes)
        owner.attributes = merged
    return list(made.values())


def is_call(span: Span) -> bool:
    """Whether a span is a call of a model."""
    if span.given is not None:
        return span.given.kind == "llm"
    attributes = span.attributes
    if is_event(span.name, attributes):
        return False
    operation = attributes.get("gen_ai.operation.name")
    if isinstance(operation, str):
        return operation.lower() in _ASKS
    kind = attributes.get("openinference.span.kind")
    if isinstance(kind, str):
        return kind.upper() == "LLM"
    vercel = attributes.get("ai.operationId")
    if isinstance(vercel, str):
        return vercel.endswith((".doGenerate", ".doStream"))
    if attributes.get("llm.request.type") in ("embedding", "rerank"):
        return False
    traced = attributes.get("traceloop.span.kind")
    if is_agent(span) or traced in ("workflow", "task", "tool", "agent"):
        return False
    named = any(
        name in attributes for name in ("gen_ai.request.model", "llm.request.model", "llm.model_name")
    )
    return named and not any(word in span.name for word in _NOT)


def is_outer(span: Span) -> bool:
    """Whether a span is the AI SDK's around calls that may not have been recorded."""
    if span.given is not None:
        return False
    kind = span.attributes.get("ai.operationId")
    return kind in ("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject")


def is_summed(span: Span) -> bool:
    """Whether a span is the AI SDK's around any number of calls: its bill is their sum, or the last one's.

    An object is generated by one call (`ai` 5.0 and 6.0, `generateObject`).
    """
    return is_outer(span) and span.attributes["ai.operationId"] in ("ai.generateText", "ai.streamText")


_SAID: Final = ("assistant", "model", "ai")
"""Roles of answers."""
_SAID_AGAIN: Final = 300_000
"""Messages that calls may be made of where one span tells them all, whatever the size of the file."""
_BYTES_SAID: Final = 16
"""Bytes of a file that entitle it to one more."""
_KEPT: Final = 64
"""Runs that a later one may go on from."""


class AgentRuns:
    """Makes calls of runs that come in the order in which they were begun."""

    def __init__(self) -> None:
        self.summed = 0
        """Runs whose bill is that of several calls, and so is none's."""
        self.room = _SAID_AGAIN
        """How many messages the calls of runs may still be made of."""
        self.left_out = 0
        """Calls of the last run that there was no room for."""
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
        for done, at in enumerate(answers):
            if at > self.room:
                self.left_out = len(answers) - done
                break
            self.room -= at
            call = Span(run.name, {})
            call.trace, call.parent, call.start, call.line = run.trace, run.id, run.start, run.line
            asked = talk._replace(messages=talk.messages[:at])
            bill = usage if len(answers) == 1 else None
            if len(answers) > 1 and done == len(answers) - 1:
                bill = stated_record(total_of("turn", usage))
            call.given = ReadBeside("llm", asked, [talk.messages[at]], bill, model)
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
    value, _ = chat_values.opened_partly(run.attributes.get("pydantic_ai.all_messages"))
    if isinstance(index, bool) or not isinstance(index, int) or not isinstance(value, list):
        return 0
    return len(chat_values.request_content(value[: max(index, 0)]).messages)


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


def answers_of_events(calls: list[Span], found: list[Span]) -> tuple[dict[int, list[Json]], int]:
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
