"""What Claude Code writes of the requests that it sent (versions 2.1.300 on).

`api-request-shape` is a system prompt with tools, told once; `api-request-blob` a message, told once and only
where the transcript's lines do not hold it; `api-request` a request: its shape, its parameters, where its
cache markers stand, and its messages by digest, as so many of an earlier request's (`keep` of `base`) and
what comes behind (`tail`).

Messages of a transcript by the digest that the client names them with (versions 2.1.300 on).

A request's record does not repeat what stands in the transcript: it names each message by the SHA-256 of its
canonical JSON (keys sorted, no spaces, no cache markers, a plain string as one text block).  Lines that
follow each other in the file make one message where they are the user's, or have one message id; every
beginning of such a run has a digest.  A compaction begins anew.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from itertools import pairwise
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.importers.claude_code.blocks import Entry, blocks_of
from ctxctl.importers.claude_code.chain import Message, RecordedBody
from ctxctl.importers.claude_code.sent_texts import SentTexts
from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import Part, listed, mapping, string
from ctxctl.providers.dialects.anthropic import Anthropic
from ctxctl.providers.dialects.base import CallTitles
from ctxctl.providers.dialects.slots import without_cache

_CHAINS: Final = 16
"""The most requests of a thread that are kept because a later one may name them as its base, or answers may
still come."""
_MARKERS: Final = 64
"""The most cache markers of a request; the API takes four."""
_ERROR: Final = 500
"""The most characters that are kept of an error."""
_MESSAGES: Final = 20_000
"""The most messages of a request."""
_DIALECT: Final = Anthropic()
_VERSION: Final = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})")
RECORDED: Final = (2, 1, 270)
"""The first version that may write records of its requests: this one does not, 2.1.300 does."""
WORDED: Final = (2, 1, 300)
"""The first version known to record how an attachment was worded, and in which role; 2.1.270 has no role."""


def is_since(version: str | None, first: tuple[int, int, int]) -> bool:
    """Whether a version of the client is the first that does something, or a later one."""
    found = _VERSION.match(version) if version is not None else None
    return found is not None and tuple(int(digits) for digits in found.groups()) >= first


class RecordedRequest:
    """A request as its record tells it."""

    __slots__ = (
        "body", "error", "id", "is_answered", "line", "markers", "model", "rows", "settings", "time", "turn",
    )  # fmt: skip

    def __init__(self, native: str, line: int, time: str, turn: str | None, body: RecordedBody) -> None:
        self.id = native
        self.line = line
        self.time = time
        self.turn = turn
        self.body = body
        self.model: str | None = None
        self.settings: Json | None = None
        self.markers: list[Any] = []
        """Its cache markers: each one's `path` in the body, and what it says."""
        self.rows: dict[tuple[str, int], int] = {}
        """The index of the placement of each tool and system block."""
        self.is_answered = False
        self.error: str | None = None
        """Why it got no answer, as a later line tells."""


class RequestShape:
    """A system prompt and tools."""

    __slots__ = ("message", "rows")

    def __init__(self, message: Message, rows: dict[tuple[str, int], int]) -> None:
        self.message = message
        self.rows = rows
        """The index of the last placement of each tool and system block."""


class _Chain(NamedTuple):
    """The messages of one request and their digests."""

    names: list[str]
    """Their digests."""
    messages: list[Message] | None
    """None: not all of them could be told."""


