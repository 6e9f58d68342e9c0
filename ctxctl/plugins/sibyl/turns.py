"""The events of one pack, from one call of the tool and its answer: a turn of the thread of its goal."""

from __future__ import annotations

from typing import Final, NamedTuple

from ctxctl.ingest import build
from ctxctl.ingest.build import Json, Maker, Place
from ctxctl.ingest.parts import count, mapping, string
from ctxctl.model import vocab
from ctxctl.plugins.sibyl import rendering as md
from ctxctl.plugins.sibyl.pack import (
    CHARS_PER_TOKEN,
    DEFAULT_LAYER,
    DEFAULT_LIMIT,
    DEFAULT_TOKENS,
    LAYER_LIMITS,
    LEAST_CHARS,
    Item,
    Pack,
    requested_limit,
)
from ctxctl.plugins.sibyl.reach import PlacedPiece, ReachedPack
from ctxctl.plugins.sibyl.records import TITLE, Answer, Call
from ctxctl.plugins.sibyl.rendering import Piece, Rendering

KIND: Final = "durable_memory"
_KEPT: Final = (
    "intent", "query", "domain", "project", "scope", "layer", "total_items", "usage_hint", "usage_metadata",
    "evidence",
)  # fmt: skip
_OF_ITEM: Final = ("type", "reason", "source", "quality", "metadata", "related")
_OVER: Final = {"content_limit": "too_large"}
"""Reasons of a render receipt that are not the budget's."""


class _Thread:
    def __init__(self, name: str | None) -> None:
        self.name = name
        self.turns = 0
        self.known: dict[str, str] = {}
        """By item, the digest of all that was announced of it."""

    def news(self, name: str, told: str) -> str | None:
        """The event that tells of an item: it is new, or something of it changed; None if nothing did."""
        digest = build.digest_of(told)
        known = self.known.get(name)
        if known == digest:
            return None
        self.known[name] = digest
        return vocab.ITEM_ADDED if known is None else vocab.ITEM_UPDATED


