"""One thread of a run, the main conversation or a sub-agent's, with its answers and what each call billed.

Partial messages (`stream_event`) add what is missing where a message's own lines are.  Content blocks become
parts by the rules that hold for Claude Code's transcripts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ctxctl.importers.claude_code import blocks, texts
from ctxctl.importers.claude_code.blocks import Entry
from ctxctl.ingest.build import Json, Place
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.parts import Part, count, parsed, string
from ctxctl.model import vocab
from ctxctl.providers.usage import hour_writes, miss_cause, usage_record

_WITHOUT_ID = frozenset({"assistant_message", "reasoning"})
_TRIGGERS = {"auto": "token_pressure", "manual": "manual"}


class Answer:
    """An answer of the model whose lines are still coming."""

    def __init__(self, identity: str, model: str | None, place: Place | None, line: int) -> None:
        self.identity = identity
        self.bill = CallBill(model)
        self.place = place
        """The place of its request; None for a line of an older message, whose request was told before."""
        self.line = line
        self.blocks = 0
        """The number of blocks of the message so far."""
        self.known: set[tuple[str, str]] = set()
        """The kind, and the id or version, of each block."""

    def fresh(self, entries: list[Entry]) -> list[Entry]:
        """The entries that the message does not hold yet."""
        found = []
        for entry in entries:
            mark = entry.kind, (entry.version or "" if entry.kind in _WITHOUT_ID else entry.item)
            if mark not in self.known:
                self.known.add(mark)
                found.append(entry)
        return found


class OpenCompaction:
    """A compaction whose summary may still come."""

    def __init__(self, native: str | None, meta: Json, line: int) -> None:
        self.native = native
        self.meta = meta
        self.line = line


class StreamThread:
    """A conversation, the answer that is coming, and what is known of its calls."""

    def __init__(self, conversation: Conversation, windows: dict[str, int]) -> None:
        self.conversation = conversation
        self._windows = windows
        """Size of the context window, by model."""
        self.answer: Answer | None = None
        self.pieces: PartialMessage | None = None
        self.boundary: OpenCompaction | None = None
        self.titles: dict[str, str | None] = {}
        """Title of each call, which its result shares."""
        self._asked: set[str] = set()
        """The ids of messages whose request was told."""
        self._head = 0
        """The row behind the last block of the latest answer, where results of its calls stand."""
        self._items: dict[str, list[str]] = {}
        """The items by the uuid of their line, in order."""
        self._results: set[tuple[str, str | None]] = set()

    def message(self, message: Json, base: str | None, line: int, request: str | None = None) -> None:
        """Take a line of an answer; a new message id is a new request."""
        identity = string(message.get("id")) or base or f"line-{line}"
        answer = self.answer
        if answer is None or answer.identity != identity:
            answer = self._open(identity, string(message.get("model")), line, request)
        answer.bill.merge(message)
        content = message.get("content")
        made = blocks.assistant_items(content, base or f"{identity}/{answer.blocks}", line)
        answer.blocks += len(blocks.blocks_of(content))
        self._add(answer.fresh(made), base)

    def local(self, message: Json, base: str | None, line: int) -> None:
        """Take an answer that Claude Code made up: it stays in the conversation without a request."""
        self.close()
        made = blocks.assistant_items(message.get("content"), base or "", line)
        parts = of_entries(made, keyed=base is not None)
        self._note(base, parts)
        self.conversation.append(*parts)

    def told(self, entries: list[Entry], base: str | None) -> None:
        """Add results of calls, prompts, and what came along with them; results told before are left out."""
        fresh = [e for e in entries if e.tool is None or (e.item, e.version) not in self._results]
        self._results.update((e.item, e.version) for e in fresh if e.tool is not None)
        parts = of_entries(fresh, keyed=base is not None)
        self._note(base, parts)
        self.conversation.append(*parts)

    def streamed(self, event: Json, line: int) -> None:
        """Take a piece of a partial message."""
        kind = event.get("type")
        if kind == "message_start":
            self.flush()
            message = event.get("message")
            self.pieces = PartialMessage(message, line) if isinstance(message, dict) else None
        elif self.pieces is not None:
            if kind == "content_block_start":
                # The line of a block comes around the block's end: by now it is there or lost.
                self._fill(self.pieces)
            self.pieces.take(event)

    def close(self, totals: Json | None = None) -> None:
        """End the answer: tell its bill, and what only the stream of it held.

        `totals`: the run's usage.
        """
        self.flush()
        answer, self.answer = self.answer, None
        if answer is not None and answer.place is not None:
            if totals is not None:
                answer.bill.settle(totals)
            self.conversation.usage(answer.bill.record(), line=answer.line, place=answer.place)

    def compact(self, summary: list[Part]) -> None:
        """Do the announced compaction; `summary` is empty where none was told."""
        boundary, self.boundary = self.boundary, None
        if boundary is None:
            return
        meta = boundary.meta
        kept = self._preserved(meta)
        trigger, before = meta.get("trigger"), count(meta.get("pre_tokens"))
        native = {k: v for k, v in meta.items() if not k.startswith("preserved_")}
        self.conversation.compact(
            summary,
            summary=summary[0] if summary else None,
            keep=kept.__contains__,
            line=boundary.line,
            compaction_id=boundary.native,
            trigger=_TRIGGERS.get(trigger, "custom") if isinstance(trigger, str) else None,
            metadata={"native": native, "ctxctl": {"compacted_at": before if trigger == "auto" else None}}
            if native
            else None,
            request=self.conversation.unbilled(before),
        )
        self._head = len(self.conversation)

    def retract(self, uuids: list[object]) -> None:
        """Take out the items of lines that Claude Code took back."""
        gone = {item for uuid in uuids if isinstance(uuid, str) for item in self._items.get(uuid, ())}
        if gone:
            self.close()
            self.conversation.drop(gone.__contains__, cause="cleared")

    def _open(self, identity: str, model: str | None, line: int, request: str | None) -> Answer:
        pieces, own = self.pieces, None
        if pieces is not None and pieces.identity == identity:
            # What it holds beyond the message's lines is told once these have come.
            self.pieces, own = None, pieces
        self.close()
        self.pieces = own
        self.compact([])
        conversation = self.conversation
        place = None
        if identity not in self._asked:
            self._asked.add(identity)
            self.tell_window(model, line)
            place = conversation.request(identity, line=line, model=model, native_id=request, derived=True)
        self._head = len(conversation)
        self.answer = Answer(identity, model, place, line)
        return self.answer

    def tell_window(self, model: str | None, line: int) -> None:
        """Report the size of a model's window with the next request, if the stream has it."""
        tokens = self._windows.get(model) if model is not None else None
        if tokens is not None:
            budget = {"budget_id": "context_window", "target": vocab.MODEL, "max_tokens": tokens}
            self.conversation.tell(vocab.BUDGET_APPLIED, budget, line=line)

    def flush(self) -> None:
        """End the partial message."""
        pieces = self.pieces
        if pieces is None:
            return
        answer = self._fill(pieces)
        self.pieces = None
        if answer is not None:
            answer.bill.merge(pieces.message)
            if pieces.usage is not None:
                answer.bill.ended(pieces.usage)

    def _fill(self, pieces: PartialMessage) -> Answer | None:
        """Tell the finished blocks of a partial message that no line of its own told."""
        identity = pieces.identity
        if identity is None:
            return None
        answer = self.answer
        if answer is None or answer.identity != identity:
            if identity in self._asked:
                return None
            answer = self._open(identity, string(pieces.message.get("model")), pieces.line, None)
        for index in sorted(pieces.blocks):
            block = pieces.blocks.pop(index)
            if index >= answer.blocks:
                made = blocks.assistant_items([block], f"{identity}/{index}", pieces.line)
                answer.blocks = index + 1
                self._add(answer.fresh(made), None, derived=True)
        return answer

    def _add(self, entries: list[Entry], base: str | None, *, derived: bool = False) -> None:
        """Put blocks behind those of the answer that came before, in front of results of its calls."""
        parts = of_entries(entries, derived=derived)
        for part in parts:
            if part.kind == "tool_call":
                self.titles[part.item] = part.title
        self._note(base, parts)
        conversation = self.conversation
        if self._head == len(conversation):
            conversation.append(*parts)
        else:
            conversation.splice(self._head, 0, parts)
        self._head += len(parts)

    def _note(self, base: str | None, parts: list[Part]) -> None:
        if parts and base is not None:
            self._items.setdefault(base, []).extend(part.item for part in parts)

    def _preserved(self, meta: Json) -> set[str]:
        """The items that a compaction keeps: named by the uuids of their lines, or by the first and last of a
        range."""
        kept, segment = meta.get("preserved_messages"), meta.get("preserved_segment")
        if isinstance(kept, dict) and isinstance(kept.get("uuids"), list):
            uuids = [uuid for uuid in kept["uuids"] if isinstance(uuid, str)]
        elif isinstance(segment, dict):
            uuids = list(self._items)
            head, tail = string(segment.get("head_uuid")), string(segment.get("tail_uuid"))
            if head is None or tail is None or head not in self._items or tail not in self._items:
                return set()
            uuids = uuids[uuids.index(head) : uuids.index(tail) + 1]
        else:
            uuids = []
        return {item for uuid in uuids for item in self._items.get(uuid, ())}


