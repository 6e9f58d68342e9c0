"""Build items, summaries and assembly blocks: the records with contents."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec
import orjson
import xxhash

from ctxctl.model.annotations import UNREDACTED
from ctxctl.model.content import Content
from ctxctl.model.records import Block, Item, Redaction
from ctxctl.trace.annotations import of_item
from ctxctl.trace.coerce import Fields, Report, parse_json
from ctxctl.trace.contents import SEED, Contents
from ctxctl.trace.depth import DEPTH_LIMIT, may_nest_deeper, nests_deeper
from ctxctl.trace.memo import Memo
from ctxctl.trace.utf8 import check_utf8
from ctxctl.trace.wire import ItemWire, Raw, decode_body, decode_item, decode_plain_block

_SHA256 = re.compile(r"sha256:([0-9a-fA-F]{64})\Z")
_MARK = "{content}"
_REF_KEYS = ("digest", "ref", "hash", "uri", "id", "content_ref")

_TEXT_HOLES: Final = ("$", "$1")
_BOOKKEEPING: Final = frozenset(
    {"id", "call_id", "tool_use_id", "tool_call_id", "index", "role", "status", "type", "logprobs"}
)
_CALLS: Final = ("input", "arguments", "args")
"""Fields beside which `name` is the tool's name, with which the text begins."""
_MAX_FORM: Final = 2000
_MAX_FORM_DEPTH: Final = 20


def form_of(place: dict[str, Any]) -> str:
    """Return what a block's JSON says in a request's body beside its text: a signature, an image's detail.

    Two placements of one text are the same for a provider only where this is the same, too.  It is made of
    the block's place (`metadata.ctxctl.wire`, see `formats.wire.slots`), less what reaches no model: ids by
    which an API joins calls and results, types and roles (an item's own), states, fields that say nothing,
    and a client's own, whose names begin with an underscore (Copilot's `__copilotMessageSource`).  Canonical
    JSON, empty if there is nothing; of what is long, a digest.
    """
    made: dict[str, Any] = {}
    opened = place.get("open")
    for template in (*(opened if isinstance(opened, list) else ()), place.get("leaf")):
        if isinstance(template, dict):
            made.update(_said(template, 0))
    if not made:
        return ""
    text = orjson.dumps(made, option=orjson.OPT_SORT_KEYS)
    if len(text) > _MAX_FORM:
        text = orjson.dumps({"#": xxhash.xxh3_128_hexdigest(text)})
    return text.decode()


