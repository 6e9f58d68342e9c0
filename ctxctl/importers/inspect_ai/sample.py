"""Reads a sample's requests from its model events or, where a log holds none, from its messages.

Long texts, and messages that several events share, are put back into the events that the log took them out
of.  A model event belongs to a conversation by the spans that it stands in and by its first message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ctxctl.ingest import build
from ctxctl.ingest.build import Json
from ctxctl.ingest.chat import Chat, tools
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.parents import Kinship, Lineage, circle, second
from ctxctl.ingest.parts import Part, listed, mapping, string
from ctxctl.model.known_text import KnownText
from ctxctl.providers.usage import stated_total, total_of, usage_record

if TYPE_CHECKING:
    from ctxctl.ingest.run import Run
from typing import Final, NamedTuple


class Sample:
    """One epoch of one sample: a session."""

    def __init__(self, run: Run, sample: Json, model: str | None) -> None:
        self._run = run
        self._sample = sample
        self._model = model
        self._pools = SharedValues(sample)
        self._openings: dict[tuple[str | None, str], str | None] = {}
        """The thread by its spans' name and its first message."""
        self._homes: dict[str | None, int] = {}
        """How many conversations began in a home."""
        self._wire = True
        """Whether the log holds each request as it went over the wire."""
        self._shown: dict[Conversation, _Shown] = {}
        self._signs: tuple[Any, str] = (None, "")
        """The message that a request began with last, and its digest."""
        self._compacted: dict[str | None, Json] = {}
        """The compaction that the next request of a home shows."""

    def events(self) -> Iterator[Json]:
        """The sample's events."""
        asked = 0
        found = events_of(self._sample)
        self._wire = all(map(_has_body, Spans().walk(found)))
        for event, path in Spans(self._run).walk(found):
            kind = event.get("event")
            self._run.met(kind)
            self._run.make.at(event.get("timestamp"))
            if kind == "model":
                asked += 1
                self._request(event, thread_of_spans(path, string(event.get("role"))), path)
                yield from self._run.drain()
            elif kind == "compaction":
                self._compacted[thread_of_spans(path, string(event.get("role"))).name] = event
        if not asked:
            yield from self._from_messages()
        self._totals()

    def _totals(self) -> None:
        """Report the sample's totals."""
        used = mapping(self._sample.get("model_usage"))
        by_model = [total_of("session", bill(usage, name), model=name) for name, usage in used.items()]
        self._run.thread().stated(stated_total("session", by_model=by_model))

    # -- model events -------------------------------------------------------------------------------------

    def _request(self, event: Json, where: ThreadOfSpans, path: tuple[Span, ...]) -> None:
        first = self._pools.named_first(event)
        messages = self._pools.first(first) if first is not None else _dicts(self._pools.input(event))
        compaction = self._compacted.pop(where.name, None)
        thread = self._thread(where, messages, path, compacted=compaction is not None)
        body = self._pools.request(event) if self._wire else None
        before = [(block.item, block.ref) for block, _ in thread.rows] if compaction is not None else []
        given = tools(self._pools.texts(event.get("tools")))
        dialect = _dialect_of(body)
        if dialect is not None:
            self._shown.pop(thread, None)
            parts, turn = dialect.cut(body), _turn(messages)
            thread.replace(parts, fresh=compaction is not None)
        else:
            shown = self._shown.setdefault(thread, _Shown())
            parts = shown.go_on(thread, given, messages, fresh=compaction is not None)
            turn = shown.turn
        if compaction is not None:
            _tell_compaction(thread, before, parts, compaction)
        thread.turn = turn
        output = mapping(self._pools.texts(event.get("output")))
        model = string(output.get("model")) or string(event.get("model")) or self._model
        response = self._response(event)
        native_id = string(response.get("id")) if response is not None else None
        ident = string(event.get("uuid"))
        thread.request(ident, model=model, native_id=native_id)
        if event.get("cache") != "read":
            thread.usage(bill(_with_cache(output.get("usage"), response), model))
        answer = dialect.reply(response) if dialect is not None and response is not None else None
        thread.append(*(_answer(output) if answer is None else answer))

    def _response(self, event: Json) -> Json | None:
        call = event.get("call")
        response = self._pools.texts(call.get("response")) if isinstance(call, dict) else None
        return response if isinstance(response, dict) else None

    def _thread(
        self, where: ThreadOfSpans, messages: Sequence[Json], path: tuple[Span, ...], *, compacted: bool
    ) -> Conversation:
        """The conversation of a request; one that begins with another message is one of its own."""
        opening = next((m for m in messages if m.get("role") not in ("system", "developer")), None)
        if opening is not None and opening is not self._signs[0]:
            self._signs = opening, build.digest_of(build.canonical(opening.get("content")))
        sign = "" if opening is None else self._signs[1]
        key = where.name, sign
        if key not in self._openings:
            number = self._homes.get(where.name, 0) + (not compacted or where.name not in self._homes)
            self._homes[where.name] = number
            self._openings[key] = where.name if number == 1 else f"{where.name or 'side'}-{number}"
        name = self._openings[key]
        origin: Json = {}
        if name is not None:
            origin = {
                "parent_thread": "main",
                "agent_type": where.kind or (path[-1].name if path else "side"),
            }
        return self._run.thread(name, origin=origin)

    # -- logs without events ------------------------------------------------------------------------------

    def _from_messages(self) -> Iterator[Json]:
        """Make a step of each assistant message, which answered what stands before it."""
        messages = [m for m in self._pools.conversation(self._sample) if isinstance(m, dict)]
        output = mapping(self._sample.get("output"))
        answers = sum(1 for m in messages if _generated(m))
        thread = self._run.thread()
        chat = Chat()
        turn: str | None = None
        prompts = 0
        for at, message in enumerate(messages):
            if _generated(message):
                thread.turn = turn
                thread.request(model=string(message.get("model")) or self._model, derived=True)
                if answers == 1:
                    thread.usage(bill(output.get("usage"), string(output.get("model")) or self._model))
                yield from self._run.drain()
            thread.append(*_message(chat, message, at))
            if _is_prompt(message):
                prompts += 1
                turn = string(message.get("id")) or f"turn-{prompts}"


