"""What every provider's dialect can be asked: cut a request body into items, read an answer and its bill.

A bill has one shape for every provider: the input is the whole context, caches included.  The counting
conventions are genai-prices'; the provider's own fields, which it does not tell, are kept beside.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Final

from ctxctl.ingest.build import VERSION_DIGITS, Json, digest_of
from ctxctl.ingest.parts import Part, call_title, string
from ctxctl.providers.dialects.slots import CALL, JSON, PARTS, Slots, compact_json, plain, structured
from ctxctl.providers.dialects.units import LeftOut, Piece, Unit
from ctxctl.providers.usage import chat_usage, miss_cause, usage_record

_FRONT: Final = ("system", "developer")
"""Roles of messages that may stand before the conversation."""
_SEARCHES: Final = "web_search"
"""How the types of Anthropic's and OpenAI's own search tools begin."""
_SERVER: Final = re.compile(r"mcp__(.+?)__.+", re.DOTALL)


class CallTitles:
    """Titles of the tool calls met so far, for their results."""

    def __init__(self) -> None:
        self._titles: dict[str, str] = {}

    def call(self, key: str | None, name: str, arguments: Any) -> str:
        """The title of a call, kept for its result; without an id, for the next result of that name."""
        title = call_title(name, arguments)
        self._titles[key or f"name:{name}"] = title
        return title

    def result(self, key: str | None, name: str | None = None) -> str | None:
        """The title of the call that a result answers."""
        if key is not None and key in self._titles:
            return self._titles[key]
        return self._titles.get(f"name:{name}", name) if name is not None else None


class Dialect(ABC):
    """Reads the JSON of one provider's API: request bodies and answers."""

    name: ClassVar[str]
    provider: ClassVar[str]
    """Whose convention of counting tokens its bills follow."""
    section: ClassVar[str]
    """The field of the body that holds the messages."""

    @abstractmethod
    def detect(self, body: Json) -> int:
        """How sure a request body is of this dialect: 0 to 100."""

    @abstractmethod
    def answers(self, response: Json) -> int:
        """How sure a response body is of this dialect: 0 to 100."""

    @abstractmethod
    def units(self, body: Json) -> list[Unit]:
        """The body in pieces, in the provider's order: tools, system, messages."""

    @abstractmethod
    def parts(self, unit: Unit, names: CallTitles, line: int = 0) -> Slots:
        """The items of one piece."""

    def piece(self, piece: Piece, section: str, names: CallTitles, line: int = 0) -> Slots:
        """The items that a model read in the place of one unit of a section."""
        slots = self.parts(piece[0], names, line) if piece else Slots(section, line)
        for unit in piece[1:]:
            slots.parts += in_place(self.parts(unit, names, line).parts)
        return slots

    @abstractmethod
    def reply(self, response: Json) -> list[Part]:
        """The items that an answer adds, with the keys they have when they are sent back."""

    def handed(self, response: Json, parts: list[Part]) -> frozenset[str]:
        """Of the items that an answer added, those that a compaction gave out for the next request.

        They were not there when it was made: no summary stands for them.  Its own summary is not among them.
        """
        return frozenset()

    def reached(
        self, units: list[Unit], body: Json, response: Json | None, known: LeftOut
    ) -> list[Piece] | None:
        """By unit of a request, what the model read in its place; None: all units as they were sent.

        Args:
            units: The body's.
            body: The request.
            response: Its answer, where it has come.
            known: What the conversation's answers said; updated with this one.
        """
        return None

    def may_edit(self, body: Json) -> bool:
        """Whether only the answer to a request says what the model read of it."""
        return False

    def summed_up(self, response: Json, parts: list[Part]) -> int:
        """The number of an answer's items up to the last summary from which the rest was made."""
        return 0

    def settings(self, body: Json) -> Json | None:
        """The parameters of a request body, as they stand there, that a prompt cache hangs on.

        None: what was read is not the body that was sent.  What follows of a change is `engine.settings`'.
        """
        return None

    def cut(self, body: Json, line: int = 0) -> list[Part]:
        """The items of a whole request body."""
        names = CallTitles()
        return [part for unit in self.units(body) for part in self.parts(unit, names, line).parts]

    def message(
        self, message: Any, position: int, line: int = 0, names: CallTitles | None = None
    ) -> list[Part]:
        """The items of one message; `position`: among the messages, 0 is where a system prompt may stand."""
        unit = Unit(self.section, message, position, position == 0)
        return self.parts(unit, names or CallTitles(), line).parts

    def tools(self, definitions: Any, line: int = 0) -> list[Part]:
        """The items of tool definitions."""
        names = CallTitles()
        units = self.units({"tools": definitions})
        return [p for u in units if u.section == "tools" for p in self.parts(u, names, line).parts]

    def usage(self, response: Json, model: str | None = None) -> Json | None:
        """The record of what a response bills; None where it bills nothing.  `model`: that was asked for."""
        return usage_record_of(self.name, response, model)


