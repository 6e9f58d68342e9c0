"""The entries of a session as a tree, and the window that a place in it stands for."""

from __future__ import annotations

from ctxctl.formats.kit.parts import Part


class Entry:
    """One line of a session."""

    __slots__ = ("first_kept", "id", "parent", "parts", "summary")

    def __init__(self, entry_id: str | None, parent: Entry | None) -> None:
        self.id = entry_id
        self.parent = parent
        self.parts: list[Part] = []
        """What it puts into the window; texts are given up once they were announced."""
        self.summary = False
        """A compaction: its parts stand for what is before `first_kept`."""
        self.first_kept: Entry | None = None


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


def window(entry: Entry | None) -> list[Part]:
    """The parts in the window after an entry, in order: pi's `buildSessionContext`."""
    newer: list[list[Part]] = []
    while entry is not None and not entry.summary:
        newer.append(entry.parts)
        entry = entry.parent
    summary = entry.parts if entry is not None else []
    kept = _kept(entry) if entry is not None else []
    return [*summary, *(part for parts in (*reversed(kept), *reversed(newer)) for part in parts)]


def _kept(compaction: Entry) -> list[list[Part]]:
    """What stays from before a compaction, newest first; nothing where its first entry is not on the path."""
    found: list[list[Part]] = []
    older = compaction.parent if compaction.first_kept is not None else None
    while older is not None:
        if not older.summary:
            found.append(older.parts)
        if older is compaction.first_kept:
            return found
        older = older.parent
    return []
