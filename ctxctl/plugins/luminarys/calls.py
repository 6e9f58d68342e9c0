"""The events of one call of a skill: what the skill got, what it gave, and what of that the model gets.

What the host returned tells where the LLM context stands in it, and how the result is written.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, Final, NamedTuple

from ctxctl.ingest import build
from ctxctl.ingest.build import Json, Maker, Place
from ctxctl.ingest.parts import call_title, count
from ctxctl.model import vocab
from ctxctl.plugins.luminarys.messages import Blob, Request, Response, json_value

STATE_LIMIT: Final = 1_000_000
"""Bytes that a skill's state should not exceed."""
TOOL: Final = "tool"
_PREFIXES: Final = {"context": "llmctx-", "result": "res-"}
"""Of the items of a response."""


class Call(NamedTuple):
    """One call, as far as the capture holds it."""

    request: Request | None
    response: Response | None
    line: int
    file: str | None
    time: Any = None
    returned: tuple[str, ...] = ()
    """Texts of the content blocks that the host returned for it, where they were captured."""


class _State:
    """A skill's state as last seen."""

    __slots__ = ("digest", "schema")

    def __init__(self, digest: str, schema: int | None) -> None:
        self.digest = digest
        self.schema = schema


class Calls:
    """Makes the events of an import's calls; holds digests of states, one a skill and session."""

    def __init__(self, make: Maker, out: list[Json]) -> None:
        self._make = make
        self._out = out
        self._states: dict[tuple[str | None, str | None, str], _State] = {}
        self._skills: set[str] = set()
        self._steps: dict[str, int] = {}
        self._place = Place()
        self._line = 0
        self._ids: Json = {}
        self._made = 0

    def add(self, call: Call) -> list[str]:
        """Give one call's events; returns what has to be said about it (a state beyond the limit)."""
        request = call.request
        self._make.file = call.file
        self._make.at(call.time)
        self._line = call.line
        self._made += 1
        text = request.text if request is not None else lambda _name: None
        name = text("request_id") or f"call-{self._made}"
        again = self._steps[name] = self._steps.get(name, 0) + 1
        key = name if again == 1 else f"{name}~{again}"
        self._place = Place(text("session_id"), text("llm_session_id"), None, key)
        self._ids = {"tool_call_id": name} if request is not None else {}
        if text("trace_id") is not None:
            self._ids["run_id"] = text("trace_id")
        # Of a skill without a name nothing is known but the call: its state is no other call's.
        skill = text("skill_id") or f"({key})"
        inner = text("caller_id") in self._skills
        self._skills.add(skill)
        said = self._request(request, key, skill) if request is not None else []
        if call.response is not None:
            self._response(call, call.response, key, inner=inner)
            said += self._state(call.response.state, skill, "response")
        if request is not None:
            self._delivered(request, key)
        return said

    def _emit(self, event_type: str, data: Json) -> None:
        event = self._make.event(event_type, data, self._place, self._line)
        event.update(self._ids)
        self._out.append(event)

    # -- what the skill gets ----------------------------------------------------------------------------

    def _request(self, request: Request, key: str, skill: str) -> list[str]:
        said = self._state(request.state, skill, "request")
        method = f"{skill}.{request.text('method') or ''}".rstrip(".")
        arguments = request.payload.value if request.payload is not None else None
        blocks = [f"args-{key}"]
        text = f"{method} {build.canonical(json_value(arguments))}" if request.payload is not None else method
        record = build.text_item(
            blocks[0], "tool_call", text,
            title=call_title(method, arguments), metadata={"native": request.native},
        )  # fmt: skip
        record["visibility"] = [TOOL]
        self._emit(vocab.ITEM_ADDED, record)
        if request.state is not None:
            blocks.append(f"{_state_id(skill)}@{_digest(request.state)[: build.VERSION_DIGITS]}")
        assembly = self._make.record(
            assembly_id=f"tool-{key}",
            target=TOOL,
            ordered_blocks=[{"block_id": ref.partition("@")[0], "item_refs": [ref]} for ref in blocks],
            visibility=[TOOL],
            metadata={"ctxctl": {"mode": "window"}},
        )
        self._emit(vocab.ASSEMBLY_CREATED, assembly)
        return said

    def _delivered(self, request: Request, key: str) -> None:
        """The skill's own injection, which closes the call for those who look at it as the tool does."""
        injection = self._make.record(
            injection_id=f"call-{key}",
            assembly_id=f"tool-{key}",
            target=TOOL,
            injection_point=vocab.TOOL_ARGUMENT,
            native_id=request.text("request_id"),
            visibility=[TOOL],
            hash=f"sha256:{_digest(request.state)}" if request.state is not None else None,
        )
        self._emit(vocab.INJECTION_APPLIED, injection)

    def _state(self, state: Blob | None, skill: str, where: str) -> list[str]:
        """A skill's state if it is new or changed; for the tool alone, and no other skill's."""
        if state is None:
            return []
        digest, schema = _digest(state), _schema(state)
        owner = self._place.session, self._place.thread, skill
        known = self._states.get(owner)
        if known is not None and known.digest == digest:
            return []
        self._states[owner] = _State(digest, schema)
        native: Json = {"skill_id": skill, "seen_in": where}
        if schema is not None:
            native["schema_version"] = schema
        if known is not None and known.schema is not None and schema not in (None, known.schema):
            native["migrated_from"] = known.schema
        title = f"state of {skill}" + (f", schema {schema}" if schema is not None else "")
        if "migrated_from" in native:
            title += f" (was {native['migrated_from']})"
        fields: Json = {
            "title": title,
            "byte_size": len(state.data) or None,
            "metadata": {"version": digest[: build.VERSION_DIGITS], "native": native},
        }
        item = _state_id(skill)
        if state.known:
            record = build.text_item(item, "runtime_state", _state_text(state), **fields)
            record["metadata"]["ctxctl"] = {"derived": True}
        else:
            record = build.opaque_item(item, "runtime_state", None, **fields)
        record["visibility"] = [TOOL]
        self._emit(vocab.ITEM_ADDED if known is None else vocab.ITEM_UPDATED, record)
        return self._limit(state, skill)

    def _limit(self, state: Blob, skill: str) -> list[str]:
        """The recommended size of a state, where it is exceeded."""
        size = len(state.data)
        if size <= STATE_LIMIT:
            return []
        record = self._make.record(
            budget_id=f"state-{self._made}-{skill}",
            target=TOOL,
            max_bytes=STATE_LIMIT,
            actual_bytes=size,
            metadata={"ctxctl": {"derived": True}},
        )
        self._emit(vocab.BUDGET_APPLIED, record)
        return [f"the state of {skill} has {size:,} bytes; up to 1 MB is recommended"]

    # -- what it gives ----------------------------------------------------------------------------------

    def _response(self, call: Call, response: Response, key: str, *, inner: bool) -> None:
        """Result and LLM context; of a call by another skill both go to that skill, not to the model."""
        request = call.request
        method = "result"
        if request is not None:
            method = f"{request.text('skill_id') or 'skill'}.{request.text('method') or ''}".rstrip(".")
        context, result = response.context, _result_text(response.payload)
        native: Json = {"commands": response.commands} if response.commands else {}
        names: list[str] = []
        if context is not None:
            record = build.text_item(
                f"llmctx-{key}", "tool_result", context,
                title=f"llm_context of {method}", byte_size=len(context.encode("utf-8", "replace")),
            )  # fmt: skip
            names.append(self._given(record, inner))
        if response.payload is not None:
            fields: Json = {"title": method, "byte_size": len(response.payload.data) or None}
            if result is None:
                record = build.opaque_item(f"res-{key}", "tool_result", None, **fields)
                record["metadata"] = {"version": _digest(response.payload)[: build.VERSION_DIGITS]}
            else:
                record = build.text_item(f"res-{key}", "tool_result", result, **fields)
                if not isinstance(response.payload.value, str):
                    record["metadata"] = {"ctxctl": {"derived": True}}
            if native:
                record.setdefault("metadata", {})["native"] = native
            names.append(self._given(record, inner))
        if response.error is not None:
            self._failed(response.error, key)
        if not inner:
            self._joined(call, names, context, result, key)

    def _given(self, record: Json, inner: bool) -> str:
        if inner:
            record["visibility"] = [TOOL]
        self._emit(vocab.ITEM_ADDED, record)
        name: str = record["item_id"]
        return name

    def _joined(
        self, call: Call, names: list[str], context: str | None, result: str | None, key: str
    ) -> None:
        """What the host returns to the model: where it was captured, as it was; else as documented."""
        placed = arrangement_of(context, result, call.returned)
        marks: Json = {"mode": "append"}
        both, order, separator = context is not None and len(names) == 2, names, SEPARATOR
        if placed is not None:
            order = [f"{_PREFIXES[which]}{key}" for which in placed.order]
            separator = placed.separator or SEPARATOR
        if both:
            marks["derived" if placed is not None else "simulated"] = True
        native = {"llm_context": placed.name if placed is not None else "documented"} if both else {}
        assembly = self._make.record(
            assembly_id=f"asm-{key}",
            target=vocab.MODEL,
            separator_policy=separator if len(order) > 1 else None,
            ordered_blocks=[_block(name, placed) for name in order],
            visibility=[vocab.MODEL],
            metadata={"native": native, "ctxctl": marks},
        )
        self._emit(vocab.ASSEMBLY_CREATED, assembly)

    def _failed(self, error: str, key: str) -> None:
        record = self._make.record(
            missing_id=f"error-{key}",
            scope="tool_invocation",
            question=error,
            severity="high",
            status="open",
            metadata={"native": {"error": error}},
        )
        self._emit(vocab.MISSING_DETECTED, record)


