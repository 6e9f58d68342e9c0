"""Which conversation a captured request goes on with: told by what it says, not by when it was sent.

A request that names an earlier answer goes on from there: the provider holds the history.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from ctxctl.ingest.build import Json, digest_of
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.parts import Part, string
from ctxctl.providers.dialects import slots
from ctxctl.providers.dialects.base import CallTitles
from ctxctl.providers.dialects.fingerprints import Request
from ctxctl.providers.dialects.units import LeftOut

_RECENT: Final = 64
"""Threads that may continue soon; the last answer of any other is emitted without waiting for a request."""
_MESSAGES: Final = 100_000
"""Fingerprints of messages of all conversations that are remembered."""
_THREADS: Final = 1_000
_LINKS: Final = 4_096
_PROMPTS: Final = 10_000
_NAMES: Final = 100_000
_CANDIDATES: Final = 8
_CARRIERS: Final = 4
_LOOKED: Final = 500
"""The most threads that are asked whether a first request stands for their history."""
_WORD: Final = re.compile(r"[a-z0-9]+")
_NAME_WORDS: Final = 5
_CONTINUED: Final = (
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem",
    "The conversation history before this point was compacted",
    "<conversation_summary>",
    "<compaction_summary>",
)
"""How harnesses begin the message that stands for what they took out."""
_QUOTE: Final = 200
_TELLING: Final = 24
_ANSWERS: Final = ("assistant_message", "reasoning", "thread_summary")
_SAID: Final = frozenset(("assistant_message", "reasoning", "tool_call"))
_MAX_QUOTE: Final = 200_000
INJECTED: Final = frozenset(slots.KINDS.values())


class Thread:
    """What is known of one conversation between two of its requests."""

    def __init__(self, conversation: Conversation, request: Request) -> None:
        self.conversation = conversation
        self.dialect = request.dialect.name
        self.head = request.head
        self.prints: list[bytes] = []
        """Of the last request's pieces, in order."""
        self.read: list[bytes] = []
        """Digests of what the model read of them (`Request.read`)."""
        self.left = LeftOut()
        self.rows: list[int] = []
        """Rows that each piece has in the window."""
        self.start = 0
        """Index of the first piece of the conversation."""
        self.given = 0
        """Index of the first piece of its input (`Request.given`)."""
        self.names = CallTitles()
        self.turns = 0
        self.summaries: set[str] = set()
        """Versions of what stands for a history that was compacted, as far as it was met."""
        self.handed: frozenset[str] = frozenset()
        """Items of the last answer that a compaction gave out beside its summary (`Dialect.handed`)."""
        self.sealed: set[str] = set()
        """Summaries among the answers since its last request that had its whole history in it."""
        self.epoch = 0
        """Counts the requests that had their whole history in them."""
        self.compacting = False
        """Its history went to a request of another kind since its last one."""
        self.apart = False
        """No request goes on with it."""

    def rows_before(self) -> int:
        """Rows of the window that no answer takes along: a request that goes on from one says them anew."""
        return sum(self.rows[: self.given])


