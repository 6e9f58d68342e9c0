"""Puts requests to models, as they are sent, into the conversations that they go on with.

By the importers' rules (`providers.dialects.exchanges`), but without looking ahead: a thread is recognised by
what a request says or by the messages that it repeats.  Where a conversation's last request is still
unanswered, another one is a branch of it, with a thread of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from ctxctl.ingest.build import Json
from ctxctl.ingest.build import Place as KitPlace
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.parts import Part
from ctxctl.ingest.run import Run
from ctxctl.model import vocab
from ctxctl.providers.dialects.base import CallTitles, Dialect, Unit
from ctxctl.providers.dialects.base import Piece as ReadPiece
from ctxctl.providers.dialects.exchanges import Exchange, Exchanges, asked_model
from ctxctl.providers.dialects.fingerprints import Request
from ctxctl.providers.dialects.slots import Slots
from ctxctl.providers.dialects.threads import Thread, shared_messages
from ctxctl.providers.dialects.units import LeftOut
from ctxctl.record import values
from ctxctl.record.bodies import entries_of
from ctxctl.record.conversation_cache import EarlierConversations, RememberedThreads, SubAgents, is_aside
from ctxctl.record.core import Core
from ctxctl.record.place import Place
from ctxctl.record.redact import FoundSecrets
from ctxctl.record.seams import Follower, Piece, SeamCache

if TYPE_CHECKING:
    from ctxctl.record.http import Agent
    from ctxctl.record.recorder import Recorder


_REMEMBERED: Final = 4096


class RedactingDialect(Dialect):
    """A dialect that redacts the units of a body before anything else reads them.

    A unit is searched once, however many requests carry it.  Secrets are not counted here: their stubs are
    counted once, in what is written.
    """

    def __init__(self, dialect: Dialect, core: Core) -> None:
        self._dialect = dialect
        self._core = core
        self._seams = SeamCache(core.redactor) if core.redactor is not None else None
        self._clean: OrderedDict[bytes, Any] = OrderedDict()
        """By digest of a unit: None if it holds no secret, else the unit without it."""

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the dialect."""
        return self._dialect.name

    @property
    def provider(self) -> str:  # type: ignore[override]
        """The provider of the dialect."""
        return self._dialect.provider

    @property
    def section(self) -> str:  # type: ignore[override]
        """The section of the dialect."""
        return self._dialect.section

    def detect(self, body: Json) -> int:
        """Ask the dialect, which sees only the form of a body here."""
        return self._dialect.detect(body)

    def answers(self, response: Json) -> int:
        """Ask the dialect, which sees only the form of an answer here."""
        return self._dialect.answers(response)

    def units(self, body: Json) -> list[Unit]:
        """The dialect's units, without secrets."""
        units = self._dialect.units(body)
        if self._seams is None:
            return units
        pieces = [_piece(unit.value) for unit in units]
        values = self._seams.values(pieces, FoundSecrets())
        return [
            self._without(unit, piece if made is piece.value else _piece(made))
            for unit, made, piece in zip(units, values, pieces, strict=True)
        ]

    def settings(self, body: Json) -> Json | None:
        """The dialect's settings, without secrets."""
        made = self._dialect.settings(body)
        redactor = self._core.redactor
        if made is None or redactor is None:
            return made
        value, raw = _encoded(made)
        cleaned: Json = redactor.value(value, raw, FoundSecrets())
        return cleaned

    def reached(
        self, units: list[Unit], body: Json, response: Json | None, known: LeftOut
    ) -> list[ReadPiece] | None:
        """Ask the dialect; the units hold no secrets."""
        return self._dialect.reached(units, body, response, known)

    def may_edit(self, body: Json) -> bool:
        """Ask the dialect."""
        return self._dialect.may_edit(body)

    def summed_up(self, response: Json, parts: list[Part]) -> int:
        """Ask the dialect."""
        return self._dialect.summed_up(response, parts)

    def parts(self, unit: Unit, names: CallTitles, line: int = 0) -> Slots:
        """The dialect's parts of a unit, searched again, as their texts may be joined from several pieces."""
        slots = self._dialect.parts(unit, names, line)
        self._look_through(slots.parts)
        return slots

    def reply(self, response: Json) -> list[Part]:
        """The dialect's parts of an answer, without secrets."""
        redactor = self._core.redactor
        if redactor is not None:
            value, raw = _encoded(response)
            joined = Follower(redactor).value(value, FoundSecrets())
            raw = raw if joined is value else _encoded(joined)[1]
            response = redactor.value(joined, raw, FoundSecrets())
        parts = self._dialect.reply(response)
        self._look_through(parts)
        return parts

    def _without(self, unit: Unit, piece: Piece) -> Unit:
        redactor = self._core.redactor
        assert redactor is not None
        if piece.digest in self._clean:
            self._clean.move_to_end(piece.digest)
            kept = self._clean[piece.digest]
        else:
            value, raw = _encoded(piece.value)
            found = FoundSecrets()
            made = redactor.value(value, raw, found)
            kept = made if found.count or value is not unit.value else None
            self._clean[piece.digest] = kept
            if len(self._clean) > _REMEMBERED:
                self._clean.popitem(last=False)
        return unit if kept is None else unit._replace(value=kept)

    def _look_through(self, parts: list[Part]) -> None:
        redactor = self._core.redactor
        for part in parts if redactor is not None else ():
            if part.text is not None and redactor is not None:
                text = redactor.text(part.text, FoundSecrets())
                if text is not part.text:
                    part.reword(text)


