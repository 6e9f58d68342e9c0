"""Turns what a caller passed into entries of the journal, for a recorder, its turns and its steps.

It keeps the last assembly of each thread, so that only the changes of the next one are written.  Every record
is made valid by its schema: a field of the wrong type is set aside.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.listdiff import forward, splices
from ctxctl.model import vocab
from ctxctl.record import values
from ctxctl.record.bills import bill_of
from ctxctl.record.journal import Journal, Result
from ctxctl.record.place import Place, id_text
from ctxctl.record.queue import Entry, PreparedContent
from ctxctl.record.redact import FoundSecrets, SecretRedactor, stubs_in
from ctxctl.record.seams import Follower
from ctxctl.record.sink import Sink

VERSION_DIGITS: Final = 16
_TEXT_ITEM: Final = (
    b'{"schema_version":"%b","item_id":%%b,"context_kind":%%b,"visibility":["model"]}'
    % vocab.SCHEMA_VERSION.encode()
)
UNNAMED: Final = "ctxctl.record.unnamed"
"""Type of an event whose own type cannot be written as a name."""
_OF_SEALED: Final = frozenset(
    (vocab.INJECTION_APPLIED, vocab.USAGE_REPORTED, vocab.STEP_FAILED, vocab.STEP_ANSWERED)
)
"""Events that still belong to a step after its request went out."""
_KNOWN: Final = frozenset(vocab.STANDARD_EVENTS)
_SEPARATORS: Final = str.maketrans("", "", "._-")
_TRIES: Final = 3
_SURFACES_KEPT: Final = 10_000
"""Threads whose last surface is remembered."""
_WINDOWS_KEPT: Final = 1024
"""Pairs of thread and target whose last assembly is remembered."""
Json = dict[str, Any]


class Core:
    """Prepares records in the caller's thread, and copies what is passed before a call returns.

    Args:
        sink: Where the records go.
        source: What the events name as their `source`.
        redactor: Takes secrets out; None: nothing is redacted.
        strict: Raise the errors that the recording program makes.
    """

    def __init__(self, sink: Sink, source: str, redactor: SecretRedactor | None, *, strict: bool) -> None:
        self.redactor = redactor
        self._follower = Follower(redactor) if redactor is not None else None
        """Looks for secrets that begin in one item and end in the next."""
        self.redacted: dict[str, int] = {}
        """Secrets replaced so far, by kind."""
        self.source = self.clean_id(source) or "ctxctl"
        self.journal = Journal(sink, self.source, strict=strict)
        self._windows = LastAssemblies()
        self._surfaces: dict[str, str] = {}
        self._made = 0

    def forked(self) -> None:
        """Begin anew in a forked child, which must not build on what its parent has written."""
        self.journal.forked()
        self._windows = LastAssemblies()
        self.redacted = {}

    def new_id(self, what: str) -> str:
        """Return an id that no other record of the file has, beginning with `what`."""
        self._made += 1
        return f"{what}-{self.journal.writer[:8]}-{self._made}"

    def clean_id(self, value: object) -> str | None:
        """Return an id as it can be written, without secrets; None where the value is no id."""
        try:
            made = id_text(value)
        except Exception:  # an object that lies about its class
            made = None
        if made is None or self.redactor is None:
            return made
        found = FoundSecrets()
        made = self.redactor.text(made, found)
        self.count(found)
        return made

    def call_failed(self, error: BaseException) -> Any:
        """Count a call that failed; raise its error only where the recorder is strict."""
        if self.journal.strict:
            raise error
        self.journal.count_lost(f"{type(error).__name__} in a call")
        return ""

    # -- records --------------------------------------------------------------------------------------------

    def record(
        self,
        event_type: str,
        record: Json,
        place: Place,
        *,
        refs: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
        generation: int | None = None,
    ) -> Result:
        """Write one event."""
        if event_type == vocab.SURFACE_CREATED and isinstance(record.get("surface_id"), str):
            if len(self._surfaces) >= _SURFACES_KEPT:
                self._surfaces.clear()
            self._surfaces[place.key] = record["surface_id"]
        entry = self.entry(event_type, record, place, refs=refs, metadata=metadata)
        return self.journal.put((entry,), generation)

    def entry(
        self,
        event_type: str,
        record: Json,
        place: Place,
        *,
        content: PreparedContent | None = None,
        found: FoundSecrets | None = None,
        item: str | None = None,
        refs: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> Entry:
        """Return an event that is ready to be written; `found` counts what was redacted in its content."""
        found = found if found is not None else FoundSecrets()
        if place.sealed and event_type not in _OF_SEALED:
            place = place.behind
        # An unknown type is written unescaped, so it must be a name.
        name = event_type
        if event_type not in _KNOWN and (not _is_name(event_type) or self.clean_id(event_type) != event_type):
            name = UNNAMED
        made, simple = fitted(name, record, self.journal.stamp() if name != vocab.ITEM_ADDED else "")
        if content is not None and found.count:
            made.setdefault("redaction_state", "masked")
            made.setdefault("redaction_method", "ctxctl")
        raw = values.encoded_texts(made) if simple else values.encoded(made)
        body = self._clean(raw, found)
        more = b""
        if metadata:
            raw = self._clean(values.encoded(dict(metadata)), found)
            kept = orjson.loads(raw)
            kept.pop("ctxctl", None)
            more = b"," + orjson.dumps(kept)[1:-1] if kept else b""
        marks = b""
        if found.count:
            marks = b',"redacted":' + orjson.dumps(found.record())
            if found.count > found.counted:
                self.count(found)
        return Entry(name, body, place, content, item, tuple(refs), more, marks)

    def count(self, found: FoundSecrets) -> None:
        """Add these secrets to the recorder's count."""
        for kind, n in found.kinds.items():
            self.redacted[kind] = self.redacted.get(kind, 0) + n

    def _clean(self, raw: bytes, found: FoundSecrets) -> bytes:
        """Return the JSON without secrets."""
        redactor = self.redactor
        if redactor is None or not redactor.worth_a_look(raw):
            return raw
        before = found.count
        value = redactor.value(orjson.loads(raw), raw, found)
        return raw if found.count == before else orjson.dumps(value)

    def content(self, content: Any, found: FoundSecrets) -> PreparedContent:
        """Return a content as it will be written, without secrets."""
        if isinstance(content, str):
            text = values.shortened(str.__str__(content))
            data = text.encode()
            if self._follower is not None and self.redactor is not None:
                made = self._follower.data(data, found)
                if made is not data or self.redactor.suspicious(made):
                    data = self.redactor.data(made, found)
                    text = data.decode("utf-8", "replace")
            return PreparedContent(orjson.dumps(text), hashlib.sha256(data).hexdigest(), len(data))
        raw = self._clean(values.encoded(content), found)
        canonical = json.dumps(orjson.loads(raw), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return PreparedContent(raw, hashlib.sha256(canonical.encode()).hexdigest(), len(raw))

    def item(self, record: Json, content: Any, version: str | None, place: Place) -> str:
        """Write an item unless the file has this version of it; return its ref."""
        found = FoundSecrets()
        prepared = self.content(content, found) if content is not None else None
        if prepared is not None and not found.count and self.redactor is not None:
            found = stubs_in(prepared.raw)
        name = record["item_id"]
        if not isinstance(name, str) or not name:
            raise TypeError("an item's id is a text")
        if prepared is None:
            record["content_mode"] = record.get("content_mode") or "opaque"
        else:
            record.pop("content_mode", None)
        entry = self.entry(vocab.ITEM_ADDED, record, place, content=prepared, found=found, item=name)
        if found.count:
            # The id itself may have held a secret: others refer to the id that is written.
            name = orjson.loads(entry.body).get("item_id", name)
        self.journal.put((entry,))
        if version is not None:
            return f"{name}@{version}"
        return f"{name}@{prepared.digest[:VERSION_DIGITS]}" if prepared is not None else name

    def text_item(self, item_id: Any, text: str, kind: Any, place: Place) -> str | None:
        """Write the usual item, a text for the model, the fast way; None where it is another item."""
        if type(item_id) is not str or type(kind) is not str or not item_id or len(text) > values.TEXT:
            return None
        try:
            raw, data = orjson.dumps(text), text.encode()
            body = _TEXT_ITEM % (orjson.dumps(item_id), orjson.dumps(kind))
        except (orjson.JSONEncodeError, UnicodeEncodeError):
            return None
        redactor = self.redactor
        # One search over everything: the fields in front of the text are text as well.
        if self._follower is not None and redactor is not None:
            if redactor.suspicious(body + b" " + data) or self._follower.continues(data):
                return None
            self._follower.passed(data)
        digest = hashlib.sha256(data).hexdigest()
        content = PreparedContent(raw, digest, len(data))
        where = place.behind if place.sealed else place
        self.journal.put((Entry(vocab.ITEM_ADDED, body, where, content, item_id),))
        return f"{item_id}@{digest[:VERSION_DIGITS]}"

    def remove_item(self, record: Json, place: Place) -> None:
        """Write that an item was removed."""
        entry = self.entry(vocab.ITEM_REMOVED, record, place, item=str(record["item_id"]))
        self.journal.put((entry,))

    # -- assemblies -----------------------------------------------------------------------------------------

    def assembly(
        self, blocks: Iterable[Any], target: str, meta: Json, fields: Json, place: Place, *, whole: bool
    ) -> str:
        """Write an assembly as its changes to the last one; return its id."""
        made = [self._block(block) for block in ([blocks] if isinstance(blocks, str) else list(blocks))]
        key = place.key, target
        name = self.new_id("assembly")
        for _ in range(_TRIES):
            generation = self.journal.generation
            base = None if whole else self._windows.base(key, generation)
            own, written = dict(meta.get("ctxctl", {})), made
            if base is not None:
                edits = splices(base.blocks, made, forward)
                written = [block for edit in edits for block in edit.inserted]
                own["base"] = base.assembly_id
                own["splices"] = [[at, removed, len(inserted)] for at, removed, inserted in edits]
            parsed = [orjson.loads(block) for block in written]
            record = {
                "assembly_id": name, "target": target, "ordered_blocks": parsed, "visibility": [target],
                "metadata": {**meta, "ctxctl": own}, **fields,
            }  # fmt: skip
            refs = self.refs_in(ref for block in parsed for ref in block.get("item_refs", ()))
            result = self.record(vocab.ASSEMBLY_CREATED, record, place, refs=refs, generation=generation)
            if result == "written":
                self._windows.keep(key, LastAssembly(name, made, self.journal.generation))
            if result != "stale":
                break
        return name

    def _block(self, block: Any) -> bytes:
        if isinstance(block, str):
            return orjson.dumps(
                {"block_id": bare(values.shortened(block)), "item_refs": [values.shortened(block)]}
            )
        if isinstance(block, tuple) and len(block) == 2:
            block = {"item_refs": [block[0]], "role": block[1]}
        raw = values.encoded(dict(block))
        made = orjson.loads(raw)
        ref = made.pop("ref", None) or made.pop("item_ref", None)
        if ref is not None:
            made["item_refs"] = [ref]
        if "block_id" not in made and made.get("item_refs"):
            made["block_id"] = bare(str(made["item_refs"][0]))
        return self._clean(orjson.dumps(made), FoundSecrets())

    def last_assembly(self, place: Place, target: str) -> str | None:
        """Return the id of the thread's last assembly for a target."""
        return self._windows.last((place.key, target))

    def last_surface(self, place: Place) -> str:
        """Return the id of the thread's last surface."""
        return self._surfaces.get(place.key, "unrecorded")

    # -- pieces ---------------------------------------------------------------------------------------------

    def refs_in(self, refs: Iterable[Any]) -> tuple[str, ...]:
        """Return the item ids that these refs may name."""
        found: dict[str, None] = {}
        for ref in refs:
            name = ref.get("item_ref") if isinstance(ref, Mapping) else ref
            if isinstance(name, str):
                found[name] = None
                found[bare(name)] = None
        return tuple(found)

    def source_ref(self, source: Any) -> Any:
        """Return a source in the shape that the standard gives it."""
        if not isinstance(source, str):
            return source
        return {"schema_version": vocab.SCHEMA_VERSION, "source_id": source}

    def bill(self, response: Any) -> Json:
        """Return the record of what a response bills."""
        return bill_of(response)


def bare(ref: str) -> str:
    """Return a ref without its version, which stands behind the last `@`."""
    name, at, version = ref.rpartition("@")
    return name if at and name and version else ref


def _is_name(event_type: object) -> bool:
    """Whether an event's type can stand in a line unescaped."""
    if not isinstance(event_type, str) or not event_type.isascii() or not 0 < len(event_type) < 200:
        return False
    return event_type.translate(_SEPARATORS).isalnum()


class LastAssembly(NamedTuple):
    """An assembly that was written: its blocks, each as JSON."""

    assembly_id: str
    blocks: list[bytes]
    generation: int


class LastAssemblies:
    """The last assembly of each thread and target; the least recently used are forgotten.

    The next assembly after a forgotten one is written whole.
    """

    def __init__(self) -> None:
        self._last: OrderedDict[tuple[str, str], LastAssembly] = OrderedDict()

    def base(self, key: tuple[str, str], generation: int) -> LastAssembly | None:
        """Return the assembly that the next one can build on; None where this file does not hold one."""
        found = self._last.get(key)
        return found if found is not None and found.generation == generation else None

    def last(self, key: tuple[str, str]) -> str | None:
        """Return the id of the last assembly."""
        found = self._last.get(key)
        return found.assembly_id if found is not None else None

    def keep(self, key: tuple[str, str], window: LastAssembly) -> None:
        """Remember an assembly that was written."""
        self._last[key] = window
        self._last.move_to_end(key)
        if len(self._last) > _WINDOWS_KEPT:
            self._last.popitem(last=False)


_TEXTS: Final = (
    "surface_id", "scope", "surface_kind", "expires_at", "item_id", "context_kind", "title", "mime_type",
    "language", "trust_level", "sensitivity", "redaction_state", "selection_id", "query", "intent",
    "rationale", "budget_id", "target", "overflow_strategy", "assembly_id", "compaction_id", "method",
    "trigger", "replacement_policy", "missing_id", "question", "needed_for", "severity", "status",
    "injection_id", "injection_point", "native_id", "content_mode", "created_at", "context_id",
    "lifecycle", "redaction_method", "redaction_reason", "model", "provider", "service_tier", "speed",
    "inference_geo",
)  # fmt: skip
_REFS: Final = (
    "available_source_refs", "available_item_refs", "capability_refs", "policy_refs", "source_refs",
    "candidate_item_refs", "selected_item_refs", "omitted_item_refs", "source_item_refs",
    "resolution_refs", "actor_refs", "runtime_refs", "surface_refs", "item_refs", "selection_refs",
    "assembly_refs", "injection_refs", "compaction_refs", "missing_context_refs", "evidence_refs",
    "telemetry_refs",
)  # fmt: skip
_TEXT_LISTS: Final = ("visibility", "loss_notes", "blocked_actions")
_OBJECT_LISTS: Final = (
    "ordered_blocks",
    "truncation_records",
    "window_segments",
    "candidate_sources",
    "passes",
)
_COUNTS: Final = (
    "max_tokens", "reserved_tokens", "max_bytes", "max_items", "actual_tokens", "actual_bytes",
    "actual_items", "token_estimate", "byte_size", "input_tokens", "cached_tokens", "cache_write_tokens",
    "cache_write_1h_tokens", "output_tokens", "reasoning_tokens", "cleared_tokens",
)  # fmt: skip
_OBJECTS: Final = ("metadata", "coverage", "ranking_signals", "modalities", "units")
_EITHER: Final = (
    "producer", "freshness", "wrapping_policy", "separator_policy", "budget_ref", "summary_ref",
    "validation", "requested_from", "selection_policy", "actor_ref", "model_ref", "content_ref",
)  # fmt: skip
_KINDS: Final[dict[str, str]] = {
    **dict.fromkeys(_TEXTS, "text"), **dict.fromkeys(_REFS, "list"),
    **dict.fromkeys(_TEXT_LISTS, "list"), **dict.fromkeys(_OBJECT_LISTS, "list"),
    **dict.fromkeys(_COUNTS, "count"),
    **dict.fromkeys(_OBJECTS, "object"), **dict.fromkeys(_EITHER, "either"), "priority": "number",
}  # fmt: skip
_SCOPES: Final = ("turn", "task", "session", "tool_invocation", "review", "handoff", "custom")
_GAP: Final[dict[str, Any]] = {
    "missing_id": "unnamed", "scope": "custom", "question": "", "severity": "info", "status": "open",
}  # fmt: skip
_NEEDED: Final[dict[str, dict[str, Any]]] = {
    vocab.SURFACE_CREATED: {"surface_id": "unnamed", "scope": "custom"},
    vocab.SURFACE_UPDATED: {"surface_id": "unnamed", "scope": "custom"},
    vocab.ITEM_ADDED: {"item_id": "unnamed", "context_kind": "custom", "visibility": []},
    vocab.SELECTION_STARTED: {"selection_id": "unnamed", "surface_id": "unrecorded"},
    vocab.SELECTION_COMPLETED: {"selection_id": "unnamed", "surface_id": "unrecorded"},
    vocab.BUDGET_APPLIED: {"budget_id": "unnamed", "target": vocab.MODEL},
    vocab.ASSEMBLY_CREATED: {"assembly_id": "unnamed", "target": vocab.MODEL, "ordered_blocks": []},
    vocab.COMPACTION_STARTED: {"compaction_id": "unnamed", "scope": "custom", "source_item_refs": [],
    "method": "custom"},
    vocab.COMPACTION_COMPLETED: {"compaction_id": "unnamed", "scope": "custom", "source_item_refs": [],
    "method": "custom"},
    vocab.MISSING_DETECTED: _GAP,
    vocab.MISSING_REQUESTED: _GAP,
    vocab.MISSING_RESOLVED: _GAP,
    vocab.EXPORTED: {"context_id": "unnamed", "scope": "custom", "lifecycle": "available"},
}  # fmt: skip
"""Fields that the schemas require, and their values where the caller gave none that fits."""
_DATED: Final = frozenset(_NEEDED) - {vocab.ITEM_ADDED} | {vocab.INJECTION_APPLIED}
_ELEMENTS: Final[dict[str, type]] = {**dict.fromkeys(_TEXT_LISTS, str), **dict.fromkeys(_OBJECT_LISTS, dict)}
_TEXT_NAMES: Final = frozenset(_TEXTS)
_SHORT: Final = 4096
_FOR_MODEL: Final = [vocab.MODEL]


def fitted(event_type: str, record: dict[str, Any], stamp: str) -> tuple[dict[str, Any], bool]:
    """Return the record as its schema requires it, without None; and whether it is all short texts.

    A field of a type that its schema does not take goes to `metadata.ctxctl.misfits`, under its name.
    """
    made: dict[str, Any] = {"schema_version": vocab.SCHEMA_VERSION}
    misfits: dict[str, Any] = {}
    simple = True
    for name, value in record.items():
        if value is None or name == "schema_version":
            continue
        if type(value) is str and len(value) < _SHORT and name in _TEXT_NAMES:
            made[name] = value
            continue
        if name == "visibility" and _is_for_model(value):
            made[name] = _FOR_MODEL
            continue
        simple = False
        kind = _KINDS.get(name) if type(name) is str else None
        if name == "status" and event_type == vocab.STEP_FAILED:
            kind = "count"  # the status of HTTP; elsewhere `status` is a word
        if kind == "list" and isinstance(value, list | tuple | set | frozenset):
            fit = _ELEMENTS.get(name, (str, dict))
            made[name] = [one for one in value if isinstance(one, fit)]
            if len(made[name]) < len(value):
                misfits[name] = [one for one in value if not isinstance(one, fit)]
        elif kind is None or _fits(kind, value):
            made[name] = value
        elif kind in ("text", "either") and isinstance(value, int) and not isinstance(value, bool):
            made[name] = str(value) if value.bit_length() < 1000 else "unnamed"
        else:
            misfits[name] = value
    for name, value in _NEEDED.get(event_type, {}).items():
        if name not in made:
            made[name] = value
    if event_type == vocab.EXPORTED and made["scope"] not in _SCOPES:
        made["scope"] = "custom"
    if event_type in _DATED:
        made.setdefault("created_at", stamp)
    if misfits:
        meta = made.get("metadata", {})
        own = meta.get("ctxctl")
        made["metadata"] = {**meta, "ctxctl": {**(own if isinstance(own, dict) else {}), "misfits": misfits}}
    return made, simple


def _is_for_model(value: Any) -> bool:
    return type(value) is list and len(value) == 1 and type(value[0]) is str and value[0] == vocab.MODEL


def _fits(kind: str, value: Any) -> bool:
    if kind == "text":
        return isinstance(value, str)
    if kind == "object":
        return isinstance(value, dict)
    if kind == "either":
        return isinstance(value, str | dict)
    if isinstance(value, bool):
        return False
    if kind == "number":
        return isinstance(value, int | float) and value == value and abs(value) < 1e300
    return isinstance(value, int) and 0 <= value < 2**53
