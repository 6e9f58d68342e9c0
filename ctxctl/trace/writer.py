"""Write `context_event` lines that validate against the Agent Context schemas, each content inline once."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import IO, Any

import orjson

from ctxctl.errors import CtxctlError, UnreadableError
from ctxctl.model import vocab
from ctxctl.model.known_text import KnownText
from ctxctl.model.problem import Problem
from ctxctl.trace.contents import PARSE_BYTES, digest_of_raw
from ctxctl.trace.depth import DEPTH_LIMIT, nests_deeper
from ctxctl.trace.encode import FIRST, REF_FROM, TELL_AGAIN, InvalidEventError, line_of, without_surrogates
from ctxctl.trace.validate import RECORD_SCHEMAS, validate_event

_ITEM_EVENTS = (vocab.ITEM_ADDED, vocab.ITEM_UPDATED)
_DATED = frozenset(RECORD_SCHEMAS) - {*_ITEM_EVENTS} | {vocab.INJECTION_APPLIED, vocab.SUMMARY_CREATED}
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class TraceWriter:
    """Appends events to a file (created 0600, never through a symlink) or to an open binary file.

    Each line is one `os.write`, so that several writers of a local file do not interleave.  A line left
    unfinished by a killed writer is closed first.  Thread-safe.

    Args:
        target: Path, or a binary file that stays open (flushed by `close`).
        source: `source` of events that have none.
        clock: Returns `time` (RFC 3339) for events that have none.
        prefix: Start of generated event ids; None: random for a path, which other runs may write to;
            `source` for an open file, so that an import always writes the same bytes.
        report: Called with problems of events that cannot be written; without it, `write` raises.
    """

    def __init__(
        self,
        target: str | Path | IO[bytes],
        *,
        source: str = "ctxctl",
        clock: Callable[[], str] | None = None,
        prefix: str | None = None,
        report: Callable[[Problem], None] | None = None,
    ) -> None:
        self._source = source
        self._clock = clock
        by_path = isinstance(target, str | Path)
        self._prefix = prefix if prefix is not None else secrets.token_hex(8) if by_path else source
        self._report = report
        self._lock = Lock()
        self._shown: dict[str, int] = {}
        self.written = 0
        """Bytes written by this writer."""
        self.events = 0
        """Events written by this writer."""
        self._made = 0
        self._fd: int | None = None
        self._file: IO[bytes] | None = None
        if isinstance(target, str | Path):
            self._fd = _open(target)
        else:
            self._file = target

    def write(self, event: dict[str, Any]) -> bool:
        """Append one event, without modifying the argument. Return False if it was reported instead.

        Fills in `schema_version`, `event_id`, `source`, `time` and what a record's schema requires and the
        event implies.  Unknown fields are kept.

        Raises:
            CtxctlError: `invalid-event` (unless `report` takes it), `write-failed`.
        """
        with self._lock:
            try:
                line, shown = self._encode(event)
            except InvalidEventError as error:
                return self._refuse(event, str(error))
            self._append(line)
            for digest in shown:
                self._shown[digest] = self.written
            self.written += len(line)
            self.events += 1
            if len(self._shown) > TELL_AGAIN // 512:
                self._forget()
            return True

    def state(self) -> tuple[dict[str, int], int, int, int]:
        """Return the state for `go_on`."""
        return dict(self._shown), self.written, self.events, self._made

    def go_on(self, state: tuple[dict[str, int], int, int, int]) -> None:
        """Continue after another writer with this state."""
        with self._lock:
            self._shown, self.written, self.events, self._made = state

    def back(self, written: int) -> None:
        """Note that the file's owner removed everything after `written` bytes, so that it was not shown."""
        with self._lock:
            self._shown = {digest: at for digest, at in self._shown.items() if at < written}
            self.written = written

    def close(self) -> None:
        """Close the file if this writer opened it, else flush it."""
        with self._lock:
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None
            if self._file is not None and not self._file.closed:
                self._file.flush()

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _encode(self, event: dict[str, Any]) -> tuple[bytes, list[str]]:
        """Return the line, and the digests that it has inline."""
        event = self._complete(event)
        shown: list[str] = []
        data = event.get("data")
        if isinstance(data, dict):
            event["data"] = self._with_refs(event["event_type"], data, shown)
        line, event = line_of(event)
        faults = validate_event(event)
        if faults:
            raise InvalidEventError("; ".join(faults))
        return line, shown

    def _complete(self, event: dict[str, Any]) -> dict[str, Any]:
        """Return the event with required fields added, in the order of writing: `data` last."""
        kind = event.get("event_type")
        if not isinstance(kind, str) or not kind:
            raise InvalidEventError("event_type is missing")
        full: dict[str, Any] = dict.fromkeys(FIRST)
        full.update(event)
        full["schema_version"] = vocab.SCHEMA_VERSION
        if not full["source"]:
            full["source"] = self._source
        if not full["time"]:
            full["time"] = self._clock() if self._clock is not None else None
        if full["event_id"] is None:
            self._made += 1
            full["event_id"] = f"{self._prefix}-{self._made:06d}"
        if None in full.values():
            full = {name: value for name, value in full.items() if value is not None}
        data = full.pop("data", None)
        if isinstance(data, dict):
            full["data"] = _complete_record(kind, data, full.get("time"))
        elif data is not None:
            raise InvalidEventError("data is not an object")
        return full

    def _with_refs(self, kind: str, data: dict[str, Any], shown: list[str]) -> dict[str, Any]:
        if kind in _ITEM_EVENTS or kind == vocab.SUMMARY_CREATED:
            data = self._referred(data, shown)
            if "content_ref" in data and data.get("content_mode") == "inline":
                data["content_mode"] = "ref"
        elif kind == vocab.ASSEMBLY_CREATED and isinstance(blocks := data.get("ordered_blocks"), list):
            # Blocks rarely have a content of their own.
            data["ordered_blocks"] = [
                self._referred(b, shown) if isinstance(b, dict) and "content" in b else b for b in blocks
            ]
        return data

    def _referred(self, holder: dict[str, Any], shown: list[str]) -> dict[str, Any]:
        """Return `holder` with its content replaced by a reference, if a recent line has it inline."""
        content = holder.get("content")
        if content is None or "content_ref" in holder or isinstance(content, int | float):
            return holder
        digest = _digest(content)
        if digest is None:
            return holder
        at = self._shown.get(digest)
        if digest in shown or (at is not None and self.written - at < TELL_AGAIN):
            if digest in shown:
                return holder
            holder = dict(holder)
            del holder["content"]
            holder["content_ref"] = f"sha256:{digest}"
            return holder
        shown.append(digest)
        return holder

    def _forget(self) -> None:
        oldest = self.written - TELL_AGAIN
        self._shown = {digest: at for digest, at in self._shown.items() if at > oldest}

    def _refuse(self, event: dict[str, Any], why: str) -> bool:
        name = event.get("event_id") or event.get("event_type") or "without a type"
        message = f"event {without_surrogates(str(name))[:80]} cannot be written: {without_surrogates(why)}"
        if self._report is None:
            raise CtxctlError("invalid-event", message)
        metadata = event.get("metadata")
        own = metadata.get("ctxctl") if isinstance(metadata, dict) else None
        line = own.get("source_line", 0) if isinstance(own, dict) else 0
        self._report(Problem(line if isinstance(line, int) else 0, 0, "invalid-event", message))
        return False

    def _append(self, line: bytes) -> None:
        if self._file is not None:
            self._file.write(line)
            return
        if self._fd is None:
            raise CtxctlError("write-failed", "the writer is closed")
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError as error:
            if len(rest) < len(line):
                _heal(self._fd)
            raise CtxctlError("write-failed", f"cannot write the trace: {error.strerror}") from None


