"""One thread of an import: what is in its window, and the events of each request that carried it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import takewhile
from typing import Any, Final, NamedTuple

from ctxctl.ingest import build
from ctxctl.ingest.about import wrong_keyword
from ctxctl.ingest.build import Block, Json, Maker, Place, Window
from ctxctl.ingest.item_identity import PlacedItem, aligned_identities
from ctxctl.ingest.parts import Part
from ctxctl.listdiff import Splice, joined, trimmed
from ctxctl.model import vocab

_MARKS: Final = (
    "derived", "error", "status", "outcome", "purpose", "label", "cache_points", "max_output_tokens",
    "message_count",
)  # fmt: skip
"""What importers say of a request beside the arguments of `request`: fields of `metadata.ctxctl`."""
_KNOWN_MARKS: Final = frozenset(_MARKS)
_STOOD: Final = 16
"""Rows in front, of which only the ids are asked, in the time of one that is compared."""
_COMPACTION: Final = (
    "compaction_id", "scope", "method", "trigger", "coverage", "loss_notes", "validation",
    "replacement_policy", "metadata", "request",
)  # fmt: skip
"""Fields of a `context_compaction` that the caller may give; `request` describes the request that wrote the
summary,
if it is none of this conversation (`Conversation.unbilled`)."""
_KNOWN_COMPACTION: Final = frozenset(_COMPACTION)
_Row = tuple[Block, str]
"""A placement and the item's kind."""


class _LaterEvent(NamedTuple):
    """An event that waits for the next request."""

    kind: str
    data: Json
    line: int
    time: str | None


