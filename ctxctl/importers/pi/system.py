"""pi's system messages (since 0.87): tools and prompt by sections, and what of them a request carries.

For models that are held to a tool's schema, pi rewrites it (pi-ai's `makeStrictJsonSchema`).
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from ctxctl.ingest.build import Json, canonical
from ctxctl.ingest.parts import Part, string

_IN_PLACE: Final = re.compile(
    r"(?:.*/)?(?:claude-(?:fable-5|opus-(?:4[.-]8|5))|gpt-(?:5\.[4-9]|[6-9])|kimi-k(?:2\.[67]|3)|deepseek-v4-pro)"
)
"""Models that take later system messages where they stand; for all others they are folded into the first.

pi says so by model (`supportsMidConvoSystemMessages`, pi-ai 0.87.1).
"""
_MESSAGES_API: Final = "anthropic-messages"
_ENFORCED: Final = {
    "anthropic-messages": ("anthropic",),
    "openai-completions": ("openai", "deepseek", "groq", "openrouter"),
    "openai-responses": ("openai", "xai", "github-copilot"),
    "openai-codex-responses": ("openai-codex",),
    "mistral-conversations": ("mistral",),
}
"""By API, the providers whose models are held to a tool's schema, which pi rewrites for that."""
_PLACEHOLDER: Final = {
    "name": "__pi_deferred_placeholder__",
    "description": "Reserved placeholder. Never available. Never call this.",
    "parameters": {"type": "object", "properties": {}, "required": []},
}
"""What pi declares behind the first tools where later ones may be added in their place."""


class RequestReceiver(NamedTuple):
    """The model that gets a request, and its provider and API: what is sent differs by these."""

    api: str | None = None
    provider: str | None = None
    model: str | None = None

    @property
    def in_place(self) -> bool:
        """Whether it takes later system messages where they stand."""
        return self.model is not None and _IN_PLACE.match(self.model) is not None

    @property
    def at_the_end(self) -> bool:
        """Whether later system messages are held back until the next answer."""
        return self.api == _MESSAGES_API

    @property
    def adds_tools(self) -> bool:
        """Whether it keeps the first tools, and gets later ones where they were added."""
        return self.in_place and self.at_the_end and self.provider == "anthropic"

    @property
    def enforced(self) -> bool:
        """Whether it is held to the schemas of the tools."""
        return self.provider in _ENFORCED.get(self.api or "", ())


def reader_of(message: Json) -> RequestReceiver:
    """The model that an assistant's message comes from."""
    return RequestReceiver(*(string(message.get(name)) for name in ("api", "provider", "model")))


class System:
    """A system message, and the one before it on its path.

    Args:
        message: The message.
        before: The one before.
        first: Whether it begins the conversation.
        line: Line of the file.
    """

    def __init__(self, message: Json, before: System | None, *, first: bool, line: int) -> None:
        self.before = before
        self.first = first
        self.line = line
        self._text = _text(message.get("content"))
        sections = message.get("sections")
        self._sections: Json = sections if isinstance(sections, dict) else {}
        self._added = _named(message.get("toolsAdded"))
        self._removed = set(_named(message.get("toolsRemoved")))

    def head(self, reader: RequestReceiver) -> list[Part]:
        """The tools and the prompt of a request to `reader`, by this message and those before it."""
        path: list[System] = []
        at: System | None = self
        while at is not None:
            path.append(at)
            at = at.before
        path.reverse()
        said = path if not reader.in_place else [one for one in path if one.first]
        tools = _declared(path) if reader.adds_tools and said and said[0]._added else _tools_so_far(path)
        return [_definition(tool, line, reader) for tool, line in tools] + _prompt(said)

    def update(self, key: str) -> Part | None:
        """What a request says of this message in its place, to a model that takes it there."""
        said = [self._text] if self._text else []
        for name, value in self._sections.items():
            if value is None:
                said.append(f'Removed system prompt section "{name}".')
            elif isinstance(value, str):
                said.append(f'Updated system prompt section "{name}":\n\n{value}')
        if not said:
            return None
        text = "\n\n".join(said)
        return Part("developer_instruction", text, "system", key=key, line=self.line, derived=True)


def _tools_so_far(path: list[System]) -> list[tuple[Json, int]]:
    """The tools up to this message, each with its line."""
    tools: dict[str, tuple[Json, int]] = {}
    for one in path:
        for name in one._removed:
            tools.pop(name, None)
        tools.update({name: (tool, one.line) for name, tool in one._added.items()})
    return list(tools.values())


def _declared(path: list[System]) -> list[tuple[Json, int]]:
    """The first tools, a placeholder, and every tool that was added later."""
    first = [(tool, path[0].line) for tool in path[0]._added.values()]
    later = {name: (tool, one.line) for one in path[1:] for name, tool in one._added.items()}
    return [
        *first,
        (_PLACEHOLDER, path[0].line),
        *(tool for name, tool in later.items() if name not in path[0]._added),
    ]


