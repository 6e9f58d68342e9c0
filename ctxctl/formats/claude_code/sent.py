"""Messages that a request's record holds whole (`api-request-blob`): cut into the items of the transcript.

They are those that the client put together itself: a prompt with reminders around it, instructions, what it
tells of the environment.  Each text is looked for among what the transcript's lines hold; what is found there
is that line's item, worded as it was sent, and what is not is an item of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ctxctl.formats import build
from ctxctl.formats.build import Block
from ctxctl.formats.claude_code import blocks
from ctxctl.formats.claude_code.blocks import Entry
from ctxctl.formats.claude_code.view import Message
from ctxctl.formats.lines import Json

_OPEN: Final = "<system-reminder>\n"
_CLOSE: Final = "</system-reminder>"
_AWAITED: Final = 64
"""Renderings that wait for the request that carries them, at most."""
_LONGEST: Final = 1 << 20
"""Characters of a text that renderings are looked for in."""
_LOOKED: Final = 4
"""Stretches of a text that are none, in front of one, at most."""
_ENOUGH: Final = 12
"""Characters of a rendering that is looked for in the middle of a text, at least."""


class _Awaited(NamedTuple):
    """A rendering that no request is known to have carried yet."""

    entry: Entry
    forms: tuple[str, ...]
    """As it may have been sent, the longest first: with its tags, or without."""


class Sent:
    """Cuts the messages of one thread's requests."""

    def __init__(self, home: object, pending: list[Entry]) -> None:
        self._home = home
        self._pending = pending
        """Items that no step has announced yet: what is found new joins them."""
        self._known: dict[tuple[str, str], Entry] = {}
        """Items by what they may stand for (`_sort`) and version: the last of each."""
        self._named: dict[str, Entry] = {}
        """Calls and results, by the id that they have of the API."""
        self._results: dict[str, str] = {}
        """Titles of calls, for their results."""
        self._awaited: list[_Awaited] = []

    def note(self, entry: Entry) -> None:
        """An item that a line of the thread holds."""
        if entry.version is not None:
            self._known[_sort(entry), entry.version] = entry
        if entry.tool is not None or entry.kind == "tool_call":
            self._named[entry.item] = entry
        if entry.kind == "tool_call" and entry.title is not None:
            self._results[entry.item] = entry.title
        text = entry.record.get("content") if entry.is_rendered and entry.record is not None else None
        if isinstance(text, str):
            self._awaited.append(_Awaited(entry, _forms(text)))
            del self._awaited[:-_AWAITED]

    def message(self, value: Json, name: str, line: int) -> Message:
        """A message as it was sent; `name`: what its new items are named for."""
        role = blocks.string(value.get("role")) or "user"
        entries: list[Entry] = []
        placed: list[Block] = []
        ends: list[int] = []
        for index, block in enumerate(blocks.blocks_of(value.get("content"))):
            for entry, before in self._block(block, role, blocks.part(name, index), line):
                entries.append(entry)
                placed.append(_block(entry, role, before))
            ends.append(len(placed))
        return Message(role, entries, placed, ends)

    def add(self, entry: Entry) -> Entry:
        """Have the next step announce an item that no line holds."""
        if entry.home is None:
            entry.home = self._home
            self._pending.append(entry)
            if entry.version is not None:
                self._known[_sort(entry), entry.version] = entry
        return entry

    # -- blocks ----------------------------------------------------------------------------------------------

    def _block(self, block: Any, role: str, name: str, line: int) -> Iterator[tuple[Entry, str]]:
        kind = block.get("type") if isinstance(block, dict) else None
        text = block if isinstance(block, str) else block.get("text") if kind == "text" else None
        if role == "assistant":
            made = blocks.assistant([block], name, line)
        elif isinstance(text, str):
            yield from self._text(text, role, name, line)
            return
        elif kind == "tool_result":
            tool = block.get("tool_use_id")
            title = self._results.get(tool) if isinstance(tool, str) else None
            made = blocks.result(block, name, line, title)
        else:
            other = blocks.user(block, name, line, None)
            made = [other] if other is not None else []
        for entry in made:
            yield self._found(entry, keyed=kind in ("tool_result", "tool_use")), ""

    def _found(self, made: Entry, *, keyed: bool = False) -> Entry:
        """The item of the transcript that a block is; itself where there is none."""
        known = self._known.get((_sort(made), made.version)) if made.version is not None else None
        if known is not None and known.kind == made.kind and (not keyed or known.item == made.item):
            return known
        before = self._named.get(made.item) if keyed else None
        if before is not None:
            # A result with a reminder behind it, or blanked: the same item in other words.
            made.updates, made.run = True, before.run
        return self.add(made)

    # -- texts of the user's and the system's ---------------------------------------------------------------

    def _text(self, text: str, role: str, name: str, line: int) -> Iterator[tuple[Entry, str]]:
        if not text:
            return
        known = self._known.get(("", build.digest_of(text)[: build.VERSION_DIGITS]))
        if known is not None:
            self._awaited = [one for one in self._awaited if one.entry is not known]
            yield known, ""
            return
        pieces = list(self._pieces(text)) if len(text) <= _LONGEST else [(None, "", text)]
        for index, (awaited, before, piece) in enumerate(pieces):
            if awaited is not None:
                yield self._worded(awaited, piece), before
                continue
            made = _own(piece, role, blocks.part(name, index) if index else name, line)
            yield self._found(made), before

    def _pieces(self, text: str) -> Iterator[tuple[_Awaited | None, str, str]]:
        """The text in stretches, with the blank lines in front of each; together they are the text."""
        at = looked = 0
        while at < len(text):
            start = _after_lines(text, at)
            if start == len(text):
                yield None, "", text[at:]
                return
            found = self._here(text, start)
            if found is None and looked < _LOOKED:
                looked += 1
                found = self._ahead(text, start)
            if found is None:
                yield None, text[at:start], text[start:]
                return
            begin, end, awaited = found
            if begin > start:
                behind = len(text[start:begin].rstrip("\n"))
                yield None, text[at:start], text[start : start + behind]
                at = start + behind
            if not text[end:].strip():
                end = len(text)
            self._awaited.remove(awaited)
            yield awaited, text[at:begin], text[begin:end]
            at = end

    def _here(self, text: str, start: int) -> tuple[int, int, _Awaited] | None:
        """The rendering that begins at a place."""
        for awaited in self._awaited:
            for form in awaited.forms:
                if _stands(text, start, form):
                    return start, start + len(form), awaited
        return None

    def _ahead(self, text: str, start: int) -> tuple[int, int, _Awaited] | None:
        """The first rendering behind a place."""
        best: tuple[int, int, _Awaited] | None = None
        for awaited in self._awaited:
            for form in awaited.forms:
                before = len(text) if best is None else best[0] + len(form)
                at = text.find(f"\n{form}", start, before) + 1 if len(form) >= _ENOUGH else 0
                if at and _stands(text, at, form) and (best is None or at < best[0]):
                    best = at, at + len(form), awaited
        return best

    def _worded(self, awaited: _Awaited, text: str) -> Entry:
        """An item as its text was sent."""
        entry = awaited.entry
        if entry.digest == build.digest_of(text):
            return entry
        if entry.record is not None:
            entry.reword(text)
            assert entry.version is not None
            self._known[_sort(entry), entry.version] = entry
            return entry
        again = Entry(
            entry.item, entry.kind, entry.role,
            build.text_item(entry.item, entry.kind, text, title=entry.title), entry.line,
        )  # fmt: skip
        again.updates = True
        return self.add(again)


