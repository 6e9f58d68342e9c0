"""What a thread's last request carried: its head (tools, system prompt) and its messages."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.importers.claude_code.blocks import Entry
from ctxctl.importers.claude_code.chain import ChainPath, RequestChange
from ctxctl.ingest.build import Block
from ctxctl.listdiff import Splice, joined, same_start, trimmed


class Message:
    """A message of a request, in items."""

    __slots__ = ("blocks", "ends", "entries", "role")

    def __init__(self, role: str, entries: list[Entry], blocks: list[Block], ends: list[int]) -> None:
        self.role = role
        self.entries = entries
        self.blocks = blocks
        self.ends = ends
        """The number of placements up to and with each content block."""


class RecordedBody:
    """What a request's record says that was sent: one window in items."""

    __slots__ = ("head", "messages")

    def __init__(self, head: Message, messages: list[Message] | None) -> None:
        self.head = head
        self.messages = messages
        """None where not all of them could be resolved."""


class LastRequest:
    """The window of a thread's last request: by the records of requests where there are some, else by the
    thread's lines."""

    def __init__(self, path: ChainPath) -> None:
        self._path = path
        self._head: list[Block] = []
        self._messages: list[Message] | None = None
        """The messages of the last request; None where the thread's lines told them."""
        self._starts: list[int] = []
        """The number of placements in front of each message, without those of the head."""

    def advance(
        self, advance: RequestChange, before: list[Block] | None, body: RecordedBody | None
    ) -> RequestChange:
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
            kept = same_start(self._messages, told)
            at = start + (self._starts[kept] if kept < len(self._starts) else self._size())
            old = [block for one in self._messages[kept:] for block in one.blocks]
            fresh = told[kept:]
        else:
            at, fresh = start, told or []
            old = before or [] if self._messages is None else _placed(self._messages)
        new = _placed(fresh) if told is not None else self._path.blocks()
        edits = [edit for edit in (trimmed(0, self._head, head), trimmed(at, old, new)) if edit is not None]
        removed = self._removed(edits, start, old, at)
        entries = [entry for one in fresh for entry in one.entries] if told is not None else advance.fresh
        self._head = head
        self._keep(told)
        if body is not None:
            entries = body.head.entries + entries
        return advance._replace(edits=joined(edits), removed=removed, fresh=entries, blanked=[])

    def blocks(self) -> list[Block] | None:
        """The placements of the last request's messages by the thread's lines; None where a record told
        them."""
        return self._path.blocks() if self._messages is None else None

    def row(self, message: int, block: int) -> int | None:
        """The index of the placement with which a content block of a message ends; None where there is
        none."""
        if self._messages is None or not 0 <= message < len(self._messages):
            return None
        ends = self._messages[message].ends
        if not 0 <= block < len(ends) or not ends[block]:
            return None
        return len(self._head) + self._starts[message] + ends[block] - 1

    def _size(self) -> int:
        """The number of placements of the last request's messages, where a record told them."""
        if not self._messages:
            return 0
        return self._starts[-1] + len(self._messages[-1].blocks)

    def _keep(self, told: list[Message] | None) -> None:
        if told is None:
            self._messages, self._starts = None, []
            return
        kept = same_start(self._messages, told) if self._messages is not None else 0
        at = self._starts[kept] if kept < len(self._starts) else self._size()
        if not kept:
            at = 0
        del self._starts[kept:]
        for one in told[kept:]:
            self._starts.append(at)
            at += len(one.blocks)
        self._messages = told

    def _by_lines(self, advance: RequestChange, head: list[Block]) -> RequestChange:
        start = len(self._head)
        if not start and not head:
            return advance
        edits = [Splice(at + start, removed, inserted) for at, removed, inserted in advance.edits]
        edit = trimmed(0, self._head, head)
        self._head = head
        if edit is None:
            return advance._replace(edits=edits)
        return advance._replace(edits=joined([edit, *edits]))

    def _removed(self, edits: list[Splice[Block]], start: int, old: list[Block], at: int) -> list[Block]:
        """The placements of the earlier messages whose items are no longer there."""
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
