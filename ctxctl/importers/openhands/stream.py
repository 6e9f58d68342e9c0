"""Reads a stream of events as a conversation: what the agent's view of it was at each response.

The V1 SDK's events name their `kind`, and a response's actions share `llm_response_id`.  Events of versions
0.x are an `action` with `args`, or an `observation` with `content` and `extras`.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ctxctl.ingest import build
from ctxctl.ingest.build import Json
from ctxctl.ingest.chat import Chat, blob, texts, thoughts, tools
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.parts import Part, call_title, mapping, string
from ctxctl.ingest.run import Run
from ctxctl.providers.usage import chat_usage, stated_total, total_of

_NUMBER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
"""A number as it is written, which is the id of an event of versions 0.x."""
_COUNTS: Final = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens")


class Forgotten:
    """The events that a condensation takes out of the view, by their ids.

    Args:
        named: One by one.
        numbers: Those from a number to another: a few bytes name any number of events.
    """

    def __init__(self, named: set[str], numbers: range = range(0)) -> None:
        self._named = named
        self._numbers = numbers

    def __contains__(self, event: object) -> bool:
        if not isinstance(event, str):
            return False
        return event in self._named or (_NUMBER.fullmatch(event) is not None and int(event) in self._numbers)


class Stream:
    """One session's state: its threads (delegates nest), the response that is open, the counts so far."""

    def __init__(self, run: Run, *, model: str | None = None) -> None:
        self.run = run
        self.model = model
        self.chat = Chat()
        self.known: set[str] = set()
        """The microagents that were mentioned already; each is told once."""
        self._seen: set[str | int] = set()
        self._stack: list[Conversation] = []
        self._turn: str | None = None
        self.response: str | None = None
        """The id of the open response."""
        self._counts: dict[str, int] = {}
        self._metrics: list[Json] = []
        """The runtime's counts so far, one for each use of a model."""
        self._events: dict[str, str] = {}
        """By item, the event that it came with."""
        self._responses: set[str] = set()
        """The ids of the responses so far."""
        self._bills: dict[str, Any] = {}
        """The usage by response id, where a stream's state tells it."""

    @property
    def thread(self) -> Conversation:
        """The conversation that events belong to now."""
        return self._stack[-1] if self._stack else self.run.thread()

    def read(self, event: Json) -> None:
        """Take an event, of the SDK or of versions 0.x."""

        ident = event.get("id")
        if isinstance(ident, str | int) and ident != -1:
            if ident in self._seen:
                self.run.problem("duplicate-event", f"a second event has the id {str(ident)[:40]!r}; skipped")
                return
            self._seen.add(ident)
        self.run.make.at(event.get("timestamp"))
        if isinstance(event.get("kind"), str):
            self.run.met(event["kind"])
            read(self, event)
        else:
            read_legacy(self, event)

    # -- what events do ---------------------------------------------------------------------------------

    def add(self, event_id: str, parts: list[Part]) -> None:
        """Put an event's parts at the end of the window; parts without a key get the event's id."""
        unnamed = 0
        for part in parts:
            part.line = self.run.line.number
            if not part.item:
                part.item = f"event-{event_id}" if not unnamed else f"event-{event_id}/{unnamed}"
                unnamed += 1
            self._events[part.item] = event_id
        self.thread.append(*parts)

    def prompt(self, event_id: str, parts: list[Part]) -> None:
        """Begin a turn with a message of the user; the next response belongs to it."""
        if not self._stack:
            self._turn = f"event-{event_id}"
        self.response = None
        self.add(event_id, parts)

    def answer(
        self, event_id: str, parts: list[Part], *, response: str | None, model: str | None = None
    ) -> bool:
        """Take a response of the model; False if it is the open one, whose parts were taken already."""
        if response is not None and response == self.response:
            return False
        self.response = response
        thread = self.thread
        if self._turn is not None:
            thread.turn = self._turn
        thread.request(
            f"event-{event_id}",
            model=model or self.model,
            native_id=response,
            derived=True,
            line=self.run.line.number,
        )
        if response is not None:
            self._responses.add(response)
            if response in self._bills:
                self.bill(self._bills.pop(response))
        self.add(event_id, parts)
        return True

    def bill(self, usage: Any, *, model: str | None = None) -> bool:
        """Take the usage of the open response; False where there is none."""
        record = chat_usage(usage, model=model)
        self.thread.usage(record)
        return record is not None

    def accumulated(self, metrics: Any, *, fresh: bool, known: bool) -> None:
        """Take counts that only ever grow; what a response added is their difference.

        Args:
            metrics: The event's `llm_metrics`.
            fresh: The event opened a response.
            known: The response told its own usage.
        """
        total = metrics.get("accumulated_token_usage") if isinstance(metrics, dict) else None
        self._metrics = [metrics] if isinstance(metrics, dict) else self._metrics
        if not isinstance(total, dict):
            return
        now = {name: total[name] for name in _COUNTS if isinstance(total.get(name), int)}
        added = {name: value - self._counts.get(name, 0) for name, value in now.items()}
        self._counts = now
        if fresh and not known and added.get("prompt_tokens", 0) > 0 and min(added.values()) >= 0:
            record = chat_usage(added, model=string(total.get("model")))
            if record is not None:
                record["metadata"] = {"ctxctl": {"derived": True}}
                self.thread.usage(record)

    def read_state(self, state: Any) -> None:
        """Read the SDK's state, which holds the usage of each response by its id."""
        state = state if isinstance(state, dict) else {}
        stats = state.get("stats", state)
        uses = mapping(mapping(stats).get("usage_to_metrics"))
        self._metrics = [metrics for metrics in uses.values() if isinstance(metrics, dict)] or self._metrics
        for metrics in self._metrics if uses else ():
            found = metrics.get("token_usages")
            for usage in found if isinstance(found, list) else ():
                response = string(usage.get("response_id")) if isinstance(usage, dict) else None
                # A step that another one followed takes no more bill, so states are read ahead.
                if response is not None and response not in self._responses:
                    self._bills[response] = usage

    def totals(self, metrics: Any = None) -> None:
        """Report the runtime's counts of the whole session; `metrics`: the file's own, if it ends with
        them."""
        by_model = []
        for one in [metrics] if isinstance(metrics, dict) else self._metrics:
            usage = mapping(one.get("accumulated_token_usage"))
            named = string(usage.get("model"))
            by_model.append(
                total_of(
                    "session", chat_usage(usage), usd=one.get("accumulated_cost"),
                    model=self.model if named in (None, "default") else named,
                )
            )  # fmt: skip
        self.run.thread().stated(stated_total("session", by_model=by_model))

    def condense(self, forgotten: Forgotten, summary: str | None, offset: Any, event_id: str) -> None:
        """Take events out of the agent's view and put a summary in their place."""
        thread = self.thread
        gone = {row[0].item for row in thread.rows if self._events.get(row[0].item) in forgotten}
        refs = [row[0].ref for row in thread.rows if row[0].item in gone]
        thread.drop(gone.__contains__)
        held = {row[0].item for row in thread.rows}
        self.known = {name for name in self.known if f"microagent:{name}" in held}
        into = None
        if summary is not None:
            part = Part("thread_summary", summary, "user", key=f"event-{event_id}", line=self.run.line.number)
            self._events[part.item] = event_id
            thread.splice(self._row_of_event(thread, offset), 0, [part])
            into = part.block().ref
        thread.compacted(refs, into, compaction_id=f"event-{event_id}")

    def _row_of_event(self, thread: Conversation, offset: Any) -> int:
        """The row before which the `offset`-th event of the view begins."""
        events = [self._events.get(row[0].item) for row in thread.rows]
        if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
            offset = 1
        seen: set[str | None] = set()
        for at, event in enumerate(events):
            if event not in seen and len(seen) == offset:
                return at
            seen.add(event)
        return len(events)

    def delegate(self, event_id: str, agent: str, call: str | None) -> None:
        """Begin the thread of a delegated agent, which lasts until it returns."""
        origin = {"parent_thread": self.thread.thread or "main", "agent_type": agent}
        if call is not None:
            origin["parent_tool_call"] = call
        inner = self.run.thread(f"{agent}-{event_id}", origin=origin)
        inner.turn = self.thread.turn
        self._stack.append(inner)
        self.response = None

    def give_back(self) -> None:
        """Return from the delegate to the agent that started it."""
        if self._stack:
            self._stack.pop()
        self.response = None


