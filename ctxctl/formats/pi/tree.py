"""The entries of a session as a tree, and the window that a place in it stands for."""

from __future__ import annotations

from ctxctl.formats.kit.parts import Part
from ctxctl.formats.pi.system import Reader, System


class Entry:
    """One line of a session."""

    __slots__ = (
        "edit", "edited", "first_kept", "id", "message", "parent", "parts", "reader", "said", "started",
        "summary", "system", "update",
    )  # fmt: skip

    def __init__(self, entry_id: str | None, parent: Entry | None) -> None:
        self.id = entry_id
        self.parent = parent
        self.parts: list[Part] = []
        """What it puts into the window; texts are given up once they were announced."""
        self.summary = False
        """A compaction: its parts stand for what is before `first_kept`."""
        self.first_kept: Entry | None = None
        self.system: System | None = parent.system if parent is not None else None
        """The last system message on its path."""
        self.update: Part | None = None
        """What such a message says in its place, to models that take it there."""
        self.started: bool = parent is not None and parent.started
        """Something on its path is in the window."""
        self.message: str | None = None
        """Of a message: its role."""
        self.reader: Reader | None = None
        """Of an answer: whom it comes from."""
        self.said: dict[str, Part | None] = {}
        """Of an answer: what others get for its reasoning, by item."""
        self.edited: str | None = None
        """Another entry that is sent as `edit` from here on."""
        self.edit: list[Part] = []

    def shown(self, reader: Reader | None) -> list[Part]:
        """What a model gets of it."""
        if not self.said or reader is None or reader == self.reader:
            return self.parts
        made = [self.said.get(part.item, part) for part in self.parts]
        return [part for part in made if part is not None]


class Tree:
    """Entries by id; a header's version 1 has no ids, and every entry follows the one before."""

    def __init__(self) -> None:
        self.head: Entry | None = None
        """The entry that the next one continues."""
        self.by_id: dict[str, Entry] = {}
        self.by_index: list[Entry | None] = [None]
        """By place in the file; the header is number 0."""
        self._instead: dict[str, Entry | None] = {}
        """Where an entry belongs that names this parent, as a `leaf` said."""
        self._early: dict[str, Entry] = {}
        """The entry that came before its parent, by the parent's id."""

    def enter(self, entry_id: str | None, parent_id: object, *, rooted: bool) -> tuple[Entry, Entry | None]:
        """A new entry, and the head to go back to if it came too late: after an entry that continues it.

        Args:
            entry_id: Its id; None in version 1.
            parent_id: What the line gives as its parent.
            rooted: Whether the line says that it has none.
        """
        known = isinstance(parent_id, str) and (parent_id in self.by_id or parent_id in self._instead)
        if known and isinstance(parent_id, str):
            parent = self._instead.get(parent_id, self.by_id.get(parent_id))
        else:
            parent = None if rooted else self.head
        entry = Entry(entry_id, parent)
        late = None
        if entry_id is not None:
            child = self._early.pop(entry_id, None)
            if child is not None and child.parent is parent:
                child.parent = entry
                late = self.head
            self.by_id[entry_id] = entry
        if isinstance(parent_id, str) and not known:
            self._early[parent_id] = entry
        self.by_index.append(entry)
        return entry, late

    def lead(self, target: object, append_parent: object) -> Entry | None:
        """A `leaf` line: the session goes on at `target`, whatever the lines to come are hung on."""
        found = self.by_id.get(target) if isinstance(target, str) else None
        if isinstance(append_parent, str):
            self._instead[append_parent] = found
        return found

    def kept(self, reference: object) -> Entry | None:
        """The first entry that a compaction kept: by id, or by place in the file (version 1)."""
        if isinstance(reference, str):
            return self.by_id.get(reference)
        if isinstance(reference, int) and 0 <= reference < len(self.by_index):
            return self.by_index[reference]
        return None


def window(entry: Entry | None, reader: Reader | None = None) -> list[Part]:
    """The parts in the window after an entry, in order, as a model gets them: pi's `buildSessionContext`.

    Tools and system prompt are not among them; `reader`: None before the first request.
    """
    newer: list[Entry] = []
    while entry is not None and not entry.summary:
        newer.append(entry)
        entry = entry.parent
    kept = _kept(entry) if entry is not None else []
    path = [*([entry] if entry is not None else []), *reversed(kept), *reversed(newer)]
    edits = {one.edited: one.edit for one in path if one.edited is not None}
    in_place = reader is not None and reader.in_place
    made: list[Part] = []
    held: list[Part] = []
    for one in path:
        if one.update is not None and in_place:
            held.append(one.update)
        if held and reader is not None and (one.message == "assistant" or not reader.at_the_end):
            made += held
            held = []
        made += edits[one.id] if one.id is not None and one.id in edits else one.shown(reader)
    return made + held


def _kept(compaction: Entry) -> list[Entry]:
    """What stays from before a compaction, newest first; nothing where its first entry is not on the path."""
    found: list[Entry] = []
    older = compaction.parent if compaction.first_kept is not None else None
    while older is not None:
        if not older.summary and older.message != "system":
            found.append(older)
        if older is compaction.first_kept:
            return found
        older = older.parent
    return []
