"""Makes the `context_event` records that importers yield (Agent Context 0.1.1, DESIGN section 2)."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from hashlib import sha256
from math import inf
from typing import Any, NamedTuple, Protocol

import orjson

from ctxctl.listdiff import Splice
from ctxctl.model import vocab
from ctxctl.model.known_text import KnownText

Json = dict[str, Any]

EPOCH = vocab.NO_TIME
"""The time of events where a file gives none at all; such events carry `metadata.ctxctl.time = "unknown"`."""
VERSION_DIGITS = 16
_VERSION = vocab.SCHEMA_VERSION
_EPOCH_DIGITS = range(10, 14)
"""Lengths of seconds or milliseconds since 1970 that are written as text."""
_LONGEST_VERSION = 40
"""The most characters of a client's version."""
_TIME = re.compile(
    r"\d{4}-(?:0\d|1[0-2])-(?:[0-2]\d|3[01])[Tt ](?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?"
    r"(?P<zone>[Zz]|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?\Z",
    re.ASCII,
)


def digest_of(text: str) -> str:
    """SHA-256 hex digest of a text's UTF-8 bytes; lone surrogates count as U+FFFD."""
    try:
        if isinstance(text, KnownText):
            return text.size_and_digest()[1]
        data = text.encode()
    except UnicodeEncodeError:
        data = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
    return sha256(data).hexdigest()


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces; the text of structured content (DESIGN section 2)."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return repr(value)
    except RecursionError:
        return "(nested too deep)"


def timestamp(value: Any) -> str | None:
    """A native timestamp as RFC 3339, or None if it is not one, or names a day that no calendar has."""
    if not isinstance(value, str):
        return None
    if len(value) == 24 and value[10] == "T" and value[19] == "." and value[23] == "Z":
        # The usual spelling; the parser in C costs a tenth of the pattern.
        try:
            datetime.fromisoformat(value)
        except ValueError:
            pass  # a leap second, or none at all
        else:
            return value
    match = _TIME.match(value)
    if match is None:
        return moment(int(value)) if value.isdecimal() and len(value) in _EPOCH_DIGITS else None
    try:
        date.fromisoformat(value[:10])
    except ValueError:
        return None
    zone: str | None = match.group("zone")
    text = value.replace(" ", "T")
    if zone is None:
        return text + "Z"
    return f"{text[:-2]}:{text[-2:]}" if len(zone) == 5 else text


def moment(value: Any) -> str | None:
    """A native time as RFC 3339: text as it is, seconds or milliseconds since 1970 converted to UTC."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str):
        return value if value[:1].isdigit() else _of_mail(value)
    if not 0 < value < 2**33 * 1000:  # an integer may be too large for a float
        return None
    seconds = value / 1000 if value > 1e11 else float(value)
    if seconds >= 2**33:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _of_mail(value: str) -> str | None:
    """A date as HTTP headers and Ruby's cassettes have it."""
    # Slow to import, and needed by few captures.
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(value).isoformat()
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


class Place(NamedTuple):
    """The thread, turn and step that an event belongs to; None leaves it to the line order (DESIGN section
    2)."""

    session: str | None = None
    thread: str | None = None
    turn: str | None = None
    step: str | None = None


class Block(NamedTuple):
    """One block of an assembly; equal blocks are the same placement."""

    ref: str
    """`ID@VERSION`, or `ID` where the version is not known."""
    item: str
    role: str
    truncated: bool = False
    before: str = ""
    """Text of the request in front of the item, which is no part of it (a separator, an opening tag)."""
    segment: str = ""
    """The window segment, where it is not that of the item's kind."""
    wire: str = ""
    """JSON: where it stands in the request's body (`providers.dialects.slots`); empty where that is not
    known."""
    sent: str = ""
    """The text as it was sent, where the item was told in another rendering of the same version."""

    def record(self) -> Json:
        """The block as it stands in `ordered_blocks`."""
        ref, item, role, truncated, before, segment, wire, sent = self
        made: Json = {"block_id": item, "item_refs": [ref], "role": role}
        if not (sent or before or segment or truncated or wire):
            return made
        if sent:
            made["content"] = sent
        if before:
            made["wrapper"] = {"before": before}
        if segment:
            made["segment"] = segment
        if truncated or wire:
            ours: Json = {"truncated": True} if truncated else {}
            if wire:
                ours["wire"] = orjson.loads(wire)
            made["metadata"] = {"ctxctl": ours}
        return made