class Conversation:
    """A thread's window, which grows, is cut, or is seen whole with each request; a step costs what changed.

    The importer changes the window (`append`, `splice`, `replace`), then says `request`: that seals a step.
    What a request answered is appended and enters the next request's window.

    Args:
        make: Makes the import's events; shared by its conversations.
        out: Where events go, in order; the importer hands them on.
        session: Session id; None where the format knows none.
        thread: Thread name; None means main.
        origin: For `metadata.ctxctl` of the first assembly (`parent_thread`, `parent_tool_call`,
            `agent_type`).
        mode: `window` (each request carries everything) or `append`.
        point: The injection point.
    """

    def __init__(
        self,
        make: Maker,
        out: list[Json],
        *,
        session: str | None = None,
        thread: str | None = None,
        origin: Json | None = None,
        mode: vocab.Mode = "window",
        point: str = "message_history",
    ) -> None:
        self._make = make
        self._out = out
        self.session = session
        self.thread = thread
        self.turn: str | None = None
        """Native id of the turn that the next request belongs to; set it when a prompt comes."""
        self.rows: list[_Row] = []
        self._origin = dict(origin or {})
        self._mode = mode
        self._point = point
        self._window = Window()
        self._old: list[_Row] = []
        self._clean = 0
        self._puts: dict[int, _Row] = {}
        """By index below `_clean`: the row that the last request carried there."""
        self._pending: list[Part] = []
        self._pending_appended = 0
        """How many of the pending parts, from the first on, were appended since the last request."""
        self._later: list[_LaterEvent] = []
        self._versions: dict[str, str] = {}
        """By item, the version that was announced last."""
        self._announced: dict[str, tuple[str, str | None]] = {}
        """By item, the version that is announced, or is going to be, and the digest of its text."""
        self._derived: set[str] = set()
        """Items whose identity was made here."""
        self._names: dict[str, str] = {}
        """The id or source of items that had to be told apart from others with the same one."""
        self._steps: dict[str, int] = {}
        """The names of steps, each with the number that its last repetition got."""
        self._made = 0
        self._billed: int | None = None
        """Tokens of the last input that was billed."""
        self._place = Place(session, thread, None, None)
        self._cause: str | None = None
        self._told: tuple[str, str | None, str | None, Json] = ("", None, None, {})
        """The last request: the end of its names, its native id, its model, and its marks."""
        self.steps = 0
        """The number of requests so far."""
        self.mark = ""
        """The suffix of the names that are made here, where others make names for the same thread."""
        self.injected: Json = {}
        """The marks of the injections to come: `derived` where no record tells of the request, `turn`
        likewise, `lacks` the facts of the format that such a capture does not hold."""

    def __len__(self) -> int:
        return len(self.rows)

    def go_on_from(self, rows: Iterable[_Row]) -> None:
        """Begin with a window that another conversation has told: later items keep its identities, and are
        told anew."""
        self.rows = list(rows)
        self._old, self._clean = [], 0

    # -- the window -----------------------------------------------------------------------------------------

    def append(self, *parts: Part) -> None:
        """Put parts at the end of the window."""
        rows, before = self.rows, len(self._pending)
        for part in self._known(parts):
            rows.append((part.block(), part.kind))
        if self.steps and before == self._pending_appended:
            self._pending_appended = len(self._pending)

    def name(self, *parts: Part) -> None:
        """Give parts identities of their own, though equal ones may be there."""
        for part in parts:
            part.item = self._name(part)
            self._derived.add(part.item)

    def pass_over(self, *parts: Part) -> None:
        """Tell, with the next request, of parts that entered and that it does not carry."""
        self._known(parts)

    def splice(self, at: int, removed: int, parts: Iterable[Part] = (), *, cause: str | None = None) -> None:
        """Replace `removed` rows from index `at` by `parts`; `cause`: why the old ones go (`branched` …)."""
        fresh = [(part.block(), part.kind) for part in self._known(parts)]
        if not fresh and not removed:
            return
        self._make.count_work(len(fresh) + removed)
        self._touch(at)
        self.rows[at : at + removed] = fresh
        if cause is not None:
            self._cause = cause

    def insert(self, parts: Sequence[tuple[int, Part]]) -> None:
        """Put each part in front of a row, by ascending rows; the cost is that of the rows from the first one
        on."""
        if not parts:
            return
        self._known(part for _, part in parts)
        first = at = parts[0][0]
        self._touch(first)
        rows: list[_Row] = []
        for before, part in parts:
            rows += self.rows[at:before]
            rows.append((part.block(), part.kind))
            at = before
        self._make.work += len(parts)
        self.rows[first:] = rows + self.rows[at:]

    def put(self, at: int, part: Part, *, cause: str | None = None) -> None:
        """Put another part in the place of row `at`; the cost does not depend on the place.

        `cause`: why the old one goes.
        """
        self._known([part])
        if at < self._clean:
            self._puts.setdefault(at, self.rows[at])
        self.rows[at] = part.block(), part.kind
        self._cause = cause or self._cause

    def drop(self, unwanted: Callable[[str], bool], *, cause: str | None = None) -> int:
        """Take the items out whose id `unwanted` says yes to; returns how many rows went."""
        self._make.count_work(len(self.rows))
        keep = [row for row in self.rows if not unwanted(row[0].item)]
        gone = len(self.rows) - len(keep)
        if gone:
            self._touch(0)
            self.rows[:] = keep
            self._cause = cause or self._cause
        return gone

    def identify(
        self,
        parts: Sequence[Part],
        *,
        at: int = 0,
        fresh: bool = False,
        kept: Sequence[_Row] = (),
        several: Collection[str] = (),
    ) -> None:
        """Give the parts of a request from row `at` on identities, and leave the window as it is.

        Args:
            parts: In order; those of `replace` and `compact` are identified there.
            at: What stands before it stays.
            fresh: As in `replace`.
            kept: The rows that follow the parts.
            several: Sources that are one item each, of which several versions may stand side by side.
        """
        if not parts:
            return
        self._make.count_work(at // _STOOD + len(self.rows) - at + len(parts) + len(kept))
        taken = {row[0].item for row in self.rows[:at]}
        before = [self._standing(row) for row in self.rows[at:] if row[0].item not in taken]
        after = [_asked(part, fresh) for part in parts] + [self._standing(row) for row in kept]
        found = aligned_identities(before, after, afresh=fresh)
        taken.update(found.values())
        again: dict[str, int] = {}
        for index, part in enumerate(parts):
            known, derived = found.get(index), not part.item
            if derived and part.source in several:
                part.item = part.source or ""
                continue
            if known is not None:
                part.item = known
                continue
            # A place in a rewritten history may have belonged to another item.
            moved = fresh and derived and part.place is not None
            name = part.item = part.item or self._name(part)
            while part.item in taken or (moved and part.item in self._versions):
                again[name] = again.get(name, 1) + 1
                part.item = f"{name}~{again[name]}"
            taken.add(part.item)
            if part.item != name:
                self._names[part.item] = name
            if derived:
                self._derived.add(part.item)

    def replace(
        self, parts: Sequence[Part], *, at: int = 0, fresh: bool = False, cause: str | None = None
    ) -> None:
        """Make the window from row `at` on exactly `parts`, as a captured request body shows it.

        Identity: the part's key, else its source, else alignment by digest with the window's rows
        (`item_identity.aligned_identities`); `fresh`: after a compaction or a new root only what stands in
        order stays.  `cause`: why what goes is gone, if anything is.
        """
        self.identify(parts, at=at, fresh=fresh)
        self._known(parts)
        self._touch(at)
        held = {row[0].item for row in self.rows[at:]} if cause is not None else set()
        self.rows[at:] = [(part.block(), part.kind) for part in parts]
        if held - {part.item for part in parts}:
            self._cause = cause

    def compact(
        self,
        parts: Sequence[Part],
        *,
        summary: Part | None = None,
        keep: Callable[[str], bool] | None = None,
        several: Collection[str] = (),
        line: int = 0,
        **record: Any,
    ) -> None:
        """Compact the window to `parts`, with the items that `keep` says yes to behind them.

        A part that stands in the window verbatim and in order keeps its identity.

        Args:
            parts: What the window begins with afterwards; `summary` among them, if the capture holds one.
            summary: The part that stands for what left; None if its text is not recorded.
            keep: By item id; None keeps nothing.
            several: As in `identify`.
            line: Line of the foreign file.
            record: Further fields of the `context_compaction` (`method`, `trigger`, `coverage`, `loss_notes`,
                `metadata` …).  Raises TypeError for any other name.
        """
        self._make.count_work(len(self.rows))
        left = [row for row in self.rows if keep is None or not keep(row[0].item)]
        kept = [row for row in self.rows if keep is not None and keep(row[0].item)]
        self.identify(parts, fresh=True, kept=kept, several=several)
        self._known(parts)
        self._touch(0)
        self.rows[:] = [(part.block(), part.kind) for part in parts] + kept
        stays = {row[0].item for row in self.rows}
        refs = [row[0].ref for row in left if row[0].item not in stays]
        into = summary.block().ref if summary is not None else None
        self.compacted(refs, into, line=line, **record)

    def compacted(self, sources: list[str], into: str | None, *, line: int = 0, **record: Any) -> None:
        """Tell of a compaction with the next request, without changing the window.

        `record`: as in `compact`.
        """
        if not record.keys() <= _KNOWN_COMPACTION:
            raise wrong_keyword("compact", record, ("summary", "keep", "several", "line", *_COMPACTION))
        self._made += 1
        if (request := record.pop("request", None)) is not None:
            marks = record.get("metadata") or {}
            record["metadata"] = {**marks, "ctxctl": {**marks.get("ctxctl", {}), "request": request}}
        native_id = (
            record.pop("compaction_id", None) or f"compaction-{self.thread or 'main'}-{self._made}{self.mark}"
        )
        self.tell(
            vocab.COMPACTION_COMPLETED,
            {
                "compaction_id": native_id,
                "scope": "session",
                "source_item_refs": sources,
                "summary_ref": into,
                "method": "abstractive_summary" if into is not None else "custom",
                "coverage": {"items": len(sources)},
                **record,
            },
            line=line,
        )

    def sum_up(self, parts: Iterable[Part], *, at: int, line: int = 0) -> None:
        """Append parts of an answer; each summary among them replaces the rows from `at` on."""
        for part in parts:
            self.append(part)
            if part.kind == "thread_summary":
                gone = [row[0].ref for row in self.rows[at:-1]]
                marks = {"ctxctl": {"derived": True}}
                self.compacted(gone, part.block().ref, line=line, metadata=marks)
                self.splice(at, len(gone))

    def unbilled(self, tokens: int | None = None) -> Json:
        """The `request` of a compaction that is in no log: it was sent this many tokens, or else those of the
        last bill."""
        return {"billed": False, "input_tokens": tokens or self._billed or 0}

    def tell(self, event_type: str, fields: Json, *, line: int = 0) -> None:
        """Have a record (selection, budget, surface …) told with the next request, before its assembly."""
        record = self._make.record(**fields)
        time = self._make.time

        self._later.append(_LaterEvent(event_type, record, line, time))

    # -- requests -------------------------------------------------------------------------------------------

    def request(
        self,
        step: str | None = None,
        *,
        line: int = 0,
        model: str | None = None,
        native_id: str | None = None,
        settings: Json | None = None,
        marks: Json | None = None,
        awaits_answer: bool = False,
        **ctxctl: Any,
    ) -> Place:
        """Seal a step: the window as it is now went to the model.

        Args:
            step: Native id of the request; one is made up where there is none.
            line: Line of the foreign file.
            model: The model that was asked.
            native_id: The provider's id of the request.
            settings: Parameters of its body that a prompt cache hangs on (`Dialect.settings`); None where
                the body is not known.
            marks: Further fields of the assembly's `metadata.ctxctl`, under names of the importer's own.
            awaits_answer: Whether only the answer says what the model read; then `read` seals the step.
            ctxctl: Those that ctxctl knows (`derived=True` where the window was put together rather than
                read, `error`, `purpose` …).  Raises TypeError for any other name.
        """
        if ctxctl and not ctxctl.keys() <= _KNOWN_MARKS:
            known = ("step", "line", "model", "native_id", "settings", "marks", "awaits_answer", *_MARKS)
            raise wrong_keyword("request", ctxctl, known)
        self._tell_answer()
        self.steps += 1
        name = self._unique(step or f"step-{self.steps}")
        place = self._place = Place(self.session, self.thread, self.turn, name)
        self._flush(place)
        scope = f"{self.session or ''}/{self.thread or vocab.MAIN_THREAD}/{name}".lstrip("/")
        told = {**self._origin, **ctxctl, **(marks or {}), "mode": self._mode}
        self._assemble(f"asm-{scope}", line, model=model, settings=settings, **told)
        self._origin = {}
        injected = {**self.injected, "awaits_answer": True} if awaits_answer else self.injected
        self._inject(f"inj-{scope}", line, native_id, model, injected)
        self._told = (scope, native_id, model, {**ctxctl, **(marks or {}), "mode": self._mode})
        return place

    def read(self, *, line: int = 0) -> None:
        """Seal the last request's step, which awaited its answer; the model read the window as it is now."""
        scope, native_id, model, told = self._told
        self._flush(self._place)
        edits = self._edits()
        if edits or self._cause is not None:
            self._assemble(f"asm-{scope}~read", line, edits, model=model, **told)
        self._inject(f"inj-{scope}~read", line, native_id, model, self.injected)

    def _assemble(self, name: str, line: int, edits: list[Splice[Block]] | None = None, **told: Any) -> None:
        edits = self._edits() if edits is None else edits
        assembly = self._window.assemble(self._make, name, edits, cause=self._cause, **told)
        self._cause = None
        self._out.append(self._make.event(vocab.ASSEMBLY_CREATED, assembly, self._place, line))

    def _inject(self, name: str, line: int, native_id: str | None, model: str | None, marks: Json) -> None:
        record = build.injection(
            self._make, name, self._window.assembly_id or "", self._point, native_id=native_id, model=model,
            marks=marks,
        )  # fmt: skip
        self._out.append(self._make.event(vocab.INJECTION_APPLIED, record, self._place, line))

    def usage(self, record: Json | None, *, line: int = 0, place: Place | None = None) -> None:
        """Report what the provider billed for the last request, or for that of `place`.

        A record of `totals` states figures for several requests, up to that one.
        """
        if record is not None:
            self._billed = record.get("input_tokens", self._billed)
            kind = vocab.TOTAL_STATED if "totals" in record else vocab.USAGE_REPORTED
            self._emit(kind, record, place or self._place, line)

    def stated(self, *totals: Json | None, line: int = 0) -> None:
        """Report totals of several requests (`providers.usage.stated_total`), up to the last one; None is
        passed over.

        Without a request, all are passed over."""
        held = [total for total in totals if total is not None]
        if held and self.steps:
            self.usage({"totals": held}, line=line)

    def finish(self) -> None:
        """End the thread: announce what no request has carried yet (the last answer)."""
        # Without a step or a new turn, as what no request carried makes none.
        turn = self.turn if not self.steps else None
        self._flush(Place(self.session, self.thread, turn, None))

    def tell_anew(self, unsaid: str | None = None) -> None:
        """Forget what was told so far, as it is in another file: the next request tells all of it.

        The window's items keep their identities; give them all to `replace` before.  `unsaid` names the last
        step, which may come again.
        """
        self._versions.clear()
        self._announced.clear()
        self._window = Window()
        self._old, self._clean = [], 0
        self._puts.clear()
        if unsaid is not None:
            self._steps.pop(unsaid, None)

    @property
    def place(self) -> Place:
        """The place of the last request."""
        return self._place

    def forget_gone(self) -> None:
        """Forget the items that the window no longer has, and all names of steps but the last.

        One of them that comes again is told again.
        """
        held = {row[0].item for row in self.rows}
        self._versions = {item: mark for item, mark in self._versions.items() if item in held}
        self._announced = {item: told for item, told in self._announced.items() if item in held}
        self._derived &= held
        self._names = {item: name for item, name in self._names.items() if item in held}
        self._steps = dict(list(self._steps.items())[-1:])

    # -- inside ---------------------------------------------------------------------------------------------

    def _emit(self, event_type: str, data: Json, place: Place, line: int, time: str | None = None) -> None:
        self._out.append(self._make.event(event_type, data, place, line, time=time))

    def _unique(self, name: str) -> str:
        found, again = name, self._steps.get(name, 1)
        while found in self._steps:
            again += 1
            found = f"{name}~{again}"
        self._steps[name] = again
        self._steps[found] = 1
        return found

    def _touch(self, at: int) -> None:
        """Remember what the last request carried from row `at` on, before that changes."""
        if at < self._clean:
            old = self.rows[at : self._clean]
            for index in [index for index in self._puts if index >= at]:
                old[index - at] = self._puts.pop(index)
            self._old[0:0] = old
            self._clean = at

    def _edits(self) -> list[Splice[Block]]:
        new = [row[0] for row in self.rows[self._clean :]]
        if self._old:
            edit = trimmed(self._clean, [row[0] for row in self._old], new)
            self._old = []
        else:
            edit = Splice(self._clean, 0, new) if new else None
        edits = [] if edit is None else [edit]
        if self._puts:
            puts = sorted(self._puts.items())
            changed = [Splice(i, 1, [self.rows[i][0]]) for i, row in puts if self.rows[i][0] != row[0]]
            edits = joined(changed + edits)
            self._puts.clear()
        self._clean = len(self.rows)
        return edits

    def _known(self, parts: Iterable[Part]) -> list[Part]:
        """Give each part an identity, and announce it if the thread has not had that version yet."""
        result = list(parts)
        versions = self._versions
        for part in result:
            item = part.item
            if not item:
                item = part.item = self._name(part)
                self._derived.add(item)
            mark = part.mark
            told = self._announced.get(item)
            if told is None or told[0] != mark:
                self._announced[item] = mark, part.digest
            elif told[1] != part.digest:
                part.sent = part.text or ""  # one version, two renderings
            if item in versions and versions[item] == mark:
                part.text = None
            else:
                part.time = part.time or self._make.time
                self._pending.append(part)
        return result

    def _name(self, part: Part) -> str:
        """Make an identity for a part that brings none."""
        if part.place is not None:
            return part.place
        if part.source is not None:
            return part.source
        self._made += 1
        return f"{part.kind}-{self._made}{self.mark}"

    def _standing(self, row: _Row) -> PlacedItem:
        block, kind = row
        mark, name = block.ref[len(block.item) + 1 :], self._names.get(block.item, block.item)
        return PlacedItem(block.role, kind, mark, name, block.item)

    def _tell_answer(self) -> None:
        """Tell the answer of the last request behind its bill, so that the two can be compared; it names no
        step, as it enters the next request's window."""
        answer = list(takewhile(_is_answer, self._pending[: self._pending_appended]))
        if answer:
            self._announce(answer, Place(self.session, self.thread, None, None))
            del self._pending[: len(answer)]

    def _flush(self, place: Place) -> None:
        """Announce the items that are new since the last request, then what else was to be told."""
        self._announce(self._pending, place)
        self._pending.clear()
        self._pending_appended = 0
        if self._later:
            made = self._make.event
            self._out.extend(made(one.kind, one.data, place, one.line, time=one.time) for one in self._later)
            self._later.clear()

    def _announce(self, parts: Iterable[Part], place: Place) -> None:
        make, out = self._make, self._out
        versions, derived = self._versions, self._derived
        for part in parts:
            item, mark = part.item, part.mark
            known = item in versions
            if known and versions[item] == mark:
                continue
            versions[item] = mark
            record = part.record(derived_identity=item in derived)
            event_type = vocab.ITEM_UPDATED if known else vocab.ITEM_ADDED
            out.append(make.event(event_type, record, place, part.line, time=part.time))
            part.text = None


def _asked(part: Part, fresh: bool) -> PlacedItem:
    """`fresh`: the history was rewritten, so that places in it name nothing any more."""
    name = part.item
    if not name:
        name = part.source or "" if part.place is None else "" if fresh else part.place
    return PlacedItem(part.role, part.kind, part.mark, name)


def _is_answer(part: Part) -> bool:
    return part.role == "assistant" and part.kind in vocab.ANSWERS