_PROMPT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class CallBill:
    """The counts of one call.

    A line repeats the counts of the message's beginning: its output is a count so far.  The output is told
    only where the answer had ended.
    """

    def __init__(self, model: str | None) -> None:
        self.model = model
        self._prompt: Json | None = None
        self._output: Any = None
        self._reasoning: Any = None
        self._cause: str | None = None
        self._final: Json | None = None
        """The usage at the answer's end, which alone counts calls of tools and further samplings."""

    def merge(self, message: Json) -> None:
        """Take the whole line of a message, after its pieces."""
        self._cause = miss_cause(message) or self._cause
        usage = message.get("usage")
        if isinstance(usage, dict):
            if self._prompt is None and count(usage.get("input_tokens")) is not None:
                self._prompt = usage
            if message.get("stop_reason") is not None:
                self.ended(usage)

    def ended(self, usage: Json) -> None:
        """Take the counts that the answer's end tells."""
        if count(usage.get("output_tokens")) is not None:
            self._output = usage["output_tokens"]
            self._final = usage
            details = usage.get("output_tokens_details")
            self._reasoning = details.get("thinking_tokens") if isinstance(details, dict) else None
        if self._prompt is None and count(usage.get("input_tokens")) is not None:
            self._prompt = usage

    def settle(self, totals: Json) -> None:
        """The `usage` of a run's result: of its last call, or of the only one, it holds the final counts."""
        if self._prompt is None or self._output is not None:
            return
        iterations = totals.get("iterations")
        last = iterations if isinstance(iterations, list) and len(iterations) == 1 else []
        for usage in (*last, totals):
            if isinstance(usage, dict) and all(usage.get(k) == self._prompt.get(k) for k in _PROMPT):
                self.ended(usage)
                return

    def record(self) -> Json | None:
        """The record of `ctxctl.usage.reported`; None where no line tells of a usage."""
        prompt = self._prompt
        if prompt is None:
            return None
        tier = string(prompt.get("service_tier"))
        made = usage_record(
            provider="anthropic",
            model=self.model,
            input_tokens=prompt.get("input_tokens"),
            cached=prompt.get("cache_read_input_tokens"),
            cache_write=prompt.get("cache_creation_input_tokens"),
            cache_write_1h=hour_writes(prompt),
            miss_cause=self._cause,
            output_tokens=self._output,
            reasoning=self._reasoning,
            excludes_cache=True,
            bill={**prompt, **(self._final or {})},
        )
        if made is not None and tier is not None:
            made["metadata"] = {"native": {"service_tier": tier}}
        return made