def _said(value: dict[str, Any], depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    tool = any(name in value for name in _CALLS)
    for name, inner in value.items():
        if name.startswith("_") or name in _BOOKKEEPING or name in _TEXT_HOLES or (tool and name == "name"):
            continue
        if isinstance(inner, dict) and depth < _MAX_FORM_DEPTH:
            if not any(hole in inner for hole in _TEXT_HOLES):
                inner = _said(inner, depth + 1)
            else:
                continue
        if inner not in (None, False, "", [], {}):
            made[name] = inner
    return made


class Memos:
    """Items and blocks by their bytes, for all decoders of a trace.

    Items whose content is a ref are separate, because a ref is valid only after the line with the content.
    """

    __slots__ = ("blocks", "items", "refs")

    def __init__(self) -> None:
        self.items: Memo[Item] = Memo()
        self.refs: Memo[Item] = Memo()
        self.blocks: Memo[Block] = Memo()


class ItemBuilder:
    """Builds records with contents in one pass; `report` is called with a slug, a key and a message."""

    def __init__(self, contents: Contents, memos: Memos, report: Report) -> None:
        self._contents = contents
        self._report = report
        self.memos = memos

    def known(self, key: bytes, offset: int) -> Item | None:
        """Return the item decoded from the same bytes, if it means the same at `offset`."""
        item = self.memos.items.get(key)
        if item is not None:
            return item
        item = self.memos.refs.get(key)
        if item is not None and item.content is not None:
            return item if self._contents.resolve(item.content.digest, offset) is item.content else None
        return None

    def build(self, key: bytes, raw: bytes, line: bytes, offset: int) -> Item | None:
        """Decode the item `raw` of a line at `offset` and remember it under `key`."""
        try:
            wire = decode_item(raw)
        except msgspec.DecodeError:
            item, by_ref = self._coerced(raw, line, offset)
            reported = True
        else:
            content, digest, by_ref = self._content(wire.content, wire.content_ref, line, offset)
            metadata = wire.metadata or {}
            reported = bool(metadata) and may_nest_deeper(DEPTH_LIMIT, raw)
            reported = reported and nests_deeper(DEPTH_LIMIT, metadata)
            fields = Fields({"metadata": metadata, "source_refs": wire.source_refs}, self._report)
            if reported:
                metadata = fields.table("metadata")
            source, digests = _sources(fields) if wire.source_refs else (None, ())
            item = Item(
                wire.item_id,
                wire.context_kind if wire.context_kind != "custom" else _native_kind(metadata),
                wire.content_mode,
                wire.title,
                content,
                digest,
                source,
                digests,
                wire.token_estimate,
                tuple(wire.visibility),
                wire.priority,
                wire.redaction_state,
                _version(metadata),
                _cause(metadata),
                metadata,
                self._redaction(wire) if wire.redaction_state is not None else None,
            )
        if item is None or reported:
            return item
        if not by_ref:
            return self.memos.items.put(key, item)
        return self.memos.refs.put(key, item) if item.content is not None else item

    def summary(self, raw: bytes, line: bytes, offset: int) -> Item | None:
        """Return a `context_summary` as the item that replaces what was compacted."""
        return self._coerced(raw, line, offset, kind="thread_summary")[0]

    def blocks(self, rows: Iterable[Raw | bytes], line: bytes, offset: int) -> tuple[Block, ...]:
        """Return the blocks of an assembly. Equal bytes give one object."""
        memo = self.memos.blocks
        known = memo.young.get
        digest = xxhash.xxh3_128_digest
        blocks: list[Block] = []
        for row in rows:
            key = digest(row, SEED)
            block = known(key) or memo.get(key)
            if block is None:
                block = self._block(key, bytes(row), line, offset)
                if block is None:
                    continue
            blocks.append(block)
        return tuple(blocks)

    def _redaction(self, wire: ItemWire) -> Redaction | None:
        names = ("redaction_state", "redaction_method", "redaction_reason", "redacted_by", "policy_refs")
        problem = {name: getattr(wire, name) for name in (*names, "metadata")}
        return of_item(wire.item_id, Fields(problem, self._report))

    def _coerced(
        self, raw: bytes, line: bytes, offset: int, *, kind: str = "custom"
    ) -> tuple[Item | None, bool]:
        try:
            data = parse_json(raw)
            body = decode_body(raw)
        except ValueError as error:
            self._report("bad-json", "data", f"the record cannot be read: {error}")
            return None, False
        fields = Fields(data, self._report)
        if kind == "custom":
            item_id = fields.name("item_id", "item_ref", "ref", "id")
        else:
            item_id = fields.name("summary_id", "item_id", "id")
        if item_id is None:
            self._report("bad-field", "item_id", "the record names no item; ignored")
            return None, False
        inline = body.content
        if kind != "custom":
            inline = next((text for text in (inline, body.text, body.summary) if _present(text)), inline)
        content, digest, by_ref = self._content(inline, data.get("content_ref"), line, offset)
        metadata = fields.table("metadata")
        source, digests = _sources(fields)
        item = Item(
            item_id,
            fields.text("context_kind") or kind,
            fields.text("content_mode") or "",
            fields.text("title"),
            content,
            digest,
            source,
            digests,
            fields.count("token_estimate"),
            fields.texts("visibility"),
            fields.number("priority"),
            fields.text("redaction_state"),
            _version(metadata),
            _cause(metadata),
            metadata,
            of_item(item_id, fields),
        )
        return item, by_ref

    def _content(
        self, inline: Raw, ref: Any, line: bytes, offset: int
    ) -> tuple[Content | None, str | None, bool]:
        """Return the content, its digest, and whether it came through a ref."""
        if _present(inline):
            content = self._contents.intern(bytes(inline), line, offset, self._kept)
            return content, content.digest, False
        digest = _digest(ref)
        if digest is None:
            return None, None, False
        return self._contents.resolve(digest, offset), digest, True

    def _kept(self, slug: str, message: str) -> None:
        self._report(slug, "content", message)

    def _block(self, key: bytes, raw: bytes, line: bytes, offset: int) -> Block | None:
        try:
            plain = decode_plain_block(raw)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return self._other_block(key, raw, line, offset)
        block = Block(
            plain.block_id, tuple(plain.item_refs), plain.position, segment=plain.segment, role=plain.role
        )
        return self.memos.blocks.put(key, block)

    def _other_block(self, key: bytes, raw: bytes, line: bytes, offset: int) -> Block | None:
        """Return a block with more or unusual fields."""
        check_utf8(raw)
        try:
            data = parse_json(raw)
        except ValueError as error:
            self._report("bad-json", "ordered_blocks", f"a block cannot be read: {error}")
            return None
        if isinstance(data, str):
            data = {"item_refs": [data]}
        if not isinstance(data, dict):
            self._report("bad-field", "ordered_blocks", "a block is not an object; ignored")
            return None
        problems: list[tuple[str, str, str]] = []
        fields = Fields(data, lambda *problem: problems.append(problem), "data.ordered_blocks")
        body = decode_body(raw) if raw[:1] == b"{" else decode_body(b"{}")
        inline = body.content if _present(body.content) else body.text
        content, _, by_ref = self._content(inline, data.get("content_ref"), line, offset)
        block = _made_block(fields, content)
        for problem in problems:
            self._report(*problem)
        if by_ref or problems:
            return block
        return self.memos.blocks.put(key, block)


def _made_block(fields: Fields, content: Content | None) -> Block:
    before, after = _wrapper(fields)
    metadata = fields.table("metadata")
    own = metadata.get("ctxctl")
    places = [fields, Fields(metadata, fields.report, "data.ordered_blocks.metadata")]
    if isinstance(own, dict):
        places.append(Fields(own, fields.report, "data.ordered_blocks.metadata.ctxctl"))
    return Block(
        fields.ident("block_id"),
        fields.ref_names("item_refs") or fields.ref_names("item_ref"),
        fields.number("position"),
        content,
        before,
        after,
        fields.count("token_estimate"),
        fields.text("hash"),
        _first(place.text("segment") for place in places),
        _first(place.text("role") for place in places),
        bool(_first(place.flag("truncated") for place in places)),
        None if (state := fields.text("redaction_state")) in UNREDACTED else state,
        *_in_body(own.get("wire") if isinstance(own, dict) else None),
    )


def _in_body(wire: Any) -> tuple[str, str | None]:
    """Return the rest of a block's own JSON, and its field of the body."""
    if not isinstance(wire, dict):
        return "", None
    field = wire.get("in")
    return form_of(wire), field if isinstance(field, str) else None


def _wrapper(fields: Fields) -> tuple[str, str]:
    wrapper = fields.get("wrapper")
    if wrapper is None:
        return "", ""
    if isinstance(wrapper, str):
        before, _, after = wrapper.partition(_MARK)
        return before, after
    if not isinstance(wrapper, dict):
        fields.wrong("wrapper", "a text or an object", wrapper)
        return "", ""
    inner = Fields(wrapper, fields.report, "data.ordered_blocks.wrapper")
    return inner.text("before", "prefix", "open") or "", inner.text("after", "suffix", "close") or ""


def _first(values: Iterable[Any]) -> Any:
    return next((value for value in values if value is not None), None)


def _present(raw: Raw) -> bool:
    data = bytes(raw)
    return bool(data) and data != b"null"


def _digest(ref: Any) -> str | None:
    if isinstance(ref, dict):
        ref = next((ref[key] for key in _REF_KEYS if isinstance(ref.get(key), str)), None)
    match = _SHA256.match(ref) if isinstance(ref, str) else None
    return match[1].lower() if match else None


def _sources(fields: Fields) -> tuple[str | None, tuple[str, ...]]:
    """Return the first source's id or URI, and the digests of all sources."""
    first: str | None = None
    digests: list[str] = []
    for row in fields.rows("source_refs"):
        if isinstance(row, dict):
            source = Fields(row, fields.report, "data.source_refs")
            name = source.text("source_id", "uri", "id", "ref")
            digest = source.text("digest")
            if digest is not None:
                digests.append(digest)
        elif isinstance(row, str):
            name = row
        else:
            fields.wrong("source_refs", "an array of references", row)
            continue
        first = name if first is None else first
    return first, tuple(digests)


def _native_kind(metadata: dict[str, Any]) -> str:
    """Return the kind that a strict export kept separately because the draft does not define it."""
    native = metadata.get("native")
    kind = native.get("context_kind") if isinstance(native, dict) else None
    return kind if isinstance(kind, str) else "custom"


def _version(metadata: dict[str, Any]) -> str | None:
    version = metadata.get("version")
    if version is None or isinstance(version, bool | dict | list):
        return None
    return version if isinstance(version, str) else repr(version)


def _cause(metadata: dict[str, Any]) -> str | None:
    cause = metadata.get("cause")
    return cause if isinstance(cause, str) else None
