"""Makes items of the messages of a task's history, and the window of these.

A message is cut into tool results by their headings, XML tool calls and editor state; the window leaves out
messages that were condensed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from operator import itemgetter
from typing import Any, Final, Literal, TypeAlias

from ctxctl.ingest import build
from ctxctl.ingest.build import Json
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.parts import Part, call_title, string
from ctxctl.ingest.run import Run
from ctxctl.providers.dialects.anthropic import Anthropic
from ctxctl.providers.dialects.base import CallTitles
from ctxctl.providers.dialects.slots import split
from ctxctl.providers.usage import millisecond_clock

ENVIRONMENT: Final = "environment_details"
"""The block of editor state in every user message: one item that is renewed."""
_DIALECT: Final = Anthropic()
_HEADING: Final = re.compile(r"\[([a-z]\w*)\b(.{0,4000}?)\] Result:", re.DOTALL)
_PROMPTS: Final = (
    "<task>",
    "<feedback>",
    "<user_message>",
    "<answer>",
    "New instructions for task continuation",
)
_NOTES: Final = ("[ERROR]", "[TASK RESUMPTION]", "[NOTE]")
_TOOLS: Final = (
    "access_mcp_resource|apply_diff|ask_followup_question|attempt_completion|browser_action|codebase_search|"
    "execute_command|fetch_instructions|insert_content|list_code_definition_names|list_files|load_mcp_documentation|"
    "new_task|plan_mode_respond|read_file|replace_in_file|run_slash_command|search_and_replace|search_files|"
    "switch_mode|update_todo_list|use_mcp_tool|write_to_file|condense|summarize_task|web_fetch|edit_file"
)
_OPENED: Final = re.compile(rf"^<({_TOOLS})>", re.MULTILINE)
_ARGUMENT: Final = re.compile(r"<(path|command|regex|query|tool_name|url|mode_slug)>([^<]{1,400})</\1>")


class PartCutter:
    """Cuts the messages of one task; earlier calls name their results."""

    def __init__(self) -> None:
        self._names = CallTitles()

    def cut(self, message: Json, place: str) -> list[Part]:
        """Cut a stored message into items, in the order in which the model reads them.

        Args:
            message: As stored: an Anthropic message with the runtime's own fields beside.
            place: Where it stands in the history; what carries no id of its own is named by it.
        """
        role = message.get("role")
        if role not in ("user", "assistant"):
            return []
        content = message.get("content")
        if isinstance(content, list):
            content = [_readable(block) for block in content]
        parts = _DIALECT.message({"role": role, "content": content}, 1, names=self._names)
        own = [_own(part) for part in parts if part.text != "" or part.kind != "user_message"]
        if message.get("isSummary") is True:
            for part in own:
                if part.kind in ("user_message", "assistant_message"):
                    part.kind = "thread_summary"
        elif role == "assistant":
            own = [piece for part in own for piece in _calls(part)]
        else:
            classify(own)
        for index, part in enumerate(own):
            if not part.item and part.source is None:
                part.place = f"{place}/{index}"
        return own


def is_prompt(parts: list[Part]) -> bool:
    """Whether a message is one that a person wrote."""
    return any(part.kind == "user_message" for part in parts)


def classify(parts: list[Part]) -> None:
    """Tell a tool's results and the harness's notes from a person's words, in the parts of a message."""
    title: str | None = None
    for part in parts:
        if part.kind != "user_message" or part.text is None:
            continue
        text = part.text.lstrip()
        heading = _HEADING.match(text)
        if heading is not None:
            title = f"{heading.group(1)}{heading.group(2)}".split("\n", 1)[0][:120]
            part.kind, part.title = "tool_result", title
        elif text.startswith(_PROMPTS):
            title = None
        elif text.startswith(_NOTES):
            title = None
            if "<user_message>" not in text:
                part.kind = "policy_note"
        elif title is not None:
            part.kind, part.title = "tool_result", title


def shown_parts(text: str, place: str) -> list[Part]:
    """The items of a request's text as the chat shows it: one string, editor state included."""
    parts = []
    for piece in split(text):
        kind = piece.kind or "user_message"
        source = ENVIRONMENT if piece.tag == ENVIRONMENT else piece.source
        parts.append(Part(kind, piece.text, "user", source=source, title=source))
    classify(parts)
    for index, part in enumerate(parts):
        if part.source is None:
            part.place = f"{place}/{index}"
    return parts


