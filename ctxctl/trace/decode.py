"""Decode a line of bytes into an `Event` with its typed record.

The fast path relies on repeated items. If `"data"` is a line's last key, its bytes are hashed. If the same
bytes were decoded before, the line is valid exactly if its head is, with the value replaced by `0`; so only
the head is parsed, and the earlier record object is reused. Otherwise msgspec decodes the line with bodies
kept raw. What msgspec rejects is coerced field by field, and what is not JSON is repaired first
(`trace.salvage`). Every fault is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

import msgspec
import orjson
import xxhash

from ctxctl.model import vocab
from ctxctl.model.event import Event
from ctxctl.model.problem import Problem
from ctxctl.model.records import Item, Record
from ctxctl.trace import migrate
from ctxctl.trace.build import BUILDERS, assembly
from ctxctl.trace.coerce import Fields, parse_json, show
from ctxctl.trace.contents import SEED, Contents
from ctxctl.trace.depth import DEPTH_LIMIT, may_nest_deeper
from ctxctl.trace.envelope import may_be_elsewhere, record_of
from ctxctl.trace.items import ItemBuilder, Memos
from ctxctl.trace.unknown_file import named_keys
from ctxctl.trace.utf8 import check_around, check_around_blocks, check_utf8
from ctxctl.trace.wire import (
    IDS,
    AssemblyWire,
    Head,
    LooseHead,
    Raw,
    decode_assembly,
    decode_head,
    decode_loose,
)

ITEM_EVENTS: Final = frozenset({vocab.ITEM_ADDED, vocab.ITEM_UPDATED, vocab.ITEM_REMOVED})
_KNOWN: Final = frozenset(vocab.STANDARD_EVENTS) | {
    vocab.USAGE_REPORTED, vocab.TOTAL_STATED, vocab.FIDELITY_MEASURED, vocab.STEP_FAILED, vocab.STEP_ANSWERED,
    vocab.RECORD_DROPPED, vocab.SESSION_ENDED,
}  # fmt: skip
_DATA: Final = b'"data":'
_STUB: Final = b'"data":0}'
_SPACES: Final = b" \t\n\r\x0b\x0c"
_ASSEMBLY_FIELDS: Final = tuple(name for name in AssemblyWire.__struct_fields__ if name != "ordered_blocks")
_ASSEMBLED: Final = attrgetter(*_ASSEMBLY_FIELDS)

PARSE_BYTES = 16 << 20
"""Larger records without raw bodies are parsed only if they hold few values, in bytes."""
PARSE_VALUES = 4_000_000


ACCEPTED = 100
"""Number of version spellings remembered as readable, each reported at most once."""


class Decoder:
    """Decodes the lines of one pass over a trace. Not thread-safe.

    Nesting too deep for the stack raises RecursionError in `decode_all`, wherever it occurs, and is flattened
    there. So the result does not depend on the caller's stack depth.

    `report` is called with every problem. Decoders of one trace may share `memos`.
    """

    def __init__(
        self, contents: Contents, report: Callable[[Problem], None], memos: Memos | None = None
    ) -> None:
        self._contents = contents
        self._report = report
        self._memos = memos if memos is not None else Memos()
        self._items = ItemBuilder(contents, self._memos, self._fault)
        self._line = b""
        self._lineno = 0
        self._offset = 0
        self._accepted: set[str | None] = {migrate.CURRENT}

    def scan(self, buffer: bytes, base: int, line: int) -> tuple[list[Event], int]:
        """Decode every line of `buffer` that ends in a newline.

        `base` is the byte offset of the buffer and `line` the number of the line before it. Returns the
        events and the number of the last line.
        """
        events: list[Event] = []
        push = events.append
        find = buffer.find
        view = memoryview(buffer)
        digest = xxhash.xxh3_128_digest
        known = self._memos.items.young.get
        accepted = self._accepted
        begin = 0
        while (end := find(b"\n", begin)) >= 0:
            line += 1
            stop = end - 1 if buffer[end - 1] == 13 and end > begin else end
            at = find(_DATA, begin, stop)
            if at >= 0:
                item = known(digest(view[at:stop], SEED))
                if item is not None:
                    prefix = buffer[begin:at]
                    try:
                        head = decode_head(prefix + _STUB)
                    except (msgspec.MsgspecError, RecursionError, UnicodeError):
                        head = None
                    if (
                        head is not None
                        and head.event_type in ITEM_EVENTS
                        and head.schema_version in accepted
                        and prefix.isascii()
                    ):
                        push(
                            Event(
                                head.event_type,
                                head.event_id,
                                head.source,
                                head.time,
                                head.context_id,
                                head.session_id,
                                head.thread_id,
                                head.turn_id,
                                head.step_id,
                                item,
                                line,
                                base + begin,
                                stop - begin,
                                head.task_id,
                                head.run_id,
                                head.attempt_id,
                            )
                        )
                        begin = end + 1
                        continue
            if stop > begin:
                events.extend(self.decode_all(buffer[begin:stop], line, base + begin))
            begin = end + 1
        return events, line

    def decode(self, line: bytes, lineno: int, offset: int) -> Event | None:
        """Return the event of one line, or None. Of several records in the line, return the first."""
        events = self.decode_all(line, lineno, offset)
        return events[0] if events else None

    def decode_all(self, line: bytes, lineno: int, offset: int, *, last: bool = False) -> list[Event]:
        """Return all events of one line: one, none if it cannot be read, several if records are concatenated.

        `last` means that the line ends the file without a line end. Never raises for bad input.
        """
        if line.endswith(b"\r"):
            line = line[:-1]
        self._line, self._lineno, self._offset = line, lineno, offset
        try:
            head = decode_head(line)
            if not line.isascii():
                check_around(line, head.data)
            item = None
            if head.event_type in ITEM_EVENTS and head.schema_version in self._accepted:
                item = self._memos.items.young.get(xxhash.xxh3_128_digest(head.data, SEED))
            event = self._event(head, line, offset, len(line), item)
        except msgspec.ValidationError:
            try:
                check_utf8(line)
                event = self._loose(line, offset, len(line))
            except (UnicodeError, RecursionError):
                return self._repaired(line, last)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return self._repaired(line, last) if line.strip() else []
        return [event] if event is not None else []

    def _repaired(self, line: bytes, last: bool) -> list[Event]:
        from ctxctl.trace import salvage

        if not last and self._goes_over_lines(line):
            return []
        body, start, faults = salvage.repair_line(line)
        pieces = [salvage.Piece(body, 0, len(line))]
        exact = body in line
        if not _well_formed(body):
            pieces, more = salvage.split_records(body, start, last=last)
            # After repairs that changed the text's length, a fault has only its line's offset.
            faults += more if exact else [fault._replace(at=start) for fault in more]
        for fault in faults:
            self._report(Problem(self._lineno, self._offset + fault.at, fault.slug, fault.message))
        events = []
        for piece in pieces:
            at, length = (piece.at, piece.length) if exact else (0, len(line))
            event = self._loose(piece.text, self._offset + at, length)
            if event is not None:
                events.append(event)
        return events

    def _goes_over_lines(self, line: bytes) -> bool:
        """Return whether a line's only fault is its place, which is reported."""
        from ctxctl.trace import salvage

        if not salvage.over_lines(line):
            return False
        message = "a JSON value that goes over several lines; a trace has one object a line"
        self._report(Problem(self._lineno, self._offset, "several-lines", message))
        return True

    def _loose(self, text: bytes, offset: int, length: int) -> Event | None:
        """Return the event of an envelope with fields of wrong types; None for a line that is no object."""
        try:
            return self._event(decode_head(text), text, offset, length)
        except msgspec.DecodeError:
            pass
        try:
            loose = decode_loose(text)
        except msgspec.ValidationError:
            if self._goes_over_lines(text):
                return None
            self._fault("not-an-object", "", f"the line is {_kind(text)}, not an event")
            return None
        except msgspec.DecodeError as error:
            self._fault("bad-json", "", f"not valid JSON: {error}")
            return None
        return self._event(self._strict(loose), text, offset, length)

    def _strict(self, loose: LooseHead) -> Head:
        values = {name: getattr(loose, name) for name in LooseHead.__struct_fields__ if name != "data"}
        fields = Fields(values, self._fault, "event")
        kind = values["event_type"]
        head = Head(event_type=kind if isinstance(kind, str) else "", data=loose.data)
        for name in IDS:
            setattr(head, name, fields.ident(name))
        head.schema_version = fields.text("schema_version")
        return head

    def _event(
        self, head: Head, text: bytes, offset: int, length: int, record: Record | None = None
    ) -> Event | None:
        """Return the event of a decoded envelope; `record` if it is known already."""
        if record is None:
            if not head.event_type:
                self._no_event(text)
                return None
            if head.schema_version not in self._accepted:
                upgraded = self._migrated(head, text)
                if upgraded is None:
                    return None
                head, text = upgraded
            record = self._record(head, text)
        return Event(
            head.event_type,
            head.event_id,
            head.source,
            head.time,
            head.context_id,
            head.session_id,
            head.thread_id,
            head.turn_id,
            head.step_id,
            record,
            self._lineno,
            offset,
            length,
            head.task_id,
            head.run_id,
            head.attempt_id,
        )

    def _migrated(self, head: Head, text: bytes) -> tuple[Head, bytes] | None:
        version = head.schema_version
        verdict = migrate.judge_version(version)
        if verdict == "newer":
            message = (
                f"written in format {show(version)}; this ctxctl reads {migrate.CURRENT}; the line is skipped"
            )
            self._fault("newer-version", "schema_version", message)
            return None
        if verdict == "unknown":
            what = "no schema_version" if version is None else f"schema_version {show(version)}"
            message = f"{what}; read as {migrate.CURRENT} (said once for this version)"
            self._fault("no-schema-version", "" if version is None else "schema_version", message)
        if verdict != "older":
            if len(self._accepted) < ACCEPTED:
                self._accepted.add(version)
            return head, text
        text = orjson.dumps(migrate.upgrade_event(parse_json(text)))
        try:
            return decode_head(text), text
        except msgspec.ValidationError:
            return self._strict(decode_loose(text)), text

    def _record(self, head: Head, text: bytes) -> Record | None:
        kind, data = head.event_type, head.data
        if kind not in _KNOWN:
            check_utf8(data)
            return None
        if may_be_elsewhere(kind, data) and (found := record_of(kind, bytes(data), text)) is not None:
            data = Raw(found)
        if kind in ITEM_EVENTS:
            return self._item(data, text)
        raw = bytes(data)
        if raw[:1] != b"{":
            what = f"data is {_kind(raw)}, not an object" if raw else "the event has no data"
            self._fault("bad-field", "data", what)
            return None
        if kind == vocab.ASSEMBLY_CREATED:
            return self._assembly(raw)
        check_utf8(raw)
        if kind == vocab.SUMMARY_CREATED:
            return self._items.summary(raw, self._line, self._offset)
        data_fields = self._parsed(raw)
        if data_fields is None:
            return None
        if kind == vocab.REDACTION_APPLIED and "policy_refs" not in data_fields:
            data_fields["policy_refs"] = parse_json(text).get("policy_refs")
        shallow = not may_nest_deeper(DEPTH_LIMIT, raw)
        return BUILDERS[kind](Fields(data_fields, self._fault, shallow=shallow))

    def _item(self, data: Raw, text: bytes) -> Item | None:
        """Return the item of `data`, cached by its bytes, and with its key if it ends the line."""
        raw = bytes(data)
        if raw[:1] != b"{":
            what = f"data is {_kind(raw)}, not an object" if raw else "the event has no data"
            self._fault("bad-field", "data", what)
            return None
        key = xxhash.xxh3_128_digest(raw, SEED)
        item = self._items.known(key, self._offset)
        if item is None:
            check_utf8(raw)
            item = self._items.build(key, raw, self._line, self._offset)
        if item is not None and text is self._line and self._items.memos.items.young.get(key) is item:
            at = text.find(_DATA)
            if at >= 0 and _ends_with(text, at + len(_DATA), raw):
                self._memos.items.put(xxhash.xxh3_128_digest(memoryview(text)[at:], SEED), item)
        return item

    def _assembly(self, raw: bytes) -> Record | None:
        try:
            wire = decode_assembly(raw)
        except msgspec.DecodeError:
            check_utf8(raw)
            data = self._parsed(raw)
            if data is None:
                return None
            fields = Fields(data, self._fault)
            rows = [orjson.dumps(row) for row in fields.rows("ordered_blocks")]
        else:
            check_around_blocks(raw, wire.ordered_blocks)
            shallow = not may_nest_deeper(DEPTH_LIMIT, raw)
            fields = Fields(
                dict(zip(_ASSEMBLY_FIELDS, _ASSEMBLED(wire), strict=True)), self._fault, shallow=shallow
            )
            rows = wire.ordered_blocks  # type: ignore[assignment]
        return assembly(fields, self._items.blocks(rows, self._line, self._offset))

    def _parsed(self, raw: bytes) -> dict[str, Any] | None:
        if len(raw) > PARSE_BYTES and raw.count(b",") + raw.count(b"[") + raw.count(b"{") > PARSE_VALUES:
            self._fault(
                "record-too-large", "data", f"a record of {len(raw)} bytes and millions of values; skipped"
            )
            return None
        try:
            data = parse_json(raw)
        except ValueError as error:
            self._fault("bad-json", "data", f"the record cannot be read: {error}")
            return None
        return data if isinstance(data, dict) else None

    def _no_event(self, text: bytes) -> None:
        try:
            keys = list(parse_json(text))
        except (ValueError, RecursionError):
            keys = []
        named = f" (its keys: {named_keys(keys)}{', ...' if len(keys) > 6 else ''})" if keys else ""
        self._fault("not-an-event", "", f"JSON, but no context_event: it has no event_type{named}")

    def _fault(self, slug: str, key: str, message: str) -> None:
        """Report a problem of the current line, at the place of `key` if it can be found."""
        at = max(0, self._line.find(b'"%b"' % key.encode("utf-8", "replace"))) if key else 0
        self._report(Problem(self._lineno, self._offset + at, slug, message))


