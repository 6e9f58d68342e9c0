"""Reads pi's sessions, and the trajectories that OpenClaw writes beside its own.

The entries of a session form a tree, and a place in it stands for a window.  A trajectory
(`<session>.trajectory.jsonl`) has the context that each attempt began with.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from operator import add, sub
from typing import Any

from ctxctl.importers.pi import TRAJECTORY
from ctxctl.importers.pi.parts import (
    ROLES,
    PartCutter,
    extension_parts,
    is_bookkeeping,
    is_unfinished,
    model_of,
    spoken_reasoning,
    usage_of,
)
from ctxctl.importers.pi.system import RequestReceiver, System, reader_of
from ctxctl.ingest.build import Json, Maker, canonical
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parents import Kinship, Lineage, circle
from ctxctl.ingest.parts import Part, count, shallow, string
from ctxctl.ingest.run import Run
from ctxctl.trace.source import Source

_NAME = "pi"
_SHOWN = 40

_COUNTS = ("input", "output", "cacheRead", "cacheWrite")
_NO_COUNTS: tuple[int, ...] = (0,) * len(_COUNTS)
_LOOKS = 8
"""Entries that are passed over in the time of one placement that is looked at again."""


class Session(Run):
    """Reads one session file; keeps an entry for each line, and no text beyond the step that announced it."""

    def __init__(self, name: str, report: Report) -> None:
        super().__init__(name, report)
        self._tree = Tree()
        self._cutter = PartCutter()
        self._at: Entry | None = None
        """The entry that the session is at."""
        self._shown: Entry | None = None
        """The entry whose window the conversation has."""
        self._lineage: Lineage[str] = Lineage()
        self._lines: dict[str, int] = {}
        """By id of an entry, the hash of its line."""
        self._head: list[Part] = []
        """The tools and the system prompt, in front of the window."""
        self._head_of: tuple[System | None, RequestReceiver] | None = None
        self._reader: RequestReceiver | None = None
        """The receiver of the last request, where the file has system messages."""
        self._turns = 0
        self._billed: list[tuple[int, ...]] = [_NO_COUNTS]
        """Sums of the bills so far: before the first one, with it, and so on."""
        """The bills of the requests since the last report of a whole run."""

    def events(self, source: Source) -> Iterator[Json]:
        """The events of a session file."""
        before = b""
        for record in self.records(source):
            if self.line.data == before and record.get("id") is None:
                continue
            before = self.line.data
            self.take(record)
            yield from self.drain()
        yield from self.finish()

    def take(self, record: Json) -> None:
        """Take one entry, or the header."""
        kind = record.get("type")
        self.make.at(record.get("timestamp"))
        if kind == "session":
            self._open(record)
        elif kind == "leaf":
            self._lead(record)
        elif kind is None and isinstance(record.get("role"), str):
            self.message(record, None)
        elif isinstance(kind, str) and not self._is_repeated(record):
            self._entry(kind, record)

    def message(self, message: Json, entry_id: str | None) -> None:
        """Take a message of a stream, where each continues the one before."""
        self._enter(entry_id, None, rooted=False, message=message)

    def summary(self, record: Json) -> None:
        """Take a compaction of a stream, which does not tell what it kept."""
        self._compaction(record, None, None, rooted=False)

    @property
    def conversation(self) -> Conversation:
        """The conversation of the session's only thread."""
        return self.thread()

    def _open(self, record: Json) -> None:
        self.session = string(record.get("id"))
        self.understood.version(record.get("version"), self.line.number, self.line.offset)
        self._tree, self._lineage, self._lines = Tree(), Lineage(), {}
        self._at = self._shown = None
        self._head, self._head_of, self._reader = [], None, None
        self.opened(
            version=record.get("version", 1),
            session=self.session,
            cwd=string(record.get("cwd")),
            parent_session=string(record.get("parentSession")) or string(record.get("branchedFrom")),
        )

    def _is_repeated(self, record: Json) -> bool:
        native = string(record.get("id"))
        if native is None:
            return False
        mark = hash(self.line.data)
        if native not in self._tree.by_id:
            self._lines[native] = mark
            return False
        if self._lines.get(native) != mark:
            message = f"entry {native[:_SHOWN]} was there before, with other contents: the first one counts"
            self.problem("duplicate-uuid", message)
        return True

    def _lead(self, record: Json) -> None:
        """Take OpenClaw's `leaf`: the next request continues `targetId`, though its line names another
        parent."""
        target = record.get("targetId")
        if target is not None and (not isinstance(target, str) or target not in self._tree.by_id):
            self.problem("missing-parent", "a leaf names an entry that is not there; skipped")
            return
        self._tree.head = self._tree.lead(target, record.get("appendParentId"))
        native = string(record.get("id"))
        if native is not None:
            self._tree.lead(target, native)

    def _entry(self, kind: str, record: Json) -> None:
        native, parent = string(record.get("id")), record.get("parentId")
        rooted = "parentId" in record and parent is None
        if native is not None and isinstance(parent, str) and self._is_circle(native, parent):
            parent = None
        message = record.get("message")
        if kind == "compaction":
            self._compaction(record, native, parent, rooted=rooted)
        elif kind == "message" and isinstance(message, dict):
            self._enter(native, parent, rooted=rooted, message=message)
        elif kind == "message":
            self.problem("not-a-record", "a message entry without a message; skipped")
        else:
            parts: list[Part] = []
            if kind == "context_edit":
                self._edit(native, parent, record, rooted=rooted)
                return
            if kind == "custom_message":
                parts = extension_parts(record, native)
            elif kind == "branch_summary" and string(record.get("summary")) is not None:
                parts = [
                    Part("thread_summary", record["summary"], "user", key=native, title="branch summary")
                ]
            self._enter(native, parent, rooted=rooted, parts=parts)

    def _is_circle(self, native: str, parent: str) -> bool:
        if self._lineage.enter(native, parent) is not Kinship.CIRCLE:
            return False
        line = self.line
        self.report(circle(line.number, line.offset, native, parent, "follow the line before it"))
        return True

    def _enter(
        self,
        native: str | None,
        parent: Any,
        *,
        rooted: bool,
        message: Json | None = None,
        parts: list[Part] | None = None,
    ) -> None:
        entry, late = self._tree.enter(native, parent, rooted=rooted)
        self._go(entry.parent)
        if message is not None:
            role = entry.message = string(message.get("role"))
            if role == "user":
                self._turns += 1
                self.conversation.turn = native or f"turn-{self._turns}"
            elif role == "assistant":
                self._answered(message, native)
            if role == "system":
                parts = self._system(entry, message)
            else:
                if role not in ROLES:
                    line = self.line
                    self.understood.unknown(f"message/{role}", line.number, line.offset, len(line.data))
                parts = self._cutter.cut(message, native, self.line.number)
        entry.parts = parts or []
        entry.started = entry.started or bool(entry.parts)
        for part in entry.parts:
            part.line = self.line.number
        if entry.message == "assistant" and message is not None and entry.system is not None:
            entry.reader, entry.said = reader_of(message), spoken_reasoning(entry.parts)
        if self._shown is self._at:
            self.conversation.append(*entry.parts)
            self._shown = entry
        else:
            self.conversation.pass_over(*entry.parts)
        self._at = self._tree.head = entry
        if late is not None:
            # An entry was put in between: what the window was, it is not any more.
            self._shown = Entry(None, None)
            self._go(late)
            self._tree.head = late

    def _system(self, entry: Entry, message: Json) -> list[Part]:
        """Take a system message, which counts from the next request on."""
        before, first = entry.system, not entry.started
        entry.started = True
        entry.system = System(message, before, first=first, line=self.line.number)
        if not first:
            entry.update = entry.system.update(entry.id or f"system-{self.line.number}")
            if self._reader is not None and self._reader.in_place:
                self._reader = None  # the window is put together anew
        return []

    def _edit(self, native: str | None, parent: Any, record: Json, *, rooted: bool) -> None:
        """Put another text, or none, in the place of an entry."""
        target, replacement = string(record.get("targetId")), record.get("replacement")
        self._enter(native, parent, rooted=rooted)
        self._settle()
        entry = self._at
        changed = self._tree.by_id.get(target) if target is not None else None
        if entry is None or changed is None:
            return
        if isinstance(replacement, dict):
            message = {"role": changed.message or "custom", "content": replacement.get("content")}
            entry.edit = self._cutter.cut(message, f"{target}/{native}", self.line.number)
        entry.edited = target
        wanted, at = window_at(entry, self.make, self._reader), len(self._head)
        self.conversation.splice(at, len(self.conversation.rows) - at, wanted)

    def _go(self, entry: Entry | None) -> None:
        """Go to an entry, after a branch or for an entry that came too late."""
        self._at = entry

    def _settle(self) -> None:
        """Make the window that of the entry that the session is at."""
        if self._shown is self._at:
            return
        wanted = [*self._head, *window_at(self._at, self.make, self._reader)]
        self.make.work += len(wanted)
        rows = self.conversation.rows
        same = 0
        for part, row in zip(wanted, rows, strict=False):
            if part.block() != row[0]:
                break
            same += 1
        gone = len(rows) - same
        self.conversation.splice(same, gone, wanted[same:], cause="branched" if gone else None)
        self._shown = self._at

    def _fit(self, message: Json) -> None:
        """Make the window what the asked model gets: its prompt and tools, and others' reasoning as text."""
        system = self._at.system if self._at is not None else None
        if system is None and self._head_of is None:
            return
        reader = reader_of(message)
        if self._reader != reader:
            self._reader = reader
            at, wanted = len(self._head), window_at(self._at, self.make, reader)
            held = [row[0].item for row in self.conversation.rows[at:]]
            if held != [part.item for part in wanted]:
                self.conversation.splice(at, len(held), wanted)
        if self._head_of != (system, reader):
            self._head_of = system, reader
            head = system.head(reader) if system is not None else []
            self.conversation.splice(0, len(self._head), head)
            self._head = head

    def _answered(self, message: Json, native: str | None) -> None:
        """Seal the request that an assistant's message answers, unless it stands for no single request."""
        if is_bookkeeping(message):
            return
        usage = usage_of(message)
        whole_run = message.get("api") == "cli"
        if whole_run:
            usage = None
            if self._is_sum(message.get("usage")):
                return
        self._settle()
        self._fit(message)
        failed = string(message.get("stopReason")) if is_unfinished(message) else None
        self.conversation.request(
            native,
            line=self.line.number,
            model=model_of(message),
            native_id=string(message.get("responseId")),
            derived=True,
            outcome=failed,
        )
        self.conversation.usage(usage, line=self.line.number)
        if usage is not None:
            self._billed.append(tuple(map(add, self._billed[-1], _counts(message.get("usage")))))

    def _is_sum(self, usage: Any) -> bool:
        """Whether a bill is that of requests already read, put together (OpenClaw's report of a run)."""
        wanted = _counts(usage)
        before, now = self._billed, self._billed[-1]
        # Sums only grow, so there is one place from which on the bills can come to what is wanted.
        at = bisect_right(before, sum(now) - sum(wanted), hi=len(before) - 1, key=sum) - 1
        if at < 0 or tuple(map(sub, now, before[at])) != wanted:
            return False
        self._billed = [_NO_COUNTS]
        return True

    def _compaction(self, record: Json, native: str | None, parent: Any, *, rooted: bool) -> None:
        entry, late = self._tree.enter(native, parent, rooted=rooted)
        self._go(entry.parent)
        self._settle()
        first = record.get("firstKeptEntryId", record.get("firstKeptEntryIndex"))
        text = string(record.get("summary"))
        version = None if text is not None else "not-recorded"
        summary = Part("thread_summary", text, "user", key=native, title="compaction", version=version)
        summary.line = self.line.number
        entry.parts, entry.summary, entry.first_kept = [summary], True, self._tree.kept(first)
        prompt = record.get("systemMessage")
        kept = System(prompt, None, first=True, line=self.line.number) if isinstance(prompt, dict) else None
        entry.system, entry.started = kept, True
        told = {name: record[name] for name in ("tokensBefore", "fromHook", "reason") if name in record}
        asked = self.conversation.unbilled(count(told.get("tokensBefore")))
        self.conversation.compact(
            [*self._head, *window_at(entry, self.make, self._reader)],
            summary=summary,
            line=self.line.number,
            compaction_id=native,
            metadata={"native": shallow(told)} if told else None,
            request=None if told.get("fromHook") else asked,
        )
        self._at = self._shown = self._tree.head = entry
        if late is not None:
            # An entry was put in between: what the window was, it is not any more.
            self._shown = Entry(None, None)
            self._go(late)
            self._tree.head = late