def _own(part: Part) -> Part:
    # The history is what the provider's dialect is made from, not the body itself.
    part.wire = ""
    if part.native is not None and part.native.get("type") == ENVIRONMENT:
        part.source = part.title = ENVIRONMENT
    return part


def _readable(block: Any) -> Any:
    """Reasoning as the runtime stores it, in the shape of the provider's."""
    if isinstance(block, dict) and block.get("type") == "reasoning" and isinstance(block.get("text"), str):
        return {"type": "thinking", "thinking": block["text"]}
    return block


def sealed_reasoning(message: Json) -> Part:
    """Reasoning that only the provider can read."""
    data = message.get("encrypted_content") or message.get("id")
    version = build.digest_of(str(data))[: build.VERSION_DIGITS]
    return Part("reasoning", None, "assistant", key=string(message.get("id")), version=version)


def _calls(part: Part) -> list[Part]:
    """The parts of an answer's text; tool calls that it spells out in XML are parts of their own."""
    if part.kind != "assistant_message" or part.text is None or "</" not in part.text:
        return [part]
    made: list[Part] = []
    at = 0
    for start, end, name in _spelled(part.text):
        if start > at:
            made.append(Part("assistant_message", part.text[at:start], "assistant"))
        text = part.text[start:end]
        found = _ARGUMENT.search(text)
        title = call_title(name, {"path": found.group(2)} if found is not None else {})
        made.append(Part("tool_call", text, "assistant", title=title))
        at = end
    if not made:
        return [part]
    if at < len(part.text):
        made.append(Part("assistant_message", part.text[at:], "assistant"))
    return made


def _spelled(text: str) -> list[tuple[int, int, str]]:
    """Where the calls of a text begin and end, and their tools; in time linear in the text."""
    found: list[tuple[int, int, str]] = []
    unclosed: set[str] = set()
    at = 0
    while (opened := _OPENED.search(text, at)) is not None:
        name = opened.group(1)
        closing = f"</{name}>"
        end = -1 if name in unclosed else text.find(closing, opened.end())
        if end < 0:
            unclosed.add(name)
            at = opened.end()
            continue
        at = end + len(closing)
        found.append((opened.start(), at, name))
    return found


_PARENTS: Final = ("condenseParent", "truncationParent")


def moment(value: Any) -> str | None:
    """A time of the runtime (milliseconds since 1970) as a native timestamp."""
    return millisecond_clock(value)


def milliseconds(value: Any) -> float:
    """A time of the runtime as a number; 0 where there is none."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**53
    return float(value) if known else 0.0


_Owner: TypeAlias = tuple[int, str | None, str | None]
"""The index of a row's message, and the ids of the condensation and of the cut that stand for it."""


