"""From captured requests to steps: each in its conversation, with what it carried, billed and got back.

Whatever container a request was captured in, it comes here with its answer as one `Exchange`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

import orjson

from ctxctl.ingest.build import Json, Place
from ctxctl.ingest.lines import Line
from ctxctl.ingest.parts import Part, mapping, moment, string
from ctxctl.ingest.run import Run
from ctxctl.listdiff import same_start
from ctxctl.model import vocab
from ctxctl.providers.dialects import by_name, of_body
from ctxctl.providers.dialects.base import CallTitles, Dialect, Unit
from ctxctl.providers.dialects.fingerprints import Opener, Request, goes_on
from ctxctl.providers.dialects.slots import Slots
from ctxctl.providers.dialects.threads import INJECTED, SeenAnswers, Thread, Threads

if TYPE_CHECKING:
    from ctxctl.providers.dialects.base import Dialect

_BEGINNING: Final = 8
_JOINS: Final = '"joins":true'
"""In the place of a part that was cut from the same text as the one in front of it."""
_REMEMBERED: Final = 4096
_PROMPTS: Final = frozenset(("user_message", "image", "custom", "thread_summary"))
_MODEL: Final = re.compile(r"/models/([^/:?]+):|/model/([^/?]+)/invoke")
"""A model in an address: of Google's API, of Bedrock's."""
_CREATED: Final = ("created", "created_at", "createTime")
"""Fields with the time at which an answer began: OpenAI's two APIs, Vertex AI."""
_AHEAD: Final = 16
"""Requests looked at before it is said which conversation is the main one."""


