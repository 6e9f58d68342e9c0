"""Turn items, blocks and unknown refs into placements. Equal placements are one object."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from itertools import count as counting
from typing import Any, NamedTuple

import msgspec

from ctxctl.engine.replay.edits import EditText, Texts
from ctxctl.engine.replay.item_table import ItemTable, ItemVersion
from ctxctl.engine.replay.reweighing import Reweigher
from ctxctl.engine.sizes.weighing import Count, Weigher
from ctxctl.model.content import Content, ContentStore
from ctxctl.model.records import Block, Item
from ctxctl.model.results import Placement
from ctxctl.model.vocab import rank_of, segment_of

__all__ = ["Count", "Placer"]

_MESSAGES = frozenset({"messages", "input", "contents"})
"""Body fields that hold the conversation."""
_WEB_SEARCH = re.compile(r"web_search_\d")
_MAX_REMEMBERED_BLOCKS = 1 << 15
"""Number of blocks whose placement is remembered."""


class _Placed(NamedTuple):
    """A remembered placement of a block, and what it depends on."""

    block: Block
    """A reference that keeps the block's `id` from being reused."""
    segments: dict[str, str]
    known: Mapping[Any, ItemVersion]
    """The item table's dict in which the ref was found; `name` is its key."""
    name: Hashable
    version: ItemVersion
    placement: Placement


