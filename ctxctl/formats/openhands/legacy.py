"""Events of versions 0.x: an `action` with `args`, or an `observation` with `content` and `extras`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ctxctl.formats import build
from ctxctl.formats.build import Json
from ctxctl.formats.kit.chat import blob, texts, tools
from ctxctl.formats.kit.parts import Part, call_title, string

if TYPE_CHECKING:
    from ctxctl.formats.openhands.stream import Stream

_SILENT: Final = frozenset(
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
"""Events that the model is not told of."""
_OURS: Final = frozenset(
    {"thought", "hidden", "blocking", "confirmation_state", "is_input", "is_static", "impl_source",
     "kernel_init_code", "translated_ipython_code", "wait_for_response", "security_risk", "cwd"}
)  # fmt: skip
"""Arguments of an action that the runtime adds."""
_STATE: Final = ("repo_name", "repo_directory", "repo_branch", "runtime_hosts", "working_dir", "date",
                 "custom_secrets_descriptions")  # fmt: skip


def read(stream: Stream, event: Json) -> None:
    """Take an event into account; types that hold nothing for the model do nothing."""
    action, observation = string(event.get("action")), string(event.get("observation"))
    number = event.get("id")
    ident = str(number) if isinstance(number, int | str) else f"x{stream.run.make.count}"
    if action is not None and action not in _SILENT:
        args = event.get("args")
        _action(stream, event, action, args if isinstance(args, dict) else {}, ident)
    elif observation == "recall":
        stream.add(ident, _recalled(stream, event))
    elif observation is not None and observation not in _SILENT:
        _observation(stream, event, observation, ident)


def _action(stream: Stream, event: Json, action: str, args: Json, ident: str) -> None:
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
    message = _message(response)
    name = string(response.get("id"))
    model = string(response.get("model"))
    if name is not None and name == stream.response:
        stream.accumulated(event.get("llm_metrics"), fresh=False, known=True)
        return
    parts = stream.chat.cut(message) if message is not None else _told(stream, event, action, args)
    stream.answer(ident, parts, response=name, model=model)
    known = stream.bill(response.get("usage"), model=model)
    stream.accumulated(event.get("llm_metrics"), fresh=True, known=known)


def _told(stream: Stream, event: Json, action: str, args: Json) -> list[Part]:
    """An answer whose response is not kept: its text, and the action as a call."""
    if action == "message":
        return texts(args.get("content"), "assistant_message", "assistant")
    parts = texts(args.get("thought"), "assistant_message", "assistant")
    metadata = event.get("tool_call_metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = string(metadata.get("function_name")) or action
    call = {"id": metadata.get("tool_call_id"), "name": name, "arguments": _given(args)}
    return [*parts, stream.chat.call(call, derived=True)]


def _message(response: Json) -> Json | None:
    choices = response.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return message if isinstance(message, dict) else None


def _given(args: Json) -> Json:
    return {name: value for name, value in args.items() if name not in _OURS and value is not None}


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
    metadata = extras.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    before, after = string(metadata.get("prefix")) or "", string(metadata.get("suffix")) or ""
    return f"{before}{text}{after}", bool(before or after)


def _recalled(stream: Stream, event: Json) -> list[Part]:
    """What the repository and the microagents add to the user's message."""
    extras = event.get("extras")
    extras = extras if isinstance(extras, dict) else {}
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
    """What microagents say; one that is in the window already says nothing."""
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
    if isinstance(first, int) and isinstance(last, int) and 0 <= last - first < 1_000_000:
        forgotten |= {str(one) for one in range(first, last + 1)}
    stream.condense(forgotten, string(args.get("summary")), args.get("summary_offset"), ident)