def _has_body(placed: tuple[Json, tuple[Span, ...]]) -> bool:
    """Whether an event is no request, or holds its body; by default Inspect keeps only the bodies of failed
    requests."""
    event = placed[0]
    call = event.get("call")
    return event.get("event") != "model" or (isinstance(call, dict) and isinstance(call.get("request"), dict))


def _generated(message: Json) -> bool:
    return message.get("role") == "assistant" and message.get("source") != "input"


def _dialect_of(body: Json | None) -> Any:
    """The dialect of a request's body, if there is one that is known."""
    if body is None:
        return None
    from ctxctl.providers import dialects

    return dialects.of_body(body)


def _dicts(values: Iterable[Any]) -> list[Json]:
    return [one for one in values if isinstance(one, dict)]


class _First(Sequence[Json]):
    """The first messages of a pool, none of them copied."""

    def __init__(self, pool: list[Json], count: int) -> None:
        self.pool = pool
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, at: Any) -> Any:
        return self.pool[: self._count][at] if isinstance(at, slice) else self.pool[at]


def _goes_on(before: Sequence[Json], messages: Sequence[Json]) -> bool:
    """Whether messages begin with all of those before, if there were any."""
    if not 0 < len(before) <= len(messages):
        return False
    if isinstance(before, _First) and isinstance(messages, _First):
        return before.pool is messages.pool
    return messages[: len(before)] == before[:]


class _Shown:
    """What a conversation's last request showed, of which the next one mostly shows all and a little more.

    Its messages can be named by their places in a pool, so that of a long one nothing is listed again.
    """

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._tools: list[str | None] = []
        self._messages: Sequence[Json] = ()
        self._chat = Chat()
        self._rows = 0
        """Parts of all of that."""
        self._prompts: list[Json] = []

    def go_on(
        self, thread: Conversation, given: list[Part], messages: Sequence[Json], *, fresh: bool
    ) -> list[Part]:
        """Make the window of a conversation that of its next request; returns the parts that are new, with
        `fresh` all of them.
        """
        texts = [part.text for part in given]
        known = len(self._messages)
        if fresh or texts != self._tools or not _goes_on(self._messages, messages):
            self._start()
            known, self._tools = 0, texts
        at = self._rows
        parts = [] if known else list(given)
        for number in range(known, len(messages)):
            message = messages[number]
            parts += _message(self._chat, message, number)
            if _is_prompt(message):
                self._prompts.append(message)
        thread.replace(parts, at=at, fresh=fresh)
        self._messages, self._rows = messages, at + len(parts)
        return parts

    @property
    def turn(self) -> str | None:
        """As `_turn` has it."""
        return _turn(self._prompts[-1:], len(self._prompts))