def _piece(value: Any) -> Piece:
    value, raw = _encoded(value)
    return Piece(value, sha256(raw).digest())


def _encoded(value: Any) -> tuple[Any, bytes]:
    """Return a value and its JSON; what is nested too deep for JSON is cut there."""
    try:
        return value, orjson.dumps(value)
    except (orjson.JSONEncodeError, RecursionError):
        raw = values.encoded(value)
        return orjson.loads(raw), raw


_TRIES: Final = 3


class PendingRequest(NamedTuple):
    """A request that was recorded and waits for its answer."""

    thread: Thread
    place: Place
    dialect: Dialect
    exchange: Exchange
    lent: bool
    model: str | None
    """The model that was asked."""
    request: Request | None = None
    """The request, if only its answer says what the model read."""


class Conversations(Exchanges):
    """The conversations of one recorder; not safe for several threads at once."""

    _awaits_answer = True

    def __init__(self, recorder: Recorder) -> None:
        self._live = _LiveRun(recorder)
        super().__init__(self._live)
        self._recorder = recorder
        self._core = recorder._core
        self._threads = self._remembered = RememberedThreads()
        self._dialects: dict[str, RedactingDialect] = {}
        self._busy: dict[int, int] = {}
        """By thread, the number of its requests that wait for an answer."""
        self._branches: dict[int, list[Thread]] = {}
        """By thread, all branches of its conversation, itself among them."""
        self._written_in: dict[int, int] = {}
        """By thread, the generation of the file that holds its window."""
        self._generation = self._core.journal.generation
        self._ended = EarlierConversations(recorder)
        self._agents = SubAgents()

    # -- a request and its answer ---------------------------------------------------------------------------

    def ask(self, exchange: Exchange, dialect: Dialect, agent: Agent | None = None) -> PendingRequest:
        """Record a request as items, an assembly and an injection.

        `exchange` has the request and what is known of its place; without a session, it is the recorder's.
        `agent`: the sub-agent that asks, which has a thread of its own, where the request names one.
        """
        live, core = self._live, self._core
        live.session = exchange.session or self._recorder.session
        if agent is not None and exchange.session is not None and not self._recorder._given_session:
            live.session = self._agents.root(exchange.session, agent)
        self._remembered.mark = self._recorder._name_suffix(Place(live.session))
        live.make.at(core.journal.stamp())
        own = self._redacting(dialect)
        assert exchange.request is not None
        request, goes_on = self._opener.open(exchange.request, own)
        known = goes_on.thread if goes_on is not None and not exchange.apart else None
        if known is not None and (
            known.conversation.session != live.session or self._is_contested(known, request)
        ):
            known = None
        main = bool(request.head.tools) or not is_aside(exchange.request)
        if agent is not None and main:
            exchange = self._by_agent(exchange, request, agent)
        elif known is not None and self._agents.has(known):
            known = None
        generation = core.journal.generation
        self._tell_anew_after(generation)
        thread, place, lent = self._ask(exchange, request, known, main=main)
        if not exchange.apart:
            self._opener.keep(request, thread)
        for _ in range(_TRIES):
            if core.journal.put(entries_of(core, live.taken()), generation) != "stale":
                break
            generation = core.journal.generation
            self._tell_anew_after(generation)
            place = self._request_anew(exchange, request, thread, place)
        self._written_in[id(thread)] = generation
        self._busy[id(thread)] = self._busy.get(id(thread), 0) + 1
        self._remembered.touch(thread)
        made = Place(place.session, place.thread, place.turn, place.step)
        made.sealed = True
        # The body is dropped: it may be large, and the answer may be long in coming.
        return PendingRequest(
            thread, made, own, exchange._replace(request=None), lent, asked_model(exchange, request),
            request if own.may_edit(request.body) and self._chain(request) is None else None,
        )  # fmt: skip

    def answered(
        self, asked: PendingRequest, response: Json | None, *, cut: bool, dialect: Dialect | None = None
    ) -> None:
        """Record the answer to a request, if there is one.

        Args:
            asked: The request.
            response: Its answer.
            cut: The answer is incomplete.
            dialect: The answer's dialect, where it differs from the request's.
        """
        thread, live, core = asked.thread, self._live, self._core
        left = self._busy.pop(id(thread), 1) - 1
        if left > 0:
            self._busy[id(thread)] = left
        if response is None or self.is_late(asked):
            # No answer; or one so late that the next request carries it already.
            self._forget_some(self._busy)
            return
        live.session = thread.conversation.session
        live.make.at(core.journal.stamp())
        dialect = self._redacting(dialect) if dialect is not None else asked.dialect
        parts = dialect.reply(response)
        if cut and parts:
            parts[-1].truncated = True
        summed = 0
        if asked.request is not None and self._written_in.get(id(thread)) == core.journal.generation:
            request = asked.request.reached(response, thread.left)
            if request.read != thread.read:
                self._window(asked.exchange, request, thread, compacted=False)
            summed = dialect.summed_up(response, parts)
            self._sum_up(asked.exchange, thread, parts[:summed])
            thread.conversation.read()
        thread.left.answered(response)
        self._answer(asked.exchange, parts, thread, lent=asked.lent, summed=summed)
        if id(thread) in self._branches:
            self._remembered.remember_answer(thread, parts)
        if isinstance(response.get("id"), str) and not asked.exchange.apart:
            self._chains.answered(response["id"], thread)
        thread.conversation.finish()
        core.journal.put(entries_of(core, live.taken()))
        self._forget_some(self._busy)

    def is_late(self, asked: PendingRequest) -> bool:
        """Whether the request's thread has gone on without its answer."""
        return asked.thread.conversation.place.step != asked.place.step

    def send_again(self, asked: PendingRequest) -> bool:
        """Wait for the answer of a request that is sent again; False where its conversation has gone on."""
        if self.is_late(asked) or self._busy.get(id(asked.thread)):
            return False
        self._busy[id(asked.thread)] = 1
        return True

    def _redacting(self, dialect: Dialect) -> RedactingDialect:
        found = self._dialects.get(dialect.name)
        if found is None:
            found = self._dialects[dialect.name] = RedactingDialect(dialect, self._core)
        return found

    def _request_anew(
        self, exchange: Exchange, request: Request, thread: Thread, place: KitPlace
    ) -> KitPlace:
        """Write the step anew, as another file took the place of the one that it was made for."""
        conversation = thread.conversation
        conversation.tell_anew(place.step)
        self._live.taken()
        if self._chain(request) is None:
            thread.prints, thread.read, thread.rows = [], [], []
            self._window(exchange, request.reached(None, thread.left), thread, compacted=False)
        self._written_in[id(thread)] = self._core.journal.generation
        return conversation.request(
            place.step, model=asked_model(exchange, request), native_id=exchange.native_id,
            awaits_answer=request.dialect.may_edit(request.body),
        )  # fmt: skip

    def _tell_anew_after(self, generation: int) -> None:
        """Write all windows anew where the file has changed: requests build only on what it holds."""
        if generation != self._generation:
            for thread in self._remembered.threads():
                thread.conversation.tell_anew()
        self._generation = generation

    def _by_agent(self, exchange: Exchange, request: Request, agent: Agent) -> Exchange:
        """Return the exchange in its agent's thread, with the thread's origin where it begins."""
        session = self._live.session
        name = self._agents.thread(session, agent.id)
        if name is not None:
            return exchange._replace(thread=name)
        origin = self._threads.origin(self._texts(request, self._first_own(request)))
        if origin is None:
            origin = {"parent_thread": self._agents.thread(session, agent.parent) or self._recorder._thread}
        kind = origin.get("agent_type") or self._core.clean_id(agent.kind)
        name = self._threads.name("agent", kind or "")
        self._agents.named(session, agent.id, name)
        return exchange._replace(thread=name, origin=origin)

    # -- which thread ---------------------------------------------------------------------------------------

    def _chain(self, request: Request) -> tuple[Thread, int] | None:
        found = super()._chain(request)
        return None if found is None or self._busy.get(id(found[0])) else found

    def _thread_of(self, exchange: Exchange, request: Request, *, main: bool) -> tuple[Thread, bool, bool]:
        thread, compacted, lent = super()._thread_of(exchange, request, main=main)
        family = self._branches.get(id(thread))
        if family is not None and exchange.thread is None:
            thread = self._branch_that_said(family, request, thread)
        if not self._busy.get(id(thread)) or _has_answer(thread, request):
            return thread, compacted, lent
        return self._branch(thread, request), False, lent

    def _is_contested(self, thread: Thread, request: Request) -> bool:
        """Whether a request may not be the next of the thread whose last request it repeats."""
        busy = self._busy.get(id(thread)) and not _has_answer(thread, request)
        return bool(busy) or id(thread) in self._branches

    def _branch(self, thread: Thread, request: Request) -> Thread:
        """Return a thread for a request beside an unanswered one: a free branch, or a new one."""
        family = self._branches.setdefault(id(thread), [thread])
        free = [one for one in family if not self._busy.get(id(one))]
        if free:
            return max(free, key=lambda one: shared_messages(one, request))
        name = self._remembered.branch(thread.conversation.thread or vocab.MAIN_THREAD)
        made = Thread(self._live.thread(name), request)
        made.conversation.mark = self._remembered.mark
        self._remembered.add(made)
        family.append(made)
        self._branches[id(made)] = family
        return made

    def _branch_that_said(self, family: list[Thread], request: Request, thread: Thread) -> Thread:
        """Return the branch whose answer the request sends back, of branches that began alike."""
        names, session = CallTitles(), self._live.session
        first = max(request.start, min(len(one.prints) for one in family))
        parts = [part for unit in request.units[first:] for part in request.dialect.parts(unit, names).parts]
        found = self._remembered.thread_that_said(session, parts, family)
        return found if found is not None else thread

    def _thread(self, name: str | None, request: Request, origin: Json | None = None) -> Thread:
        made = super()._thread(name, request, origin)
        self._remembered.touch(made)
        conversation = made.conversation
        if not conversation.steps:
            conversation.mark = self._remembered.mark
            made.summaries.update(self._ended.hand_over(conversation))
        return made

    def _begin(self, request: Request, texts: list[str], *, main: bool, lent: bool) -> Thread:
        """Begin a thread by the importers' rules, or go on with one that another writer of the file began."""
        session, own = self._live.session, self._recorder._thread
        if session not in self._mains and self._ended.has(session, own):
            continues = any(self._threads.continues(text) for text in texts)
            found, whole = self._ended.find(session, request, continues=continues and not lent)
            if found is not None:
                thread = self._thread(found, request)
                if found == own:
                    self._mains[session] = thread
                return thread
            if not whole and not lent and main and not request.head.tools:
                return self._thread(self._threads.name("conversation", ""), request)
            # The main conversation is the one that the file has.
            return super()._begin(request, texts, main=False, lent=lent or whole)
        return super()._begin(request, texts, main=main, lent=lent)

    # -- its window -----------------------------------------------------------------------------------------

    def _window(
        self, exchange: Exchange, request: Request, thread: Thread, *, compacted: bool
    ) -> list[Slots]:
        if self._written_in.get(id(thread), self._core.journal.generation) != self._core.journal.generation:
            # All of it is written anew, so all of it must be cut anew.
            thread.prints, thread.read, thread.rows = [], [], []
        return super()._window(exchange, request, thread, compacted=compacted)

    def _turn(self, exchange: Exchange, thread: Thread, tail: list[Slots]) -> None:
        before = thread.turns
        super()._turn(exchange, thread, tail)
        if thread.turns != before:
            conversation = thread.conversation
            place = Place(conversation.session, conversation.thread)
            conversation.turn = self._recorder._next_turn(place)

    def _step_name(self, thread: Thread) -> str | None:
        conversation = thread.conversation
        place = Place(conversation.session, conversation.thread)
        return self._recorder._step_place(place, None).step

    # -- memory ---------------------------------------------------------------------------------------------

    def _forget_some(self, kept: Mapping[int, int]) -> list[Thread]:
        """As in `Exchanges`; what else is kept of these threads is forgotten too."""
        gone = super()._forget_some(kept)
        if not gone:
            return gone
        names = {id(thread) for thread in gone}
        for holder in (self._written_in, self._branches):
            for name in names:
                holder.pop(name, None)
        for family in self._branches.values():
            family[:] = [thread for thread in family if id(thread) not in names]
        conversations = {id(thread.conversation) for thread in gone}
        self._live.threads = {
            key: one for key, one in self._live.threads.items() if id(one) not in conversations
        }
        return gone


def _has_answer(thread: Thread, request: Request) -> bool:
    """Whether a request repeats all of the thread's last one and adds to it.

    The last one was answered then, though the answer was not recorded yet.
    """
    old = thread.prints
    return len(request.prints) > len(old) > 0 and request.prints[: len(old)] == old


class _LiveRun(Run):
    """Stands for an import where the importers' rules serve a recorder."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__("ctxctl", lambda _: None)
        self._recorder = recorder

    def thread(self, thread: str | None = None, **options: Any) -> Conversation:
        """Return the conversation of a thread of the present session; None is the recorder's own thread."""
        return super().thread(thread or self._recorder._thread, **options)

    def taken(self) -> list[Json]:
        """Return the events made since the last call."""
        made = list(self.out)
        self.out.clear()
        return made
