"""The conversation of one thread: what a request at any point of the parent chain carried.

A line's parents lead to the root, which is the first prompt or the latest compaction.  A message is a unit:
its lines (one a content block) and the results of its calls count as a whole wherever one of them is on the
path, because parallel tool calls fork the chain and a pure walk would lose all but one of them.

`LastRequest` keeps what a thread's last request carried: its head (tools, system prompt) and its messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ctxctl.importers.claude_code.blocks import Entry
from ctxctl.ingest.build import Block
from ctxctl.listdiff import Splice, joined, same_start, trimmed

_SCANNED: Final = 16
"""The most entries of a unit that are looked through one by one; more are looked up."""


class EntryIndex:
    """The entries of a large unit, by what a repeat of one is recognised by."""

    __slots__ = ("native", "taken", "texts")

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.taken = 0
        """How many entries of the unit are in here."""
        self.texts: dict[tuple[str, str | None], dict[str, None]] = {}
        """By kind and version, the items."""
        self.native: dict[tuple[str, str | None], str | None] = {}
        """By kind and version, the line that such entries are of; None where there are several."""
        self.take(entries)

    def take(self, entries: Sequence[Entry]) -> None:
        """Take in what was added to the unit since."""
        for entry in entries[self.taken :]:
            key = entry.kind, entry.version
            self.texts.setdefault(key, {})[entry.item] = None
            if self.native.setdefault(key, entry.native) != entry.native:
                self.native[key] = None
        self.taken = len(entries)

    def repeats(self, entry: Entry) -> bool:
        """As `repeats`, of any of the entries."""
        key = entry.kind, entry.version
        if key not in self.native:
            return False
        if entry.item in self.texts[key]:
            return True
        return entry.kind in _WITHOUT_ID and self.native[key] != entry.native


def repeats(entry: Entry, known: Entry) -> bool:
    """Whether of two entries of one version one is a streamed duplicate of the other.

    That is the same block on another line of the message, or the same result again.
    """
    if entry.kind != known.kind:
        return False
    if entry.item == known.item:
        return True
    return entry.kind in _WITHOUT_ID and entry.native != known.native


_WITHOUT_ID: Final = frozenset({"assistant_message", "reasoning"})
"""Kinds of blocks without an id of their own: a repeat is recognised by its text."""


class ChainUnit:
    """What enters and leaves requests together: a message with its results, or a single line."""

    __slots__ = ("head", "heads", "key", "tail", "tails")

    def __init__(self, key: str) -> None:
        self.key = key
        self.head: list[Entry] = []
        """The message's own blocks, in file order."""
        self.tail: list[Entry] = []
        """The results of its calls, and what came along with them."""
        self.heads: EntryIndex | None = None
        self.tails: EntryIndex | None = None

    def holds_again(self, entry: Entry, *, tail: bool) -> bool:
        """Whether an entry repeats one of the head, or of the tail; the cost does not grow with these."""
        entries = self.tail if tail else self.head
        if len(entries) <= _SCANNED:
            return any(entry.version == known.version and repeats(entry, known) for known in entries)
        index = self._index(tail=tail)
        index.take(entries)
        return index.repeats(entry)

    def holds_text(self, entry: Entry) -> bool:
        """Whether it has an entry of the same kind and version."""
        key = entry.kind, entry.version
        for tail, entries in ((False, self.head), (True, self.tail)):
            if len(entries) <= _SCANNED:
                if any((known.kind, known.version) == key for known in entries):
                    return True
                continue
            index = self._index(tail=tail)
            index.take(entries)
            if key in index.native:
                return True
        return False

    def _index(self, *, tail: bool) -> EntryIndex:
        found = self.tails if tail else self.heads
        if found is None:
            found = EntryIndex(self.tail if tail else self.head)
            if tail:
                self.tails = found
            else:
                self.heads = found
        return found

    def entries(self) -> list[Entry]:
        """All of its items, in the order of a request."""
        entries = self.head + self.tail if self.tail else self.head
        return [entry for entry in entries if not entry.retracted]

    def blocks(self, blanked: set[str]) -> list[Block]:
        """The placements of its items."""
        return [entry.block(blanked) for entry in self.entries()]