def read(stream: Stream, event: Json) -> None:
    """Take an event of the SDK; kinds that the model is not told of do nothing."""
    kind = event.get("kind")
    ident = string(event.get("id")) or f"x{stream.run.make.count}"
    if kind == "SystemPromptEvent":
        _system(stream, event, ident)
    elif kind == "MessageEvent":
        _message(stream, event, ident)
    elif kind == "ActionEvent":
        _action(stream, event, ident)
    elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
        _result(stream, event, ident)
    elif kind in ("Condensation", "CondensationEvent"):
        named = event.get("forgotten_event_ids")
        forgotten = {one for one in named if isinstance(one, str)} if isinstance(named, list) else set()
        stream.condense(
            Forgotten(forgotten), string(event.get("summary")), event.get("summary_offset"), ident
        )


def state_of(event: Json) -> Any:
    """The state of the conversation that an event tells, with the usage by response; None if it tells
    none."""
    if event.get("kind") != "ConversationStateUpdateEvent":
        return None
    key, value = event.get("key"), event.get("value")
    if key == "stats":
        return {"stats": value}
    return value if key == "full_state" else None


def _system(stream: Stream, event: Json, ident: str) -> None:
    prompt = event.get("system_prompt")
    parts = tools(event.get("tools"))
    parts += texts([prompt] if isinstance(prompt, dict) else prompt, "system_prompt", "system")
    more = event.get("dynamic_context")
    parts += texts([more] if isinstance(more, dict) else more, "system_prompt", "system")
    stream.add(ident, parts)