class Exchanges:
    """Sorts requests into threads and makes a step of each.

    The first request that has tools begins the main thread, or one without that it goes on with (the first
    of all, if none of the first sixteen has): products ask small questions beside it, often before it.  A
    request goes on with the thread whose messages it repeats, if system prompt or tools are about the same,
    or the tools of the whole conversation have grown; without a common history it begins a thread, unless it
    says that it stands for an earlier one (a compaction).
    """

    _awaits_answer = False
    """Whether requests are taken before their answers have come."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._queue: list[Exchange] | None = []
        self._threads = Threads()
        self._named: dict[tuple[str | None, str], Thread] = {}
        self._mains: dict[str | None, Thread] = {}
        self._chains = SeenAnswers()
        self._injected: dict[bytes, bool] = {}
        self._opener = Opener()

    def add(self, exchange: Exchange) -> None:
        """The next exchange, in the order in which requests were sent.

        Problems: `unread-dialect`, `no-request`.
        """
        if exchange.line == 0:
            exchange = exchange._replace(line=self._run.line.number)
        if self._queue is None:
            self._take(exchange)
            return
        self._queue.append(exchange)
        if exchange.thread is not None or _has_tools(exchange) or len(self._queue) >= _AHEAD:
            self._decide()

    def finish(self) -> None:
        """Make the steps that were still waiting; call before `Run.finish`."""
        self._decide()

    def _decide(self) -> None:
        queue, self._queue = self._queue or [], None
        first = next((e for e in queue if e.thread is None and _has_tools(e)), None)
        if first is not None:
            # It may go on with one that had no tools yet.
            first = next((e for e in queue if e is first or _begins(e, first)), first)
        for exchange in queue:
            self._take(exchange, main=first is None or exchange is first)

    # -- one exchange -------------------------------------------------------------------------------------

    def _take(self, exchange: Exchange, *, main: bool = True) -> None:
        run = self._run
        answer = mapping(exchange.response)
        run.make.at(exchange.time or next((t for n in _CREATED if (t := moment(answer.get(n)))), None))
        if not isinstance(exchange.request, dict):
            run.problem("no-request", "an answer without its request; skipped", Line(exchange.line, 0, b""))
            return
        dialect = _dialect(exchange)
        if dialect is None:
            message = "a request in none of the dialects that are read; skipped"
            run.problem("unread-dialect", message, Line(exchange.line, 0, b""))
            return
        before = run.session
        run.session = exchange.session if exchange.session is not None else before
        try:
            request, goes_on = self._opener.open(exchange.request, dialect)
            known = goes_on.thread if goes_on is not None else None
            if known is not None and known.conversation.session != run.session:
                known = None
            thread = self._step(exchange, request, known, main=main)
            self._opener.keep(request, thread)
            if (idle := self._threads.touch(thread)) is not None:
                idle.conversation.finish()
            for gone in self._forget_some(dict.fromkeys(map(id, self._mains.values()), 1)):
                run.end_thread(gone.conversation)
        finally:
            run.session = before

    def _forget_some(self, kept: Mapping[int, int]) -> list[Thread]:
        """Keep memory bounded: forget the conversations that were used least recently, and return them.

        `kept`: the ids of threads that are not forgotten.
        """
        gone = self._threads.forget_oldest(kept, self._chains)
        if gone:
            names = {id(thread) for thread in gone}
            self._named = {key: one for key, one in self._named.items() if id(one) not in names}
            self._mains = {key: one for key, one in self._mains.items() if id(one) not in names}
            self._opener = Opener()
        return gone

    def _step(self, exchange: Exchange, request: Request, known: Thread | None, *, main: bool) -> Thread:
        """Make a step; `known`: the thread whose last request this one begins with."""
        response = exchange.response
        parts = request.dialect.reply(response) if isinstance(response, dict) else []
        summed = request.dialect.summed_up(response, parts) if isinstance(response, dict) else 0
        thread, place, lent = self._ask(exchange, request, known, main=main, summed=parts[:summed])
        if isinstance(response, dict):
            line = exchange.answer_line or exchange.line
            usage = request.dialect.usage(response, asked_model(exchange, request))
            file = self._run.make.file
            self._run.make.file = exchange.answer_file or file
            thread.conversation.usage(usage, line=line, place=place)
            self._run.make.file = file
            self._answer(exchange, parts, thread, lent=lent, summed=summed)
            thread.left.answered(response)
            thread.handed = request.dialect.handed(response, parts)
            thread.sealed.update(part.item for part in parts if part.kind == "thread_summary")
            self._chains.answered(string(response.get("id")), thread)
        return thread

    def _ask(
        self,
        exchange: Exchange,
        request: Request,
        known: Thread | None,
        *,
        main: bool,
        summed: Sequence[Part] = (),
    ) -> tuple[Thread, Place, bool]:
        """The part of a step that is known before its answer: its thread, its place, and as `_thread_of`.

        `summed`: the items of its answer, if that has come, from which the rest was made.
        """
        chained = self._chain(request)
        lent = False
        if chained is not None:
            thread = chained[0]
            marks: Json = {"derived": True}
            request = request.without_chain().reached(exchange.response, thread.left)
            tail = self._go_on(exchange, request, thread, chained[1])
        else:
            if known is not None and exchange.thread is None:
                thread, compacted = known, False
            else:
                thread, compacted, lent = self._thread_of(exchange, request, main=main)
            request = request.reached(exchange.response, thread.left)
            tail = self._window(exchange, request, thread, compacted=compacted)
            marks = _marks(request, thread, tail)
            if exchange.derived:
                marks["derived"] = True
            thread.apart = exchange.apart
            if not exchange.apart:
                self._threads.carried(thread, request, len(request.prints) - len(tail))
        self._turn(exchange, thread, tail)
        self._sum_up(exchange, thread, summed)
        if exchange.limit is not None:
            self._limit(exchange, thread)
        place = thread.conversation.request(
            self._step_name(thread), line=exchange.line, model=asked_model(exchange, request),
            native_id=exchange.native_id,
            status=exchange.status if exchange.status is not None and exchange.status >= 400 else None,
            error=exchange.error,
            settings=request.dialect.settings(request.body) if exchange.whole else None,
            awaits_answer=self._awaits_answer and request.dialect.may_edit(request.body), **marks,
        )  # fmt: skip
        return thread, place, lent

    def _chain(self, request: Request) -> tuple[Thread, int] | None:
        """As `Chains.before`."""
        return self._chains.before(request)

    def _step_name(self, thread: Thread) -> str | None:
        """Native id of the thread's next step; None: they are counted."""
        return None

    def _limit(self, exchange: Exchange, thread: Thread) -> None:
        """Tell the window that the capture says the model has."""
        conversation = thread.conversation
        name = f"window-{conversation.thread or vocab.MAIN_THREAD}-{conversation.steps + 1}"
        record = {"budget_id": name, "target": vocab.MODEL, "max_tokens": exchange.limit}
        conversation.tell(vocab.BUDGET_APPLIED, record, line=exchange.line)

    def _answer(
        self, exchange: Exchange, parts: list[Part], thread: Thread, *, lent: bool, summed: int = 0
    ) -> None:
        """Take in an answer; its first `summed` items are in the window already."""
        for part in parts:
            part.line = exchange.answer_line or exchange.line
            if part.kind == "tool_call" and part.item and part.text:
                name, _, text = part.text.partition(" ")
                try:
                    self._threads.called(thread, part.item, name, orjson.loads(text))
                except orjson.JSONDecodeError:
                    continue
        if not exchange.apart:
            self._threads.answered(thread, parts)
        if lent:
            self._threads.summed_up(parts)
        thread.conversation.append(*parts[summed:])

    # -- which thread -------------------------------------------------------------------------------------

    def _thread_of(self, exchange: Exchange, request: Request, *, main: bool) -> tuple[Thread, bool, bool]:
        """The thread of a request, whether it begins there anew, and whether it has another one's history."""
        session = self._run.session
        if exchange.thread is not None:
            return self._of_name(exchange, exchange.thread, request), False, False
        own = self._first_own(request)
        found, lent = self._threads.find(request, session, own)
        if found is None:
            names = CallTitles()
            units = request.units[request.start :]
            sent = (part for unit in units for part in request.dialect.parts(unit, names).parts)
            found, again = self._threads.of_answers(request, session, sent)
            lent = lent or again
        if found is not None:
            return found, False, lent
        texts = self._texts(request, own)
        found = None if lent else self._threads.root(request, session, texts)
        return found or self._begin(request, texts, main=main, lent=lent), found is not None, lent

    def _of_name(self, exchange: Exchange, name: str, request: Request) -> Thread:
        """The thread that the capture itself names; the main one may have begun without a name."""
        session = self._run.session
        thread = self._named.get((session, name))
        if thread is None and name == vocab.MAIN_THREAD:
            thread = self._mains.get(session)
        if thread is None:
            thread = self._thread(name, request, exchange.origin)
        self._named[session, name] = thread
        if name == vocab.MAIN_THREAD:
            self._mains[session] = thread
        return thread

    def _begin(self, request: Request, texts: list[str], *, main: bool, lent: bool) -> Thread:
        """A new thread: the main one, one for side questions of this kind, or a conversation of its own."""
        session = self._run.session
        known = self._mains.get(session)
        if known is None and main:
            thread = self._mains[session] = self._thread(None, request)
            return thread
        if lent or ((known is None or known.head.tools) and not request.head.tools):
            found = self._threads.side(request, session)
            if found is not None:
                return found
            about = request.head.gist.rpartition("\n")[2] or (texts[0] if texts else "")
            return self._thread(self._threads.name("side", about), request)
        origin = self._threads.origin(texts)
        if origin is not None:
            return self._thread(self._threads.name("agent", origin.get("agent_type") or ""), request, origin)
        return self._thread(self._threads.name("conversation", ""), request)

    def _thread(self, name: str | None, request: Request, origin: Json | None = None) -> Thread:
        conversation = self._run.thread(None if name == vocab.MAIN_THREAD else name, origin=origin)
        thread = Thread(conversation, request)
        self._threads.add(thread)
        return thread

    def _first_own(self, request: Request) -> int:
        """Index of the first message that is not altogether a harness's."""
        for at in range(request.start, len(request.units)):
            made = request.prints[at]
            known = self._injected.get(made)
            if known is None:
                if len(self._injected) >= _REMEMBERED:
                    self._injected.clear()
                parts = request.dialect.parts(request.units[at], CallTitles()).parts
                known = self._injected[made] = all(part.kind in INJECTED for part in parts)
            if not known:
                return at
        return request.start

    def _texts(self, request: Request, own: int) -> list[str]:
        """The user's texts at the beginning of a conversation."""
        names = CallTitles()
        return [
            part.text
            for unit in request.units[own : own + _BEGINNING]
            for part in request.dialect.parts(unit, names).parts
            if part.kind == "user_message" and part.text
        ]

    # -- its window ---------------------------------------------------------------------------------------

    def _window(
        self, exchange: Exchange, request: Request, thread: Thread, *, compacted: bool
    ) -> list[Slots]:
        """Set the thread's window to what the request carries; returns the pieces that are new in it."""
        shared = 0 if compacted else same_start(thread.read, request.read)
        tail = self._cut(exchange, request, thread, shared)
        summary = _summary(tail, thread)
        conversation = thread.conversation
        left = summary is None and _rewound(thread, request)
        cause = "branched" if left and not _answered(thread, tail) else None
        if cause is None and (thread.left.cleared or thread.left.thinking):
            cause = "cleared"
        rows = thread.rows[:shared]
        at = sum(rows)
        before = conversation.rows[at:] if summary is not None else []
        conversation.replace(_parts(tail), at=at, fresh=compacted or summary is not None, cause=cause)

        def cut(unit: Unit) -> list[Part]:
            return request.dialect.parts(unit, thread.names, exchange.line).parts

        first = not thread.prints
        unread = request.tell_unread(conversation, thread.left, cut, first=first, line=exchange.line)
        if summary is not None:
            stays = {row[0].item for row in conversation.rows}
            stays |= thread.handed
            gone = [row[0].ref for row in before if row[0].item not in stays]
            gone += unread
            if gone:
                marks = {"ctxctl": {"derived": True}}
                conversation.compacted(gone, summary.block().ref, line=exchange.line, metadata=marks)
        thread.rows = [*rows, *(len(slots.parts) for slots in tail)]
        thread.prints, thread.read = request.prints, request.read
        thread.start, thread.head = request.start, request.head
        thread.given = request.given
        thread.summaries.update(p.mark for p in _parts(tail) if p.kind == "thread_summary")
        thread.compacting, thread.handed = False, frozenset()
        thread.sealed.clear()
        thread.epoch += 1
        return tail

    def _sum_up(self, exchange: Exchange, thread: Thread, parts: Sequence[Part]) -> None:
        """Replace the conversation by the last of an answer's summaries, from which the rest was made."""
        if not parts:
            return
        if not exchange.apart:
            self._threads.answered(thread, parts)
        thread.conversation.sum_up(parts, at=sum(thread.rows[: thread.start]), line=exchange.line)
        thread.summaries.update(part.mark for part in parts if part.kind == "thread_summary")
        thread.prints, thread.read = thread.prints[: thread.start], thread.read[: thread.start]
        thread.rows = thread.rows[: thread.start]

    def _go_on(self, exchange: Exchange, request: Request, thread: Thread, held: int) -> list[Slots]:
        """The window of a request whose history the provider holds: the earlier answer's, and its own."""
        conversation = thread.conversation
        before = thread.rows_before()
        given = request.given
        if request.read[:given] != thread.read[: thread.given]:
            head = self._cut(exchange, request, thread, 0, given)
            parts = _parts(head)
            conversation.splice(0, before, parts)
            before = len(parts)
            thread.rows = [len(slots.parts) for slots in head]
        tail = self._cut(exchange, request, thread, given)
        held -= _without_summed_up(thread, before, before + held)
        conversation.replace(_parts(tail), at=before + held)
        # What stands behind the head is no request's own list: the next whole request sets it anew.
        thread.prints, thread.read = request.prints[:given], request.read[:given]
        thread.rows = thread.rows[:given]
        thread.start = thread.given = given
        thread.head, thread.handed = request.head, frozenset()
        return tail

    def _cut(
        self,
        exchange: Exchange,
        request: Request,
        thread: Thread,
        since: int,
        until: int | None = None,
    ) -> list[Slots]:
        """The items that the model read of a request."""
        made = []
        for unit, piece in zip(request.units[since:until], request.pieces[since:until], strict=True):
            slots = request.dialect.piece(piece, unit.section, thread.names, exchange.line)
            goes_on = False
            for part in slots.parts:
                # A harness's note may stand in the middle of a summary: what is behind it is still of it.
                goes_on = goes_on and _JOINS in part.wire
                if (
                    part.kind == "user_message"
                    and part.text
                    and (goes_on or part.mark in thread.summaries or self._threads.continues(part.text))
                ):
                    part.kind = "thread_summary"
                    goes_on = True
            made.append(slots)
        return made

    # -- turns --------------------------------------------------------------------------------------------

    def _turn(self, exchange: Exchange, thread: Thread, tail: list[Slots]) -> None:
        """A turn begins where a prompt of the user is the last thing, save what a harness put behind it."""
        if exchange.turn is not None:
            thread.conversation.turn = exchange.turn
        elif thread.turns == 0 or _is_prompt(tail):
            thread.turns += 1
            thread.conversation.turn = f"turn-{thread.turns}"