def _sort(entry: Entry) -> str:
    """What an item may stand for: an answer, a result, or any text of a prompt."""
    if entry.role == "assistant":
        return "assistant"
    return "result" if entry.tool is not None else ""


def _block(entry: Entry, role: str, before: str) -> Block:
    ref = entry.item if entry.version is None else f"{entry.item}@{entry.version}"
    return Block(ref, entry.item, role, before=before)


def _own(text: str, role: str, name: str, line: int) -> Entry:
    """A text that no line holds."""
    if role != "system":
        made = blocks.user(text, name, line, None)
        if made is not None:
            return made
    meta = blocks.native("system")
    return Entry(name, "policy_note", role, build.text_item(name, "policy_note", text, metadata=meta), line)


def _forms(text: str) -> tuple[str, ...]:
    bare = untagged(text).strip()
    return (f"{_OPEN}{bare}\n{_CLOSE}", bare) if bare else ()


def untagged(text: str) -> str:
    """A rendering without its tags, as it stands in a message of the system's."""
    whole = text.strip()
    if whole.startswith(_OPEN) and whole.endswith(_CLOSE):
        return whole[len(_OPEN) : -len(_CLOSE)].strip()
    return text


def _after_lines(text: str, at: int) -> int:
    while at < len(text) and text[at] == "\n":
        at += 1
    return at


def _stands(text: str, at: int, form: str) -> bool:
    """Whether a rendering stands at a place and ends with its line."""
    end = at + len(form)
    return text.startswith(form, at) and (end == len(text) or text[end] == "\n")
