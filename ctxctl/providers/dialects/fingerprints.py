"""What identifies the pieces of a request body over many requests, without keeping them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import orjson
import xxhash

from ctxctl.ingest.build import Json
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.parts import Part
from ctxctl.model import vocab
from ctxctl.providers.dialects.base import Dialect, Piece, Unit
from ctxctl.providers.dialects.slots import compact_json, json_as_sent, without_cache
from ctxctl.providers.dialects.units import LeftOut

_GIST: Final = 120
SEED: Final = int.from_bytes(os.urandom(8), "little")
"""Digests are compared within one process only, and nobody who writes a body can make two alike."""
_KEPT: Final = 4
"""Bodies kept."""
_NEAR: Final = 8
"""Messages that tell which of them is nearest."""
_TAIL: Final = 2
"""Messages at the end that a harness may change or take back in the next request."""
_PROMPTS: Final = ("system", "messages", "instructions", "input", "systemInstruction", "system_instruction")


def fingerprint(unit: Unit) -> tuple[bytes, bool]:
    """A digest of a piece as it was sent, less its cache markers, and whether it has any.

    The order of keys counts: another one is another text for the model.
    """
    try:
        data = orjson.dumps(unit.value)
    except (TypeError, ValueError, RecursionError):
        data = compact_json(unit.value).encode()
    marked = b'"cache_control":' in data
    if marked:
        data = json_as_sent(without_cache(unit.value)).encode()
    return xxhash.xxh3_128_digest(unit.section.encode() + b"\0" + data, SEED), marked


class Head(NamedTuple):
    """What stands before the conversation, as far as it tells one agent from another."""

    gist: str
    """The system prompt's beginning; what changes in it from day to day mostly stands further behind."""
    tools: frozenset[str]

    def same(self, other: Head) -> bool:
        """Whether both are one agent's: the same prompt or, where that was changed, about the same tools."""
        if not self.tools and not other.tools:
            return self.gist == other.gist
        if self.tools == other.tools:
            return True
        common = len(self.tools & other.tools)
        alike = 2 * common >= len(self.tools | other.tools)
        return alike or (self.gist == other.gist and self.gist != "" and common > 0)

    def grown(self, other: Head) -> bool:
        """Whether the other is this one with more tools, or under the same prompt (or none) with other ones.

        Not where none is left: a request that makes a title or a summary of a history may have its prompt.
        """
        if self.gist == other.gist and (not self.tools or self.tools & other.tools):
            return True
        return bool(self.tools) and self.tools <= other.tools

    def like(self, other: Head) -> bool:
        """Whether both are one agent's where they share nothing else."""
        return self.gist == other.gist and (self.same(other) or self.grown(other))


class Request(NamedTuple):
    """A request body in pieces."""

    body: Json
    dialect: Dialect
    units: list[Unit]
    prints: list[bytes]
    marked: list[int]
    """Indexes of pieces with cache markers."""
    start: int
    """Index of the first piece of the conversation."""
    head: Head
    pieces: list[Piece]
    """The part of each unit that the model read (`reached`)."""
    read: list[bytes]
    """Digests of the pieces that were read."""

    @property
    def given(self) -> int:
        """Index of the first piece of the input, which the provider keeps with an answer.

        Tools and `instructions` are not kept; a developer's message at the front of the input is.
        """
        found = (at for at, unit in enumerate(self.units) if not unit.head or unit.section == "input")
        return next(found, len(self.units))

    def reached(self, response: Json | None, known: LeftOut) -> Request:
        """The request with the parts that the model read; as `Dialect.reached`."""
        pieces = self.dialect.reached(self.units, self.body, response, known)
        if pieces is None:
            return self._replace(pieces=_whole(self.units), read=self.prints)
        read = [
            made if len(piece) == 1 and piece[0] is unit else _joint(piece)
            for piece, unit, made in zip(pieces, self.units, self.prints, strict=True)
        ]
        return self._replace(pieces=pieces, read=read)

    def tell_unread(
        self,
        conversation: Conversation,
        known: LeftOut,
        cut: Callable[[Unit], list[Part]],
        *,
        first: bool,
        line: int = 0,
    ) -> list[str]:
        """Record with the next request which tools it defers, if these changed; with a conversation's `first`
        request also
        the messages before a compaction.  Returns the refs of these messages."""
        loaded = {id(unit.value) for piece in self.pieces for unit in piece[1:]}
        unread = [
            (unit, made) for unit, made, piece in zip(self.units, self.prints, self.pieces, strict=True)
            if not piece and id(unit.value) not in loaded
        ]  # fmt: skip
        deferred = frozenset(made for unit, made in unread if unit.section == "tools")
        before = [p for unit, _ in unread if first and unit.section != "tools" for p in cut(unit)]
        conversation.pass_over(*before)
        if deferred != known.deferred:
            known.deferred = deferred
            tools = [part for unit, made in unread if made in deferred for part in cut(unit)]
            conversation.pass_over(*tools)
            refs = [part.block().ref for part in tools]
            name = f"deferred-{conversation.thread or vocab.MAIN_THREAD}-{conversation.steps + 1}"
            surface = {"surface_id": name, "scope": "session", "available_item_refs": refs}
            conversation.tell(vocab.SURFACE_CREATED, surface, line=line)
            omitted = [{"ref": ref, "reason": "deferred"} for ref in refs]
            selection = {"selection_id": name, "surface_id": name, "omitted_item_refs": omitted}
            conversation.tell(vocab.SELECTION_COMPLETED, selection, line=line)
        return [part.block().ref for part in before]

    def without_chain(self) -> Request:
        """The request less what stands for a history that is known."""
        keep = [at for at, unit in enumerate(self.units) if unit.section != "previous_response_id"]
        return self._replace(
            units=[self.units[at] for at in keep],
            prints=[self.prints[at] for at in keep],
            marked=[],
            start=self.start - (len(self.units) - len(keep)),
        )