def _message(chat: Chat, message: Json, at: int) -> list[Part]:
    """The parts of a message of Inspect's own shape; its id is their identity."""
    error = message.get("error")
    if message.get("role") == "tool" and isinstance(error, dict) and not message.get("content"):
        message = {**message, "content": error.get("message")}
    if message.get("role") == "tool" and string(message.get("name")) is None:
        message = {**message, "name": message.get("function")}
    parts = chat.cut(message)
    ident = string(message.get("id")) if message.get("role") != "tool" else None
    unnamed = 0
    for part in parts:
        if part.item:
            continue
        if ident is not None:
            part.item = ident if not unnamed else f"{ident}/{unnamed}"
        else:
            part.place = f"message-{at}" if not unnamed else f"message-{at}/{unnamed}"
        unnamed += 1
        if part.kind == "user_message" and _is_summary(message):
            part.kind = "thread_summary"
    return parts


def _is_summary(message: Json) -> bool:
    metadata = message.get("metadata")
    return isinstance(metadata, dict) and metadata.get("summary") is True


def _answer(output: Json) -> list[Part]:
    choices = output.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return _message(Chat(), message, -1) if isinstance(message, dict) else []


def _is_prompt(message: Json) -> bool:
    return message.get("role") == "user" and not _is_summary(message)


def _turn(messages: Iterable[Json], number: int | None = None) -> str | None:
    """The turn, which the last prompt of the user names; `number` of them, where that is known."""
    prompts = [message for message in messages if _is_prompt(message)]
    if not prompts:
        return None
    return string(prompts[-1].get("id")) or f"turn-{number or len(prompts)}"


def _tell_compaction(
    thread: Conversation, before: list[tuple[str, str]], parts: list[Part], event: Json
) -> None:
    """Tell a compaction: what the request before had and this one has not is what left."""
    now, held = {part.item for part in parts}, {item for item, _ in before}
    gone = [ref for item, ref in before if item not in now]
    summaries = [part for part in parts if part.kind == "thread_summary"]
    # An earlier summary may stand in front of the new one.
    summary = next((part for part in summaries if part.item not in held), summaries[0] if summaries else None)
    thread.compacted(
        gone,
        summary.block().ref if summary is not None else None,
        compaction_id=string(event.get("uuid")),
        trigger=string(event.get("type")),
        metadata={"native": {n: event[n] for n in ("tokens_before", "tokens_after") if n in event}},
    )


def _with_cache(usage: Any, response: Json | None) -> Any:
    """A usage with the cached tokens of the provider's own answer, where Inspect did not take them over."""
    told = response.get("usage") if response is not None else None
    details = told.get("prompt_tokens_details") if isinstance(told, dict) else None
    read = details.get("cached_tokens") if isinstance(details, dict) else None
    if not isinstance(usage, dict) or "input_tokens_cache_read" in usage or read is None:
        return usage
    return {**usage, "input_tokens_cache_read": read}


def bill(usage: Any, model: str | None) -> Json | None:
    """A model's usage; whether its input holds the cached tokens is told by its own total."""
    if not isinstance(usage, dict):
        return None
    read, write = usage.get("input_tokens_cache_read"), usage.get("input_tokens_cache_write")
    counts = [usage.get("input_tokens"), usage.get("output_tokens"), read, write]
    added = sum(n for n in counts if isinstance(n, int))
    cached = sum(n for n in (read, write) if isinstance(n, int))
    return usage_record(
        input_tokens=usage.get("input_tokens"),
        output_tokens=usage.get("output_tokens"),
        cached=read,
        cache_write=write,
        reasoning=usage.get("reasoning_tokens"),
        excludes_cache=cached > 0 and usage.get("total_tokens") == added,
        model=model,
        bill=usage,
    )