def _prompt(path: list[System]) -> list[Part]:
    """The prompt, joined as pi does: the texts so far, then the sections as they are by then."""
    texts: list[tuple[str, str, int]] = []
    sections: dict[str, tuple[str, int]] = {}
    for at, one in enumerate(path, 1):
        if one._text:
            texts.append((f"system/{at}" if at > 1 else "system", one._text, one.line))
        for name, value in one._sections.items():
            if isinstance(value, str):
                # A section that is told again stays where it is.
                sections[name] = value, one.line
            elif value is None:
                sections.pop(name, None)
    texts += [(f"system/section/{name}", text, line) for name, (text, line) in sections.items() if text]
    made: list[Part] = []
    for key, text, line in texts:
        title = key.rpartition("/")[2] if "/section/" in key else None
        before = "\n\n" if made else ""
        made.append(Part("system_prompt", text, "system", key=key, title=title, line=line, before=before))
    return made


def _definition(tool: Json, line: int, reader: RequestReceiver) -> Part:
    """A tool as it is sent; a model that is held to the schema gets it as pi rewrites it."""
    shown = {key: value for key, value in tool.items() if key != "constrainedSampling"}
    sampling = tool.get("constrainedSampling")
    rewritten = None
    if reader.enforced and isinstance(sampling, dict) and sampling.get("type") == "json_schema":
        rewritten = strict_schema(tool.get("parameters"))
    if rewritten is not None:
        shown["parameters"] = rewritten
    name, derived = str(tool["name"]), rewritten is not None or tool is _PLACEHOLDER
    return Part(
        "tool_definition",
        canonical(shown),
        "system",
        key=f"tool:{name}",
        title=name,
        line=line,
        derived=derived,
    )


def _named(tools: Any) -> dict[str, Json]:
    found = [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    return {name: tool for tool in found if (name := string(tool.get("name"))) is not None}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    return "\n".join(str(one["text"]) for one in blocks if one.get("type") == "text" and "text" in one)


_NEVER: Final = frozenset(
    {
        "$ref",
        "$defs",
        "definitions",
        "allOf",
        "oneOf",
        "patternProperties",
        "dependentSchemas",
        "dependencies",
        "unevaluatedProperties",
        "propertyNames",
        "contains",
        "prefixItems",
        "not",
        "if",
        "then",
        "else",
    }
)
"""Keys that a strict schema cannot have."""
_DEEPEST: Final = 100


class _UnfitError(Exception):
    """A schema that stays as it is."""


def strict_schema(schema: Any) -> Json | None:
    """The schema with every property required, those that were not as `or null`; None: it stays as it is."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return None
    try:
        return _node(schema, 0)
    except _UnfitError:
        return None


def _node(schema: Any, depth: int) -> Json:
    if not isinstance(schema, dict) or not _NEVER.isdisjoint(schema) or depth > _DEEPEST:
        raise _UnfitError
    made = dict(schema)
    if "anyOf" in made:
        variants = made["anyOf"]
        if not isinstance(variants, list) or not variants or any(_is_structured(one) for one in variants):
            raise _UnfitError
        made["anyOf"] = [_node(one, depth + 1) for one in variants]
    if "items" in made:
        made["items"] = _node(made["items"], depth + 1)
    if made.get("type") == "object":
        return _object(made, depth)
    if "properties" in made:
        raise _UnfitError
    return made


def _object(made: Json, depth: int) -> Json:
    properties, required = made.get("properties", {}), made.get("required", [])
    if made.get("additionalProperties", False) is not False or not isinstance(properties, dict):
        raise _UnfitError
    if not isinstance(required, list) or any(
        not isinstance(name, str) or name not in properties for name in required
    ):
        raise _UnfitError
    found = {}
    for name, one in properties.items():
        inner = _node(one, depth + 1)
        found[name] = inner if name in required or _allows_null(inner, depth) else _or_null(inner)
    return {**made, "properties": found, "required": list(properties), "additionalProperties": False}


def _or_null(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}


def _is_structured(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return "object" in kinds or "array" in kinds or "properties" in schema or "items" in schema


def _allows_null(schema: Any, depth: int) -> bool:
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return False
    kinds = schema.get("type")
    if kinds == "null" or (isinstance(kinds, list) and "null" in kinds):
        return True
    values = schema.get("enum")
    if ("const" in schema and schema["const"] is None) or (isinstance(values, list) and None in values):
        return True
    variants = schema.get("anyOf")
    return isinstance(variants, list) and any(_allows_null(one, depth + 1) for one in variants)