def parse_line(line: bytes) -> dict[str, Any] | None:
    """Return a line as a plain object in the current format, damage repaired; None if that is impossible."""
    from ctxctl.trace import salvage

    body, start, _ = salvage.repair_line(line)
    if not _well_formed(body):
        pieces, _ = salvage.split_records(body, start, last=False)
        body = pieces[0].text if pieces else b""
    try:
        value = parse_json(body)
    except (ValueError, RecursionError):
        return None
    return migrate.upgrade_event(value) if isinstance(value, dict) else None


def _ends_with(text: bytes, at: int, raw: bytes) -> bool:
    """Return whether only `raw` and the end of its object follow `at`, without copying either."""
    end = len(text.rstrip()) - 1
    if text[end : end + 1] != b"}":
        return False
    while at < end and text[at] in _SPACES:
        at += 1
    while at < end and text[end - 1] in _SPACES:
        end -= 1
    return end - at == len(raw) and text.startswith(raw, at)


def _well_formed(body: bytes) -> bool:
    try:
        decode_loose(body)
    except msgspec.ValidationError:
        return True
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _kind(text: bytes) -> str:
    first = text.lstrip()[:1]
    if first == b"[":
        return "an array"
    if first == b'"':
        return "a string"
    return "an object" if first == b"{" else "a bare value"
