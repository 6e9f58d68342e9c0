"""What went into a model call and what came out of it, from values of unknown shape."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import orjson

from ctxctl.ingest.build import Json, canonical
from ctxctl.ingest.document import mended_document
from ctxctl.ingest.parts import string
from ctxctl.providers.spans import shapes

_CODINGS: Final = 3
"""How many times over a value may be encoded as JSON."""
_ANSWERS: Final = ("choices", "candidates", "generations", "output", "content")
_TEXTS: Final = ("text", "completion", "response", "answer")
REDACTED: Final = ("[REDACTED]", "<redacted>", "[redacted]", "REDACTED", "__REDACTED__")
NAMED: Final = "_named"


class ChatContent(NamedTuple):
    """A request: tool definitions, system prompt, messages; or an answer, which has messages only."""

    tools: list[Json]
    system: list[Any]
    messages: list[Json]

    def __bool__(self) -> bool:
        return bool(self.tools or self.system or self.messages)


NOTHING: Final = ChatContent([], [], [])


def opened(value: Any) -> Any:
    """A value that may be JSON in a string, several times over; text that is none stays."""
    for _ in range(_CODINGS):
        if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
            return value
        try:
            inner = orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
        if not isinstance(inner, dict | list | str):
            return value
        value = inner
    return value


def opened_partly(value: Any) -> tuple[Any, bool]:
    """As `opened`; a JSON string that was cut off is read as far as it goes, and said to be cut."""
    if isinstance(value, str) and value in REDACTED:
        return None, False
    found = opened(value)
    if isinstance(found, str) and found.lstrip().startswith(("{", "[{", '["', "[[")):
        repaired = mended_document(found)
        if isinstance(repaired, dict | list) and repaired:
            return repaired, True
        return found, True
    return found, False


def request_content(value: Any) -> ChatContent:
    """What a request of unknown shape holds: tools, system prompt, messages."""
    value, cut = opened_partly(value)
    found = _asked(value)
    if cut and found.messages:
        last = {**found.messages[-1], shapes.CUT: True}
        found = found._replace(messages=[*found.messages[:-1], last])
    return found


def _asked(value: Any) -> ChatContent:
    if value is None or value == "" or value == [] or value == {}:
        return NOTHING
    if isinstance(value, list):
        return _listed(value)
    if not isinstance(value, dict):
        return ChatContent([], [], shapes.message(value if isinstance(value, str) else canonical(value)))
    if "role" in value or "lc" in value:
        return ChatContent([], [], shapes.message(value))
    for name in ("messages", "contents", "input", "prompt", "prompts", "history"):
        held = opened(value.get(name))
        if isinstance(held, dict) and "messages" in held:
            return _with(value, _asked(held))
        if isinstance(held, dict) and name in ("contents", "messages", "input"):
            held = [held]
        if isinstance(held, str | list) and held:
            return _with(value, _listed(held if isinstance(held, list) else [held]))
    for name in ("kwargs", "request", "body", "args"):
        held = value.get(name)
        if isinstance(held, dict) and ("messages" in held or "contents" in held or "input" in held):
            return _asked(held)
    alone = _with(value, NOTHING)
    return alone if alone else ChatContent([], [], [{shapes.JSON: value}])


def _with(value: Json, found: ChatContent) -> ChatContent:
    """What stands in a request beside its messages."""
    config = value.get("config")
    tools, system = list(found.tools), list(found.system)
    for holder in (value, config if isinstance(config, dict) else {}):
        for name in ("tools", "functions"):
            tools += definitions(holder.get(name))
        for name in ("system", "instructions", "system_instruction", "systemInstruction", "system_prompt"):
            if holder.get(name):
                system += instructions(holder[name])
    return ChatContent(tools, system, found.messages)


def instructions(value: Any) -> list[Any]:
    """A system prompt of any shape as texts, or as JSON where it is none."""
    value, cut = opened_partly(value)
    if isinstance(value, str):
        return [{"text": value, shapes.CUT: True}] if cut else [value] if value else []
    if isinstance(value, dict):
        for name in ("text", "content", "parts"):
            if name in value:
                return instructions(value[name])
        return [canonical(value)] if value else []
    if isinstance(value, list):
        found = [one for inner in value for one in instructions(inner)]
        if cut and found and isinstance(found[-1], str):
            found[-1] = {"text": found[-1], shapes.CUT: True}
        return found
    return []


def _listed(value: list[Any]) -> ChatContent:
    """A list of messages; tool definitions among them (as LangChain's callbacks put them) are told apart."""
    if value and all(isinstance(one, list) for one in value):
        value = [inner for one in value for inner in one]
    tools: list[Json] = []
    rest: list[Any] = []
    for one in value:
        held = one.get("content") if isinstance(one, dict) and one.get("role") == "tool" else None
        if (
            isinstance(held, dict)
            and held.get("type") == "function"
            and isinstance(held.get("function"), dict)
        ):
            tools.append(held)
            continue
        if isinstance(one, dict) and "role" in one and isinstance(one.get("tools"), list):
            # Langfuse's own rendering repeats them on each message.
            tools += [tool for tool in definitions(one["tools"]) if tool not in tools]
        rest.append(one)
    return ChatContent(tools, [], shapes.messages(rest))


def definitions(value: Any) -> list[Json]:
    """Tool definitions of any shape, one by one."""
    value = opened(value)
    if isinstance(value, dict):
        for name in ("function_declarations", "functionDeclarations"):
            if isinstance(value.get(name), list):
                return definitions(value[name])
        if "name" in value or "function" in value or "type" in value or "toolSpec" in value:
            return [value]
        # By name, as the AI SDK has them.
        return [{"name": name, **inner} for name, inner in value.items() if isinstance(inner, dict)]
    if isinstance(value, list):
        return [one for inner in value for one in definitions(inner)]
    return []


# -- answers ----------------------------------------------------------------------------------------------


def answer_messages(value: Any) -> list[Json]:
    """An answer of unknown shape as messages of the assistant."""
    value, cut = opened_partly(value)
    found = [_said(one) for one in _answered(value)]
    if cut and found:
        found[-1] = {**found[-1], shapes.CUT: True}
    return found


def _said(message: Json) -> Json:
    """What has no role of its own, or was taken for a prompt, is the assistant's."""
    return {**message, "role": "assistant"} if message.get("role") == "user" else message


def _answered(value: Any) -> list[Json]:
    if value is None or value in ("", [], {}):
        return []
    if isinstance(value, str):
        return [{"role": "assistant", "content": value}]
    if isinstance(value, list):
        return [one for inner in value for one in _answered(opened(inner))]
    if not isinstance(value, dict):
        return [{"role": "assistant", "content": canonical(value), shapes.DERIVED: True}]
    held = _first(value)
    if held is not None:
        return held
    if any(name in value for name in ("role", "lc", "message", "toolCallId", "parts")) or (
        isinstance(value.get("type"), str) and ("content" in value or value["type"].endswith("_call"))
    ):
        made = shapes.message(
            value if "role" in value or "parts" not in value else {"role": "model", **value}
        )
        if not any(shapes.JSON in one for one in made):
            return made
    if isinstance(value.get("messages"), list):
        return shapes.messages(value["messages"])
    calls = opened(value.get("tool_calls") or value.get("toolCalls"))
    text = next((value[name] for name in (*_TEXTS, "content") if isinstance(value.get(name), str)), None)
    if text is not None or isinstance(calls, list):
        said = {
            "role": "assistant",
            "content": text,
            "tool_calls": calls,
            "reasoning": value.get("reasoning"),
        }
        return shapes.message(said)
    # A structured answer: the object that the text was parsed to.
    return [{"role": "assistant", "content": canonical(value), shapes.DERIVED: True}]


def _first(value: Json) -> list[Json] | None:
    """The first choice of a provider's response body; None for what is no response."""
    choices = value.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        inner = choices[0].get("message")
        return shapes.message(inner) if isinstance(inner, dict) else _answered(choices[0])
    candidates = value.get("candidates")
    if isinstance(candidates, list) and candidates and isinstance(candidates[0], dict):
        inner = candidates[0].get("content")
        return shapes.message({"role": "model", **inner}) if isinstance(inner, dict) else None
    generations = value.get("generations")
    if isinstance(generations, list) and generations:
        first = generations[0]
        first = first[0] if isinstance(first, list) and first else first
        if isinstance(first, dict):
            said = shapes.message(first["message"]) if isinstance(first.get("message"), dict) else []
            return said or _answered(string(first.get("text")))
    output = value.get("output")
    if isinstance(output, list) and output and "role" not in value:
        return [one for inner in output for one in _item(inner)]
    content = value.get("content")
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        return shapes.message({"role": "model", **content})
    return None


def _item(value: Any) -> list[Json]:
    """An item of a Responses answer, less the fields that say nothing."""
    if not isinstance(value, dict):
        return _answered(value)
    return shapes.message({name: inner for name, inner in value.items() if inner is not None})


def echoed_request(value: Any) -> ChatContent:
    """What a Responses answer repeats of its request: tools and instructions."""
    value = opened(value)
    if not isinstance(value, dict) or not isinstance(value.get("output"), list):
        return NOTHING
    return ChatContent(definitions(value.get("tools")), instructions(value.get("instructions")), [])
