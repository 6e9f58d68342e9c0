"""Messages as context-simple holds them, made from candidates, their size by its own measure, and its memory.

It measures a message by the printed form of its dictionary, a quarter of its characters.  A candidate has the
text, the role and the ids that go into it; what no capture holds is the rest of the message's metadata
(a provider's own marks, running numbers), up to `UNRECORDED` tokens a message: sizes are near, not exact.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from ctxctl.model.fitting import Candidate
from ctxctl.policies.fitting.protection import HEAD_SEGMENTS

UNRECORDED: Final = 24
"""Tokens of one message's metadata that a capture may lack."""
NOTICE: Final = "reminder:context-compaction"
"""The item that importers give the runtime's own notice of a compaction."""
_TIME: Final = {"timestamp": "2026-01-01T00:00:00.000+00:00"}
"""Any time is as long as this one."""
_SYSTEM_KINDS: Final = frozenset({"system_prompt", "developer_instruction"})
_CUT_TO: Final = {"tool_result": "[truncated: ~", "user_message": "[User message compacted - original: "}
"""How what is left of a message begins."""
_ANSWER_KINDS: Final = frozenset({"assistant_message", "tool_call", "reasoning"})
_STUBBED_FROM: Final = 80
STUB: Final = 70
"""Characters that context-simple takes a stub to have."""
_PREVIEW: Final = 50

Sizes = dict[tuple[str, ...], int]
"""Characters of a message's printed form by the names of its candidates."""


class Memory(NamedTuple):
    """What a session has decided so far; the older version decides anew each time, and keeps none of it."""

    removed: frozenset[str] = frozenset()
    truncated: frozenset[str] = frozenset()
    stubbed: frozenset[str] = frozenset()
    level: int = 0
    told: dict[str, int] | None = None
    """Of the last compaction, which the notice goes on telling."""
    sizes: Sizes = {}  # noqa: RUF012 (never the default: each session has its own)
    """Sizes measured so far; what they are of never changes, so all copies share them."""
    doubt: str | None = None
    """Why what was decided may not be what the runtime decided."""


class Shape(NamedTuple):
    """Which fields a session's messages have: loops and applications differ, and no log says."""

    named: bool = True
    """A result says which tool it is of; loop-streaming writes that, loop-basic does not."""
    stamped: bool = True
    """The system prompt has a time: it was added as a message, and not made anew for each request."""


SHAPES: Final = tuple(Shape(named, stamped) for named in (True, False) for stamped in (True, False))


class Message:
    """One message under compaction.  What a level did to it is kept here; the source is never changed."""

    __slots__ = ("answers", "calls", "chars", "human", "of", "read", "role", "said", "state")

    def __init__(
        self,
        role: str,
        chars: int,
        read: Callable[[], str | None],
        *,
        of: tuple[int, ...] = (),
        calls: tuple[str, ...] = (),
        answers: str | None = None,
        human: bool = False,
    ) -> None:
        self.role = role
        self.chars = chars
        """Of its printed form."""
        self.read = read
        """Its content where that is one text; gives None for blocks, and where nobody knows it."""
        self.of = of
        """Indexes of its candidates."""
        self.calls = calls
        """Ids of the tool calls in it."""
        self.answers = answers
        """The call that it is the result of."""
        self.human = human
        self.state = ""
        """`truncated`, `stubbed`, or as it came."""
        self.said: str | None = None
        """The text that stands for its own."""

    @property
    def size(self) -> int:
        """In tokens, as context-simple estimates them."""
        return self.chars // 4

    def truncate(self, most: int) -> None:
        """Leave the first characters of a result; a short one, or one that nobody knows, stays."""
        text = self.read()
        if text is not None and len(text) > most:
            tokens = len(text) // 4
            self._say(text, truncated(text, most), f", '_truncated': True, '_original_tokens': {tokens}")
            self.state = "truncated"

    def stub(self) -> None:
        """Leave the first words of a user's message, where that is shorter."""
        text = self.read()
        if text is not None and len(text) > _STUBBED_FROM:
            self._say(text, stubbed(text), f", '_stubbed': True, '_original_length': {len(text)}")
            self.state = "stubbed"

    @property
    def saving(self) -> int | None:
        """Tokens that context-simple thinks a stub saves; None: it makes none of so short a message."""
        text = self.read()
        return (len(text) - STUB) // 4 if text is not None and len(text) > _STUBBED_FROM else None

    def _say(self, text: str, said: str, marks: str) -> None:
        self.chars += len(repr(said)) - len(repr(text)) + len(marks)
        self.said = said