class PackTurns:
    """Makes the events of an import's packs."""

    def __init__(self, make: Maker, out: list[Json]) -> None:
        self._make = make
        self._out = out
        self._threads: dict[str | None, _Thread] = {}
        self._failed = _Thread("failed")
        self._audit = _Thread("audit")
        self._line = 0
        self._place = Place()
        self._audits: list[str] = []

    def add(self, found: Exchange) -> None:
        """Give one exchange's events."""
        if found.reached is not None and found.reached.form == "json":
            # The model got the pack itself: what its markdown leaves out or cuts does not matter.
            found = found._replace(rendering=None, pack=found.pack._replace(markdown=None))
        self._make.file = found.file
        self._line = found.line
        self._make.at(found.answer.time)
        thread = self._thread(found)
        thread.turns += 1
        native = found.answer.native_id or (found.call.native_id if found.call is not None else None)
        self._place = Place(None, thread.name, f"pack-{thread.turns}", native or receipt_id(found.pack))
        self._audits = [name for row in found.audits if (name := string(row.get("id"))) is not None]
        scope = f"{thread.name or vocab.MAIN_THREAD}-{thread.turns}"
        self._started(found, scope)
        for item in found.pack.items:
            self._item(thread, item)
        self._bare(thread, found)
        self._selection(found, scope)
        self._budget(found, scope)
        self._assembly(thread, found, scope)
        self._missing(found, scope)

    def _thread(self, found: Exchange) -> _Thread:
        """Packs of one goal are one thread, the first goal's the main one.

        Calls that failed are a thread of their own: the next pack is compared with the last one.
        """
        if found.answer.error is not None:
            return self._failed
        if found.answer.pack is None:
            # Only the audit tells of it, and not for which goal.
            return self._audit
        named = goal_of(found)
        if named is None and self._threads:
            return next(reversed(self._threads.values()))
        thread = self._threads.get(named)
        if thread is None:
            thread = _Thread(f"goal-{len(self._threads) + 1}" if self._threads else None)
            self._threads[named] = thread
        return thread

    def _emit(self, event_type: str, data: Json) -> None:
        event = self._make.event(event_type, data, self._place, self._line)
        if self._audits:
            event["evidence_refs"] = list(self._audits)
        self._out.append(event)

    # -- items ------------------------------------------------------------------------------------------

    def _started(self, found: Exchange, scope: str) -> None:
        if found.call is None:
            return
        arguments = found.call.arguments
        record = self._make.record(
            selection_id=f"selection-{scope}",
            surface_id=f"memory-{scope}",
            query=string(arguments.get("goal")),
            intent=string(arguments.get("intent")),
            metadata={"native": {"arguments": arguments}},
        )
        self._emit(vocab.SELECTION_STARTED, record)

    def _item(self, thread: _Thread, item: Item) -> None:
        event_type = thread.news(item.name, item.facet + build.canonical(item.record))
        if event_type is None:
            return
        native: Json = {
            key: item.record[key] for key in _OF_ITEM if item.record.get(key) not in (None, {}, [])
        }
        if item.name != item.native_id:
            native["id"] = item.native_id
        if item.facet:
            native["facet"] = item.facet
            native["score"] = item.score
        meta: Json = {"native": native}
        fields: Json = {"title": item.title, "source_refs": [_source(item)], "metadata": meta}
        if item.content is None:
            record = build.opaque_item(item.name, KIND, None, **fields)
        else:
            record = build.text_item(item.name, KIND, item.content, **fields)
        self._emit(event_type, record)

    def _bare(self, thread: _Thread, found: Exchange) -> None:
        """What only the markdown tells: its own lines, and items where no pack was captured."""
        if found.rendering is None:
            return
        named = {item.name for item in found.pack.items}
        for piece in found.rendering.pieces:
            marks: Json = {"ctxctl": {"derived": True}}
            event_type = thread.news(piece.name, piece.text) if piece.name not in named else None
            if event_type is None:
                continue
            if not piece.item:
                record = build.text_item(piece.name, "marker", piece.text, metadata=marks)
            else:
                marks["native"] = {"facet": piece.facet}
                record = build.opaque_item(piece.name, KIND, None, title=piece.title, metadata=marks)
            self._emit(event_type, record)

    # -- the selections ---------------------------------------------------------------------------------

    def _selection(self, found: Exchange, scope: str) -> None:
        pack = found.pack
        native = _told(pack.record, _KEPT)
        if pack.titles:
            native["titles"] = {facet: title for title, facet in pack.titles.items()}
        if pack.receipt is not None:
            native["receipt"] = pack.receipt
        if found.audits:
            native["audit"] = list(found.audits)
        names: list[Json | str]
        if pack.items or found.rendering is None:
            names = [_chosen(item, rank) for rank, item in enumerate(pack.items, 1)]
        else:
            names = list(found.rendering.items)
        marks: Json = {} if pack.items or not names else {"ctxctl": {"derived": True}}
        record = self._make.record(
            selection_id=f"selection-{scope}",
            surface_id=f"memory-{scope}",
            query=goal_of(found),
            intent=pack.text("intent"),
            selected_item_refs=names,
            ranking_signals={
                ref(item): {"relevance": item.score, "facet": item.facet, "rank": rank}
                for rank, item in enumerate(pack.items, 1)
                if item.score is not None
            },
            rationale="; ".join(self._notes(found)) or None,
            metadata={"candidates_not_reported": True, "native": native, **marks},
        )
        self._emit(vocab.SELECTION_COMPLETED, record)

    def _notes(self, found: Exchange) -> list[str]:
        """What no field of the standard tells of the choice: a limit that was cut, and the audit's rows."""
        wanted = asked_limits(found)
        said = []
        if wanted.limit is not None and wanted.most != wanted.limit:
            whose = " (the tool's default)" if "limit" in wanted.defaults else ""
            said.append(f"limit {wanted.limit}{whose}, cut to {wanted.most} by the layer {wanted.layer}")
        if self._audits:
            said.append(f"audit {', '.join(self._audits)}")
        return said

    def _budget(self, found: Exchange, scope: str) -> None:
        """The clamp of the layer and the budget of the markdown, with what either left out or cut."""
        pack, rendering = found.pack, found.rendering
        wanted = asked_limits(found)
        left = _left_out(found)
        chars = wanted.chars if rendering is not None else None
        if wanted.most is None and chars is None and not left:
            return
        told = bool(md.dispositions(pack)) and wanted.most in (None, wanted.limit)
        marks: Json = {} if told and not wanted.defaults else {"derived": True}
        if rendering is not None and chars is not None:
            marks["max_chars"], marks["actual_chars"] = chars, rendering.counted
            marks["chars_by"] = wanted.words
        markdown = pack.markdown
        record = self._make.record(
            budget_id=f"budget-{scope}",
            target=vocab.MODEL,
            max_items=wanted.most,
            actual_items=len(pack.items) if wanted.most is not None else None,
            actual_bytes=len(markdown.encode("utf-8", "replace")) if markdown is not None else None,
            overflow_strategy="truncate_tail" if left else None,
            truncation_records=left or None,
            metadata={"native": _native_budget(found, wanted), **({"ctxctl": marks} if marks else {})},
        )
        self._emit(vocab.BUDGET_APPLIED, record)

    # -- the view ---------------------------------------------------------------------------------------

    def _assembly(self, thread: _Thread, found: Exchange, scope: str) -> None:
        """The markdown in pieces; where a request holds some of the pack, exactly that, and its injection."""
        reached, rendering = found.reached, found.rendering
        placed: tuple[PlacedPiece, ...]
        if reached is not None:
            placed = reached.placed
        elif rendering is not None:
            placed = tuple(PlacedPiece(piece.name, piece.text) for piece in rendering.pieces)
        else:
            return
        items = {item.name: item for item in found.pack.items}
        pieces = {piece.name: piece for piece in rendering.pieces} if rendering is not None else {}
        native: Json = {"form": reached.form if reached is not None else "markdown"}
        marks: Json = {"mode": "window", "derived": True}
        if reached is not None:
            native.update(request_line=reached.line, request_file=reached.file)
            if reached.model is not None:
                marks["model"] = reached.model
        assembly_id = f"assembly-{scope}"
        record = self._make.record(
            assembly_id=assembly_id,
            target=vocab.MODEL,
            separator_policy="\n" if native["form"] == "markdown" else None,
            ordered_blocks=[_block(p, items.get(p.name), pieces.get(p.name)) for p in placed],
            visibility=[vocab.MODEL],
            metadata={"native": native, "ctxctl": marks},
        )
        self._emit(vocab.ASSEMBLY_CREATED, record)
        if reached is not None:
            injected = build.injection(
                self._make, f"injection-{scope}", assembly_id, "message_history",
                native_id=None, model=reached.model,
            )  # fmt: skip
            injected.setdefault("metadata", {})["ctxctl"] = {"derived": True}
            self._emit(vocab.INJECTION_APPLIED, injected)

    def _missing(self, found: Exchange, scope: str) -> None:
        """What the tool said went wrong, and a pack that nothing of which was sent."""
        told = [(text, "high") for text in faults_of(found)]
        total, held = count(found.pack.record.get("total_items")), len(found.pack.items)
        if total is not None and total > held:
            told.append((f"the pack says that it has {total} items; the capture holds {held}", "medium"))
        if found.searched and found.reached is None and found.answer.error is None:
            text = f"nothing of the pack is in the {found.searched} requests captured beside it"
            told.append((text, "info"))
        for number, (question, severity) in enumerate(told, 1):
            record = self._make.record(
                missing_id=f"missing-{scope}-{number}",
                scope="tool_invocation",
                question=question,
                severity=severity,
                status="open",
                metadata={"native": {"error": question}} if severity == "high" else None,
            )
            self._emit(vocab.MISSING_DETECTED, record)


