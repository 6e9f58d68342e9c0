"""The history of a Codex thread: what stands before it, how it is compacted, and how turns are rolled back.

The rules are those by which Codex itself rebuilds a thread from its rollout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ctxctl.importers.codex.parts import ItemReader, ReadItem
from ctxctl.ingest.build import Json, Maker
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.parts import Part, string

_CONTEXT: Final = frozenset(
    {"developer_instruction", "runtime_state", "durable_memory", "external_resource", "policy_note"}
)
"""Kinds that Codex puts before a turn's prompt, and takes back together with it."""


class History:
    """The window of one thread: a head (tool definitions, instructions), then the history."""

    def __init__(self, conversation: Conversation, make: Maker) -> None:
        self.conversation = conversation
        self._make = make
        self._head: list[Part] = []
        self._prompts: list[str] = []
        """The prompts that are still in the window, oldest first."""
        self.holds: frozenset[str] = frozenset()
        """Which of `tools` and `instructions` stand in the history itself, and not before it."""
        self._is_logged = False
        """Whether the log has the request that wrote the last summary."""
        self._filled: set[str] = set()
        """The outputs that stand for real ones that never came, or have not come yet."""

    def head(self, parts: list[Part]) -> None:
        """Set what every request begins with from now on."""
        if [p.item for p in parts] == [p.item for p in self._head]:
            for at, (old, new) in enumerate(zip(self._head, parts, strict=True)):
                if old.mark != new.mark:
                    self.conversation.put(at, new)
        else:
            self.conversation.splice(0, len(self._head), parts)
        self._head = parts

    def add(self, read: ReadItem) -> None:
        """Add one item of the log to the history."""
        if not read.parts:
            return
        self._make_room(read)
        self.conversation.append(*read.parts)
        if read.holds:
            self.holds |= {read.holds}
        if read.prompt:
            self._prompts.append(_prompt_of(read.parts).item)

    def _make_room(self, read: ReadItem) -> None:
        """Take out the outputs that stood for real ones that have come now."""
        if self._filled:
            late = {part.item for part in read.parts} & self._filled
            if late:
                self._filled -= late
                self.conversation.drop(late.__contains__)

    def fill(self, missing: Sequence[tuple[str, Part]]) -> None:
        """Put an output behind each call that lacks one, as Codex does with every request.

        Args:
            missing: The call's key and the output (`ItemReader.unanswered`).
        """
        wanted = {call: output for call, output in missing if output.item not in self._filled}
        rows = self.conversation.rows
        found: list[tuple[int, Part]] = []
        at = len(rows)
        while wanted and at > 0:
            at -= 1
            output = wanted.pop(rows[at][0].item, None)
            if output is not None:
                found.append((at + 1, output))
                self._filled.add(output.item)
        if missing:
            self._make.work += len(rows) - at
        self.conversation.insert(found[::-1])

    def before_all(self, parts: Sequence[Part]) -> None:
        """Put parts before the rest of the history."""
        self.conversation.splice(len(self._head), 0, parts)

    # -- compaction -----------------------------------------------------------------------------------------

    def compact(self, payload: Json, items: ItemReader, line: int, *, tell: bool, is_logged: bool) -> None:
        """Take a `compacted` record.

        Args:
            payload: The record.
            items: Reads its history.
            line: Its line.
            tell: False where the parent thread did it, before it was forked.
            is_logged: Whether the log has the request that wrote the summary.
        """
        self._is_logged = is_logged
        message = string(payload.get("message"))
        given = payload.get("replacement_history")
        if isinstance(given, list):
            reads = [items.read(item, line, again=True) for item in given if isinstance(item, dict)]
            self.holds = frozenset(read.holds for read in reads if read.holds)
            self._replace([read for read in reads if read.parts], message, payload, line, tell)
        else:
            self._shorten(message, payload, line, tell)

    def _replace(
        self, reads: list[ReadItem], message: str | None, payload: Json, line: int, tell: bool
    ) -> None:
        """Take the whole new history from the record."""
        parts = [part for read in reads for part in read.parts]
        sealed = [part for part in parts if part.kind == "thread_summary"]
        if not sealed and message is not None:
            sealed = [
                p for p in parts if p.kind == "user_message" and p.text is not None and message in p.text
            ]
            for part in sealed[-1:]:
                part.kind, part.title = "thread_summary", "compaction summary"
        self._cut(parts, sealed[-1] if sealed else None, payload, line, tell, derived=False)
        self._prompts = [
            _prompt_of(read.parts).item
            for read in reads
            if read.prompt and any(p.kind != "thread_summary" for p in read.parts)
        ]

    def _shorten(self, message: str | None, payload: Json, line: int, tell: bool) -> None:
        """Shorten the history as Codex does where only a summary is recorded: the first context and the
        prompts stay, then comes the summary."""
        rows = self.conversation.rows
        keep = set(self._prompts)
        for at, (block, kind) in enumerate(rows):
            if at >= len(self._head) and (block.item in keep or kind not in _CONTEXT):
                break
            keep.add(block.item)
        gone = [row[0].ref for row in rows if row[0].item not in keep]
        self.conversation.drop(lambda item: item not in keep)
        summary = None
        if message is not None:
            summary = Part("thread_summary", message, "user", title="compaction summary", line=line)
            self.conversation.append(summary)
        if tell:
            self._tell(gone, summary, payload, line, derived=True)

    def _cut(
        self, parts: list[Part], summary: Part | None, payload: Json, line: int, tell: bool, *, derived: bool
    ) -> None:
        rows = self.conversation.rows
        start = len(self._head)
        left = [row[0] for row in rows[start:]]
        self.conversation.replace(parts, at=start, fresh=True)
        stays = {row[0].item for row in rows}
        if tell:
            gone = [block.ref for block in left if block.item not in stays]
            self._tell(gone, summary, payload, line, derived=derived)

    def _tell(
        self, gone: list[str], summary: Part | None, payload: Json, line: int, *, derived: bool
    ) -> None:
        native = {
            name: payload[name]
            for name in ("window_id", "window_number", "first_window_id", "previous_window_id")
            if isinstance(payload.get(name), str | int)
        }
        metadata: dict[str, Any] = {}
        if native:
            metadata["native"] = native
        if derived:
            metadata["ctxctl"] = {"derived": True}
        into = summary.block().ref if summary is not None else None
        fields: Json = {"metadata": metadata} if metadata else {}
        if not self._is_logged:
            fields["request"] = self.conversation.unbilled()
        self.conversation.compacted(gone, into, line=line, **fields)

    # -- going back -----------------------------------------------------------------------------------------

    def roll_back(self, turns: int) -> None:
        """Take out the last `turns` prompts, all that came after them, and the context put before them."""
        if turns <= 0 or not self._prompts:
            return
        turns = min(turns, len(self._prompts))
        target, first = self._prompts[-turns], self._prompts[0]
        rows = self.conversation.rows
        at = len(rows) - 1
        while at >= 0 and rows[at][0].item != target:
            at -= 1
        del self._prompts[-turns:]
        if at < 0:
            return
        if target != first:
            while at > len(self._head) and rows[at - 1][1] in _CONTEXT:
                at -= 1
        self.conversation.splice(at, len(rows) - at, cause="branched")


def _prompt_of(parts: list[Part]) -> Part:
    return next((part for part in parts if part.kind in ("user_message", "peer_agent_message")), parts[0])
