"""Decodes only what an index needs: envelopes, and of assemblies and injections the ids and targets."""

from __future__ import annotations

import msgspec
import xxhash

from ctxctl.model import vocab
from ctxctl.model.event import Event
from ctxctl.model.records import Assembly, Injection, Record
from ctxctl.trace import migrate
from ctxctl.trace.contents import SEED, Contents
from ctxctl.trace.decode import Decoder
from ctxctl.trace.memo import Memo
from ctxctl.trace.source import Source
from ctxctl.trace.wire import Head, decode_head

_DATA = b'"data":'
_STUB = b'"data":0}'
_WITH_RECORD = frozenset({vocab.ASSEMBLY_CREATED, vocab.INJECTION_APPLIED})


class _OursHead(msgspec.Struct, gc=False):
    mode: str | None = None


class _MetadataHead(msgspec.Struct, gc=False):
    ctxctl: _OursHead | None = None


class _AssemblyHead(msgspec.Struct, gc=False):
    assembly_id: str | None = None
    target: str = vocab.MODEL
    metadata: _MetadataHead | None = None


class _InjectionHead(msgspec.Struct, gc=False):
    injection_id: str | None = None
    assembly_id: str | None = None
    target: str = vocab.MODEL
    injection_point: str | None = None


_decode_assembly = msgspec.json.Decoder(_AssemblyHead).decode
_decode_injection = msgspec.json.Decoder(_InjectionHead).decode


_MIN_REPEAT_BYTES = 1024
"""Bytes below which reading a record is cheaper than checking for a repeat."""


class HeaderDecoder:
    """Counterpart of `Decoder.scan` for an index. It stores no contents of the trace."""

    def __init__(self, source: Source) -> None:
        self._full = Decoder(Contents(source), lambda _problem: None)
        self._tails: Memo[bool] = Memo()

    def scan(self, buffer: bytes, base: int, line: int) -> tuple[list[Event], int]:
        """Like `Decoder.scan`; records are None except for assemblies and injections."""
        events: list[Event] = []
        find = buffer.find
        view = memoryview(buffer)
        digest = xxhash.xxh3_128_digest
        known = self._tails.young.get
        begin = 0
        while (end := find(b"\n", begin)) >= 0:
            line += 1
            at = find(_DATA, begin, end)
            if end - at < _MIN_REPEAT_BYTES:
                at = -1
            try:
                if at >= 0 and known(digest(view[at:end], SEED)):
                    head = decode_head(buffer[begin:at] + _STUB)
                else:
                    head = decode_head(view[begin:end])
                    if at >= 0 and _ends_line(head, buffer, at, end):
                        self._tails.put(digest(view[at:end], SEED), True)
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                events.extend(self._damaged(buffer[begin:end], line, base + begin))
            else:
                wanted = head.event_type in _WITH_RECORD
                record = _record(head) if wanted else None
                sound = record is not None or not wanted
                if sound and head.event_type and head.schema_version == migrate.CURRENT:
                    length = end - begin - (buffer[end - 1] == 13)
                    events.append(_event(head, record, line, base + begin, length))
                else:
                    events.extend(self._damaged(buffer[begin:end], line, base + begin))
            begin = end + 1
        return events, line

    def _damaged(self, data: bytes, line: int, offset: int) -> list[Event]:
        if b"{" not in data:
            return []  # no object even after repairs; the decoder reports the fault
        events = self._full.decode_all(data, line, offset)
        for event in events:
            if not isinstance(event.record, Assembly | Injection):
                event.record = None
        return events


def _ends_line(head: Head, buffer: bytes, at: int, end: int) -> bool:
    """Return whether the line ends right after `data`, and has no record that the index needs."""
    if head.event_type in _WITH_RECORD:
        return False
    raw = bytes(head.data)
    body = buffer[at + len(_DATA) : end].strip()
    return bool(raw) and body.endswith(b"}") and body[:-1].rstrip() == raw


def _record(head: Head) -> Record | None:
    try:
        if head.event_type == vocab.ASSEMBLY_CREATED:
            assembly = _decode_assembly(head.data)
            ours = assembly.metadata.ctxctl if assembly.metadata is not None else None
            mode = ours.mode if ours is not None else None
            if assembly.assembly_id is None:
                return None  # its record may be elsewhere
            return Assembly(assembly.assembly_id, assembly.target, mode=mode)
        injection = _decode_injection(head.data)
        if injection.injection_id is None and injection.assembly_id is None:
            return None
        return Injection(
            injection.injection_id, injection.assembly_id, injection.target, injection.injection_point
        )
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _event(head: Head, record: Record | None, line: int, offset: int, length: int) -> Event:
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
        line,
        offset,
        length,
        head.task_id,
        head.run_id,
        head.attempt_id,
    )