def _counts(usage: Any) -> tuple[int, ...]:
    found = usage if isinstance(usage, dict) else {}
    return tuple(count(found.get(name)) or 0 for name in _COUNTS)


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
        """What it puts into the window; texts are dropped once they were announced."""
        self.summary = False
        """Whether it is a compaction, whose parts stand for what is before `first_kept`."""
        self.first_kept: Entry | None = None
        self.system: System | None = parent.system if parent is not None else None
        """The last system message on its path."""
        self.update: Part | None = None
        """What a system message says in its place, to models that take it there."""
        self.started: bool = parent is not None and parent.started
        """Whether something on its path is in the window."""
        self.message: str | None = None
        """The role, of a message."""
        self.reader: RequestReceiver | None = None
        """The model that it comes from, of an answer."""
        self.said: dict[str, Part | None] = {}
        """By item, what other models get for its reasoning, of an answer."""
        self.edited: str | None = None
        """The other entry that is sent as `edit` from here on."""
        self.edit: list[Part] = []

    def shown(self, reader: RequestReceiver | None) -> list[Part]:
        """The parts that a model gets of it."""
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
        """The entries by place in the file; the header is number 0."""
        self._instead: dict[str, Entry | None] = {}
        """By named parent, where an entry belongs in fact, as a `leaf` said."""
        self._early: dict[str, Entry] = {}
        """The entry that came before its parent, by the parent's id."""

    def enter(self, entry_id: str | None, parent_id: object, *, rooted: bool) -> tuple[Entry, Entry | None]:
        """Add an entry; return the head to go back to if it came too late, after an entry that continues it.

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


def window_at(entry: Entry | None, make: Maker, reader: RequestReceiver | None = None) -> list[Part]:
    """The parts in the window after an entry, in order, as a model gets them: pi's `buildSessionContext`.

    Tools and system prompt are not among them; `reader`: None before the first request.  `make` counts what
    is looked at.
    """
    newer: list[Entry] = []
    while entry is not None and not entry.summary:
        newer.append(entry)
        entry = entry.parent
    kept = _kept(entry, make) if entry is not None else []
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


def _kept(compaction: Entry, make: Maker) -> list[Entry]:
    """The entries that stay from before a compaction, newest first; none where its first entry is not on the
    path."""
    found: list[Entry] = []
    older = compaction.parent if compaction.first_kept is not None else None
    looked = 0
    while older is not None:
        looked += 1
        if looked % _LOOKS == 0:
            make.count_work(1)
        if not older.summary and older.message != "system":
            found.append(older)
        if older is compaction.first_kept:
            return found
        older = older.parent
    return []


def read(source: Source, report: Report) -> Iterator[Json]:
    """The file's events: a session, or a trajectory of OpenClaw."""
    if TRAJECTORY.search(source.read(0, 64 * 1024)):
        return Trajectory(_NAME, report).events(source)
    return Session(_NAME, report).events(source)