def message_units(messages: Iterable[Any]) -> list[Unit]:
    """The units of a body's `messages`; system prompts at the beginning stand before the conversation."""
    found: list[Unit] = []
    front = True
    for at, value in enumerate(messages):
        front = front and isinstance(value, dict) and value.get("role") in _FRONT
        found.append(Unit("messages", value, at, front))
    return found


def tool_part(slots: Slots, definition: Any, name: Any, role: str = "system") -> None:
    """Place one tool definition."""
    named = string(name)
    bare = plain(definition)
    server = _SERVER.fullmatch(named) if named is not None else None
    kind = definition.get("type") if isinstance(definition, dict) else None
    shown = named or string(kind)
    slots.put(
        structured(
            "tool_definition", bare, role,
            key=f"tool:{shown}" if shown is not None else None, title=shown,
            source=f"mcp:{server.group(1)}" if server is not None else None, line=slots.line,
            native={"type": kind} if isinstance(kind, str) and kind.startswith(_SEARCHES) else None,
        ),
        JSON,
    )  # fmt: skip
    slots.mark(definition)


def in_place(tools: list[Part]) -> list[Part]:
    """Place tools that were found in the conversation, so that what precedes them stays cached."""
    for part in tools:
        part.segment = "history"
    return tools


def extra_part(slots: Slots, value: Any, title: str, kind: str = "custom") -> None:
    """Place what stands in the body beside tools, system and messages and reaches the model as JSON.

    It is a part of the system prompt: OpenAI puts an answer's schema in front of it ("Prompt caching"), and
    Anthropic adds a prompt that explains it ("Structured outputs").
    """
    made = structured(
        kind, plain(value), "system", key=f"body:{title}", title=title, line=slots.line, segment="system"
    )
    slots.put(made, JSON)


def call_part(
    slots: Slots,
    names: CallTitles,
    key: str | None,
    name: str,
    arguments: Any,
    leaf: Any,
    *,
    to: str | None = None,
    sent: str | None = None,
) -> Part:
    """Place a tool call; arguments that are no JSON object stand as they are.

    `sent`: the arguments as they were sent, where that was JSON in a string.
    """
    title = names.call(key, name, arguments)
    if isinstance(arguments, str):
        part = Part("tool_call", f"{name} {arguments}", "assistant", key=key, title=title, line=slots.line)
    else:
        part = structured(
            "tool_call", arguments, "assistant", name=name, text=sent, key=key, title=title, line=slots.line
        )
    return slots.put(part, leaf, to)


def unknown_part(
    slots: Slots, block: Any, role: str, key: str | None = None, *, to: str | None = None
) -> None:
    """Place a block of a type that is not known here: its JSON is what went over the wire."""
    kind = string(block.get("type")) if isinstance(block, dict) else None
    bare = plain(block)
    result = kind is not None and kind.endswith(("tool_result", "_output"))
    slots.put(
        structured(
            "tool_result" if result else "custom", bare, role, key=key, title=kind, line=slots.line,
            native={"type": kind} if kind is not None else None,
        ),
        JSON, to,
    )  # fmt: skip


def sealed_part(
    slots: Slots,
    kind: str,
    data: Any,
    role: str,
    leaf: Any,
    *,
    key: str | None = None,
    to: str | None = None,
    **fields: Any,
) -> Part:
    """Place what the capture holds no text of: sealed reasoning, an image, a file."""
    digest = digest_of(data if isinstance(data, str) else compact_json(data))
    part = Part(
        kind, None, role, key=key, version=digest[:VERSION_DIGITS], line=slots.line,
        **{name: value for name, value in fields.items() if value is not None},
    )  # fmt: skip
    return slots.put(part, leaf, to)