def _told(record: Json, keys: tuple[str, ...]) -> Json:
    """The fields that say something."""
    return {key: record[key] for key in keys if record.get(key) not in (None, {}, [])}


def _native_budget(found: Exchange, wanted: AskedLimits) -> Json:
    """The tool's own words for what was asked; a budget of null is one that was asked for."""
    native: Json = {"limit": wanted.limit, "layer": wanted.layer}
    if wanted.limit is not None:
        native["layer_limit"] = LAYER_LIMITS.get(wanted.layer or "")
    native = {key: value for key, value in native.items() if value is not None}
    if wanted.most is not None and wanted.limit != wanted.most:
        native["clamped"] = True
    if wanted.told and found.rendering is not None:
        native["markdown_token_budget"] = wanted.tokens
    if wanted.defaults:
        native["defaults"] = list(wanted.defaults)
    return native


def ref(item: Item) -> str:
    """`ID@VERSION` of an item; its id alone where the capture holds no content."""
    return item.name if item.digest is None else f"{item.name}@{item.digest[: build.VERSION_DIGITS]}"


def _chosen(item: Item, rank: int) -> Json:
    """An item as the pack chose it: its place in it, its score, and why."""
    made: Json = {"item_ref": ref(item), "rank": rank}
    if item.score is not None:
        made["score"] = item.score
    reason = string(item.record.get("reason"))
    said = [word for word in (item.facet, reason) if word]
    if said:
        made["reason"] = ": ".join(said)
    return made