def block(fields: tuple[str, str, str, bool, str, str, str, str]) -> Block:
    """A block of all its fields; a named tuple's own constructor takes twice as long."""
    return tuple.__new__(Block, fields)


class _WorkAccount(Protocol):
    most_work: float


class _Unbounded:
    most_work: float = inf


class TooMuchWorkError(Exception):
    """A capture goes back to its earlier windows so often that the import ends amid a record."""

    def __init__(self, made: list[Json]) -> None:
        self.made = made
        """Events that were made before and not yet handed on."""


class Maker:
    """Makes the events of one import: numbers them, gives them times, and says which line each is from."""

    def __init__(self, source: str, prefix: str) -> None:
        self.source = source
        """The event's `source`: the runtime's name."""
        self._time = EPOCH
        self._native: Any = None
        self.file: str | None = None
        """Name of a sibling file that is being read; None for the file that was opened."""
        self.client: str | None = None
        """Version of the client that wrote what is being read, as it says."""
        self._prefix = prefix
        self.count = 0
        """Events made so far."""
        self._names_sessions = False
        """Some event so far names its session."""
        self.work = 0
        """Placements looked at so far because a record asked for a window that is not the one before it."""
        self.account: _WorkAccount = _Unbounded()
        """Says how much of that there may be."""
        self.waiting: list[Json] = []
        """Events made and not yet handed on, where somebody (`Run`) keeps them."""

    def count_work(self, looked: int) -> None:
        """Count placements that are looked at again.

        Raises TooMuchWorkError beyond what one record can need after all that came before (`Run.records` ends
        before it at the end of a record); `capture_events` tells of it.
        """
        self.work += looked
        if self.work > self.account.most_work:
            raise TooMuchWorkError(self.waiting)

    def by(self, version: Any) -> None:
        """Take over the client's version from a line if it has one: a text, or the number of a schema."""
        if version is None or version == self.client:
            return  # the same object stays, so that readers can ask for that
        if isinstance(version, int) and not isinstance(version, bool):
            version = str(version)
        if version != self.client and isinstance(version, str) and 0 < len(version) <= _LONGEST_VERSION:
            self.client = version

    def at(self, value: Any) -> None:
        """Take over a line's native timestamp if it is one."""
        if isinstance(value, str) and value[:1].isdigit():
            self._native = value
        elif isinstance(value, int | float) and (told := moment(value)) is not None:
            self._native = told

    @property
    def time(self) -> str:
        """The time of the line that is being read; the last valid one where a line has none."""
        if self._native is not None:
            self._time = timestamp(self._native) or self._time
            self._native = None
        return self._time

    def event(
        self, event_type: str, data: Json, place: Place, line: int = 0, *, time: str | None = None
    ) -> Json:
        """A complete event; `line` is the foreign file's, 0 where there is none."""
        count = self.count = self.count + 1
        if not time:
            time = self.time if self._native is not None else self._time
        session, thread, turn, step = place
        made: Json = {
            "schema_version": _VERSION,
            "event_id": f"{self._prefix}{count}",
            "event_type": event_type,
            "source": self.source,
            "time": time,
        }
        if session is not None:
            made["session_id"] = session
            self._names_sessions = True
        elif self._names_sessions:
            # Without an id the event would be of the session that was named last.
            made["session_id"] = vocab.UNNAMED_SESSION
        if thread is not None:
            made["thread_id"] = thread
        if turn is not None:
            made["turn_id"] = turn
        if step is not None:
            made["step_id"] = step
        made["data"] = data
        if line and self.file is None and time != EPOCH:
            made["metadata"] = {"ctxctl": {"source_line": line}}
            return made
        ctxctl: Json = {}
        if line:
            ctxctl["source_line"] = line
        if self.file is not None:
            ctxctl["source_file"] = self.file
        if time == EPOCH:
            ctxctl["time"] = "unknown"
        if ctxctl:
            made["metadata"] = {"ctxctl": ctxctl}
        return made

    def record(self, **fields: Any) -> Json:
        """A record with the two fields that nearly every schema requires; None values are left out."""
        made: Json = {"schema_version": vocab.SCHEMA_VERSION}
        for name, value in fields.items():
            if value is not None:
                made[name] = value
        made["created_at"] = self.time
        return made