class RequestRecords:
    """The records of one thread's requests."""

    def __init__(self, home: object, pending: list[Entry]) -> None:
        self.runs = ThreadMessages()
        self.sent = SentTexts(home, pending)
        self.open: list[RecordedRequest] = []
        """The requests without a known answer, in the order in which they were sent."""
        self.unread = 0
        """The number of requests whose messages could not all be resolved."""
        self.changed = 0
        """The number of messages that are not what they were when a request's record was written."""
        self._shapes: dict[str, RequestShape] = {}
        self._tools: dict[tuple[str, str | None], Entry] = {}
        self._messages: dict[str, Message] = {}
        self._places: dict[Message, int] = {}
        """By message, its last run of lines."""
        self._chains: dict[str, _Chain] = {}
        self._asked: dict[str, RecordedRequest] = {}
        """The last requests by their ids, which answers name."""
        self._known: set[str] = set()
        """Digests of all records of requests: one that stands there again, word for word, tells of none."""
        self._snapshot: Json = {}
        self._standing: Message | None = None

    # -- records ---------------------------------------------------------------------------------------------

    def shape(self, value: Json, line: int) -> None:
        """Take an `api-request-shape` record."""
        name, shape = string(value.get("shapeHash")), value.get("shape")
        if name is None or not isinstance(shape, dict) or name in self._shapes:
            return
        self._shapes[name] = RequestShape(*self._cut(shape, line))

    def snapshot(self, value: Json) -> None:
        """Take a `prompt_snapshot`: the system prompt in parts and, once a request was made, the rest of the
        head.

        What a snapshot leaves out stays as the one before it had it.
        """
        told = {name: value[name] for name in ("systemPrompt", "cliPrefix", "tools") if name in value}
        self._snapshot = self._snapshot | told
        self._standing = None

    def head(self, line: int) -> RecordedBody | None:
        """The head of a request that has no record of its own, by the last snapshot; None without one."""
        if not self._snapshot:
            return None
        if self._standing is None:
            parts = [text for text in listed(self._snapshot.get("systemPrompt")) if isinstance(text, str)]
            prefix = string(self._snapshot.get("cliPrefix"))
            texts = [text for text in (prefix, "\n\n".join(parts)) if text]
            tools = [
                tool.get("schema") for tool in listed(self._snapshot.get("tools")) if isinstance(tool, dict)
            ]
            body = {"system": [{"type": "text", "text": text} for text in texts], "tools": tools}
            # The prefix stands first once it is known: the prompt is the second all along.
            self._standing = self._cut(body, line, derived=True, first=0 if prefix else 1)[0]
        return RecordedBody(self._standing, None)

    def blob(self, value: Json, line: int) -> None:
        """Take an `api-request-blob` record."""
        name, message = string(value.get("hash")), value.get("message")
        if name is not None and isinstance(message, dict) and name not in self._messages:
            made = self._messages[name] = self.sent.message(message, f"sent-{name[:12]}", line)
            self._bind(made, [entry.run for entry in made.entries if entry.run is not None])

    def request(self, value: Json, line: int, time: str, turn: str | None) -> RecordedRequest | None:
        """Take an `api-request` record; None where it has no id, or stood there before."""
        native = string(value.get("id"))
        digest = sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
        if native is None or digest in self._known:
            return None
        self._known.add(digest)
        shape = self._shapes.get(string(value.get("shapeHash")) or "")
        chain = self._chain(value)
        messages = None
        if chain is not None:
            messages = chain.messages
            self._chains[native] = chain
            while len(self._chains) > _CHAINS:
                del self._chains[next(iter(self._chains))]
        if messages is None:
            self.unread += 1
        head = shape.message if shape is not None else Message("system", [], [], [])
        asked = RecordedRequest(native, line, time, turn, RecordedBody(head, messages))
        params = value.get("params")
        if isinstance(params, dict):
            asked.model = string(params.get("model"))
            if shape is not None and messages is not None:
                asked.settings = _DIALECT.settings(params)
        markers = value.get("cacheControl")
        if messages is not None and isinstance(markers, list):
            asked.markers = markers[:_MARKERS]
            asked.rows = shape.rows if shape is not None else {}
        self._asked[native] = asked
        while len(self._asked) > _CHAINS:
            del self._asked[next(iter(self._asked))]
        self.open.append(asked)
        del self.open[:-_CHAINS]
        return asked

    def answered(self, native: Any) -> RecordedRequest | None:
        """The request that an answer names."""
        asked = self._asked.get(native) if isinstance(native, str) else None
        if asked is not None:
            asked.is_answered = True
        return asked

    def failed(self, value: Json) -> None:
        """Take a line that tells why the last request got no answer: `api_error`, or the text shown for
        it."""
        if not self.open or self.open[-1].is_answered:
            return
        error, message = value.get("error"), value.get("message")
        told = error.get("message") if isinstance(error, dict) else None
        if told is None and isinstance(message, dict):
            told = next((b.get("text") for b in listed(message.get("content")) if isinstance(b, dict)), None)
        self.open[-1].error = told[:_ERROR] if isinstance(told, str) and told else self.open[-1].error

    def unanswered(self, before: RecordedRequest | None = None) -> list[RecordedRequest]:
        """Hand out the requests without an answer, each once: those sent before one that got one, or all at
        the end."""
        end = len(self.open)
        if before is not None:
            end = self.open.index(before) if before in self.open else 0
        past, self.open = self.open[:end], self.open[end:]
        return [asked for asked in past if not asked.is_answered]

    # -- messages --------------------------------------------------------------------------------------------

    def _chain(self, value: Json) -> _Chain | None:
        """The messages of a request; None where the request that it goes on from is not there."""
        keep, tail, base = value.get("keep"), value.get("tail"), value.get("base")
        names = [name for name in tail if isinstance(name, str)] if isinstance(tail, list) else []
        before = self._chains.get(base) if isinstance(base, str) else None
        if not isinstance(keep, int) or keep <= 0:
            keep, before = 0, _Chain([], [])
        if before is None or len(before.names) < keep or keep + len(names) > _MESSAGES:
            return None
        known = before.messages[:keep] if before.messages is not None else None
        if keep == len(before.names) and not names:
            return before
        if known is None:
            known, fresh = [], before.names[:keep] + names
        else:
            fresh = names
        told = self._resolved(fresh, known)
        return _Chain(before.names[:keep] + names, known + told if told is not None else None)

    def _resolved(self, names: list[str], known: list[Message]) -> list[Message] | None:
        """The messages with some digests, behind others; None where one of them cannot be resolved."""
        found = [self._messages.get(name) or self._by_digest(name) for name in names]
        lacking = found.count(None)
        if lacking:
            before = max((self._places.get(one, -1) for one in known), default=-1)
            for at, run in self._aligned(found, before):
                made = self._messages[names[at]] = self._of_run(run, len(run.ends))
                found[at] = made
        messages = [one for one in found if one is not None]
        if len(messages) < len(names):
            return None
        self.changed += lacking
        return messages

    def _by_digest(self, name: str) -> Message | None:
        named = self.runs.find(name)
        if named is None:
            return None
        made = self._messages[name] = self._of_run(*named)
        return made

    def _of_run(self, run: MessageLines, count: int) -> Message:
        ends = run.ends[:count]
        entries = [entry for entry in run.entries[: ends[-1] if ends else 0] if entry.home is not None]
        made = Message(run.role, entries, [entry.block(set()) for entry in entries], ends)
        self._bind(made, [run])
        return made

    def _bind(self, message: Message, runs: list[MessageLines]) -> None:
        for run in runs:
            run.is_bound = True
        if runs:
            self._places[message] = max(run.index for run in runs)

    def _aligned(self, found: list[Message | None], at: int) -> list[tuple[int, MessageLines]]:
        """The runs of the messages without a known digest, by their place among the others.

        A file whose texts were changed after it was written (paths blanked, secrets taken out) has the
        digests of what they were.  Between two messages that are known there must be as many runs left over
        as are looked for, and in the same order of roles.
        """
        made: list[tuple[int, MessageLines]] = []
        gap: list[int] = []
        for index, message in enumerate([*found, None]):
            if message is None and index < len(found):
                gap.append(index)
                continue
            end = len(self.runs.all) if message is None else self._places.get(message)
            if end is None:
                continue
            if gap:
                made += self._gap(gap, at, end)
                gap = []
            at = max(at, end)
        return made

    def _gap(self, gap: list[int], at: int, end: int) -> list[tuple[int, MessageLines]]:
        free = [run for run in self.runs.all[max(at + 1, self.runs.first) : end] if not run.is_bound]
        alternate = all(one.role != two.role for one, two in pairwise(free))
        return list(zip(gap, free, strict=True)) if len(free) == len(gap) and alternate else []

    def _cut(
        self, body: Json, line: int, *, derived: bool = False, first: int = 0
    ) -> tuple[Message, dict[tuple[str, int], int]]:
        """A head in items, and the placement that each tool and system block ends with.

        Args:
            body: `system` and `tools` as a request has them.
            line: Where the items are from.
            derived: Whether it was put together.
            first: What the first system block counts as.
        """
        made = Message("system", [], [], [])
        rows: dict[tuple[str, int], int] = {}
        names = CallTitles()
        for unit in _DIALECT.units({name: body[name] for name in ("system", "tools") if name in body}):
            if mapping(unit.value).get("defer_loading") is True:
                continue  # the provider leaves it out until a search finds it
            at = unit.at + first if unit.section == "system" else unit.at
            for part in _DIALECT.parts(unit._replace(at=at), names, line).parts:
                part.derived = derived
                entry = self._head(part, line)
                made.entries.append(entry)
                made.blocks.append(entry.block(set())._replace(segment=part.segment))
            rows[unit.section, unit.at] = len(made.blocks) - 1
        return made, rows

    def _head(self, part: Part, line: int) -> Entry:
        """The item of a part of the head: the earlier one, where it was there before."""
        part.item = part.item or f"body:{part.kind}"
        known = self._tools.get((part.item, part.mark))
        if known is not None:
            return known
        entry = Entry(part.item, part.kind, part.role, part.record(derived_identity=False), line)
        self._tools[part.item, part.mark] = entry
        return self.sent.add(entry)