def _block(placed: PlacedPiece, item: Item | None, piece: Piece | None) -> Json:
    made: Json = {"block_id": placed.name, "role": "tool"}
    facet = item.facet if item is not None else piece.facet if piece is not None else None
    if facet is not None:
        made["segment"] = facet
    made["item_refs"] = [ref(item) if item is not None else placed.name]
    if placed.text is not None:
        made["content"] = placed.text
    cut = piece is not None and item is not None and placed.text is not None and piece.cuts(item.content)
    if placed.truncated or cut:
        made["metadata"] = {"ctxctl": {"truncated": True}}
    return made


def _left_out(found: Exchange) -> list[Json]:
    """Truncation records: what the markdown leaves out or shortens, or what a request holds nothing of."""
    pack, rendering = found.pack, found.rendering
    if rendering is None and found.reached is None:
        return []
    told = md.dispositions(pack)
    rendered = rendering.items if rendering is not None else {}
    records: list[Json] = []
    for item in pack.items:
        state, why = told.get(item.name, (None, None))
        piece = rendered.get(item.name)
        if rendering is not None and piece is None:
            why = why or ("token budget" if rendering.trimmed is not None else "limits of the rendering")
            records.append(_record(item, _OVER.get(why, "budget_limit"), why, dropped=True))
        elif found.reached is not None and item.name not in found.reached.names:
            records.append(_record(item, "not_visible_to_target", "not in the request", dropped=True))
        elif piece is not None and (state == "trimmed" or piece.cuts(item.content)):
            records.append(_record(item, "too_large", why or "shortened in the markdown", dropped=False))
    return records


def _record(item: Item, reason: str, why: str, *, dropped: bool) -> Json:
    return {"item_ref": ref(item), "reason": reason, "dropped": dropped, "metadata": {"native_reason": why}}


def _source(item: Item) -> Json:
    """Where Sibyl has an item from."""
    quality = mapping(item.record.get("quality"))
    made: Json = {"schema_version": vocab.SCHEMA_VERSION, "source_id": item.native_id}
    made["uri"] = string(quality.get("url")) or f"sibyl:{item.native_id}"
    made["source_kind"] = string(item.record.get("type")) or KIND
    if item.digest is not None:
        made["digest"] = f"sha256:{item.digest}"
    modified = build.timestamp(quality.get("updated_at"))
    if modified is not None:
        made["modified_at"] = modified
    return made


class Exchange(NamedTuple):
    """One call and its answer, with what was found beside it."""

    call: Call | None
    answer: Answer
    pack: Pack
    rendering: Rendering | None
    line: int
    file: str | None
    reached: ReachedPack | None = None
    searched: int = 0
    """Requests beside it in which it was looked for."""
    audits: tuple[Json, ...] = ()


