"""What a thread's last request carried: its head (tools, system prompt) and its messages."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.formats.build import Block, Edit, joined, trimmed
from ctxctl.formats.claude_code.blocks import Entry
from ctxctl.formats.claude_code.chain import Advance, Path


class Message:
    """A message of a request, in items."""

    __slots__ = ("blocks", "ends", "entries", "role")

    def __init__(self, role: str, entries: list[Entry], blocks: list[Block], ends: list[int]) -> None:
        self.role = role
        self.entries = entries
        self.blocks = blocks
        self.ends = ends
        """Placements up to and with each content block."""


class Body:
    """What a request's record says that was sent: one window in items."""

    __slots__ = ("head", "messages")

    def __init__(self, head: Message, messages: Sequence[Message] | None) -> None:
        self.head = head
        self.messages = messages
        """None: not all of them could be told."""


class View:
    """The window of a thread, by the records of its requests where there are some, else by its lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._head: list[Block] = []
        self._messages: list[Message] | None = None
        """Of the last request; None where the lines told them."""

    def advance(self, advance: Advance, before: list[Block] | None, body: Body | None) -> Advance:
        """Go on to the next request.

        Args:
            advance: What the thread's lines say that it differs in from the one before.
            before: Placements by the lines of the one before (`blocks`); needed where records tell this one.
            body: What the request's record says; None where there is none.
        """
        head = body.head.blocks if body is not None else []
        told = body.messages if body is not None else None
        if told is None and self._messages is None:
            return self._by_lines(advance, head)
        start = len(self._head)
        if told is not None and self._messages is not None:
            kept = _common(self._messages, told)
            at = start + sum(len(one.blocks) for one in self._messages[:kept])
            old = [block for one in self._messages[kept:] for block in one.blocks]
            fresh = told[kept:]
        else:
            at, fresh = start, told or []
            old = before or [] if self._messages is None else _placed(self._messages)
        new = _placed(fresh) if told is not None else self._path.blocks()
        edits = [edit for edit in (trimmed(0, self._head, head), trimmed(at, old, new)) if edit is not None]
        removed = self._removed(edits, start, old, at)
        entries = [entry for one in fresh for entry in one.entries] if told is not None else advance.fresh
        self._head, self._messages = head, list(told) if told is not None else None
        if body is not None:
            entries = body.head.entries + entries
        return advance._replace(edits=joined(edits), removed=removed, fresh=entries, blanked=[])

    def blocks(self) -> list[Block] | None:
        """Placements of the last request's messages by the lines; None where a record told them."""
        return self._path.blocks() if self._messages is None else None

    def _by_lines(self, advance: Advance, head: list[Block]) -> Advance:
        start = len(self._head)
        if not start and not head:
            return advance
        edits = [Edit(at + start, removed, inserted) for at, removed, inserted in advance.edits]
        edit = trimmed(0, self._head, head)
        self._head = head
        if edit is None:
            return advance._replace(edits=edits)
        return advance._replace(edits=joined([edit, *edits]))

    def _removed(self, edits: list[Edit], start: int, old: list[Block], at: int) -> list[Block]:
        """Placements of the messages before whose items are no longer there."""
        inserted = {block.item for edit in edits for block in edit.inserted}
        gone = [
            block
            for edit in edits
            if edit.at >= start
            for block in old[edit.at - at : edit.at - at + edit.removed]
        ]
        return [block for block in gone if block.item not in inserted]


def _placed(messages: Sequence[Message]) -> list[Block]:
    return [block for one in messages for block in one.blocks]


def _common(before: Sequence[Message], after: Sequence[Message]) -> int:
    limit = min(len(before), len(after))
    at = 0
    while at < limit and before[at] is after[at]:
        at += 1
    return at
