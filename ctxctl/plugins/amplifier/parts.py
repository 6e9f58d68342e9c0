"""Parts of a request: Amplifier's own messages, and what Amplifier put inside those of a wire body.

Messages that have no ids are known again over requests whose views leave messages out and take them back.
`<system-reminder source="…">` blocks ride behind the last tool result or in a message of their own, and are
made anew for each request; `<context_file paths="mention → path">` blocks follow the system prompt.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.ingest.build import Json, canonical, digest_of
from ctxctl.ingest.parts import Part, call_title, first_line, mapping, parsed, string
from ctxctl.model.vocab import ANSWERS

_OPEN: Final = re.compile(r"<(system-reminders?|context_file)([^<>]*)>")
_SOURCE: Final = re.compile(r"""\bsource=["']([^"'<>]{1,200})["']""")
_PATHS: Final = re.compile(r'\bpaths="([^"]{1,4000})"')
_ARROW: Final = " → "
_INDENT: Final = 64


class Piece(NamedTuple):
    """A stretch of a text; `before` and `text` of all pieces in a row give the text back."""

    before: str
    """White space between the piece and the one before it."""
    text: str
    tag: str | None = None
    """`system-reminder`, `context_file`; None: plain text."""
    source: str | None = None
    """What put it there: a hook, or a path."""
    mention: str | None = None
    """How a file was asked for."""


class _Block(NamedTuple):
    start: int
    end: int
    tag: str
    rest: str


def pieces(text: str) -> list[Piece]:
    """The text cut at Amplifier's markers; one plain piece where there are none.

    A block begins a line.  One that is never closed, and what looks like a block inside another one, is text.
    """
    if "<system-reminder" not in text and "<context_file" not in text:
        return [Piece("", text)]
    found: list[Piece] = []
    done = 0
    for block in _injected_blocks(text):
        plain, space = _trimmed(text[done : block.start], first=not done)
        if plain is not None:
            found.append(plain)
        found.append(_piece(space, text[block.start : block.end], block))
        done = block.end
    if done < len(text) or not found:
        plain, space = _trimmed(text[done:], first=not done)
        if plain is not None:
            found.append(plain._replace(text=plain.text + space))
        elif found:
            found[-1] = found[-1]._replace(text=found[-1].text + space)
        else:
            found.append(Piece("", text))
    return found


def _injected_blocks(text: str) -> Iterator[_Block]:
    """The blocks that are not inside another one."""
    at = 0
    unclosed: set[str] = set()
    while (match := _OPEN.search(text, at)) is not None:
        at = match.end()
        tag = match.group(1)
        indent = text[max(0, match.start() - _INDENT) : match.start()].rstrip(" \t")
        if tag in unclosed or (indent and not indent.endswith("\n")):
            continue
        end = text.find(f"</{tag}>", at)
        if end < 0:
            unclosed.add(tag)
            continue
        at = end + len(tag) + 3
        yield _Block(match.start(), at, tag, match.group(2))


def _trimmed(raw: str, *, first: bool) -> tuple[Piece | None, str]:
    """Plain text as a piece (None if it is blank), and the white space behind it."""
    body = raw.rstrip()
    if not body:
        return None, raw
    inner = body if first else body.lstrip()
    return Piece(body[: len(body) - len(inner)], inner), raw[len(body) :]


def _piece(space: str, text: str, block: _Block) -> Piece:
    if block.tag == "context_file":
        paths = _PATHS.search(block.rest)
        if paths is None:
            return Piece(space, text, block.tag)
        mention, arrow, path = paths.group(1).partition(_ARROW)
        if not arrow:
            return Piece(space, text, block.tag, mention)
        return Piece(space, text, block.tag, path, mention.removeprefix("@"))
    source = _SOURCE.search(block.rest)
    return Piece(space, text, block.tag, source.group(1) if source is not None else None)


Origin = Callable[[Piece], tuple[str | None, Json | None]]
"""Path and source ref of a `context_file` piece, as far as known."""

CUT: Final = "[truncated: ~"
"""How a tool result begins that compaction has cut."""
INGRESS: Final = "[tool-result truncated at ingress"
_STUB: Final = re.compile(r'\[User message compacted - original: "(.*)\.\.\."\]\Z', re.DOTALL)
_UNSENDABLE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that Amplifier takes out of a tool's result."""
_MASK: Final = "[REDACTED"
_SPREAD: Final = frozenset({"user_message", "tool_result", "system_prompt", "developer_instruction"})
_CUT_KINDS: Final = frozenset({"policy_note", "external_resource"})
_KIND_OF_ROLE: Final = {
    "system": "system_prompt",
    "developer": "developer_instruction",
    "tool": "tool_result",
}
_PREVIEW: Final = 50
"""Characters of a user message that its stub repeats."""