def truncated(text: str, most: int) -> str:
    """What context-simple leaves of a tool's result."""
    return f"[truncated: ~{len(text) // 4:,} tokens - call tool again if needed] {text[:most]}..."


def stubbed(text: str) -> str:
    """What context-simple leaves of a user's message."""
    preview = text[:_PREVIEW].replace("\n", " ").strip()
    return f'[User message compacted - original: "{preview}..."]'


def total(messages: Iterable[Message]) -> int:
    """Estimated tokens of messages."""
    return sum(message.size for message in messages)


def of_rows(rows: Iterable[dict[str, Any]]) -> list[Message]:
    """Messages from Amplifier's own, exactly as they are."""
    made = []
    for at, row in enumerate(rows):
        content = row.get("content")
        text = content if isinstance(content, str) else None
        calls = tuple(str(call.get("id")) for call in row.get("tool_calls") or ())
        made.append(
            Message(
                row["role"],
                len(str(row)),
                partial(_same, text),
                of=(at,),
                calls=calls,
                answers=row.get("tool_call_id"),
                human=row["role"] == "user",
            )
        )
    return made


def of_candidates(candidates: Sequence[Candidate], sizes: Sizes, shape: Shape = SHAPES[0]) -> list[Message]:
    """The conversation as context-simple would hold it; the system prompt is one message, and the first.

    Not among them: tool definitions, which it does not count, and reminders that a loop puts into a request
    behind its back.  `sizes` remembers what was measured before, in the first shape.
    """
    system = [at for at, c in enumerate(candidates) if is_system(c)]
    made = [_system(candidates, system, sizes, shape)] if system else []
    answer: list[int] = []
    for at, candidate in enumerate(candidates):
        if candidate.kind in _ANSWER_KINDS:
            if answer and _new_answer(candidates[answer[-1]], candidate):
                made.append(_answer(candidates, answer, sizes))
                answer = []
            answer.append(at)
            continue
        if not in_history(candidate) or is_system(candidate):
            continue
        if answer:
            made.append(_answer(candidates, answer, sizes))
            answer = []
        made.append(_one(candidate, at, sizes, shape))
    if answer:
        made.append(_answer(candidates, answer, sizes))
    return made


def in_history(candidate: Candidate) -> bool:
    """Whether context-simple itself holds it, the system prompt aside."""
    return candidate.segment not in HEAD_SEGMENTS and candidate.kind != "policy_note"


def in_conversation(candidate: Candidate) -> bool:
    """Whether it is in a message, the system prompt aside."""
    return candidate.kind in _ANSWER_KINDS or (in_history(candidate) and not is_system(candidate))


def is_system(candidate: Candidate) -> bool:
    """Whether it is a part of the system prompt."""
    if candidate.segment == "tools" or candidate.kind in ("tool_definition", "policy_note"):
        return False
    return candidate.segment == "system" or candidate.kind in _SYSTEM_KINDS


def _new_answer(last: Candidate, now: Candidate) -> bool:
    """Within one answer text goes before calls; another turn is another answer."""
    return last.turn != now.turn or (last.kind == "tool_call") > (now.kind == "tool_call")


def _text(candidate: Candidate) -> str:
    """Its text, or one of about its size where nobody knows it."""
    text = candidate.read()
    return text if text is not None else " " * (candidate.chars or 4 * candidate.tokens)