def _is_prompt(tail: list[Slots]) -> bool:
    for slots in reversed(tail):
        kinds = {part.kind for part in slots.parts}
        if kinds <= INJECTED or any(part.role == "assistant" for part in slots.parts):
            if not kinds <= INJECTED and slots is not tail[-1]:
                return False
            continue
        return bool(kinds & _PROMPTS) and "tool_result" not in kinds
    return False


def _parts(tail: list[Slots]) -> list[Part]:
    return [part for slots in tail for part in slots.parts]


def _rewound(thread: Thread, request: Request) -> bool:
    """Whether a request leaves its history somewhere in the middle, and nothing of it comes again."""
    old, new = thread.prints, request.prints
    shared = same_start(old, new)
    left = old[shared:]
    return shared > request.start and len(left) > 1 and set(left).isdisjoint(new[shared:])


def _answered(thread: Thread, tail: list[Slots]) -> bool:
    """Whether what comes behind the shared history goes on with the answer to the thread's last request.

    Then what stood between was cut out, and no branch begins.  Where that answer is not recorded, one that
    was not met before may be it: nobody can tell.
    """
    answer = thread.conversation.rows[sum(thread.rows) :]
    parts = _parts(tail)
    if not answer:
        return bool(parts) and parts[0].role == "assistant"
    said = {(kind, block.item) for block, kind in answer if kind == "tool_call"}
    said |= {(kind, block.ref[len(block.item) :]) for block, kind in answer if kind != "tool_call"}
    return any((part.kind, part.item) in said or (part.kind, f"@{part.mark}") in said for part in parts)