def stub_of(text: str) -> str | None:
    """The beginning of the message that a stub stands for, as a stub has it; None for what is no stub."""
    if not text.startswith("[User message compacted"):
        return None
    match = _STUB.match(text)
    return match.group(1) if match is not None else None


def preview_of(text: str) -> str:
    """What a stub repeats of a user message."""
    return text[:_PREVIEW].replace("\n", " ").strip()


def parts_with_reminders(parts: list[Part], origin: Origin) -> list[Part]:
    """The parts of a request with Amplifier's reminders and files as parts of their own."""
    made: list[Part] = []
    for part in _whole(parts):
        if part.kind in _SPREAD and part.text is not None:
            made += _spread(part, part.text, origin)
        else:
            made.append(_noted(part))
    return made


def _whole(parts: list[Part]) -> Iterator[Part]:
    """Texts that the wire's dialect cut are put together again: which markers count is Amplifier's matter."""
    group: list[Part] = []
    for part in parts:
        if group and '"joins":true' in part.wire:
            group.append(part)
            continue
        yield from _joined(group)
        group = [part]
    yield from _joined(group)


def _joined(group: list[Part]) -> list[Part]:
    if not group or any(part.text is None for part in group):
        return group
    own = next((part for part in group if part.kind in _SPREAD), None)
    if len(group) == 1 and (own is not None or group[0].kind not in _CUT_KINDS):
        return group
    first = own or group[0]
    kind = first.kind if own is not None else _KIND_OF_ROLE.get(first.role, "user_message")
    text = "".join(part.text or "" for part in group)
    native = first.native if own is not None else None
    key = first.item or None if own is not None else None
    part = Part(
        kind, text, first.role, key=key, title=first.title if own else None, native=native, line=first.line
    )
    part.wire, part.segment, part.derived = group[0].wire, first.segment, first.derived
    return [part]


def _spread(part: Part, text: str, origin: Origin) -> Iterator[Part]:
    found = pieces(text) if _may_cut(part.kind, text) else []
    if len(found) < 2 and not (found and found[0].tag):
        yield _noted(part)
        return
    injected = False
    behind = _behind(part.wire)
    for at, piece in enumerate(found):
        injected = injected or piece.tag not in (None, "context_file")
        made = _of_piece(part, piece, injected=injected, origin=origin)
        made.wire = behind if at else part.wire
        yield _noted(made)


def _behind(wire: str) -> str:
    """The place of what continues the text of a part that stands at `wire`."""
    place = orjson.loads(wire) if wire else None
    if not isinstance(place, dict):
        return ""
    depth = place.get("at", 0) + len(place.get("open", ()))
    joins: Json = {"in": place.get("in"), "joins": True}
    if depth:
        joins["at"] = depth
    return canonical(joins)


def _may_cut(kind: str, text: str) -> bool:
    """Reminders are put behind a tool result; what stands within it is the tool's own output."""
    if kind != "tool_result":
        return True
    own, gap, _ = text.partition("\n\n<system-reminder")
    return bool(gap) and (text.rstrip().endswith("</system-reminder>") or (own[0:1], own[-1:]) == ("{", "}"))