def is_remnant(candidate: Candidate) -> bool:
    """Whether it is what a compaction left of a message, and the message itself is not there."""
    return candidate.kind in _CUT_TO and (candidate.read() or "").startswith(_CUT_TO[candidate.kind])


def equal(candidates: Iterable[Candidate]) -> bool:
    """Whether two messages are the same to the letter, and nothing but their place tells them apart."""
    said = [(one.kind, one.read()) for one in candidates if one.kind in ("user_message", "assistant_message")]
    return len(set(said)) < len(said)


def texts(candidates: Iterable[Candidate]) -> Iterator[str]:
    """The texts that are in context-simple's messages, whatever they are wrapped in."""
    return (
        _text(candidate) for candidate in candidates if is_system(candidate) or in_conversation(candidate)
    )


def _system(candidates: Sequence[Candidate], of: list[int], sizes: Sizes, shape: Shape) -> Message:
    names = tuple(candidates[at].name for at in of)
    if names not in sizes:
        text = "\n\n".join(_text(candidates[at]) for at in of)
        sizes[names] = len(str({"role": "system", "content": text, "metadata": _TIME}))
    chars = sizes[names] - (0 if shape.stamped else len(f", 'metadata': {_TIME}"))
    return Message("system", chars, _nothing, of=tuple(of))


def _one(candidate: Candidate, at: int, sizes: Sizes, shape: Shape) -> Message:
    """What a user, a hook or a tool said."""
    result = candidate.kind == "tool_result"
    call = candidate.pairs[0] if candidate.pairs else None
    names = (candidate.name,)
    if names not in sizes:
        row: dict[str, Any] = {"role": "tool" if result else "user"}
        if result:
            row["name"] = _tool(candidate)
            row["tool_call_id"] = call or candidate.item
        row |= {"content": _text(candidate), "metadata": _TIME}
        sizes[names] = len(str(row))
    chars = sizes[names] - (len(f"'name': {_tool(candidate)!r}, ") if result and not shape.named else 0)
    return Message(
        "tool" if result else "user", chars, candidate.read, of=(at,),
        answers=call if result else None, human=candidate.kind == "user_message",
    )  # fmt: skip


def _answer(candidates: Sequence[Candidate], of: list[int], sizes: Sizes) -> Message:
    parts = [candidates[at] for at in of]
    names = tuple(part.name for part in parts)
    if names not in sizes:
        sizes[names] = len(str(_printed(parts)))
    calls = tuple(_id(part) for part in parts if part.kind == "tool_call")
    return Message("assistant", sizes[names], _nothing, of=tuple(of), calls=calls)


def _printed(parts: list[Candidate]) -> dict[str, Any]:
    """An answer as Amplifier keeps it: blocks, and the calls once more."""
    blocks: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for part in parts:
        text = _text(part)
        if part.kind == "tool_call":
            name, given = _called(text)
            call = _id(part)
            blocks.append({"type": "tool_call", "id": call, "name": name, "input": given, "visibility": None})
            calls.append({"id": call, "tool": name, "arguments": given})
        else:
            kind = "text" if part.kind == "assistant_message" else "thinking"
            blocks.append({"type": kind, kind: text, "visibility": None})
    row: dict[str, Any] = {"role": "assistant", "content": blocks}
    if calls:
        row["tool_calls"] = calls
    row["metadata"] = _TIME
    return row


def _tool(result: Candidate) -> str:
    return (result.title or "tool").partition(":")[0]


def _id(call: Candidate) -> str:
    return call.pairs[0] if call.pairs else call.item


def _nothing() -> None:
    return None


def _same(text: str | None) -> str | None:
    return text


def _called(text: str) -> tuple[str, Any]:
    """Name and arguments of a call, as importers write it: the name, a space, the arguments as JSON."""
    name, _, given = text.partition(" ")
    try:
        return name, json.loads(given)
    except ValueError:
        return name, given