class Threads:
    """Finds the thread of each request, in time linear in the request.

    Where there are too many threads, those that were used least recently are forgotten.
    """

    def __init__(self) -> None:
        self._all: list[Thread] = []
        self._used_last: dict[int, Thread] = {}
        """The threads by id, those first that were used least recently."""
        self._recent: dict[int, Thread] = {}
        """The last `_RECENT` of them."""
        self._carried: dict[tuple[str | None, bytes], tuple[Thread, ...]] = {}
        """By session and fingerprint of a message: the threads that carried it first."""
        self._said: dict[tuple[str | None, str], Thread] = {}
        """By session and call id, or digest of a text: the thread that got it as an answer."""
        self._prompts: dict[str, tuple[str | None, str, str | None]] = {}
        """By digest of a text that a tool call was given: thread, call id, kind of agent."""
        self._replies: list[str] = []
        self._used: Counter[str] = Counter()

    def add(self, thread: Thread) -> None:
        """Remember a new thread."""
        self._all.append(thread)

    def find(self, request: Request, session: str | None, own: int) -> tuple[Thread | None, bool]:
        """The thread that a request goes on with, and whether it has the history of one that it is not of.

        `own`: index of the first message that says something of its own; what stands before it (a harness's
        notes on the machine) is alike in conversations that have nothing to do with each other.
        """
        votes: Counter[int] = Counter()
        found: dict[int, Thread] = {}
        for made in request.prints[request.start :]:
            for thread in self._carried.get((session, made), ()):
                votes[id(thread)] += 1
                found[id(thread)] = thread
        best: Thread | None = None
        longest, lent = -1, False
        for name, count in votes.most_common(_CANDIDATES):
            thread = found[name]
            shared = shared_messages(thread, request)
            if request.start + shared <= own and 2 * count <= len(request.prints) - request.start:
                continue
            if not self._goes_on(thread, request, shared):
                # Its history in another agent's request: something is made of it, a summary or a title.
                if count > 1:
                    lent = thread.compacting = True
            elif shared > longest:
                best, longest = thread, shared
        return best, lent

    def _goes_on(self, thread: Thread, request: Request, shared: int) -> bool:
        """Whether a request is of the same agent as a thread with which it shares the first messages.

        Prompt and tools say so.  Where the tools have changed too much for that (a server that connects late,
        tools that are found by a search), the request must repeat the thread's whole last one: and have the
        same prompt, all the tools and more, or nothing behind it but the thread's answer and what its calls
        gave back, which no title or summary is asked for with.
        """
        if thread.dialect != request.dialect.name:
            return False
        if thread.head.same(request.head):
            return True
        if not shared or shared < len(thread.prints) - thread.start:
            return False
        return thread.head.grown(request.head) or self._answers(thread, request, shared)

    def _answers(self, thread: Thread, request: Request, shared: int) -> bool:
        """Whether what follows the shared messages is the thread's own answer and what its calls gave."""
        if thread.head.tools.isdisjoint(request.head.tools) and thread.head.gist != request.head.gist:
            return False
        names = CallTitles()
        units = request.units[request.start + shared :]
        parts = [part for unit in units for part in request.dialect.parts(unit, names).parts]
        session = thread.conversation.session
        said = [part for part in parts if part.kind in _SAID]
        results = [part for part in parts if part.kind == "tool_result"]
        return (
            bool(results)
            and any(self._said.get((session, known_by(part) or "")) is thread for part in said)
            and all(
                part.kind in _SAID or part.kind == "tool_result" or part.kind in INJECTED for part in parts
            )
        )

    def of_answers(
        self, request: Request, session: str | None, parts: Iterable[Part]
    ) -> tuple[Thread | None, bool]:
        """As `find`, by the answers that a request sends back; for one whose other messages have changed."""
        votes: Counter[int] = Counter()
        known: dict[int, Thread] = {}
        for part in parts:
            found = self._said.get((session, known_by(part) or ""))
            if found is not None:
                votes[id(found)] += 1
                known[id(found)] = found
        lent = False
        for name, count in votes.most_common(_CANDIDATES):
            thread = known[name]
            if thread.dialect == request.dialect.name and thread.head.same(request.head):
                return thread, lent
            if count > 1:
                lent = thread.compacting = True
        return None, lent

    def answered(self, thread: Thread, parts: Iterable[Part]) -> None:
        """Remember a thread's answer."""
        for part in parts:
            key = known_by(part)
            if key is not None:
                self._said.setdefault((thread.conversation.session, key), thread)

    def root(self, request: Request, session: str | None, texts: list[str]) -> Thread | None:
        """The thread whose history a first request stands in for, one of the last `_LOOKED`; None where
        nothing says so."""
        told = any(self.continues(text) for text in texts)
        for thread in islice(reversed(self._all), _LOOKED):
            if (
                (told or thread.compacting)
                and thread.conversation.session == session
                and not thread.apart
                and thread.dialect == request.dialect.name
                and thread.head.like(request.head)
            ):
                return thread
        return None

    def continues(self, text: str) -> bool:
        """Whether a text stands for an earlier history: it says so, or it has an earlier answer in it."""
        if any(text.lstrip().startswith(mark) for mark in _CONTINUED):
            return True
        return len(text) > _QUOTE and any(reply in text for reply in self._replies)

    def carried(self, thread: Thread, request: Request, since: int) -> None:
        """Remember what a thread carried, from a piece on."""
        session = thread.conversation.session
        for made in request.prints[max(since, request.start) :]:
            known = self._carried.get((session, made), ())
            if thread not in known and len(known) < _CARRIERS:
                self._carried[session, made] = (*known, thread)

    def summed_up(self, parts: list[Part]) -> None:
        """Remember the answer to a request that had another thread's history: it may come to stand for it."""
        texts = [part.text for part in parts if part.kind == "assistant_message" and part.text]
        if len(texts) == 1 and _QUOTE < len(texts[0]) < _MAX_QUOTE:
            self._replies = [*self._replies[-3:], texts[0].strip()]

    def called(self, thread: Thread, key: str, name: str, arguments: Any) -> None:
        """Remember the texts that a call was given."""
        if not isinstance(arguments, dict):
            return
        kind = arguments.get("subagent_type")
        kind = kind if isinstance(kind, str) else None
        for value in arguments.values():
            if isinstance(value, str) and len(value) > 20:
                self._prompts[digest_of(value.strip())] = (thread.conversation.thread, key, kind)

    def origin(self, texts: list[str]) -> Json | None:
        """Where a new thread comes from, if a call was given exactly its first message."""
        for text in texts:
            known = self._prompts.get(digest_of(text.strip()))
            if known is not None:
                parent, key, kind = known
                made = {"parent_thread": parent or "main", "parent_tool_call": key}
                return {**made, "agent_type": kind} if kind is not None else made
        return None

    def side(self, request: Request, session: str | None) -> Thread | None:
        """The thread of side calls of the same kind."""
        for thread in self._all:
            if (
                thread.conversation.session == session
                and (thread.conversation.thread or "").startswith("side-")
                and thread.dialect == request.dialect.name
                and thread.head == request.head
            ):
                return thread
        return None

    def name(self, kind: str, about: str) -> str:
        """A name for a new thread, from the beginning of what it is about."""
        words = _WORD.findall(about[:200].lower())[:_NAME_WORDS]
        name = "-".join((kind, *words))[:48]
        self._used[name] += 1
        return name if self._used[name] == 1 else f"{name}-{self._used[name]}"

    def touch(self, thread: Thread) -> Thread | None:
        """Note that a thread was used; returns one that was idle while `_RECENT` others were used, if any."""
        for held in (self._used_last, self._recent):
            held.pop(id(thread), None)
            held[id(thread)] = thread
        return self._recent.pop(next(iter(self._recent))) if len(self._recent) > _RECENT else None

    def forget_oldest(self, busy: Mapping[int, Any], chains: SeenAnswers) -> list[Thread]:
        """Forget what exceeds the limits; return the threads that were forgotten."""
        chains.keep(_LINKS)
        if len(self._prompts) > _PROMPTS:
            for name in list(self._prompts)[: _PROMPTS // 2]:
                del self._prompts[name]
        if len(self._used) > _NAMES:
            self._used.clear()
        size = len(self._carried) + len(self._said)
        if size <= _MESSAGES and len(self._all) <= _THREADS:
            return []
        order = list(self._used_last)
        kept = {*order[len(order) // 2 :], *busy}
        gone = [thread for thread in self._all if id(thread) not in kept]
        self._all = [thread for thread in self._all if id(thread) in kept]
        for thread in self._all:
            thread.conversation.forget_gone()
        # Of the threads that stay, only what their windows still hold is kept.
        windows = {id(thread): frozenset(thread.prints) for thread in self._all}
        carried = {}
        for (session, made), threads in self._carried.items():
            own = tuple(t for t in threads if made in windows.get(id(t), ()))
            if own:
                carried[session, made] = own
        self._carried = carried
        refs = {id(t): {row[0].item for row in t.conversation.rows} for t in self._all}
        self._said = {
            key: t for key, t in self._said.items() if id(t) in kept and _still(key[1], refs[id(t)], t)
        }
        self._used_last = {name: t for name, t in self._used_last.items() if name in kept}
        self._recent = {name: t for name, t in self._recent.items() if name in kept}
        chains.drop(gone)
        return gone


def _still(key: str, items: set[str], thread: Thread) -> bool:
    """Whether an answer is still in its thread's window."""
    mark = key.partition(":")[2]
    return key in items or (mark != "" and any(row[0].ref.endswith(mark) for row in thread.conversation.rows))


def known_by(part: Part) -> str | None:
    """What an answer's item is known by when it is sent back; None for what many answers have."""
    if part.kind == "tool_call" and part.item:
        return part.item
    telling = part.version is not None or (part.text is not None and len(part.text) > _TELLING)
    return f"{part.kind}:{part.mark}" if part.kind in _ANSWERS and telling else None


def shared_messages(thread: Thread, request: Request) -> int:
    """How many messages at the beginning are those of the thread's last request."""
    old, new = thread.prints[thread.start :], request.prints[request.start :]
    limit = min(len(old), len(new))
    at = 0
    while at < limit and old[at] == new[at]:
        at += 1
    return at


class _Link(NamedTuple):
    thread: Thread
    epoch: int
    rows: int
    """Rows behind the head that the answer was given to, and its own."""


class SeenAnswers:
    """Answers that were seen, by the provider's id."""

    def __init__(self) -> None:
        self._links: dict[str, _Link] = {}

    def answered(self, response_id: str | None, thread: Thread) -> None:
        """Remember what an answer's history is: the window as it is now."""
        if response_id is not None:
            rows = len(thread.conversation) - thread.rows_before()
            self._links[response_id] = _Link(thread, thread.epoch, rows)

    def keep(self, most: int) -> None:
        """Forget the oldest beyond so many."""
        for name in list(self._links)[: max(0, len(self._links) - most)]:
            del self._links[name]

    def drop(self, threads: list[Thread]) -> None:
        """Forget the answers of these threads."""
        names = {id(thread) for thread in threads}
        self._links = {name: link for name, link in self._links.items() if id(link.thread) not in names}

    def before(self, request: Request) -> tuple[Thread, int] | None:
        """The thread of a request's history, and its rows behind the head; None if it is not known."""
        named = string(request.body.get("previous_response_id"))
        link = self._links.get(named) if named is not None else None
        if link is None or link.thread.epoch != link.epoch:
            return None
        if len(link.thread.conversation) - link.thread.rows_before() < link.rows:
            return None
        for other in [n for n, x in self._links.items() if x.thread is link.thread and x.rows > link.rows]:
            # What came after it is cut off by what comes now.
            del self._links[other]
        return link.thread, link.rows