def _of_piece(part: Part, piece: Piece, *, injected: bool, origin: Origin) -> Part:
    segment = "system" if part.kind in ("system_prompt", "developer_instruction") else ""
    if piece.tag == "context_file":
        path, ref = origin(piece)
        return Part(
            "external_resource", piece.text, part.role, key=path, title=piece.mention or path,
            line=part.line, before=piece.before, segment=segment, source_refs=[ref] if ref else None,
        )  # fmt: skip
    if injected:
        return _reminder(piece, part.role, part.line, segment)
    whole = Part(
        part.kind, piece.text, part.role, key=part.item or None, source=part.source, title=part.title,
        native=part.native, line=part.line, before=piece.before, segment=part.segment, **part.data,
    )  # fmt: skip
    whole.derived = part.derived
    return whole


SUMMARY_SOURCE: Final = "context-summary"
"""The source of the reminder with which context-simple's strategy `summary` replaces early messages."""


def _reminder(piece: Piece, role: str, line: int, segment: str) -> Part:
    if piece.source is None:
        title = "reminder" if piece.tag else "text injected behind a reminder"
        return Part(
            "policy_note", piece.text, role, title=title, line=line, before=piece.before, segment=segment
        )
    refs = [{"schema_version": "0.1.1", "source_id": piece.source, "source_kind": "hook"}]
    kind = "thread_summary" if piece.source == SUMMARY_SOURCE else "policy_note"
    return Part(
        kind, piece.text, role, key=f"reminder:{piece.source}", title=f"reminder: {piece.source}",
        line=line, before=piece.before, segment=segment, source_refs=refs,
    )  # fmt: skip


def _noted(part: Part) -> Part:
    """The part with what its text says about itself: cut to fit, masked."""
    text = part.text
    if text is None:
        return part
    if (part.kind == "tool_result" and (text.startswith(CUT) or INGRESS in text)) or (
        part.kind == "user_message" and stub_of(text) is not None
    ):
        part.truncated = True
    if _MASK in text:
        part.data["redaction_state"] = "masked"
    return part


# -- Amplifier's own messages ---------------------------------------------------------------------------


def message_parts(row: Json, origin: Origin, line: int = 0) -> list[Part]:
    """A message as Amplifier's context managers keep it: a row of a transcript."""
    role = row.get("role")
    meta = mapping(row.get("metadata"))
    if role == "assistant":
        return answer_parts(row, line)
    if role == "tool":
        return [result_part(row.get("tool_call_id"), row.get("name"), row.get("content"), line)]
    if role in ("system", "developer"):
        kind = "system_prompt" if role == "system" else "developer_instruction"
        return parts_with_reminders(list(_texts(kind, str(role), row.get("content"), line)), origin)
    source = string(meta.get("hook_name")) if meta.get("source") == "hook" else string(meta.get("source"))
    if meta.get("source") == "hook" or meta.get("ephemeral") is True:
        text = plain_text(row.get("content"))
        found = pieces(text)
        if not any(piece.tag for piece in found):
            return [_noted(_reminder(Piece("", text, "hook", source), "user", line, ""))]
    return parts_with_reminders(list(_texts("user_message", "user", row.get("content"), line)), origin)


def is_prompt(row: Json) -> bool:
    """Whether a person wrote this row; hooks write rows of the role user, too."""
    meta = row.get("metadata")
    if isinstance(meta, dict) and (meta.get("source") == "hook" or meta.get("ephemeral") is True):
        return False
    return row.get("role") == "user" and pieces(plain_text(row.get("content")))[0].tag is None


def answer_parts(row: Json, line: int = 0) -> list[Part]:
    """An assistant's message: its blocks, and the tool calls that only `tool_calls` holds."""
    content = row.get("content")
    made = [part for one in _blocks(content) if (part := block_part(one, line)) is not None]
    named = {part.item for part in made if part.kind == "tool_call"}
    calls = row.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            part = _call(call, line)
            if part.item not in named or not part.item:
                made.append(part)
    return made