def other_fields(value: Json, names: Iterable[str]) -> Json:
    """The other fields of an object, made plain."""
    return {
        name: plain(inner) for name, inner in value.items() if name not in names and name != "cache_control"
    }


__all__ = ["CALL", "JSON", "PARTS", "CallTitles", "Dialect", "Piece", "Unit"]


_RULES: Final = {
    "anthropic": ("anthropic", "default", "usage"),
    "gemini": ("google", "default", "usageMetadata"),
}
"""By dialect: genai-prices' provider and flavour, and the field of the response that bills."""
_SPELLED: Final = {
    "prompt_token_count": "promptTokenCount",
    "candidates_token_count": "candidatesTokenCount",
    "thoughts_token_count": "thoughtsTokenCount",
    "cached_content_token_count": "cachedContentTokenCount",
    "tool_use_prompt_token_count": "toolUsePromptTokenCount",
    "total_token_count": "totalTokenCount",
}


def usage_record_of(dialect: str, response: Json, model: str | None = None) -> Json | None:
    """The record of `ctxctl.usage.reported`; None where the response bills no input.

    Args:
        dialect: Name of the dialect.
        response: The response body, with the final totals of a stream.
        model: The model asked for, where the response does not name the one that answered.
    """
    if dialect.startswith("openai"):
        used = response.get("usage")
        named = string(response.get("model")) or model
        native = _kept(used) if isinstance(used, dict) else None
        return chat_usage(used, provider="openai", model=named, native=native, response=response)
    provider, flavour, field = _RULES[dialect]
    bill = response.get(field)
    if dialect == "gemini" and not isinstance(bill, dict):
        bill = response.get("usage_metadata")
    if not isinstance(bill, dict):
        return None
    counted = _counts(dialect, bill)
    if not counted:
        return None
    named = string(response.get("model")) or string(response.get("modelVersion"))
    found = _extracted(counted, provider, flavour, field)
    if found is None:
        return None
    return usage_record(
        provider=provider,
        model=named or string(response.get("model_version")) or model,
        native=_kept(bill),
        bill=bill,
        response=response,
        miss_cause=miss_cause(response) if dialect == "anthropic" else None,
        **found,
    )


def _extracted(bill: Json, provider: str, flavour: str, field: str) -> dict[str, Any] | None:
    from ctxctl.tokens.catalogue import packed  # needed only where a capture bills something

    known = packed.packed_library()
    if known is not None:
        held = known.bills[provider, flavour].read(bill)
    else:
        held = _by_library({field: bill}, provider, flavour)
    if held is None:
        return None
    return {
        "input_tokens": _whole(held.get("input_tokens")),
        "output_tokens": _whole(held.get("output_tokens")),
        "cached": _whole(held.get("cache_read_tokens")),
        "cache_write": _whole(held.get("cache_write_tokens")),
        "cache_write_1h": _whole(held.get("cache_write_1h_tokens")),
        "reasoning": _whole(held.get("output_reasoning_tokens")),
    }


def _by_library(response: Json, provider: str, flavour: str) -> dict[str, Any] | None:
    from genai_prices import extract_usage  # slow to import

    try:
        usage = extract_usage(response, provider_id=provider, api_flavor=flavour).usage
    except (ValueError, TypeError, LookupError):
        return None
    # Its attributes are 0 for what was not reported; only what it holds was.
    return vars(usage)


def _whole(value: Any) -> int | None:
    return None if value is None or isinstance(value, bool) else int(value)


def _counts(dialect: str, bill: Json) -> Json:
    """The fields that bill, without what is no count, and in the spelling that genai-prices knows."""
    made: Json = {}
    for name, value in bill.items():
        name = _SPELLED.get(name, name) if dialect == "gemini" else name
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53:
            made[name] = value
        elif isinstance(value, dict):
            made[name] = {
                key: inner for key, inner in value.items()
                if isinstance(inner, int) and not isinstance(inner, bool) and 0 <= inner < 2**53
            }  # fmt: skip
    return made


def _kept(bill: Json) -> Json:
    """The provider's own fields, less what says nothing."""
    return {name: value for name, value in bill.items() if value not in (None, 0, {}, [])}
