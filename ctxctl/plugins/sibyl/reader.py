"""Reads Sibyl captures: files of packs, calls and answers, and directories of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import orjson

from ctxctl.errors import UnreadableError
from ctxctl.ingest.build import Json
from ctxctl.ingest.document import document
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.lines import Line, Report
from ctxctl.ingest.parts import shallow
from ctxctl.ingest.run import Run
from ctxctl.plugins.sibyl import pack as packs
from ctxctl.plugins.sibyl import reach, records
from ctxctl.plugins.sibyl.records import Answer, Audit, Call, SentRequest
from ctxctl.plugins.sibyl.rendering import cut_markdown
from ctxctl.plugins.sibyl.turns import Exchange, PackTurns
from ctxctl.trace.source import Source

NAME: Final = "sibyl"
_HEAD: Final = 1 << 16
_OPEN_CALLS: Final = 256
"""Calls without an answer that are remembered, and audit rows without a pack."""
_WAITING: Final = 32
"""Packs that wait for their audit rows, which are read from the server later."""
_MAX_MARKDOWN: Final = 16 << 20
_ONE: Final = Line(1, 0, b"")


class Reader(Run):
    """Reads one capture of Sibyl's exchanges."""

    def __init__(self, name: str, report: Report) -> None:
        super().__init__(name, report, "sb")
        self._turns = PackTurns(self.make, self.out)
        self._calls: dict[str, Call] = {}
        self._call: Call | None = None
        """The last call without an id."""
        self._held: list[Exchange] = []
        """Packs for which a request or an audit row may still come."""
        self._keep = _WAITING
        self._looked = 1
        """Of the held packs, how many a request is searched for, from the last back."""
        self._audits = _Rows()
        self._found = 0

    def events(self, source: Source) -> Iterator[Json]:
        """The events of one file."""
        yield from self._file(source)
        yield from self._end()

    def folder_events(self, folder: Folder) -> Iterator[Json]:
        """The events of a directory: its packs in the order of their names, then the requests beside them."""
        names = [name for name in folder.files if is_pack_file(folder.head(name, _HEAD))]
        others = [name for name in folder.files if name not in set(names)]
        if others:
            self._keep = self._looked = len(folder.files) + _OPEN_CALLS
        for name in (*names, *others):
            self.make.file = name
            if name in others and folder.head(name, _HEAD).lstrip()[:1] not in (b"{", b"["):
                continue
            try:
                source = folder.open(name)
            except UnreadableError as error:
                self.problem(error.slug, str(error), _ONE)
                continue
            with source:
                yield from self._file(source)
        yield from self._end()

    def _file(self, source: Source) -> Iterator[Json]:
        head = source.read(0, _HEAD)
        text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        if text.startswith(records.TITLE.encode()):
            self.line = _ONE
            # A pack has plain line ends; a file that was saved or checked out on Windows has others.
            data = source.read(0, _MAX_MARKDOWN).replace(b"\r\n", b"\n")
            markdown = data.decode("utf-8", "replace").removeprefix("\ufeff")
            self._take(Answer({"markdown": markdown}))
        elif one_document(head):
            self.line = _ONE
            self._value(document(source, self.report))
        else:
            for value in self.records(source):
                self._value(value)
                yield from self.drain()
        yield from self.drain()

    def _end(self) -> Iterator[Json]:
        self._release(0)
        while self._audits:
            self._alone(self._audits.first())
        file, self.make.file = self.make.file, None
        for call in (*self._calls.values(), *([self._call] if self._call is not None else ())):
            goal = call.arguments.get("goal")
            what = f"for {goal!r}" if isinstance(goal, str) else "of the tool"
            self.problem("no-answer", f"a call {what} has no answer in the capture")
        if not self._found:
            self.problem("no-context-pack", "the capture holds no context pack: nothing to replay", _ONE)
        self.make.file = file
        yield from self.drain()

    # -- records ----------------------------------------------------------------------------------------

    def _value(self, value: Any) -> None:
        for record in records.records(shallow(value, self.line.data)):
            self._take(record)

    def _take(self, record: records.Record) -> None:
        if isinstance(record, Call):
            self._called(record)
        elif isinstance(record, Answer):
            self._answered(record)
        elif isinstance(record, SentRequest):
            self._sent(record)
        else:
            self._audited(record)

    def _called(self, call: Call) -> None:
        if call.native_id is None:
            self._call = call
            return
        self._calls[call.native_id] = call
        if len(self._calls) > _OPEN_CALLS:
            del self._calls[next(iter(self._calls))]

    def _answered(self, answer: Answer) -> None:
        call = answer.call
        if call is None and answer.native_id is not None:
            call = self._calls.pop(answer.native_id, None)
        elif call is None:
            call, self._call = self._call, None
        if answer.pack is None and call is None and answer.native_id is not None:
            # The error of some other tool's call.
            return
        pack = packs.read_pack(answer.pack or {})
        if pack.skipped:
            self.problem("unknown-record", f"{pack.skipped} items of the pack have no id; skipped")
        rendering = cut_markdown(pack.markdown, pack) if pack.markdown is not None else None
        found = self._audits.of_pack(pack)
        rows = (found[0],) if found is not None else ()
        self._found += 1
        exchange = Exchange(call, answer, pack, rendering, self.line.number, self.make.file, audits=rows)
        self._held.append(exchange)
        self._release(self._keep)

    def _sent(self, sent: SentRequest) -> None:
        """Look for the packs that no request has held yet."""
        texts = reach.texts_of(sent)
        for at in range(max(0, len(self._held) - self._looked), len(self._held)):
            held = self._held[at]
            if held.reached is None and held.answer.error is None:
                where = self.line.number, self.make.file
                found = reach.find_pack(held.pack, held.rendering, sent, texts, *where) if texts else None
                self._held[at] = held._replace(reached=found, searched=held.searched + 1)

    def _audited(self, audit: Audit) -> None:
        for at, held in enumerate(self._held):
            if not held.audits and _audits(audit.row, held.pack):
                self._held[at] = held._replace(audits=(audit.row,))
                return
        self._audits.add((audit.row, self.line.number, self.make.file))
        if len(self._audits) == _OPEN_CALLS:
            self._alone(self._audits.first())

    def _alone(self, row: _Row) -> None:
        """An audit row whose pack the capture does not hold: ids without a text."""
        exchange = _of_audit(*row)
        if exchange is not None:
            self._found += 1
            file = self.make.file
            self._turns.add(exchange)
            self.make.file = file

    def _release(self, keep: int) -> None:
        """Give the events of all packs but the last `keep`."""
        file = self.make.file
        while len(self._held) > keep:
            self._turns.add(self._held.pop(0))
        self.make.file = file