def _without_summed_up(thread: Thread, start: int, end: int) -> int:
    """Take out what the provider itself summed up: what stands before its last summary; returns how much.

    What a compaction gave out beside its summary stays; so does what a client sent beside a summary.
    """
    conversation = thread.conversation
    rows = conversation.rows
    at = next((at for at in range(end - 1, start, -1) if rows[at][1] == "thread_summary"), None)
    if at is None or rows[at][0].item not in thread.sealed:
        return 0
    first = at
    while first > start and rows[first - 1][0].item in thread.handed:
        first -= 1
    if first == start:
        return 0
    marks = {"ctxctl": {"derived": True}}
    conversation.compacted([row[0].ref for row in rows[start:first]], rows[at][0].ref, metadata=marks)
    conversation.splice(start, first - start)
    return first - start


def _summary(tail: list[Slots], thread: Thread) -> Part | None:
    """The first piece that stands for a history and was not there before."""
    found = (part for part in _parts(tail) if part.kind == "thread_summary")
    return next((part for part in found if part.mark not in thread.summaries), None)


def _marks(request: Request, thread: Thread, tail: list[Slots]) -> Json:
    """Rows that carry the request's cache markers."""
    first = len(request.units) - len(tail)
    points: list[int] = []
    for at in request.marked:
        base = sum(thread.rows[:at])
        piece = request.pieces[at]
        slots = tail[at - first] if at >= first else request.dialect.piece(piece, "", CallTitles())
        points += [base + inner for inner in slots.marked]
    return {"cache_points": points} if points else {}