class Trajectory(Run):
    """Reads one trajectory; every context in it is whole."""

    def events(self, source: Source) -> Iterator[Json]:
        """The events of a trajectory: a request for each `context.compiled`."""
        opened: set[str | None] = set()
        for record in self.records(source):
            self.make.at(record.get("ts"))
            self.session = string(record.get("sessionId"))
            if self.session not in opened:
                opened.add(self.session)
                self.opened(session=self.session, cwd=string(record.get("workspaceDir")))
            data = record.get("data")
            if record.get("type") == "context.compiled" and isinstance(data, dict):
                self._context(record, data)
            yield from self.drain()
        yield from self.finish()

    def _context(self, record: Json, data: Json) -> None:
        if data.get("truncated") is True:
            self.problem("unknown-record", "a context too large for OpenClaw to record; skipped")
            return
        window = self.thread()
        window.turn = string(record.get("runId")) or window.turn
        window.replace(self._parts(data))
        window.request(line=self.line.number, model=string(record.get("modelId")), derived=True)

    def _parts(self, data: Json) -> list[Part]:
        """The parts of a context: tools, system prompt, messages and prompt; calls keep the ids that they
        had."""
        made: list[Part] = []
        tools = data.get("tools")
        for tool in tools if isinstance(tools, list) else []:
            if isinstance(tool, dict):
                name = string(tool.get("name"))
                key = f"tool:{name}" if name is not None else None
                made.append(Part("tool_definition", canonical(tool), "system", key=key, title=name))
        system = string(data.get("systemPrompt"))
        made += [Part("system_prompt", system, "system", key="system")] if system is not None else []
        cutter, said = PartCutter(), data.get("messages", data.get("historyMessages"))
        for message in said if isinstance(said, list) else []:
            if isinstance(message, dict):
                made += cutter.cut(message, None, self.line.number)
        prompt = string(data.get("prompt"))
        if prompt is not None and not (made and made[-1].role == "user" and made[-1].text == prompt):
            made.append(Part("user_message", prompt, "user"))
        for part in made:
            part.line = self.line.number
        return made