class Placer:
    """Makes the placements of one thread and target."""

    def __init__(self, book: ItemTable, store: ContentStore, count: Count) -> None:
        self._book = book
        self._store = store
        self._count = count
        self._keys: dict[tuple[str, str | None, str | None, int], int] = {}
        self._next_key = counting(1)
        self._made: dict[tuple[object, ...], Placement] = {}
        self._twins: dict[Placement, Placement] = {}
        self._blocks: dict[int, _Placed] = {}
        self._behind: dict[tuple[Placement, str], Placement] = {}
        self.texts: Texts = {}
        """Texts of a what-if that replace recorded ones."""
        self.weigher = Weigher(count)
        self.anew: Reweigher | None = None
        """Converts earlier placements to the current sizes; None while sizes have not changed."""
        self._plain: dict[ItemVersion, Placement] = {}
        """Placements of items' own texts in the current sizes. Copies of a replay share them."""

    def copy(self, book: ItemTable) -> Placer:
        """Return a copy over a copied item table. Both share one table of keys."""
        twin = Placer(book, self._store, self._count)
        twin.weigher = self.weigher.copy()
        twin._keys, twin._next_key = self._keys, self._next_key
        twin.texts, twin._plain = self.texts, self._plain
        twin.anew = self.anew.over(twin.weigher) if self.anew is not None else None
        return twin

    def recount(self) -> Reweigher:
        """Begin to use other sizes. Return what converts earlier placements to them."""
        for table in (self._made, self._twins, self._blocks, self._behind):
            table.clear()
        self._plain = {}
        self.anew = Reweigher(self.weigher, self.anew)
        return self.anew

    def text(self, content: Content) -> str:
        """Read the text of a content from the trace."""
        return self._store.text(content)

    def plain(self, version: ItemVersion) -> Placement:
        """Return the placement of an item's own text, without a wrapper."""
        if self.anew is not None:
            return self._plain_anew(version, self.anew)
        made = version.placement or self._made.get(("p", version))
        if made is None:
            said = self._set(version)
            text = version.content if said is None else said.content
            made = self._make(version, text, None, said=said)
            if self.weigher.aside:  # copies of a replay share the version
                self._made["p", version] = made
            else:
                version.placement = made
        return made

    def _plain_anew(self, version: ItemVersion, anew: Reweigher) -> Placement:
        """Return `plain` after sizes have changed during the replay."""
        made = self._plain.get(version) or self._made.get(("p", version))
        if made is None and version.placement is not None:
            made = anew.one(version.placement)
        if made is None:
            said = self._set(version)
            made = self._make(version, version.content if said is None else said.content, None, said=said)
            if self.weigher.aside:
                self._made["p", version] = made
            else:
                made = self._plain.setdefault(version, made)
        return made

    def known(self, ref: str) -> Placement | None:
        """Return the placement that a ref names now; None if the thread never saw the item."""
        version = self._book.find(ref)
        return None if version is None else self.plain(version)

    def ref(self, ref: str) -> Placement:
        """Return the placement of a ref outside any block (a selection, a carried-in item)."""
        version = self._book.find(ref)
        return self.unknown(ref) if version is None else self.plain(version)

    def unknown(self, ref: str) -> Placement:
        """Return a placement for an item that this thread never described: no version, uncounted."""
        made = self._made.get(("?", ref))
        if made is None:
            made = self._made["?", ref] = self._nameless(
                self._book.item_of(ref), self._book.version_named(ref)
            )
        return made

    def carried(self, ref: str, item: str) -> Placement:
        """Return a placement for an item from before the trace. Only its ref is known; it is uncounted."""
        version = self._book.version_named(ref) or (ref[len(item) + 1 :] or None)
        known = self._book.find(ref)
        plain = self._nameless(item, known.version if known is not None else version)
        record = known.record if known is not None else None
        return msgspec.structs.replace(
            plain, carried=True,
            kind=record.context_kind if record is not None else plain.kind,
            title=record.title if record is not None else None,
            source=record.source if record is not None else None,
            line=known.line if known is not None else 0,
        )  # fmt: skip

    def _nameless(self, item: str, version: str | None) -> Placement:
        return Placement(
            item=item, version=version, kind="custom", title=None, source=None, segment="context",
            tokens=0, method="uncounted", content=None, digest=None,
            key=self._key(item, version, None, 0), line=0,
        )  # fmt: skip

    def block(self, block: Block, segments: dict[str, str]) -> list[Placement]:
        """Return the placements of one assembly block: one for each item it refers to, at least one."""
        if not block.refs:
            return [self._anonymous(block)]
        if len(block.refs) == 1:
            return [self.single(block, segments)]
        return self._several(block, segments)

    def _several(self, block: Block, segments: dict[str, str]) -> list[Placement]:
        """Return the placements of a block of several items.

        The block's own text, or else its estimate, belongs to the first item, and the others hold nothing. A
        wrapper opens before the first and closes after the last.
        """
        last = len(block.refs) - 1
        if block.content is not None:
            rest = msgspec.structs.replace(block, content=self._store.literal(""), before="", after="")
            parts = [block, *[rest] * last]
        else:
            bare = msgspec.structs.replace(block, before="", after="", token_estimate=None, digest=None)
            parts = [bare] * (last + 1)
            parts[0] = msgspec.structs.replace(parts[0], before=block.before)
            parts[last] = msgspec.structs.replace(parts[last], after=block.after)
        pairs = zip(block.refs, parts, strict=True)
        joint = block.content is not None
        found = [self._in_block(ref, part, segments, joint=joint) for ref, part in pairs]
        if block.token_estimate is not None and all(p.method == "uncounted" for p in found):
            found[0] = self._declared(found[0], block.token_estimate)
        return found

    def singles(self, blocks: Iterable[Block], segments: dict[str, str]) -> list[Placement]:
        """Return the placements of blocks with one ref each; see `single`."""
        placed = self._blocks.get
        found = []
        for block in blocks:
            memo = placed(id(block))
            if memo is not None and memo.segments is segments and memo.known.get(memo.name) is memo.version:
                found.append(memo.placement)
            else:
                found.append(self.single(block, segments))
        return found

    def single(self, block: Block, segments: dict[str, str]) -> Placement:
        """Return the placement of a block with one ref.

        The reader returns one object for equal blocks. So the placement of a block is reused as long as its
        ref names the same version.
        """
        memo = self._blocks.get(id(block))
        if memo is not None and memo.segments is segments and memo.known.get(memo.name) is memo.version:
            return memo.placement
        ref = block.refs[0]
        placement = self._in_block(ref, block, segments)
        known, name, version = self._book.source_of(ref)
        if version is not None:
            if len(self._blocks) >= _MAX_REMEMBERED_BLOCKS:
                self._blocks.clear()
            self._blocks[id(block)] = _Placed(block, segments, known, name, version, placement)
        return placement

    def wrapped(self, version: ItemVersion, before: str) -> Placement:
        """Return the placement of an item's text after a header that a policy adds; simulated."""
        memo = ("w", version, before)
        made = self._made.get(memo)
        if made is None:
            block = Block(before=before)
            said = self._set(version)
            content = self._wrapped(block, version.content if said is None else said.content)
            plain = self._make(version, content, block, said=said)
            made = self._made[memo] = msgspec.structs.replace(plain, simulated=True)
        return made

    def marker(self, item: str, text: str) -> Placement:
        """Return the placement of a marker text about an item that left; simulated."""
        content = self._store.literal(text)
        name = f"marker:{item}"
        key = self._key(name, None, content.digest, 0)
        size = self.weigher.size(content, None, "marker", key)
        return Placement(
            item=name, version=content.digest[:16], kind="marker", title=text, source=None, segment="context",
            tokens=size.tokens, method=size.method, counted=size.counted, content=content,
            digest=content.digest, key=key, line=0, simulated=True,
        )  # fmt: skip

    def reworded(self, placement: Placement, text: str) -> Placement:
        """Return the same copy with another text; simulated."""
        content = self._store.literal(text)
        key = self._key(placement.item, placement.version, content.digest, 0)
        size = self.weigher.size(content, None, placement.kind, key)
        return msgspec.structs.replace(
            placement, tokens=size.tokens, method=size.method, counted=size.counted, content=content,
            digest=content.digest, key=key, truncated=True, simulated=True, own=True,
        )  # fmt: skip

    def resized(self, placement: Placement, tokens: int) -> Placement:
        """Return the same copy with another size and an unknown text; simulated."""
        return msgspec.structs.replace(
            placement, tokens=tokens, method="declared", counted=tokens, content=None, digest=None,
            key=self._key(placement.item, placement.version, None, tokens), truncated=True, simulated=True,
        )  # fmt: skip

    def cut(self, placement: Placement, tokens: int) -> Placement:
        """Return the same copy after a budget's cut, with the recorded size and an unknown text."""
        memo = ("c", placement, tokens)
        made = self._made.get(memo)
        if made is None:
            key = self._key(placement.item, placement.version, None, tokens)
            made = self._made[memo] = msgspec.structs.replace(
                placement, tokens=tokens, method="declared", counted=tokens, content=None, digest=None,
                key=key, truncated=True,
            )  # fmt: skip
        return made

    def stale(self, placement: Placement) -> Placement:
        """Return the same copy, marked as stale."""
        if placement.stale:
            return placement
        twin = self._twins.get(placement)
        if twin is None:
            twin = self._twins[placement] = msgspec.structs.replace(placement, stale=True)
        return twin

    def behind(self, placement: Placement, separator: str) -> Placement:
        """Return the same copy, with a separator before it."""
        twin = self._behind.get((placement, separator))
        if twin is None:
            twin = msgspec.structs.replace(placement, separator=separator)
            self._behind[placement, separator] = twin
        return twin

    def redacted_copy(self, placement: Placement, state: str, instead: str | None) -> Placement:
        """Return the same copy without its redacted text: with the replacement item's text, or else with no
        text and the same size."""
        known = self._book.find(instead) if instead is not None else None
        if known is not None and known.content is None:
            known = None
        memo = ("v", placement, known)
        twin = self._made.get(memo)
        if twin is None:
            twin = msgspec.structs.replace(placement, content=None, redaction=placement.redaction or state)
            if known is not None:
                shown = self.plain(known)
                key = self._key(placement.item, placement.version, shown.digest, 0)
                twin = msgspec.structs.replace(
                    twin, content=shown.content, digest=shown.digest, tokens=shown.tokens,
                    method=shown.method, counted=shown.counted, key=key,
                )  # fmt: skip
            self._made[memo] = twin
        return twin

    def _anonymous(self, block: Block) -> Placement:
        content = self._wrapped(block, block.content)
        digest = content.digest if content is not None else block.digest
        # Without an id, a block is identified by its text.
        name = f"block:{block.block_id if block.block_id is not None else (digest and digest[:16]) or '?'}"
        memo = ("b", name, digest, block.segment, block.role, block.token_estimate, block.redaction_state)
        made = self._made.get(memo)
        if made is None:
            key = self._key(name, None, digest, block.token_estimate or 0 if content is None else 0)
            size = self.weigher.size(content, block.token_estimate, "custom", key)
            made = self._made[memo] = Placement(
                item=name, version=digest[:16] if digest else None, kind="custom", title=None, source=None,
                segment=block.segment or "context", rank=rank_of(block.segment or "context"),
                tokens=size.tokens, method=size.method, counted=size.counted, content=content,
                digest=digest, key=key, line=0,
                role=block.role, derived=True, truncated=block.truncated, redaction=block.redaction_state,
                own=True,
            )  # fmt: skip
        return made

    def version(self, version: ItemVersion) -> str | None:
        """Return a version's name. Versions that a what-if sets to one text have one name."""
        said = self._set(version)
        return version.version if said is None else said.version

    def _set(self, version: ItemVersion) -> EditText | None:
        """Return the text of a what-if that replaces a version's text."""
        texts = self.texts.get(version.item) if self.texts else None
        return texts.get(version.version) if texts is not None else None

    def _in_block(
        self, ref: str, block: Block, segments: dict[str, str], *, joint: bool = False
    ) -> Placement:
        """Return the placement of one ref of a block; `joint` if the text belongs to several items."""
        version = self._book.find(ref)
        estimate = block.token_estimate
        if version is None:
            return self._unknown_in_block(ref, block, segments.get(ref))
        said = None if joint else self._set(version)
        own = block.content if said is None else None
        text = version.content if said is None else said.content
        segment = block.segment or segments.get(ref) or (segments.get(version.item) if segments else None)
        if (
            own is None and not block.before and not block.after and segment is None
            and block.role is None and not block.truncated and block.redaction_state is None
            and not block.form and block.field is None
            and (text is not None or (estimate is None and block.digest is None))
        ):  # fmt: skip
            return self.plain(version)
        memo = (
            version, own, block.before, block.after, segment, block.role, block.truncated,
            block.redaction_state, block.form, block.field,
            (estimate, block.digest) if text is None and own is None else None,
        )  # fmt: skip
        made = self._made.get(memo)
        if made is None:
            content = self._wrapped(block, own if own is not None else text)
            made = self._made[memo] = self._make(
                version, content, block, segment=segment, estimate=estimate, said=said
            )
        return made

    def _unknown_in_block(self, ref: str, block: Block, named: str | None) -> Placement:
        estimate = block.token_estimate
        segment = block.segment or named
        content = self._wrapped(block, block.content)
        plain = self.unknown(ref)
        if (
            content is None and estimate is None and block.digest is None and segment is None
            and block.redaction_state is None and not block.form and block.field is None
        ):  # fmt: skip
            return plain
        digest = content.digest if content is not None else block.digest
        segment = segment or plain.segment
        memo = (
            "u", plain.item, plain.version, digest, estimate, segment, block.role, block.redaction_state,
            block.form, block.field,
        )  # fmt: skip
        made = self._made.get(memo)
        if made is None:
            what = _rendering(digest, block)
            key = self._key(plain.item, plain.version, what, estimate or 0 if content is None else 0)
            size = self.weigher.size(content, estimate, plain.kind, key)
            made = self._made[memo] = msgspec.structs.replace(
                plain, tokens=size.tokens, method=size.method, counted=size.counted, content=content,
                digest=digest, segment=segment, rank=_rank(segment, block, None), key=key, form=block.form,
                role=block.role, truncated=block.truncated, redaction=block.redaction_state, own=True,
            )  # fmt: skip
        return made

    def _declared(self, placement: Placement, tokens: int) -> Placement:
        memo = ("d", placement, tokens)
        made = self._made.get(memo)
        if made is None:
            key = self._key(placement.item, placement.version, placement.digest, tokens)
            made = self._made[memo] = msgspec.structs.replace(
                placement, tokens=tokens, method="declared", counted=tokens, key=key
            )
        return made

    def _make(
        self, version: ItemVersion, content: Content | None, block: Block | None,
        *, segment: str | None = None, estimate: int | None = None, said: EditText | None = None,
    ) -> Placement:  # fmt: skip
        record = version.record
        if estimate is None:
            estimate = record.token_estimate
        if content is not None:
            digest: str | None = content.digest
        elif block is not None and block.digest is not None:
            digest = block.digest
        else:
            digest = record.content_digest
        if segment is None:
            segment = segment_of(record.context_kind)
        ours = record.metadata.get("ctxctl")
        marks = ours if isinstance(ours, dict) else {}
        name = version.version if said is None else said.version
        key = self._key(
            version.item, name, _rendering(digest, block), estimate or 0 if content is None else 0
        )
        size = self.weigher.size(content, estimate, record.context_kind, key)
        return Placement(
            item=version.item, version=name, kind=record.context_kind, title=record.title,
            source=record.source, segment=segment, rank=_rank(segment, block, record),
            form=block.form if block is not None else "",
            tokens=size.tokens, method=size.method, counted=size.counted, content=content, digest=digest,
            key=key, instead_of=None if said is None else self._own_size(version, block, estimate),
            line=version.line, role=block.role if block is not None else None,
            derived=marks.get("identity") == "derived",
            simulated=said is not None or bool(marks.get("simulated")),
            truncated=said is None
            and (bool(marks.get("truncated")) or (block is not None and block.truncated)),
            redaction=_redaction(block, version),
            own=said is None and block is not None and block.content is not None,
        )  # fmt: skip

    def _own_size(self, version: ItemVersion, block: Block | None, estimate: int | None) -> int:
        """Return the recorded tokens, wrapper included, of an item whose text a what-if replaces."""
        record, content = version.record, version.content
        if block is not None:
            content = self._wrapped(block, content if block.content is None else block.content)
        digest = content.digest if content is not None else None
        key = self._key(version.item, version.version, digest, 0)
        return self.weigher.size(content, estimate, record.context_kind, key).tokens

    def _wrapped(self, block: Block, content: Content | None) -> Content | None:
        if content is None or not (block.before or block.after):
            return content
        return self._store.derive(block.before, content, block.after)

    def _key(self, item: str, version: str | None, digest: str | None, textless: int) -> int:
        # Without a text, another declared size is another placement. Otherwise the ledger would not add up.
        what = (item, version, digest, textless)
        key = self._keys.get(what)
        # Threads share the table. Each call is atomic; together they may only skip a number.
        return key if key is not None else self._keys.setdefault(what, next(self._next_key))


def _rendering(digest: str | None, block: Block | None) -> str | None:
    """Return an identity of the text as sent: its digest, and the rest of its block's JSON."""
    return f"{digest} {block.form}" if block is not None and block.form else digest


def _rank(segment: str, block: Block | None, record: Item | None) -> int:
    """Return the rank in the provider's order. A block among a body's messages ranks as a message.

    Anthropic's own web search is part of the system prompt ("Prompt caching": turning it on or off leaves the
    tools' cache valid).
    """
    if block is not None and block.field in _MESSAGES:
        return 2
    rank = rank_of(segment)
    if rank == 0 and record is not None and record.context_kind == "tool_definition":
        native = record.metadata.get("native")
        kind = native.get("type") if isinstance(native, dict) else None
        if isinstance(kind, str) and _WEB_SEARCH.match(kind):
            return 1
    return rank


def _redaction(block: Block | None, version: ItemVersion) -> str | None:
    """Return the redaction state of the block, or else of the item's record."""
    if block is not None and block.redaction_state is not None:
        return block.redaction_state
    return version.record.redaction.redaction_state if version.record.redaction is not None else None