_MAX_BLOCKS: Final = 10_000
_GROWS: Final = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


class PartialMessage:
    """The events of one streamed message."""

    def __init__(self, message: Json, line: int) -> None:
        self.message = message
        """As `message_start` gave it."""
        self.line = line
        self.identity = string(message.get("id"))
        self.usage: Json | None = None
        """The final counts, of `message_delta`."""
        self._open: dict[int, tuple[Json, dict[str, list[str]]]] = {}
        self.blocks: dict[int, Json] = {}
        """The finished blocks, by index."""

    def take(self, event: Json) -> None:
        """The next event."""
        kind = event.get("type")
        index = event.get("index")
        if kind == "message_delta":
            usage = event.get("usage")
            if isinstance(usage, dict):
                self.usage = usage
        elif not isinstance(index, int) or not 0 <= index < _MAX_BLOCKS:
            return
        elif kind == "content_block_start":
            block = event.get("content_block")
            self._open[index] = (dict(block) if isinstance(block, dict) else {}, {})
        elif kind == "content_block_delta" and index in self._open:
            _grow(self._open[index][1], event.get("delta"))
        elif kind == "content_block_stop" and index in self._open:
            self.blocks[index] = _closed(*self._open.pop(index))


def _grow(grown: dict[str, list[str]], delta: Any) -> None:
    if not isinstance(delta, dict):
        return
    kind = delta.get("type")
    if kind == "input_json_delta":
        field, text = "input", delta.get("partial_json")
    else:
        field = _GROWS.get(kind, "") if isinstance(kind, str) else ""
        text = delta.get(field)
    if field and isinstance(text, str):
        grown.setdefault(field, []).append(text)