class Window:
    """The window of one thread: turns edits into assemblies that cost what changed.

    The first assembly lists the whole window; later ones name it as base and list only the new blocks, with
    `splices` [at, removed, inserted] that count in the base's own block list, ascending, without overlap.
    """

    def __init__(self) -> None:
        self.assembly_id: str | None = None
        self._client: str | None = None
        """The client's version as it was told last."""
        self._settings: Json | None = None
        """The request's parameters as they were told last."""

    def assemble(
        self,
        make: Maker,
        assembly_id: str,
        edits: list[Splice[Block]],
        *,
        model: str | None = None,
        settings: Json | None = None,
        **ctxctl: Any,
    ) -> Json:
        """The `context_assembly` of the window after `edits`; `ctxctl` goes to `metadata.ctxctl`.

        `settings`: the request's parameters that a prompt cache hangs on; told where they have changed.
        """
        meta: Json = {"mode": "window"}
        for name, value in ctxctl.items():
            if value is not None:
                meta[name] = value
        if model is not None:
            meta["model"] = model
        if make.client is not None and make.client != self._client:
            meta["client_version"] = self._client = make.client
        if settings is not None and settings != self._settings:
            meta["request"] = self._settings = settings
        if self.assembly_id is not None:
            meta["base"] = self.assembly_id
            meta["splices"] = [[at, removed, len(inserted)] for at, removed, inserted in edits]
        self.assembly_id = assembly_id
        return {
            "schema_version": vocab.SCHEMA_VERSION,
            "assembly_id": assembly_id,
            "target": vocab.MODEL,
            "ordered_blocks": [one.record() for _, _, inserted in edits for one in inserted],
            "visibility": [vocab.MODEL],
            "metadata": {"ctxctl": meta},
            "created_at": make.time,
        }


def bare_item(item_id: str, kind: str, text: str | None) -> Json:
    """A `context_item` with its text inline, visible to the model; opaque without one."""
    if text is None:
        return {
            "schema_version": _VERSION,
            "item_id": item_id,
            "context_kind": kind,
            "content_mode": "opaque",
            "visibility": [vocab.MODEL],
        }
    return {
        "schema_version": _VERSION,
        "item_id": item_id,
        "context_kind": kind,
        "content_mode": "inline",
        "content": text,
        "visibility": [vocab.MODEL],
    }


def text_item(item_id: str, kind: str, text: str, **fields: Any) -> Json:
    """As `bare_item`, with further fields; None fields are left out."""
    made = bare_item(item_id, kind, text)
    for name, value in fields.items():
        if value is not None:
            made[name] = value
    return made


def opaque_item(item_id: str, kind: str, version: str | None, **fields: Any) -> Json:
    """A `context_item` whose text the file does not hold (an image, a reminder of unrecorded wording)."""
    made = bare_item(item_id, kind, None)
    for name, value in fields.items():
        if value is not None:
            made[name] = value
    if version is not None:
        made["metadata"] = {**made.get("metadata", {}), "version": version}
    return made


def injection(
    make: Maker, injection_id: str, assembly_id: str, point: str, *, native_id: str | None,
    model: str | None, marks: Json | None = None,
) -> Json:  # fmt: skip
    """The record of an injection into the model's request; `marks`: its `metadata.ctxctl`."""
    made: Json = {
        "schema_version": vocab.SCHEMA_VERSION,
        "injection_id": injection_id,
        "assembly_id": assembly_id,
        "target": vocab.MODEL,
        "injection_point": point,
    }
    if native_id is not None:
        made["native_id"] = native_id
    made["visibility"] = [vocab.MODEL]
    if model is not None or marks:
        made["metadata"] = {}
        if model is not None:
            made["metadata"]["model"] = model
        if marks:
            made["metadata"]["ctxctl"] = dict(marks)
    made["created_at"] = make.time
    return made