_SCHEMES: Final = ("attachment://", "tc://")
"""The schemes of texts' addresses; logs of 2024 have `tc`, even if a newer version has rewritten them."""
_MAX_DEPTH: Final = 100


class SharedValues:
    """What a sample holds apart from its events."""

    def __init__(self, sample: Json) -> None:
        self._texts: Json = {**mapping(mapping(sample.get("transcript")).get("content"))}
        self._texts |= mapping(sample.get("attachments"))
        self._placed: set[str] = set()
        """The attachments that were put in their place once."""
        data = mapping(sample.get("events_data"))
        pooled = listed(data.get("messages")) or listed(sample.get("message_pool"))
        self._messages = [self.texts(message) for message in pooled]
        are_messages = all(isinstance(one, dict) for one in self._messages)
        self._messages_of_pool = self._messages if self._messages and are_messages else None
        pooled = listed(data.get("calls")) or listed(sample.get("call_pool"))
        self._calls = [self.texts(message) for message in pooled]

    def texts(self, value: Any, depth: int = 0) -> Any:
        """A value with its attachments in place; a lost attachment stays as its address."""
        if isinstance(value, str):
            if value.startswith(_SCHEMES):
                return self._attachment(value)
            return value
        if depth > _MAX_DEPTH:
            return value
        if isinstance(value, dict):
            return {name: self.texts(field, depth + 1) for name, field in value.items()}
        if isinstance(value, list):
            return [self.texts(one, depth + 1) for one in value]
        return value

    def _attachment(self, address: str) -> str:
        """The text of an address; where it is not the first time, with its digest."""
        name = address.partition("://")[2]
        found = self._texts.get(name)
        if not isinstance(found, str):
            return address
        if name in self._placed and not isinstance(found, KnownText):
            found = self._texts[name] = KnownText(found)
        self._placed.add(name)
        return found

    def named_first(self, event: Json) -> int | None:
        """How many messages of the pool a model event has, where it has just the first ones, and all of the
        pool are messages.
        """
        refs = event.get("input_refs")
        if (
            event.get("input")
            or self._messages_of_pool is None
            or not isinstance(refs, list)
            or len(refs) != 1
        ):
            return None
        start, end = refs[0] if isinstance(refs[0], list) and len(refs[0]) == 2 else (None, None)
        if start != 0 or not isinstance(end, int) or end <= 0:
            return None
        return min(end, len(self._messages_of_pool))

    def first(self, count: int) -> _First:
        """The first messages of the pool."""
        return _First(self._messages_of_pool or [], count)

    def input(self, event: Json) -> list[Any]:
        """The messages of a model event."""
        found = listed(event.get("input"))
        if not found and self._messages:
            return _ranges(event.get("input_refs"), self._messages)
        return listed(self.texts(found))

    def conversation(self, sample: Json) -> list[Any]:
        """The sample's own messages: as they stand, or by their places in the pool."""
        found = listed(sample.get("messages"))
        return listed(self.texts(found)) if found else _ranges(sample.get("message_refs"), self._messages)

    def request(self, event: Json) -> Json | None:
        """The request as it went over the wire, where the log holds it."""
        call = event.get("call")
        request = call.get("request") if isinstance(call, dict) else None
        if not isinstance(call, dict) or not isinstance(request, dict):
            return None
        resolved = self.texts(request)
        if call.get("call_refs") is not None:
            key = call.get("call_key")
            resolved[key if isinstance(key, str) else "messages"] = _ranges(call["call_refs"], self._calls)
        return resolved if isinstance(resolved, dict) else None


def _ranges(refs: Any, pool: list[Any]) -> list[Any]:
    """The items of a pool that `[start, end)` pairs name; no request repeats more than the pool holds."""
    found: list[Any] = []
    for ref in listed(refs):
        start, end = ref if isinstance(ref, list) and len(ref) == 2 else (0, 0)
        if isinstance(start, int) and isinstance(end, int) and 0 <= start < end:
            found += pool[start:end]
        if len(found) > 2 * len(pool):
            break
    return found


def events_of(sample: Json) -> Any:
    """A sample's events; logs of 2024 have them in its transcript."""
    return sample.get("events") or mapping(sample.get("transcript")).get("events")


_MAX_SPAN_DEPTH: Final = 50
_AGENTS: Final = ("agent", "subtask", "fork", "handoff")