class Compaction:
    """A compaction with which a path begins."""

    __slots__ = ("before", "is_logged", "line", "meta", "native", "pending", "preserved", "summary")

    def __init__(self, native: str, meta: dict[str, object], line: int) -> None:
        self.native = native
        """The uuid of the boundary, or of the summary where there is no boundary."""
        self.meta = meta
        """`compactMetadata` as recorded."""
        self.line = line
        self.summary: Entry | None = None
        self.pending: dict[str, str] = {}
        """By item, the refs of what no request had carried yet when it happened."""
        self.before: ChainNode | None = None
        """The last line before the boundary; later lines that name it follow the boundary."""
        self.is_logged = False
        """Whether a sub-agent's file has the request that wrote the summary, with its bill."""
        self.preserved: list[ChainNode] = []
        """Lines from before the boundary that stay in the context."""


class ChainNode:
    """A line of the parent chain that a request can contain, or a boundary."""

    __slots__ = ("blanks", "compaction", "followers", "parent", "results", "turn", "unit", "uuid", "wanted")

    def __init__(self, uuid: str, parent: ChainNode | None, unit: ChainUnit | None = None) -> None:
        self.uuid = uuid
        self.parent = parent
        self.unit = unit
        self.turn: str | None = parent.turn if parent is not None else None
        """The id of the turn to which a request from here belongs."""
        self.results = False
        """Whether it holds tool results, or what came along with them."""
        self.wanted: str | None = None
        """The uuid of a parent that was not in the file when this line was read."""
        self.followers = 0
        """Lines that name it as their parent."""
        self.compaction: Compaction | None = None
        self.blanks: tuple[str, ...] = ()
        """The tool use ids whose results a microcompaction blanks from here on."""


class _Placed:
    """A unit as it stands in the window last assembled."""

    __slots__ = ("blocks", "heads", "start", "tails", "unit")

    def __init__(self, unit: ChainUnit, blocks: list[Block], start: int) -> None:
        self.unit = unit
        self.blocks = blocks
        self.start = start
        """Right for the first `ChainPath._valid` units only."""
        self.heads = len(unit.head)
        self.tails = len(unit.tail)

    def grown(self) -> tuple[list[Entry], list[Entry], bool]:
        """The entries that the unit has got since, in its head and behind it; and whether nothing else of it
        has changed."""
        head, tail = self.unit.head[self.heads :], self.unit.tail[self.tails :]
        only = len(self.blocks) == self.heads + self.tails
        return head, tail, only and not any(entry.retracted for entry in head + tail)

    def grow(self, head: list[Block], tail: list[Block]) -> None:
        """Take in what the unit has got."""
        self.blocks[self.heads : self.heads] = head
        self.blocks += tail
        self.heads += len(head)
        self.tails += len(tail)

    def respell(self, blocks: list[Block]) -> None:
        """Take the unit as it is now."""
        self.blocks = blocks
        self.heads, self.tails = len(self.unit.head), len(self.unit.tail)


class RequestChange(NamedTuple):
    """How a request differs from the one before it in its thread."""

    edits: list[Splice[Block]]
    removed: list[Block]
    """Placements of the earlier window whose items are not in this one."""
    fresh: list[Entry]
    """Items that may not have been in this thread before."""
    blanked: list[Entry]
    """Tool results that a microcompaction newly blanked."""
    compaction: Compaction | None
    """The compaction with which the path begins now, and did not before."""