def _block(name: str, placed: Arrangement | None) -> Json:
    made: Json = {"block_id": name, "item_refs": [name], "role": "tool"}
    if placed is not None and placed.result is not None and name.startswith(_PREFIXES["result"]):
        made["content"] = placed.result
    return made


def _result_text(payload: Blob | None) -> str | None:
    """The result as a text: a text as it is, another value as JSON; None for bytes that are no value."""
    if payload is None:
        return None
    if payload.known:
        return payload.value if isinstance(payload.value, str) else build.canonical(json_value(payload.value))
    try:
        return payload.data.decode()
    except UnicodeDecodeError:
        return None


def _state_id(skill: str) -> str:
    return f"state:{skill}"


def _digest(blob: Blob) -> str:
    """SHA-256 hex digest of the bytes, or of the JSON of a value that a log has decoded."""
    if blob.data:
        return sha256(blob.data).hexdigest()
    return build.digest_of(build.canonical(json_value(blob.value)))


def _envelope(state: Blob) -> Json | None:
    value = state.value
    return value if isinstance(value, dict) and "schema_version" in value else None


def _schema(state: Blob) -> int | None:
    envelope = _envelope(state)
    return count(envelope.get("schema_version")) if envelope is not None else None


def _state_text(state: Blob) -> str:
    """The state decoded: the envelope, and the skill's own data in it."""
    from ctxctl.plugins.luminarys.messages import blob

    envelope = _envelope(state)
    if envelope is None:
        return build.canonical(json_value(state.value))
    inner = blob(envelope.get("data"))
    data = inner.value if inner is not None and inner.known else envelope.get("data")
    return build.canonical(json_value({**envelope, "data": data}))