def _message(stream: Stream, event: Json, ident: str) -> None:
    message = mapping(event.get("llm_message"))
    parts = stream.chat.cut(_without_nulls(message))
    if event.get("source") == "agent" or message.get("role") == "assistant":
        stream.answer(ident, parts, response=string(event.get("llm_response_id")))
        return
    parts += texts(event.get("extended_content"), "external_resource", "user", title="extended content")
    if event.get("source") == "user":
        stream.prompt(ident, parts)
    else:
        stream.add(ident, parts)


def _action(stream: Stream, event: Json, ident: str) -> None:
    call = mapping(event.get("tool_call"))
    flat = {"id": event.get("tool_call_id"), "name": event.get("tool_name"), "arguments": event.get("action")}
    function = call.get("function")
    if isinstance(function, dict):
        flat |= {"name": function.get("name"), "arguments": function.get("arguments")}
    elif "arguments" in call:
        flat |= {"name": call.get("name") or flat["name"], "arguments": call["arguments"]}
    parts = [
        *thoughts(event),
        *_sealed(event),
        *texts(event.get("thought"), "assistant_message", "assistant"),
    ]
    made = stream.chat.call(flat)
    if not stream.answer(ident, [*parts, made], response=string(event.get("llm_response_id"))):
        stream.add(ident, [made])


def _sealed(event: Json) -> list[Part]:
    item = event.get("responses_reasoning_item")
    if not isinstance(item, dict) or event.get("reasoning_content") or event.get("thinking_blocks"):
        return []
    block = {"type": "reasoning", "data": item.get("encrypted_content") or item.get("id")}
    return texts(item.get("content") or item.get("summary") or [block], "reasoning", "assistant")