class AskedLimits(NamedTuple):
    """What a call asked for, with the tool's own defaults where it named nothing; None: not told."""

    limit: int | None
    most: int | None
    """The limit cut to its layer's."""
    layer: str | None
    tokens: int | None
    """The budget of the markdown, in the tool's tokens of four characters."""
    told: bool
    """Whether the budget is known; it may be none."""
    defaults: tuple[str, ...]
    """Which of these the tool added."""

    @property
    def chars(self) -> int | None:
        """The budget of the markdown as the tool keeps it."""
        return None if self.tokens is None else max(LEAST_CHARS, self.tokens * CHARS_PER_TOKEN)

    @property
    def words(self) -> str:
        """That budget as it was asked for, and how it becomes characters."""
        least = f", {LEAST_CHARS} at least" if self.chars == LEAST_CHARS else ""
        whose = ", by default" if "markdown_token_budget" in self.defaults else ""
        return f"{self.tokens or 0:,} of the tool's tokens{whose}, {CHARS_PER_TOKEN} characters each{least}"


def asked_limits(found: Exchange) -> AskedLimits:
    """The limits of one call: as a receipt has them, as it named them, else the tool's defaults.

    Without a call only what the pack says of itself is known.
    """
    arguments = found.call.arguments if found.call is not None else {}
    whole = found.call is not None and found.call.whole
    defaults = []
    limit, layer = requested_limit(arguments), found.pack.layer or string(arguments.get("layer"))
    if layer is None and whole and "layer" not in arguments:
        layer = DEFAULT_LAYER
        defaults.append("layer")
    if limit is None and whole and "limit" not in arguments:
        limit = DEFAULT_LIMIT
        defaults.append("limit")
    most = LAYER_LIMITS.get(layer or "")
    cut = min(n for n in (limit, most) if n is not None) if limit is not None else None
    tokens, told = _budget(found, arguments)
    if not told and whole and "markdown_token_budget" not in arguments:
        tokens, told = DEFAULT_TOKENS, True
        defaults.append("markdown_token_budget")
    return AskedLimits(limit, cut, layer, tokens, told, tuple(defaults))


def _budget(found: Exchange, arguments: Json) -> tuple[int | None, bool]:
    """The markdown's budget in the tool's tokens, and whether anything tells of it."""
    receipt = found.pack.record.get("render_receipt")
    options = receipt.get("options") if isinstance(receipt, dict) else None
    for holder, key in ((options, "token_budget"), (arguments, "markdown_token_budget")):
        value = holder.get(key, False) if isinstance(holder, dict) else False
        if value is None:
            return None, True
        # No limit is larger than what a file can hold; a negative one counts as none left.
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
            return value, True
    trimmed = found.rendering.trimmed if found.rendering is not None else None
    return trimmed, trimmed is not None


def goal_of(found: Exchange) -> str | None:
    """The goal: as the pack says, as the call said, or as the markdown's title has it."""
    goal = found.pack.text("goal")
    if goal is None and found.call is not None:
        goal = string(found.call.arguments.get("goal"))
    markdown = found.pack.markdown
    if goal is None and markdown is not None and markdown.lstrip().startswith(TITLE):
        goal = markdown.lstrip().removeprefix(TITLE).partition("\n")[0].strip() or None
    return goal


def receipt_id(pack: Pack) -> str | None:
    """The id of the request that a pack's receipt names."""
    receipt = pack.record.get("render_receipt")
    return string(receipt.get("request_id")) if isinstance(receipt, dict) else None


def faults_of(found: Exchange) -> list[str]:
    """The error of a call, and the lanes of a retrieval that a pack says failed."""
    told = [found.answer.error] if found.answer.error is not None else []
    record = found.pack.record
    for holder in (record, record.get("usage_metadata"), record.get("evidence")):
        for key in ("errors", "failed_lanes", "lane_errors"):
            rows = holder.get(key) if isinstance(holder, dict) else None
            for row in rows if isinstance(rows, list) else [rows] if isinstance(rows, str) else ():
                told.append(row if isinstance(row, str) else build.canonical(row))
    return told