class Span(NamedTuple):
    """An open span."""

    ident: str
    kind: str
    name: str
    parent: str | None


class Spans:
    """The spans of a sample, and those of older logs, whose steps nest by order."""

    def __init__(self, run: Run | None = None) -> None:
        self._run = run
        """Takes what is wrong with the spans; None if nobody wants to know."""
        self._lineage: Lineage[str] = Lineage()
        self._spans: dict[str, Span] = {}
        self._steps: list[Span] = []

    def walk(self, events: Any, depth: int = 0) -> Iterator[tuple[Json, tuple[Span, ...]]]:
        """Yield each event that is no span, with the spans around it, outermost first."""
        for event in events if isinstance(events, list) else ():
            if not isinstance(event, dict) or self._mark(event):
                continue
            yield event, self._path(event)
            inner = event.get("events")
            if isinstance(inner, list) and inner and depth < _MAX_SPAN_DEPTH:
                # Older logs keep what a tool or a subtask did inside its event.
                kind = string(event.get("event")) or "tool"
                name = string(event.get("name")) or string(event.get("function")) or kind
                span = Span(string(event.get("id")) or name, "subtask", name, None)
                around = len(self._steps)
                self._steps.append(span)
                yield from self.walk(inner, depth + 1)
                del self._steps[around:]

    def _mark(self, event: Json) -> bool:
        kind = event.get("event")
        if kind == "span_begin":
            ident = string(event.get("id"))
            if ident is not None:
                self._begin(ident, string(event.get("parent_id")), event)
            return True
        if kind == "step":
            fields = string(event.get("type")) or "", string(event.get("name")) or ""
            if event.get("action") == "begin":
                self._steps.append(Span(f"{fields[1]}-{len(self._steps)}", *fields, None))
            elif self._steps:
                self._steps.pop()
            return True
        return kind == "span_end"

    def _begin(self, ident: str, parent: str | None, event: Json) -> None:
        """Open a span; one that would be around itself is the outermost."""
        kinship = self._lineage.enter(ident, parent)
        if self._run is not None and parent is not None and kinship is not Kinship.FITS:
            line, names = self._run.line, (f"span {ident}", f"span {parent}")
            if kinship is Kinship.CIRCLE:
                self._run.report(circle(line.number, line.offset, *names, "be the outermost"))
            else:
                self._run.report(second(line.number, line.offset, *names))
        fields = string(event.get("type")) or "", string(event.get("name")) or ""
        self._spans[ident] = Span(ident, *fields, self._lineage.parent(ident))

    def _path(self, event: Json) -> tuple[Span, ...]:
        found: list[Span] = []
        ident = string(event.get("span_id"))
        while ident is not None and len(found) < _MAX_SPAN_DEPTH:
            span = self._spans.get(ident)
            if span is None:
                break
            found.append(span)
            ident = span.parent
        return (*self._steps[-_MAX_SPAN_DEPTH:], *reversed(found))


class ThreadOfSpans(NamedTuple):
    """A conversation by its spans."""

    name: str | None
    """The thread's name; None for the sample's own."""
    kind: str | None
    """The type of agent."""


def thread_of_spans(path: tuple[Span, ...], role: str | None) -> ThreadOfSpans:
    """A scorer's conversation, a sub-agent's, a model role's, or the sample's."""
    for span in path:
        if span.kind in ("scorer", "scorers") and span.name != "scorers":
            return ThreadOfSpans(f"scorer-{_safe(span.name)}", "scorer")
    agents = [span for span in path if span.kind in _AGENTS]
    if any(span.kind == "scorers" for span in path):
        return ThreadOfSpans("scorers", "scorer")
    # The agent that solves the sample is itself a span; those inside it are its sub-agents.
    inner = agents if agents and agents[0].kind != "agent" else agents[1:]
    if inner:
        return ThreadOfSpans(
            f"{_safe(inner[-1].name)}-{inner[-1].ident[:8]}", inner[-1].name or inner[-1].kind
        )
    if role is not None:
        return ThreadOfSpans(f"role-{_safe(role)}", role)
    return ThreadOfSpans(None, None)


def _safe(name: str) -> str:
    return name.replace("/", "_").replace(":", "_")[:60] or "unnamed"
