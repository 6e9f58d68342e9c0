"""What the example traces are written with: a clock, event envelopes, and windows that know their tokens.

The kit does its own sums on purpose.  What a budget record declares comes from here and not from the
engine, so a test can hold one against the other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from ctxctl.tokens.counter import Counter

VERSION = "0.1.1"
ENCODING = "o200k_base"
INLINE = 64
"""Bytes below which a repeated content is written again instead of referred to."""
HERE = Path(__file__).parent

Data = dict[str, Any]

_counter = Counter(ENCODING, None)


def count(text: str) -> int:
    """Tokens of a text in o200k_base."""
    return _counter.count(text)[0]


def sha256(text: str) -> str:
    """Hex digest of a text's UTF-8 bytes."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Piece:
    """One item as an assembly block renders it."""

    ref: str
    text: str
    before: str = ""
    after: str = ""
    segment: str | None = None
    role: str | None = None
    cut: str | None = None
    """The text that is left, where the block was cut to fit."""

    @property
    def rendered(self) -> str:
        """What the model reads."""
        return self.before + (self.cut if self.cut is not None else self.text) + self.after

    def block(self, number: int) -> Data:
        """The piece as an assembly block."""
        block: Data = {"block_id": f"b{number}", "item_refs": [self.ref]}
        if self.before or self.after:
            block["wrapper"] = {"before": self.before, "after": self.after}
        if self.cut is not None:
            block["content"] = self.cut
        marks: Data = {}
        if self.segment is not None:
            marks["segment"] = self.segment
        if self.role is not None:
            marks["role"] = self.role
        if self.cut is not None:
            marks["truncated"] = True
        if marks:
            block["metadata"] = {"ctxctl": marks}
        return block


def tokens(pieces: Iterable[Piece]) -> int:
    """Tokens of all pieces, wrappers included, separators not."""
    return sum(count(piece.rendered) for piece in pieces)


class Scribe:
    """Collects the events of one session in line order."""

    def __init__(self, source: str, session: str, start: str, prefix: str) -> None:
        self.source = source
        self.session = session
        self.prefix = prefix
        self.clock = datetime.fromisoformat(start).replace(tzinfo=UTC)
        self.lines: list[Data] = []
        self.thread: str | None = None
        self.turn: str | None = None
        self.step: str | None = None
        self._numbers: dict[str, int] = {}
        self._inlined: set[str] = set()

    def now(self) -> str:
        """The session's clock, RFC 3339 with milliseconds."""
        return self.clock.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.clock += timedelta(seconds=seconds)

    def number(self, name: str) -> str:
        """The next id `name-N`."""
        self._numbers[name] = self._numbers.get(name, 0) + 1
        return f"{name}-{self._numbers[name]}"

    def event(self, event_type: str, data: Data, **envelope: Any) -> Data:
        """Append one event; `envelope` adds or overrides fields beside `data`."""
        self.wait(0.04)
        line: Data = {
            "schema_version": VERSION,
            "event_id": f"{self.prefix}-{len(self.lines) + 1:04d}",
            "event_type": event_type,
            "source": self.source,
            "time": self.now(),
            "session_id": self.session,
        }
        for name, value in (("thread_id", self.thread), ("turn_id", self.turn), ("step_id", self.step)):
            if value is not None:
                line[name] = value
        line.update(envelope)
        line["data"] = {"schema_version": VERSION, **data}
        self.lines.append(line)
        return line

    def record(self, event_type: str, name: str, data: Data, **envelope: Any) -> str:
        """Append an event whose record has an id and a creation time; returns the id."""
        key = f"{name}_id"
        ident = str(data.pop(key, None) or self.number(name))
        self.event(event_type, {key: ident, **data, "created_at": self.now()}, **envelope)
        return ident

    def item(self, item_id: str, kind: str, text: str | None, *, how: str = "added", **more: Any) -> str:
        """Append `context.item.added` or `.updated`; returns the id.  `text=None` is an opaque item."""
        data: Data = {"item_id": item_id, "context_kind": kind}
        if more.get("title"):
            data["title"] = more.pop("title")
        data |= self.content(text)
        data["visibility"] = more.pop("visibility", ["model"])
        envelope = more.pop("envelope", {})
        self.event(f"context.item.{how}", {**data, **more}, **envelope)
        return item_id

    def content(self, text: str | None) -> Data:
        """The content fields of a record: a text stands in the trace once, later it is a reference."""
        if text is None:
            return {"content_mode": "opaque"}
        digest = sha256(text)
        if digest in self._inlined and len(text.encode()) >= INLINE:
            return {"content_mode": "ref", "content_ref": f"sha256:{digest}"}
        self._inlined.add(digest)
        return {"content_mode": "inline", "content": text}

    def remove(self, item_id: str, cause: str) -> None:
        """Append `context.item.removed`."""
        self.event("context.item.removed", {"item_id": item_id, "metadata": {"cause": cause}})

    def inject(self, assembly: str, point: str, **more: Any) -> None:
        """Append the injection of an assembly into the model's request."""
        self.record(
            "context.injection.applied", "injection",
            {"assembly_id": assembly, "target": "model", "injection_point": point,
             "visibility": ["model"], **more},
        )  # fmt: skip

    def usage(self, **fields: Any) -> None:
        """Append what the provider billed for the step."""
        self.event("ctxctl.usage.reported", {k: v for k, v in fields.items() if v is not None})

    def write(self, name: str) -> None:
        """Write the trace beside this file, one event a line."""
        path = HERE / name
        body = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.lines)
        path.write_text(body, encoding="utf-8", newline="\n")
        print(f"{name}: {len(self.lines)} events, {path.stat().st_size} bytes")  # noqa: T201


class Window:
    """The window of one thread whose requests carry everything: assemblies as splices of the one before."""

    def __init__(self, scribe: Scribe, thread: str) -> None:
        self.scribe = scribe
        self.thread = thread
        self.pieces: list[Piece] = []
        self.last: str | None = None
        self._sent: list[Piece] = []
        self._made = 0

    @property
    def used(self) -> int:
        """Tokens in the window now."""
        return tokens(self.pieces)

    def assemble(self, **more: Any) -> str:
        """Append the assembly of the present window and return its id."""
        changes = SequenceMatcher(None, self._sent, self.pieces, autojunk=False).get_opcodes()
        splices = [(i, j - i, m, n) for tag, i, j, m, n in changes if tag != "equal"]
        fresh = [piece for _, _, m, n in splices for piece in self.pieces[m:n]]
        numbers = range(self._made, self._made + len(fresh))
        self._made += len(fresh)
        marks: Data = {"mode": "window", **more.pop("ctxctl", {})}
        if self.last is not None:
            marks |= {"base": self.last, "splices": [[at, gone, n - m] for at, gone, m, n in splices]}
        self._sent = list(self.pieces)
        self.last = self.scribe.record(
            "context.assembly.created", "assembly",
            {"target": "model",
             "ordered_blocks": [p.block(n) for p, n in zip(fresh, numbers, strict=True)],
             "separator_policy": "message", "visibility": ["model"], "metadata": {"ctxctl": marks}, **more},
        )  # fmt: skip
        return self.last
