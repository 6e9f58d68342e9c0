"""The conversations of a Copilot SDK snapshot as requests: each answer was given to what stands before it."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from itertools import groupby
from typing import Any, Final, NamedTuple

from ctxctl.ingest.build import Json, canonical
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import Part, listed, string
from ctxctl.ingest.run import Run
from ctxctl.model.vocab import MAIN_THREAD
from ctxctl.providers.calls import yaml_cassettes
from ctxctl.providers.calls.encodings import decoded_body
from ctxctl.providers.dialects import by_name
from ctxctl.providers.dialects.base import CallTitles
from ctxctl.trace.source import Source

NAME: Final = "copilot-snapshots"
"""As `--read-as` takes it."""
LIST: Final = ("conversations",)
_PLACEHOLDERS: Final = {
    "${system}": ("system_prompt", "the system prompt, replaced by a placeholder"),
    "${compaction_prompt}": ("user_message", "the prompt that asks for a summary, replaced by a placeholder"),
}
_IMAGE: Final = "\n[image]"
_IMAGES: Final = 1000
"""Images of a message that are items of their own; no provider takes so many."""
_ROOTS: Final = 2
"""How many messages two conversations must share to be one: the system prompt and the first prompt."""


class _Stored(NamedTuple):
    """What a thread holds after one of its conversations."""

    conversation: Conversation
    messages: list[Json]
    """The messages of the window, in order."""
    marks: list[bytes]
    """One mark for each message: of it and of all before it."""
    ends: list[int]
    """The number of rows of the window after each message."""
    names: CallTitles
    """The titles of its calls."""


def read(source: Source, report: Report) -> Iterator[Json]:
    """The snapshot's events.

    Raises:
        UnavailableError: `needs-yaml`.
    """
    run = Run(NAME, report)
    loaded = yaml_cassettes.load(source, LIST, run.report)
    snapshot = _Snapshot(run, _model(loaded.fields) if loaded is not None else None)
    for piece in loaded.pieces if loaded is not None else ():
        messages = piece.value.get("messages") if isinstance(piece.value, dict) else None
        if isinstance(messages, list):
            snapshot.add(_joined(messages), piece.line)
            yield from run.drain()
        else:
            run.problem("not-a-record", "a conversation without messages; skipped")
    yield from run.finish()


def _model(fields: Json) -> str | None:
    """The model, where the snapshot names one only."""
    models = fields.get("models")
    return string(models[0]) if isinstance(models, list) and len(models) == 1 else None


class _Snapshot:
    def __init__(self, run: Run, model: str | None) -> None:
        self._run = run
        self._model = model
        self._threads: list[_Stored] = []
        self._by_root: dict[bytes, int] = {}
        """By the mark of its first two messages, a thread."""
        self._asked: set[bytes] = set()
        """The requests that were told so far: a conversation repeats those of the one that it goes on
        from."""
        self._tasks: dict[str, Json] = {}
        """Where a sub-agent's first prompt comes from."""
        self._dialect = by_name("openai-chat")

    def add(self, messages: list[Json], line: int) -> None:
        """Add a stored conversation, which may share its beginning with earlier ones."""
        marks = _marks(messages)
        if not marks:
            return
        stored = self._thread(messages, marks)
        limit = min(len(marks), len(stored.marks))
        shared = next((at for at in range(limit) if marks[at] != stored.marks[at]), limit)
        old, new = stored.messages[shared:], messages[shared:]
        kept, repeated = _repeats(old, new)
        del stored.messages[shared:], stored.marks[shared:], stored.ends[shared:]
        branched = not repeated or bool(_answers(old[kept:]))
        self._rewrite(stored, new[:repeated], marks[shared:], line, "branched" if branched else None)
        for at in range(shared + repeated, len(messages)):
            self._message(stored, messages[at], marks[at], line)

    def _rewrite(
        self, stored: _Stored, history: list[Json], marks: list[bytes], line: int, cause: str | None
    ) -> None:
        """Replace what follows the stored messages in the window by `history`, without telling its answers
        anew.

        What stands in it as it did before stays the same item; `cause`: why the rest goes.
        """
        keep = stored.ends[-1] if stored.ends else 0
        parts: list[Part] = []
        for message, mark in zip(history, marks, strict=False):
            parts += self._parts(message, stored, line)
            stored.messages.append(message)
            stored.marks.append(mark)
            stored.ends.append(keep + len(parts))
        if parts or len(stored.conversation) > keep:
            stored.conversation.replace(parts, at=keep, cause=cause)

    def _thread(self, messages: list[Json], marks: list[bytes]) -> _Stored:
        root = marks[min(_ROOTS, len(marks)) - 1]
        number = self._by_root.setdefault(root, len(self._threads))
        if number == len(self._threads):
            first = messages[1].get("content") if len(messages) > 1 else None
            origin = self._tasks.get(first) if isinstance(first, str) else None
            name = f"conversation-{number + 1}" if number else None
            conversation = self._run.thread(name, origin=origin)
            self._threads.append(_Stored(conversation, [], [], [], CallTitles()))
        return self._threads[number]

    def _message(self, stored: _Stored, message: Json, mark: bytes, line: int) -> None:
        conversation = stored.conversation
        before = stored.marks[-1] if stored.marks else b""
        role = message.get("role")
        if role == "assistant":
            if before and before not in self._asked:
                self._asked.add(before)
                conversation.request(line=line, model=self._model, derived=True)
            self._note_tasks(message, conversation)
        elif role == "user":
            conversation.turn = f"turn-{mark.hex()[:12]}"
        conversation.append(*self._parts(message, stored, line))
        stored.messages.append(message)
        stored.marks.append(mark)
        stored.ends.append(len(conversation))

    def _note_tasks(self, message: Json, conversation: Conversation) -> None:
        for call in listed(message.get("tool_calls")):
            function = call.get("function") if isinstance(call, dict) else None
            arguments = decoded_body(function.get("arguments")) if isinstance(function, dict) else None
            prompt = arguments.get("prompt") if isinstance(arguments, dict) else None
            if isinstance(prompt, str) and isinstance(arguments, dict):
                self._tasks[prompt] = {
                    "parent_thread": conversation.thread or MAIN_THREAD,
                    "parent_tool_call": string(call.get("id")),
                    "agent_type": string(arguments.get("agent_type")),
                }

    def _parts(self, message: Json, stored: _Stored, line: int) -> list[Part]:
        content = message.get("content")
        if isinstance(content, str) and content.strip() in _PLACEHOLDERS:
            kind, title = _PLACEHOLDERS[content.strip()]
            role = string(message.get("role")) or "user"
            return [Part(kind, None, role, key=f"{content.strip()}", title=title, line=line)]
        said, images = message, 0
        if isinstance(content, str) and (images := _images(content)):
            said = {**message, "content": content[: -images * len(_IMAGE)]}
        parts = self._dialect.message(said, len(stored.marks), line, stored.names)
        for part in parts:
            # A snapshot is no request body; a place in one would be made up.
            part.wire = ""
        role = string(message.get("role")) or "user"
        titles = ["image, not recorded"] * min(images, _IMAGES)
        if images > _IMAGES:
            titles.append(f"{images - _IMAGES:,} more images, not recorded")
        return parts + [Part("image", None, role, title=title, line=line) for title in titles]