_OPENING: Final = b'{"content":['
_SORTED: Final = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
_MARK: Final = b'"cache_control":'
_ENDS: Final = {"user": b'],"role":"user"}', "assistant": b'],"role":"assistant"}'}


class MessageLines:
    """The lines of one message, as far as they were read."""

    __slots__ = ("blocks", "ends", "entries", "index", "is_bound", "message", "role", "said", "sha")

    def __init__(self, role: str, message: str | None, index: int) -> None:
        self.role = role
        self.message = message
        """The id of the answer."""
        self.index = index
        """Its index among the runs of its thread, in the order of the file."""
        self.entries: list[Entry] = []
        self.ends: list[int] = []
        """The number of entries up to and with each content block."""
        self.blocks = 0
        self.is_bound = False
        """Whether a request's record is known to name it."""
        self.sha: Any = sha256(_OPENING)
        """The hash over the blocks so far; None once it is over, or one of them has no canonical form."""
        self.said: list[bytes] | None = []
        """What was hashed; None once nothing more will be."""

    def hash(self, data: bytes) -> None:
        """Add to the hash."""
        self.sha.update(data)
        if self.said is not None:
            self.said.append(data)

    def over(self) -> None:
        """Nothing is added to it any more."""
        self.sha = self.said = None

    def goes_on(self, role: str, message: str | None) -> bool:
        """Whether a line belongs to the same message."""
        return self.role == role and (role == "user" or (message is not None and message == self.message))