SEPARATOR: Final = "\n---\n"
"""Between LLM context and result, as the host's documentation has it."""
BLOCK: Final = "content_block"
"""Names what is between them where each is a content block of its own: nothing that is text."""
_BEFORE: Final = re.compile(r"\r?\n-{3,}\r?\n")
_AFTER: Final = re.compile(r"(?:\r?\n-{3,})?(?:\r?\n)+\Z")


class Arrangement(NamedTuple):
    """How LLM context and result stand in what the host returned."""

    name: str
    """`before`, `after`, `block`, `within` (the context is somewhere in it), `alone` (one of the two), or
    `result` (there is no context)."""
    order: tuple[str, ...]
    """Of `context` and `result`, what was returned, in order."""
    separator: str | None = None
    result: str | None = None
    """The result as it was returned, where that is not its own text: JSON is written in many ways."""


def arrangement_of(context: str | None, result: str | None, returned: tuple[str, ...]) -> Arrangement | None:
    """How a host arranged the two; None where nothing of it was captured, or the response was empty.

    Args:
        context: The LLM context that the skill set.
        result: The result as a text; None: it has none.
        returned: Texts of the content blocks.

    A result may hold a line `---` itself, so the two are looked for as they are before anything is split.
    """
    if not returned or (context is None and result is None):
        return None
    if result is None:
        return Arrangement("alone", ("context",)) if context in returned else None
    whole = "\n".join(returned)
    if context is None:
        return _alone("result", result, whole)
    return _joined(context, result, returned) or _separate(context, result, returned, whole)


def _joined(context: str, result: str, returned: tuple[str, ...]) -> Arrangement | None:
    """Both in one block."""
    for text in returned:
        if text.startswith(context) and (match := _BEFORE.match(text, len(context))):
            return Arrangement("before", ("context", "result"), match[0], _other(text[match.end() :], result))
        head = text.removesuffix(context)
        if head == text or not head:
            continue
        found = _AFTER.match(head, len(result)) if head.startswith(result) else _AFTER.search(head)
        if found is not None:
            return Arrangement(
                "after", ("result", "context"), found[0], _other(head[: found.start()], result)
            )
    return None


def _separate(context: str, result: str, returned: tuple[str, ...], whole: str) -> Arrangement:
    """Each in blocks of its own, or one of them alone."""
    told = [text.strip() for text in returned]
    if context.strip() not in told or told == [result.strip()]:
        return _alone("within" if context in whole else "alone", result, whole)
    if len(told) == 1:
        return Arrangement("alone", ("context",))
    at = told.index(context.strip())
    rest = "\n".join(text for n, text in enumerate(returned) if n != at)
    order = ("context", "result") if at == 0 else ("result", "context")
    return Arrangement("block", order, BLOCK, _other(rest, result))


def _alone(name: str, result: str, whole: str) -> Arrangement:
    return Arrangement(name, ("result",), None, _other(whole, result))


def _other(text: str, result: str) -> str | None:
    return None if text == result else text