def _result(stream: Stream, event: Json, ident: str) -> None:
    inner = event.get("observation")
    content: Any = event.get("error")
    refused = string(event.get("rejection_reason"))
    if isinstance(inner, dict):
        content, refused = inner.get("content", inner.get("output", inner)), None
    elif refused is not None:
        content = f"Action rejected: {refused}"
    call = string(event.get("tool_call_id"))
    stream.add(ident, stream.chat.result(call, content, derived=refused is not None))


def _without_nulls(message: Json) -> Json:
    """The message without null fields; its calls may be flat (`{id, name, arguments}`) or in the wire's
    shape."""
    return {name: value for name, value in message.items() if value is not None}


_UNSENT: Final = frozenset(
    {
        "recall",
        "null",
        "change_agent_state",
        "agent_state_changed",
        "condensation_request",
        "loop_recovery",
        "mcp_tools",
    }
)
"""The kinds of events that the model is not told of."""
_RUNTIME_ARGUMENTS: Final = frozenset(
    {"thought", "hidden", "blocking", "confirmation_state", "is_input", "is_static", "impl_source",
     "kernel_init_code", "translated_ipython_code", "wait_for_response", "security_risk", "cwd"}
)  # fmt: skip
"""The arguments of an action that the runtime adds."""
_STATE: Final = ("repo_name", "repo_directory", "repo_branch", "runtime_hosts", "working_dir", "date",
                 "custom_secrets_descriptions")  # fmt: skip


def read_legacy(stream: Stream, event: Json) -> None:
    """Take an event of versions 0.x; types that hold nothing for the model do nothing."""
    action, observation = string(event.get("action")), string(event.get("observation"))
    number = event.get("id")
    ident = str(number) if isinstance(number, int | str) else f"x{stream.run.make.count}"
    if action is not None and action not in _UNSENT:
        args = event.get("args")
        _legacy_action(stream, event, action, args if isinstance(args, dict) else {}, ident)
    elif observation == "recall":
        stream.add(ident, _recalled(stream, event))
    elif observation is not None and observation not in _UNSENT:
        _observation(stream, event, observation, ident)


def _legacy_action(stream: Stream, event: Json, action: str, args: Json, ident: str) -> None:
    if action == "system":
        parts = tools(args.get("tools"))
        stream.add(ident, [*parts, *texts(args.get("content"), "system_prompt", "system")])
    elif action == "condensation":
        _condensation(stream, args, ident)
    elif event.get("source") == "user":
        _users(stream, action, args, ident)
    elif event.get("source") == "agent":
        _response(stream, event, action, args, ident)
        if action == "delegate":
            metadata = event.get("tool_call_metadata")
            call = string(metadata.get("tool_call_id")) if isinstance(metadata, dict) else None
            stream.delegate(ident, string(args.get("agent")) or "delegate", call)


def _users(stream: Stream, action: str, args: Json, ident: str) -> None:
    if action == "message":
        parts = texts(args.get("content"), "user_message", "user")
        urls = args.get("image_urls")
        for url in urls if isinstance(urls, list) else ():
            if isinstance(url, str):
                parts.append(blob({"image_url": url}, "image_url", "user", {}))
        stream.prompt(ident, parts)
        return
    text = f"{action} {build.canonical(_given(args))}"
    title = call_title(action, args)
    stream.add(ident, [Part("user_message", text, "user", title=title, derived=True)])


def _response(stream: Stream, event: Json, action: str, args: Json, ident: str) -> None:
    metadata = event.get("tool_call_metadata")
    response = metadata.get("model_response") if isinstance(metadata, dict) else None
    response = response if isinstance(response, dict) else {}
    message = _legacy_message(response)
    name = string(response.get("id"))
    model = string(response.get("model"))
    if name is not None and name == stream.response:
        stream.accumulated(event.get("llm_metrics"), fresh=False, known=True)
        return
    parts = stream.chat.cut(message) if message is not None else _answer_parts(stream, event, action, args)
    stream.answer(ident, parts, response=name, model=model)
    known = stream.bill(response.get("usage"), model=model)
    stream.accumulated(event.get("llm_metrics"), fresh=True, known=known)