class ThreadMessages:
    """The messages of one thread."""

    def __init__(self) -> None:
        self.all: list[MessageLines] = []
        self.first = 0
        """The index of the first run behind the last compaction."""
        self._by_digest: dict[bytes, tuple[MessageLines, int]] = {}
        self._last: MessageLines | None = None

    def note(self, message: Json, made: list[list[Entry]]) -> None:
        """Take a line's message into account; `made`: the items of each of its blocks."""
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant") or content is None:
            self._close()
            return
        native = message.get("id")
        native = native if isinstance(native, str) else None
        run = self._last
        if run is None or not run.goes_on(role, native):
            self._close()
            run = self._last = MessageLines(role, native, len(self.all))
            self.all.append(run)
        for entries in made:
            for entry in entries:
                entry.run = run
            run.entries += entries
            run.ends.append(len(run.entries))
        self._digest(run, blocks_of(content))

    def _digest(self, run: MessageLines, blocks: list[Any]) -> None:
        if run.sha is None:
            return
        try:
            for block in blocks:
                data = orjson.dumps(block, option=_SORTED)
                if _MARK in data:
                    data = orjson.dumps(without_cache(block), option=_SORTED)
                run.hash(b"," + data if run.blocks else data)
                run.blocks += 1
        except (TypeError, ValueError, RecursionError):
            run.over()
            return
        sha = run.sha.copy()
        sha.update(_ENDS[run.role])
        self._by_digest[sha.digest()] = run, len(run.ends)

    def find(self, digest: str) -> tuple[MessageLines, int] | None:
        """The run with a digest (in hex), and how many of its blocks make that digest."""
        try:
            return self._by_digest.get(bytes.fromhex(digest))
        except ValueError:
            return None

    def begin(self) -> None:
        """Begin anew after a compaction: what comes is no part of an earlier message, though requests may
        name those."""
        self._close()
        self.first = len(self.all)

    def _close(self) -> None:
        if self._last is not None:
            self._last.over()
            self._last = None

    def brought(self) -> None:
        """Go on, in another run than the one that began."""
        for run in self.all:
            run.sha = None
        if self._last is not None and self._last.said is not None:
            self._last.sha = sha256(_OPENING + b"".join(self._last.said))