class History:
    """Takes the messages of one task, in the order in which they came to be.

    A condensation does not delete: the messages that a summary stands for carry its id (`condenseParent`),
    those that were cut off carry that of a marker (`truncationParent`).  Before these fields, they were
    deleted, and the summary stands behind the first message.
    """

    def __init__(self, run: Run, window: Conversation) -> None:
        self.window = window
        self._run = run
        self._cutter = PartCutter()
        self._owners: list[_Owner] = []
        """By row, its message's index, and what stands for it once it was condensed or cut off."""
        self._held: Counter[tuple[int, str | None]] = Counter()
        """How many rows something stands for, by its place in an owner and its id."""
        self._refs: Counter[str] = Counter()
        """How many rows each ref has."""
        self._in_order = True
        """Whether the rows are in the order of their messages' indexes."""
        self._sealed: list[Part] = []

    def cut(self, message: Json, index: int) -> list[Part]:
        """The items of the message at an index of the history."""
        return self._cutter.cut(message, f"message-{index}")

    def question(self, message: Json, index: int) -> None:
        """Take a message of the user, which goes out with the next request."""
        self._run.make.at(moment(message.get("ts")))
        parts = self.cut(message, index)
        if message.get("isTruncationMarker") is True:
            self._truncate(message, parts, index)
            return
        if is_prompt(parts):
            self.window.turn = str(message.get("ts") or index)
        self._append(message, parts, index)

    def answer(self, message: Json, index: int) -> None:
        """Take the answer to a request."""
        self._run.make.at(moment(message.get("ts")))
        parts = self.cut(message, index)
        self._append(message, [*self._sealed, *parts], index)
        self._sealed = []

    def reasoning(self, message: Json) -> None:
        """Take reasoning that is stored as a message of its own, before the answer."""
        self._sealed.append(sealed_reasoning(message))

    def condense(self, message: Json, index: int, told: Json | None = None) -> None:
        """Put a summary in the place of what it stands for; `told` is what the chat said of it."""
        self._run.make.at(moment(message.get("ts")))
        parts = self.cut(message, index)
        native = string(message.get("condenseId"))
        left = self._drop(1, native)
        summary = next((part for part in parts if part.kind == "thread_summary"), None)
        self._insert(message, parts, index)
        record: Json = {"compaction_id": native, "metadata": told} if told else {"compaction_id": native}
        into = summary.block().ref if summary is not None else None
        self.window.compacted(left, into, **record)

    def restart(self, messages: list[tuple[int, Json]], summary: Json, told: Json | None) -> None:
        """Make the window what a condensation left; what it held before is what went."""
        self._run.make.at(moment(summary.get("ts")))
        every: list[Part] = []
        into: Part | None = None
        owned: list[tuple[_Owner, int]] = []
        for index, message in messages:
            parts = self.cut(message, index)
            if message is summary:
                into = next((part for part in parts if part.kind == "thread_summary"), None)
            every += parts
            owned.append((_owner(message, index), len(parts)))
        self.window.compact(every, summary=into, several=frozenset((ENVIRONMENT,)), metadata=told)
        self._owners, self._in_order = [], True
        self._held.clear()
        self._refs.clear()
        for owner, size in owned:
            self._own(len(self._owners), owner, size)

    def _truncate(self, message: Json, parts: list[Part], index: int) -> None:
        native = string(message.get("truncationId"))
        left = self._drop(2, native)
        self._insert(message, parts, index)
        self.window.compacted(left, None, compaction_id=native, method="truncation")

    def _append(self, message: Json, parts: list[Part], index: int) -> None:
        self.window.append(*parts)
        self._own(len(self._owners), _owner(message, index), len(parts))

    def _own(self, at: int, owner: _Owner, count: int) -> None:
        """Note whose some rows are that now stand at a place."""
        if count and at == len(self._owners) and self._owners and self._owners[-1][0] > owner[0]:
            self._in_order = False
        self._owners[at:at] = [owner] * count
        self._refs.update(row[0].ref for row in self.window.rows[at : at + count])
        _, condensed, cut = owner
        self._held[1, condensed] += count
        self._held[2, cut] += count

    def _insert(self, message: Json, parts: list[Part], index: int) -> None:
        """Place a message where the history has it: messages that were kept stand behind their summary."""
        if self._in_order:
            at = bisect_left(self._owners, index, key=itemgetter(0))
        else:
            at = sum(1 for owner in self._owners if owner[0] < index)
        self.window.splice(at, 0, parts)
        self._own(at, _owner(message, index), len(parts))

    def _drop(self, kind: Literal[1, 2], native: str | None) -> list[str]:
        """Take the rows out that something stands for, which are mostly near the end; returns their refs."""
        left = self._held.pop((kind, native), 0) if native is not None else 0
        if not left:
            return []
        rows, owners = self.window.rows, self._owners
        first = len(owners)
        while left:
            first -= 1
            left -= owners[first][kind] == native
        self._run.make.work += len(owners) - first
        behind = range(first, len(owners))
        refs = [rows[at][0].ref for at in behind if owners[at][kind] == native]
        keep = [at for at in behind if owners[at][kind] != native]
        kept, held = [rows[at] for at in keep], [owners[at] for at in keep]
        for at in behind:
            _, condensed, cut = owners[at]
            if kind == 1 and condensed == native:
                self._held[2, cut] -= 1
            elif kind == 2 and cut == native:
                self._held[1, condensed] -= 1
        self.window.splice(first, len(rows) - first, [])
        self.window.rows += kept
        owners[first:] = held
        self._refs.subtract(refs)
        return [ref for ref in refs if self._refs[ref] <= 0]


def _owner(message: Json, index: int) -> _Owner:
    condensed, truncated = (string(message.get(name)) for name in _PARENTS)
    return index, condensed, truncated