def _blocks(content: Any) -> Iterator[Json]:
    if isinstance(content, str):
        if content:
            yield {"type": "text", "text": content}
    elif isinstance(content, list):
        for one in content:
            if isinstance(one, dict):
                yield one
            elif isinstance(one, str) and one:
                yield {"type": "text", "text": one}


def block_part(one: Json, line: int = 0) -> Part | None:
    """A content block of an answer; None for an empty one."""
    kind = one.get("type")
    if kind in ("thinking", "reasoning", "redacted_thinking"):
        text = string(one.get("thinking")) or string(one.get("text"))
        sealed = string(one.get("signature")) or string(one.get("data"))
        if text is None and sealed is None:
            return None
        version = digest_of(sealed)[:16] if text is None and sealed is not None else None
        return Part("reasoning", text, "assistant", line=line, version=version)
    if kind in ("tool_call", "tool_use"):
        return _call(one, line)
    text = string(one.get("text"))
    if kind == "text" or (kind is None and text is not None):
        return _noted(Part("assistant_message", text, "assistant", line=line)) if text is not None else None
    return Part("custom", canonical(one), "assistant", line=line, title=string(kind))


def _call(call: Json, line: int) -> Part:
    inner = call.get("function")
    function = inner if isinstance(inner, dict) else call
    name = string(function.get("name")) or string(call.get("tool")) or "tool"
    arguments = next((call[key] for key in ("input", "arguments") if key in call), function.get("arguments"))
    return call_part(string(call.get("id")), name, arguments, line)


def call_part(call_id: str | None, name: str, arguments: Any, line: int) -> Part:
    """The part that a tool call makes."""
    text = f"{name} {arguments if isinstance(arguments, str) else canonical(arguments)}"
    return Part("tool_call", text, "assistant", key=call_id, title=call_title(name, arguments), line=line)


def result_part(call_id: Any, name: Any, content: Any, line: int, *, derived: bool = False) -> Part:
    """A tool's result; `derived`: the text is put together from the tool's own answer."""
    key = string(call_id)
    name = string(name)
    key = f"{key}/result" if key is not None else None
    return _noted(
        Part("tool_result", plain_text(content), "tool", key=key, title=name, line=line, derived=derived)
    )


def stored_results(given: Any) -> tuple[str, ...]:
    """What a loop may have put into the history of a tool's own answer: each loop has a spelling of its own.

    As logged; as JSON (what hooks gave back is written whole); its output alone
    (`ToolResult.get_serialized_output`).
    """
    if isinstance(given, str):
        return (given,)
    whole = json.dumps(given)
    if not isinstance(given, dict) or "output" not in given or "success" not in given:
        return (whole, plain_text(given))
    return (whole, _output(given), plain_text(given))


def _output(given: Json) -> str:
    output, error = given["output"], given.get("error")
    if output is not None:
        text = json.dumps(output) if isinstance(output, dict | list) else str(output)
        return _UNSENDABLE.sub("", text)
    if given["success"]:
        return "Success"
    said = error.get("message", "Unknown error") if isinstance(error, dict) and error else "Failed"
    return f"Error: {said}"


def call_spelling(text: str) -> tuple[str, str]:
    """Name and arguments of a call's text, the arguments in one spelling."""
    name, _, given = text.partition(" ")
    return name, canonical(parsed(given))


def _texts(kind: str, role: str, content: Any, line: int) -> Iterator[Part]:
    for one in _blocks(content):
        text = string(one.get("text"))
        if text is not None:
            yield Part(kind, text, role, line=line)
        elif one.get("type") in ("image", "input_image", "image_url"):
            data = canonical(one)
            yield Part("image", None, role, line=line, version=digest_of(data)[:16], byte_size=len(data))
        elif one:
            yield Part("custom", canonical(one), role, line=line, title=string(one.get("type")))