_Row: TypeAlias = tuple[Json, int, str | None]
"""An audit row with its place."""


class _Rows:
    """Audit rows without a pack, in order; those of a pack are found by its ids."""

    def __init__(self) -> None:
        self._all: dict[int, _Row] = {}
        self._by_ids: dict[tuple[str, ...], list[int]] = {}
        """By the ids that a row names, in order, where it names all: numbers of rows."""
        self._cut: dict[int, frozenset[str]] = {}
        """Rows that say that they were cut, with the ids that they name."""
        self._number = 0

    def __len__(self) -> int:
        return len(self._all)

    def add(self, row: _Row) -> None:
        """Put one behind the others."""
        number = self._number = self._number + 1
        self._all[number] = row
        ids = _ids_of(row[0])
        if ids is None:
            return
        if row[0].get("derived_ids_truncated") is True:
            self._cut[number] = frozenset(ids)
        else:
            self._by_ids.setdefault(tuple(sorted(ids)), []).append(number)

    def first(self) -> _Row:
        """Take the first one out."""
        return self._taken(next(iter(self._all)))

    def of_pack(self, pack: packs.Pack) -> _Row | None:
        """Take out the first one that is of a pack."""
        held = [item.native_id for item in pack.items]
        found = self._by_ids.get(tuple(sorted(held)), [])[:1]
        if self._cut:
            ids = set(held)
            found += [next((number for number, some in self._cut.items() if some <= ids), self._number + 1)]
        number = min(found, default=0)
        return self._taken(number) if number in self._all else None

    def _taken(self, number: int) -> _Row:
        row = self._all.pop(number)
        ids = _ids_of(row[0])
        if ids is not None and self._cut.pop(number, None) is None:
            same = self._by_ids[tuple(sorted(ids))]
            same.remove(number)
            if not same:
                del self._by_ids[tuple(sorted(ids))]
        return row


def _ids_of(row: Json) -> list[str] | None:
    """The ids that an audit row names; None where it names none."""
    ids = row.get("derived_ids")
    if not ids or not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
        return None
    return ids


def _audits(row: Json, pack: packs.Pack) -> bool:
    """Whether an audit row is of a pack: the same ids, or some of them where the row says that it was cut."""
    ids = _ids_of(row)
    if ids is None:
        return False
    held = [item.native_id for item in pack.items]
    if row.get("derived_ids_truncated") is True:
        return set(ids) <= set(held)
    return sorted(ids) == sorted(held)


def _of_audit(row: Json, line: int, file: str | None) -> Exchange | None:
    """What an audit row tells of a pack that the capture does not hold; None if it names no item."""
    details = row.get("details")
    call = Call(details if isinstance(details, dict) else {}, whole=False)
    if row.get("policy_allowed") is False:
        why = row.get("policy_reason")
        answer = Answer(
            None, f"denied: {why}" if isinstance(why, str) else "denied", None, row.get("created_at")
        )
        return Exchange(call, answer, packs.read_pack({}), None, line, file, audits=(row,))
    ids = row.get("derived_ids")
    found = packs.of_ids(
        [one for one in ids if isinstance(one, str)] if isinstance(ids, list) else [], details
    )
    if not found.items:
        return None
    answer = Answer(None, None, None, row.get("created_at"))
    return Exchange(call, answer, found, None, line, file, audits=(row,))


def one_document(head: bytes) -> bool:
    """Whether a file is one JSON document rather than JSON lines, by its first lines."""
    lines = head.removeprefix(b"\xef\xbb\xbf").strip().split(b"\n")
    if len(lines) == 1:
        return True
    return not any(_is_record(line) for line in lines[:20])


def _is_record(line: bytes) -> bool:
    if line.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        return bool(orjson.loads(line))
    except orjson.JSONDecodeError:
        return False


def is_pack_file(head: bytes) -> bool:
    """Whether a file of a directory holds packs."""
    from ctxctl.plugins.sibyl import sure

    return sure(head) >= 50
