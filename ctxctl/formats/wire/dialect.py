"""What every provider's dialect can be asked: cut a request body into items, read an answer and its bill."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Final, NamedTuple

from ctxctl.formats.build import VERSION_DIGITS, Json, digest_of
from ctxctl.formats.kit.parts import Part, call_title, string
from ctxctl.formats.wire import billing
from ctxctl.formats.wire.slots import CALL, JSON, PARTS, Slots, compact, plain, structured

_SEARCHES: Final = "web_search"
"""How the types of Anthropic's and OpenAI's own search tools begin."""
_SERVER: Final = re.compile(r"mcp__(.+?)__.+", re.DOTALL)


class Unit(NamedTuple):
    """A piece of a request body that is cut by itself: a tool, a system block, a message."""

    section: str
    """The field of the body it stands in."""
    value: Any
    at: int
    """Among the units of its section."""
    head: bool
    """Whether it stands before the conversation: tools, system prompt."""


class Names:
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
    """One provider API's JSON."""

    name: ClassVar[str]
    provider: ClassVar[str]
    """Whose convention of counting tokens its bills follow."""

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
    def parts(self, unit: Unit, names: Names, line: int = 0) -> Slots:
        """A piece as items."""

    @abstractmethod
    def reply(self, response: Json) -> list[Part]:
        """The items that an answer adds, with the keys they have when they are sent back."""

    def handed(self, response: Json, parts: list[Part]) -> frozenset[str]:
        """Of the items that an answer added, those that a compaction gave out for the next request.

        They were not there when it was made: no summary stands for them.  Its own summary is not among them.
        """
        return frozenset()

    def settings(self, body: Json) -> Json | None:
        """The parameters of a request body, as they stand there, that a prompt cache hangs on.

        None: what was read is not the body that was sent.  What follows of a change is `engine.settings`'.
        """
        return None

    def cut(self, body: Json, line: int = 0) -> list[Part]:
        """A whole request body as items."""
        names = Names()
        return [part for unit in self.units(body) for part in self.parts(unit, names, line).parts]

    def message(self, message: Any, position: int, line: int = 0, names: Names | None = None) -> list[Part]:
        """One message as items; `position`: among the messages, 0 is where a system prompt may stand."""
        unit = Unit(self.section, message, position, position == 0)
        return self.parts(unit, names or Names(), line).parts

    def tools(self, definitions: Any, line: int = 0) -> list[Part]:
        """Tool definitions as items."""
        names = Names()
        units = self.units({"tools": definitions})
        return [p for u in units if u.section == "tools" for p in self.parts(u, names, line).parts]

    @property
    @abstractmethod
    def section(self) -> str:
        """The field of the body that holds the messages."""

    def usage(self, response: Json, model: str | None = None) -> Json | None:
        """The record of what a response bills; None where it bills nothing.  `model`: that was asked for."""
        return billing.record(self.name, response, model)


def listed(value: Any) -> list[Any]:
    """The value if it is a list, else no values."""
    return value if isinstance(value, list) else []


def tool(slots: Slots, definition: Any, name: Any, role: str = "system") -> None:
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


def extra(slots: Slots, value: Any, title: str, kind: str = "custom") -> None:
    """Place what stands in the body beside tools, system and messages and reaches the model as JSON.

    It is a part of the system prompt: OpenAI puts an answer's schema in front of it ("Prompt caching"), and
    Anthropic adds a prompt that explains it ("Structured outputs").
    """
    made = structured(
        kind, plain(value), "system", key=f"body:{title}", title=title, line=slots.line, segment="system"
    )
    slots.put(made, JSON)


def call(
    slots: Slots,
    names: Names,
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


def unknown(slots: Slots, block: Any, role: str, key: str | None = None, *, to: str | None = None) -> None:
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


def sealed(
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
    digest = digest_of(data if isinstance(data, str) else compact(data))
    part = Part(
        kind, None, role, key=key, version=digest[:VERSION_DIGITS], line=slots.line,
        **{name: value for name, value in fields.items() if value is not None},
    )  # fmt: skip
    return slots.put(part, leaf, to)


def without(value: Json, names: Iterable[str]) -> Json:
    """The other fields of an object, made plain."""
    return {
        name: plain(inner) for name, inner in value.items() if name not in names and name != "cache_control"
    }


__all__ = ["CALL", "JSON", "PARTS", "Dialect", "Names", "Unit"]