def plain_text(content: Any) -> str:
    """The text of a content, whatever its shape; structured content as canonical JSON."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list) and content:
        texts = [one.get("text") if isinstance(one, dict) else one for one in content]
        if all(isinstance(text, str) for text in texts):
            return "".join(str(text) for text in texts)
    return canonical(content)


def prompt_part(text: str, line: int) -> Part:
    """What a person submitted."""
    return _noted(Part("user_message", text, "user", title=first_line(text), line=line))


_Like = tuple[str, str, str]
_HISTORY = ANSWERS | {"user_message", "tool_result"}
"""Kinds that stand where they stood before."""


class KnownNames:
    """Remembers what messages were called: the history only grows, and a view shows parts of it in order.

    Of equal texts the one is meant that stands in the history where it stands in the request, between what
    is around it; of several such the newest, as compaction takes the oldest.  A stub is likewise a message
    that it may abbreviate.  Holds digests, names and the beginnings of prompts, no texts.
    """

    def __init__(self) -> None:
        self._known: dict[_Like, list[str]] = {}
        self._seen: set[str] = set()
        self._stubs: dict[str, list[str]] = {}
        """By what a stub repeats, the messages that it may stand for, the oldest first."""
        self._order: dict[str, int] = {}
        """By item, its place in the history."""

    def give(
        self, parts: list[Part], entered: Sequence[Part] = (), *, held: Collection[str] = ()
    ) -> list[Part]:
        """Name those parts of a request that were seen before.

        Returns those that are new, and equal to one that was seen before.

        Args:
            parts: In order; those that have names keep them.
            entered: What is known to have come since the last request; of equal texts these are the last.
            held: Names of what stands in front of the parts.
        """
        new = Counter(likeness(part) for part in entered if not part.item)
        found: list[tuple[int, Sequence[str]]] = []
        again: list[Part] = []
        old = False
        """What is left of the request was there before: it is in front of something that was."""
        for at in range(len(parts) - 1, -1, -1):
            part = parts[at]
            if part.item or part.source is not None:
                old = old or (part.item in self._order and part.kind in _HISTORY)
                continue
            start = stub_of(part.text) if part.kind == "user_message" and part.text is not None else None
            if start is not None and start in self._stubs:
                found.append((at, self._stubs[start]))
            elif new[likeness(part)] and not old:
                new[likeness(part)] -= 1
                again += [part] if part.kind == "user_message" and likeness(part) in self._known else []
            else:
                known = self._known.get(likeness(part), ())
                found.append((at, known))
                old = old or bool(known)
        taken = {*held, *(part.item for part in parts if part.item)}
        # The sure ones first: they say between what the others stand.
        for at, names in sorted(found, key=lambda one: len(one[1]) > 1):
            parts[at].item = self._fitting(parts, at, [name for name in names if name not in taken])
            taken.add(parts[at].item)
        return again

    def _fitting(self, parts: list[Part], at: int, names: list[str]) -> str:
        """The newest that stands between what is around a part, else the newest; empty: there is none."""
        if len(names) < 2:
            return names[0] if names else ""
        order = self._order
        before = next((order[p.item] for p in reversed(parts[:at]) if p.item in order), -1)
        behind = next((order[p.item] for p in parts[at + 1 :] if p.item in order), len(order))
        between = [name for name in names if before < order.get(name, -1) < behind]
        return (between or names)[-1]

    def learn(self, parts: list[Part]) -> None:
        """Remember the names that the parts of a request have got, in the order of the history."""
        for part in parts:
            self._order.setdefault(part.item, len(self._order))
            name = f"{part.mark}/{part.item}"
            if name in self._seen:
                continue
            self._seen.add(name)
            self._known.setdefault(likeness(part), []).append(part.item)
            if part.kind == "user_message" and part.text is not None and stub_of(part.text) is None:
                self._stubs.setdefault(preview_of(part.text), []).append(part.item)


def likeness(part: Part) -> _Like:
    """What equal messages have in common."""
    return part.kind, part.role, part.mark