class ChainPath:
    """The path of a thread's last request, and the window that it made."""

    def __init__(
        self, lookup: Callable[[str], ChainNode | None], holder: Callable[[str], ChainUnit | None]
    ) -> None:
        self._lookup = lookup
        self._holder = holder
        self._nodes: list[ChainNode] = []
        self._position: dict[ChainNode, int] = {}
        self._upto: list[int] = []
        """The number of units on the path up to and with each node."""
        self._placed: list[_Placed] = []
        self._valid = 0
        """How many of the placed units, from the first on, have the right start."""
        self._index: dict[ChainUnit, int] = {}
        self._size = 0
        self._micro: list[tuple[int, tuple[str, ...]]] = []
        """The microcompactions on the path: the position of each, and the tool use ids that it blanks."""
        self._blanked: set[str] = set()
        self._announced: set[Entry] = set()
        """The entries whose blanked version was emitted."""
        self._dirty: set[ChainUnit] = set()
        """The units that have changed since the last request."""
        self._grown: set[ChainUnit] = set()
        """The units that have got entries since, whatever else became of them."""
        self._compaction: Compaction | None = None

    def brought(
        self, lookup: Callable[[str], ChainNode | None], holder: Callable[[str], ChainUnit | None]
    ) -> None:
        """Go on, in another run than the one that began."""
        self._lookup, self._holder = lookup, holder

    def blocks(self) -> list[Block]:
        """The placements of the last request."""
        return [block for placed in self._placed for block in placed.blocks]

    def touch(self, unit: ChainUnit) -> None:
        """Note that a unit has changed since the last request."""
        if unit in self._index:
            self._dirty.add(unit)

    def grow(self, unit: ChainUnit) -> None:
        """Note that a unit has got entries since the last request."""
        if unit in self._index:
            self._grown.add(unit)

    def advance(self, leaf: ChainNode | None) -> RequestChange:
        """Move to the path that ends in `leaf`, the parent of a new request."""
        fresh_nodes, keep = self._climb(leaf)
        if keep == len(self._nodes) and not self._dirty and not self._grown:
            for node in fresh_nodes:
                if node.blanks:
                    break
            else:
                return self._append(fresh_nodes)
        units_kept = self._upto[keep - 1] if keep else 0
        self._truncate(keep)
        old = self._placed[units_kept:]
        for placed in old:
            del self._index[placed.unit]
        tail_old = [block for placed in old for block in placed.blocks]
        start = self._size - len(tail_old)
        fresh_units = self._extend(fresh_nodes, units_kept)
        edits, removed, came = self._respell(units_kept)
        del self._placed[units_kept:]
        self._valid = min(self._valid, units_kept)
        tail_new = self._place(fresh_units)
        self._size += len(tail_new) - len(tail_old)
        edit = trimmed(start, tail_old, tail_new)
        if edit is not None:
            removed += tail_old[edit.at - start : edit.at - start + edit.removed]
            edits.append(edit)
        inserted = {block.item for e in edits for block in e.inserted}
        fresh = [entry for unit in fresh_units for entry in unit.entries()] + came
        return RequestChange(
            joined(edits),
            [block for block in removed if block.item not in inserted],
            fresh,
            self._newly_blank(fresh),
            self._new_compaction(),
        )

    def _append(self, nodes: list[ChainNode]) -> RequestChange:
        """Go on from where the last request left the path, which is nearly always the case."""
        start = at = self._size
        blanked, placed = self._blanked, self._placed
        known = len(placed)
        new: list[Block] = []
        fresh: list[Entry] = []
        for unit in self._extend(nodes, len(placed)):
            entries = unit.entries()
            blocks = [entry.block(blanked) for entry in entries]
            placed.append(_Placed(unit, blocks, at))
            at += len(blocks)
            new += blocks
            fresh += entries
        if self._valid == known:
            self._valid = len(placed)
        self._size = at
        edits = [Splice(start, 0, new)] if new else []
        return RequestChange(edits, [], fresh, self._newly_blank(fresh), self._new_compaction())

    def way(self, leaf: ChainNode | None, after: ChainNode | None) -> list[ChainNode]:
        """The path to `leaf`, from the node `after` on where that is on it."""
        fresh, keep = self._climb(leaf)
        at = keep if after is None else self._position.get(after, keep)
        return self._nodes[at if at < keep else 0 : keep] + fresh

    def _climb(self, leaf: ChainNode | None) -> tuple[list[ChainNode], int]:
        """The nodes to append (root first), and how many of the present path stay."""
        fresh: list[ChainNode] = []
        seen: set[ChainNode] = set()
        position = self._position
        node = leaf
        while node is not None and node not in seen:
            at = position.get(node)
            if at is not None:
                fresh.reverse()
                return fresh, at + 1
            fresh.append(node)
            seen.add(node)
            if node.wanted is not None:
                found = self._lookup(node.wanted)
                if found is not None:
                    node.parent, node.wanted = found, None
            node = node.parent
        fresh.reverse()
        return fresh, 0

    def _truncate(self, keep: int) -> None:
        for node in self._nodes[keep:]:
            del self._position[node]
        del self._nodes[keep:]
        del self._upto[keep:]
        lost = [ids for at, ids in self._micro if at >= keep]
        if lost:
            self._micro = [(at, ids) for at, ids in self._micro if at < keep]
            self._blanked = {tool for _, ids in self._micro for tool in ids}
            for ids in lost:
                self._touch_tools(ids)

    def _touch_tools(self, ids: tuple[str, ...]) -> None:
        for tool in ids:
            unit = self._holder(tool)
            if unit is not None:
                self.touch(unit)

    def _extend(self, nodes: list[ChainNode], count: int) -> list[ChainUnit]:
        """Append nodes; return the units that come with them."""
        units: list[ChainUnit] = []
        path, position, index, upto = self._nodes, self._position, self._index, self._upto
        for node in nodes:
            if node.blanks:
                self._micro.append((len(path), node.blanks))
                self._blanked.update(node.blanks)
                self._touch_tools(node.blanks)
            unit = node.unit
            if unit is not None and unit not in index:
                index[unit] = count
                count += 1
                units.append(unit)
            position[node] = len(path)
            path.append(node)
            upto.append(count)
        return units

    def _respell(self, kept: int) -> tuple[list[Splice[Block]], list[Block], list[Entry]]:
        """Edits for the units that stay but have changed, what they lost, and the entries that may be new."""
        edits: list[Splice[Block]] = []
        removed: list[Block] = []
        came: list[Entry] = []
        index = self._index
        found = {index[unit] for unit in self._dirty | self._grown if unit in index}
        changed = sorted(at for at in found if at < kept)
        # Positions count in the window as it was, so all are looked up before one of the units changes.
        starts = [self._start(at) for at in changed]
        for at, start in zip(changed, starts, strict=True):
            placed = self._placed[at]
            size = len(placed.blocks)
            head, tail, only = placed.grown()
            if only and placed.unit not in self._dirty:
                made = [one.block(self._blanked) for one in head], [one.block(self._blanked) for one in tail]
                places = start + placed.heads, start + size
                edits += [Splice(a, 0, b) for a, b in zip(places, made, strict=True) if b]
                placed.grow(*made)
                came += head + tail
            else:
                blocks = placed.unit.blocks(self._blanked)
                edit = trimmed(start, placed.blocks, blocks)
                if edit is not None:
                    removed += placed.blocks[edit.at - start : edit.at - start + edit.removed]
                    edits.append(edit)
                placed.respell(blocks)
                came += placed.unit.entries()
            self._size += len(placed.blocks) - size
        if changed:
            self._valid = min(self._valid, changed[0] + 1)
        self._dirty.clear()
        self._grown.clear()
        return edits, removed, came

    def _start(self, index: int) -> int:
        """Where a unit stands in the window: counted from the last one that is known, or from the end if that
        is nearer."""
        placed = self._placed
        if index >= self._valid and len(placed) - index < index - self._valid:
            return self._size - sum(len(one.blocks) for one in placed[index:])
        if index >= self._valid:
            last = placed[self._valid - 1] if self._valid else None
            at = last.start + len(last.blocks) if last is not None else 0
            for one in placed[self._valid : index + 1]:
                one.start = at
                at += len(one.blocks)
            self._valid = index + 1
        return placed[index].start

    def _place(self, units: list[ChainUnit]) -> list[Block]:
        new: list[Block] = []
        for unit in units:
            blocks = unit.blocks(self._blanked)
            self._placed.append(_Placed(unit, blocks, 0))
            new += blocks
        return new

    def _newly_blank(self, entries: list[Entry]) -> list[Entry]:
        """The entries that are blank in the window for the first time."""
        if not self._blanked:
            return []
        found = [e for e in entries if e.tool in self._blanked and e not in self._announced]
        self._announced.update(found)
        return found

    def _new_compaction(self) -> Compaction | None:
        first = self._nodes[0].compaction if self._nodes else None
        if first is self._compaction:
            return None
        self._compaction = first
        return first


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