def _joint(piece: Piece) -> bytes:
    return xxhash.xxh3_128_digest(b"".join(fingerprint(unit)[0] for unit in piece), SEED)


def goes_on(earlier: Json, later: Json, dialect: Dialect) -> bool:
    """Whether a body repeats another one's messages, all of them and first, under the same prompt.

    For the first few requests of a capture: nothing of it is kept.
    """
    old, new = dialect.units(earlier), dialect.units(later)
    said, says = ([unit for unit in units if not unit.head] for units in (old, new))
    if not said or len(said) >= len(says):
        return False
    if any(fingerprint(a)[0] != fingerprint(b)[0] for a, b in zip(said, says, strict=False)):
        return False
    heads = [_head([unit for unit in units if unit.head]) for units in (old, new)]
    return heads[0].gist == heads[1].gist


def request_of(body: Json, dialect: Dialect) -> Request:
    """A body in pieces, with an empty head."""
    units = dialect.units(body)
    start = next((at for at, unit in enumerate(units) if not unit.head), len(units))
    prints: list[bytes] = []
    marked: list[int] = []
    for at, unit in enumerate(units):
        made, has = fingerprint(unit)
        prints.append(made)
        if has:
            marked.append(at)
    head = Head("", frozenset())
    return Request(body, dialect, units, prints, marked, start, head, _whole(units), prints)


def _whole(units: list[Unit]) -> list[Piece]:
    return [(unit,) for unit in units]


class Opened:
    """A body that was taken to pieces lately."""

    __slots__ = ("dialect", "request", "thread")

    def __init__(self, request: Request, thread: Any) -> None:
        self.request = request._replace(body={}, units=[], pieces=[])
        self.thread = thread
        """Whose request it was."""
        self.dialect = request.dialect


class Opener:
    """Takes bodies to pieces, in time linear in the body; keeps the digests of a few threads' last bodies."""

    def __init__(self) -> None:
        self._last: list[Opened] = []

    def open(self, body: Json, dialect: Dialect) -> tuple[Request, Opened | None]:
        """The body in pieces, and the kept body that it goes on with: equal head, and all but its end."""
        request = request_of(body, dialect)
        units, prints, start = request.units, request.prints, request.start
        known = self._nearest(dialect, prints, start)
        old = known.request.prints if known is not None else []
        whole = known is not None and old[:start] == prints[:start]
        head = known.request.head if known is not None and whole else _head(units[:start])
        request = request._replace(head=head)
        if known is None or not whole or _common(old, prints) < len(old) - _TAIL:
            return request, None
        return request, known if len(old) > start + _TAIL else None

    def keep(self, request: Request, thread: Any) -> None:
        """Keep a body as its thread's last."""
        self._last = [kept for kept in self._last if kept.thread is not thread][: _KEPT - 1]
        self._last.insert(0, Opened(request, thread))

    def _nearest(self, dialect: Dialect, prints: list[bytes], start: int) -> Opened | None:
        """The kept body that begins as this one does."""
        best: Opened | None = None
        longest = 0
        for kept in self._last:
            old = kept.request.prints
            if kept.dialect is dialect and kept.request.start == start:
                at = start
                limit = min(len(old), len(prints), start + _NEAR)
                while at < limit and old[at] == prints[at]:
                    at += 1
                if at - start + 1 > longest:
                    best, longest = kept, at - start + 1
        return best


def _common(old: list[bytes], new: list[bytes]) -> int:
    if old == new[: len(old)]:
        return len(old)
    return next(at for at, (one, other) in enumerate(zip(old, [*new, None], strict=False)) if one != other)


def _head(units: list[Unit]) -> Head:
    texts: list[str] = []
    tools: set[str] = set()
    for unit in units:
        if unit.section in ("tools", "functions"):
            tools.update(_names(unit.value))
        elif unit.section in _PROMPTS:
            texts += [
                text for text in _texts(unit.value) if not text.startswith("x-anthropic-billing-header")
            ]
    # The last block is the most telling: a product's first line may be the same in all its calls.
    gist = "\n".join(dict.fromkeys((texts[0][:_GIST], texts[-1][:_GIST]))) if texts else ""
    return Head(gist, frozenset(tools))


def _names(tool: Any) -> list[str]:
    if not isinstance(tool, dict):
        return []
    for name in ("functionDeclarations", "function_declarations"):
        declared = tool.get(name)
        if isinstance(declared, list):
            return [found for one in declared for found in _names(one)]
    inner = tool.get("function")
    holder = inner if isinstance(inner, dict) else tool
    for field in ("name", "server_label", "type"):
        if isinstance(holder.get(field), str):
            return [holder[field]]
    return list(tool)[:1]


def _texts(value: Any) -> list[str]:
    """The texts of a system prompt's piece, whatever its dialect."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for one in value for text in _texts(one)]
    if isinstance(value, dict):
        for field in ("text", "content", "parts"):
            if field in value:
                return _texts(value[field])
    return []