def _images(text: str) -> int:
    """How many marks of an image a text ends with."""
    end = len(text)
    while text.endswith(_IMAGE, 0, end):
        end -= len(_IMAGE)
    return (len(text) - end) // len(_IMAGE)


def _repeats(old: list[Json], new: list[Json]) -> tuple[int, int]:
    """How much of a conversation is the history of an earlier one, told again with other results between.

    A client may change what it sent before (another tool's text, an image added) and go on.  Then the answers
    come again, word for word and in order, behind the same prompts; no request was made for them.  The last
    answer of a conversation is the one that it was stored for, and never history.

    Args:
        old: What the earlier conversation holds behind what the two share.
        new: What the later one does.

    Returns:
        How many messages of `old`, and how many of `new`, end with the last answer that is repeated.
    """
    ends = _answers(old), _answers(new)[:-1]
    found = 0, 0
    for here, there in zip(*ends, strict=False):
        if old[here] != new[there]:
            break
        prompts = iter(_prompts(new[found[1] : there]))
        if not all(prompt in prompts for prompt in _prompts(old[found[0] : here])):
            break
        found = here + 1, there + 1
    return found


def _answers(messages: list[Json]) -> list[int]:
    return [at for at, message in enumerate(messages) if message.get("role") == "assistant"]


def _prompts(messages: list[Json]) -> list[Json]:
    """The prompts that a repeated history must hold too; an image that the snapshot left empty asks
    nothing."""
    return [message for message in messages if message.get("role") == "user" and message.get("content")]


def _joined(messages: list[Any]) -> list[Json]:
    """The messages, an answer that came in several choices made one: the next request repeats it so."""
    made: list[Json] = []
    known = (message for message in messages if isinstance(message, dict))
    for is_answer, group in groupby(known, key=lambda message: message.get("role") == "assistant"):
        several = list(group)
        made += [_merged(several)] if is_answer and len(several) > 1 else several
    return made


def _merged(choices: list[Json]) -> Json:
    made = dict(choices[0])
    for choice in choices[1:]:
        made.update({key: value for key, value in choice.items() if value is not None})
    texts = [m["content"] for m in choices if isinstance(m.get("content"), str)]
    if texts:
        made["content"] = "".join(texts)
    calls = [c for m in choices for c in listed(m.get("tool_calls"))]
    if calls:
        made["tool_calls"] = calls
    return made


def _marks(messages: list[Json]) -> list[bytes]:
    made: list[bytes] = []
    before = b""
    for message in messages:
        before = sha256(before + canonical(message).encode("utf-8", "replace")).digest()
        made.append(before)
    return made