def _dialect(exchange: Exchange) -> Dialect | None:
    if isinstance(exchange.dialect, str):
        return by_name(exchange.dialect)
    if exchange.dialect is not None:
        return exchange.dialect
    return of_body(exchange.request, exchange.url) if exchange.request is not None else None


def _begins(one: Exchange, other: Exchange) -> bool:
    """Whether another exchange goes on with the conversation of this one, as their messages have it."""
    if one.thread is not None or one.session != other.session:
        return False
    dialect = _dialect(one)
    if dialect is None or not isinstance(one.request, dict) or not isinstance(other.request, dict):
        return False
    return _dialect(other) is dialect and goes_on(one.request, other.request, dialect)


def _has_tools(exchange: Exchange) -> bool:
    body = exchange.request
    return isinstance(body, dict) and bool(body.get("tools") or body.get("functions"))


def asked_model(exchange: Exchange, request: Request) -> str | None:
    """The model that was asked."""
    return string(request.body.get("model")) or _model_in(exchange.url)


def _model_in(url: str | None) -> str | None:
    found = _MODEL.search(url) if url is not None else None
    return found[1] or unquote(found[2]) if found is not None else None


class Exchange(NamedTuple):
    """A request body and the response to it; either may be lacking."""

    request: Json | None
    response: Json | None
    """The final response body; a streamed one as `stream.streamed_response` gives it."""
    line: int = 0
    """Line of the foreign file; 0: the one that the run is reading."""
    url: str | None = None
    time: str | None = None
    """RFC 3339, of the request."""
    status: int | None = None
    """HTTP status."""
    native_id: str | None = None
    """The provider's or the capture's id of the request."""
    session: str | None = None
    thread: str | None = None
    """None: told by the request itself (`exchanges`)."""
    turn: str | None = None
    """None: a turn begins where a prompt of the user is the last thing in the request."""
    error: str | None = None
    """Why there was no answer, in one line."""
    answer_line: int = 0
    """Line of the response, where it is another than the request's."""
    answer_file: str | None = None
    """File of a directory that the response is from, where it is another than the request's."""
    dialect: str | Dialect | None = None
    """The dialect, or the name of one; None: told by the address and the body."""
    limit: int | None = None
    """The model's window in tokens, where the capture tells it."""
    whole: bool = True
    """The request body is the one that was sent; False: a log's account of the call."""
    origin: Json | None = None
    """Where the thread comes from (`parent_thread` …), for a thread that is named; told at its beginning."""
    apart: bool = False
    """No conversation goes on with it, though its thread is named: it only warms a cache."""
    derived: bool = False
    """The request was put together from several messages: it named a history that was seen."""