def _answer_parts(stream: Stream, event: Json, action: str, args: Json) -> list[Part]:
    """The parts of an answer whose response is not kept: its text, and the action as a call."""
    if action == "message":
        return texts(args.get("content"), "assistant_message", "assistant")
    parts = texts(args.get("thought"), "assistant_message", "assistant")
    metadata = mapping(event.get("tool_call_metadata"))
    name = string(metadata.get("function_name")) or action
    call = {"id": metadata.get("tool_call_id"), "name": name, "arguments": _given(args)}
    return [*parts, stream.chat.call(call, derived=True)]


def _legacy_message(response: Json) -> Json | None:
    choices = response.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return message if isinstance(message, dict) else None


def _given(args: Json) -> Json:
    return {
        name: value for name, value in args.items() if name not in _RUNTIME_ARGUMENTS and value is not None
    }


def _observation(stream: Stream, event: Json, observation: str, ident: str) -> None:
    if observation == "delegate":
        stream.give_back()
    metadata = event.get("tool_call_metadata")
    call = string(metadata.get("tool_call_id")) if isinstance(metadata, dict) else None
    extras = event.get("extras")
    text, derived = _text(event.get("content"), extras if isinstance(extras, dict) else {})
    if call is not None:
        parts = stream.chat.result(call, text, derived=derived)
    else:
        title = call_title(observation, extras)
        parts = [Part("tool_result", text, "user", title=title, derived=derived)] if text else []
        native = {"type": observation}
        for part in parts:
            part.native = native
    stream.add(ident, parts)


def _text(content: Any, extras: Json) -> tuple[str, bool]:
    """What a tool gave back, with the lines that the runtime recorded before and after it."""
    text = content if isinstance(content, str) else build.canonical(content) if content else ""
    metadata = mapping(extras.get("metadata"))
    before, after = string(metadata.get("prefix")) or "", string(metadata.get("suffix")) or ""
    return f"{before}{text}{after}", bool(before or after)


def _recalled(stream: Stream, event: Json) -> list[Part]:
    """What the repository and the microagents add to the user's message."""
    extras = mapping(event.get("extras"))
    parts = texts(
        extras.get("repo_instructions"), "external_resource", "user", title="repository instructions"
    )
    notes = extras.get("additional_agent_instructions")
    parts += texts(notes, "developer_instruction", "user", title="additional instructions")
    state = {name: extras[name] for name in _STATE if extras.get(name)}
    if state:
        text = build.canonical(state)
        parts.append(Part("runtime_state", text, "user", title="runtime information", derived=True))
    return parts + _knowledge(stream, extras.get("microagent_knowledge"))


def _knowledge(stream: Stream, agents: Any) -> list[Part]:
    """The texts of microagents that are not in the window already."""
    parts: list[Part] = []
    for agent in agents if isinstance(agents, list) else ():
        agent = agent if isinstance(agent, dict) else {}
        name, said = string(agent.get("name")), string(agent.get("content"))
        if name is None or said is None or name in stream.known:
            continue
        stream.known.add(name)
        title = f"microagent {name}"
        parts.append(
            Part("external_resource", said, "user", key=f"microagent:{name}", source=name, title=title)
        )
    return parts


def _condensation(stream: Stream, args: Json, ident: str) -> None:
    named = args.get("forgotten_event_ids")
    forgotten = (
        {str(one) for one in named if isinstance(one, int | str)} if isinstance(named, list) else set()
    )
    first, last = args.get("forgotten_events_start_id"), args.get("forgotten_events_end_id")
    numbers = range(first, last + 1) if isinstance(first, int) and isinstance(last, int) else range(0)
    stream.condense(
        Forgotten(forgotten, numbers), string(args.get("summary")), args.get("summary_offset"), ident
    )