def _open(path: str | Path) -> int:
    try:
        fd = os.open(path, _FLAGS, 0o600)
    except OSError as error:
        raise UnreadableError("not-writable", f"cannot write {path}: {error.strerror}") from None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise UnreadableError("not-a-regular-file", f"cannot write {path}: not a regular file")
        _heal(fd)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _heal(fd: int) -> None:
    """Close an unfinished line. Otherwise the next record would be appended to it and both lost."""
    try:
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":
            os.write(fd, b"\n")
    except OSError:
        pass


def _complete_record(kind: str, data: dict[str, Any], time: Any) -> dict[str, Any]:
    record = {"schema_version": vocab.SCHEMA_VERSION, **data}
    record["schema_version"] = vocab.SCHEMA_VERSION
    if kind in _DATED and record.get("created_at") is None and time is not None:
        record["created_at"] = time
    if kind in _ITEM_EVENTS:
        record.setdefault("context_kind", "custom")
        if record.get("content_mode") is None:
            inline = record.get("content") is not None
            record["content_mode"] = "inline" if inline else "ref" if record.get("content_ref") else "opaque"
        record.setdefault("visibility", [])
    return record


def _digest(content: Any) -> str | None:
    """Return the digest by which readers know the content; None if it should stay inline."""
    if isinstance(content, str):
        try:
            if isinstance(content, KnownText):
                size, digest = content.size_and_digest()
                return digest if size >= REF_FROM else None
            data = content.encode()
        except UnicodeEncodeError:
            return None
        return hashlib.sha256(data).hexdigest() if len(data) >= REF_FROM else None
    try:
        raw = orjson.dumps(content)
    except orjson.JSONEncodeError:
        return None
    if len(raw) < REF_FROM or len(raw) > PARSE_BYTES or nests_deeper(DEPTH_LIMIT, content):
        return None
    return digest_of_raw(raw)