def _closed(block: Json, grown: dict[str, list[str]]) -> Json:
    for field, pieces in grown.items():
        text = "".join(pieces)
        if field != "input":
            begun = block.get(field)
            block[field] = (begun if isinstance(begun, str) else "") + text
        elif text:
            block[field] = parsed(text)
    return block


_FIELDS = ("mime_type", "byte_size")


def of_entries(entries: Iterable[Entry], *, derived: bool = False, keyed: bool = True) -> list[Part]:
    """Items of a transcript as parts of a conversation.

    Args:
        entries: The items.
        derived: They were put together from pieces of a stream.
        keyed: False where their line has no id, so that only results of calls have one.
    """
    return [_part(entry, derived, keyed or entry.tool is not None) for entry in entries]


def _part(entry: Entry, derived: bool, keyed: bool) -> Part:
    record: Json = entry.record if entry.record is not None else {}
    text = record.get("content")
    meta = record.get("metadata")
    part = Part(
        entry.kind,
        None,
        entry.role,
        key=entry.item if keyed else None,
        title=entry.title,
        native=meta.get("native") if meta is not None else None,
        line=entry.line,
        version=entry.version if text is None else None,
        derived=derived,
        **({name: record[name] for name in _FIELDS if name in record} if text is None else {}),
    )
    # The digest is known and is not worked out again.
    part.text, part.digest = text, entry.digest
    return part


def user_entries(
    content: Any, base: str, line: int, titles: dict[str, str | None], reading: texts.TextReading | None
) -> tuple[list[Entry], list[Entry]]:
    """The items of a user message: results of calls, and everything else; `reading` is that of its texts."""
    results: list[Entry] = []
    others: list[Entry] = []
    for index, block in enumerate(blocks.blocks_of(content)):
        item = blocks.block_id(base, index)
        if isinstance(block, dict) and block.get("type") == "tool_result":
            tool = block.get("tool_use_id")
            title = titles.get(tool) if isinstance(tool, str) else None
            results += blocks.result_items(block, item, line, title)
        else:
            entry = blocks.user_item(block, item, line, reading)
            if entry is not None:
                others.append(entry)
    return results, others
