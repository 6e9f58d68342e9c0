"""The rows of one session of a capture, taken in request by request."""

from __future__ import annotations

from itertools import count
from struct import pack, unpack
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ctxctl.analysis.shared_requests import request_key
from ctxctl.dataset.rows.facts import (
    RequestAt,
    Row,
    SessionSums,
    ThreadFacts,
    microseconds,
    rate_of,
    step_row,
)
from ctxctl.dataset.rows.names import ItemOrigins
from ctxctl.dataset.rows.stays import Stay, ThreadStays
from ctxctl.dataset.schema import UNKNOWN_MONTH
from ctxctl.prompt_words import says_words
from ctxctl.session.addresses import default_thread

if TYPE_CHECKING:
    from ctxctl.analysis.request_cost import StepCost
    from ctxctl.dataset.keys import KeyedDigests
    from ctxctl.dataset.rows.clear import ClearTexts
    from ctxctl.engine.replay.frames import FrameDelta
    from ctxctl.model.content import Content
    from ctxctl.model.results import Placement

_LOOKED_AT: Final = 16
"""Turns whose prompts are looked through for one that does not begin with a client's own note (`<…>`)."""
_TITLE: Final = 200
"""Characters of a session's title."""


class Held(NamedTuple):
    """A text that a capture's windows held."""

    content: Content
    kind: str
    """Of the first item that held it."""
    tokens: int | None


class SessionPlace(NamedTuple):
    """What all sessions of one capture have in common."""

    digests: KeyedDigests
    clear: ClearTexts
    source: int
    format: str
    runtime: str
    """The format that a trace was imported from; else the same as `format`."""
    directory: str | None
    paths: bool


class SessionRows:
    """Follows one session.

    Args:
        place: Its capture.
        name: The session's own id.
        number: Which session of the capture it is, from 0.
        contents: By digest, the texts of the capture's windows so far; added to.
    """

    def __init__(self, place: SessionPlace, name: str | None, number: int, contents: dict[str, Held]) -> None:
        self._place = place
        self._contents = contents
        self.name = name
        self.number = number
        own = f"{place.source:016x}\0{number}" if name is None else f"{place.format}\0\0{name}"
        self.key = place.digests.number("session", own.encode("utf-8", "surrogatepass"))
        self.sums = SessionSums()
        self.client_version: str | None = None
        self.prompts: list[str] = []
        self._origins = ItemOrigins(place.clear, place.directory, paths=place.paths)
        self._numbers = count()
        self._stays: dict[str, ThreadStays] = {}
        self._facts: dict[str, ThreadFacts] = {}
        self._steps: list[tuple[str, Row]] = []
        self._misses: list[tuple[str, Row]] = []
        self._compactions: list[tuple[str, Row]] = []
        self._ordinal = 0

    def step(self, cost: StepCost, placements: list[Placement], delta: FrameDelta) -> None:
        """Take in a request with its window and how that differs from its thread's before."""
        step, thread = cost.step, cost.step.thread
        clear = self._place.clear
        at = RequestAt(self._ordinal, thread, microseconds(step.time), clear.name(step.model))
        self._ordinal += 1
        facts = self._facts.get(thread)
        if facts is None:
            facts = self._facts[thread] = ThreadFacts(self._origins.of, clear)
            self._stays[thread] = ThreadStays(self._numbers, self._origin)
        stays = self._stays[thread]
        stays.step(at.ordinal, placements, delta, step.changes)
        stays.priced(at.ordinal, rate_of(cost))
        for p in delta.inserted:
            if p.content is not None and p.content.digest not in self._contents:
                tokens = None if p.method == "uncounted" else p.tokens
                self._contents[p.content.digest] = Held(p.content, p.kind, tokens)
        row = step_row(at, cost, self._request(cost))
        self._steps.append((thread, row))
        self._misses += [(thread, row) for row in facts.misses(at, cost, delta)]
        compacted = facts.compaction(at, step, delta)
        if compacted is not None:
            self._compactions.append((thread, compacted))
            self.sums.compactions += 1
        facts.passed(at, step)
        self.sums.add(at, cost)

    def prompt(self, title: str | None) -> None:
        """A turn of the main thread began with these words."""
        if title and len(self.prompts) < _LOOKED_AT:
            self.prompts.append(title)

    def _request(self, cost: StepCost) -> int | None:
        key = request_key(self._place.runtime, cost.step)
        return None if key is None else self._place.digests.number("request", key.to_bytes(8))

    def _origin(self, p: Placement) -> Any:
        return self._origins.of(p.kind, p.title, p.source, p.item)

    @property
    def month(self) -> str:
        """YYYY-MM of its first request."""
        time = self.sums.first_time
        found = None if time is None else microseconds(time)
        return UNKNOWN_MONTH if found is None else month_of(found)

    @property
    def main(self) -> str:
        """Its main thread."""
        return default_thread(list(self.sums.threads))

    @property
    def title(self) -> str | None:
        """The first prompt that is no client's own note."""
        plain = next((text for text in self.prompts if says_words(text)), None)
        found = plain or next(iter(self.prompts), None)
        return None if found is None else found[:_TITLE]

    def rows(self) -> dict[str, list[Row]]:
        """By table, all rows but the session's own, in the order of the schema's columns."""
        where: Row = [self.key, self._place.source, self.month, self._place.format]
        main = self.main
        threads = {name: [self._thread(name), name != main] for name in self.sums.threads}
        stays = sorted(
            ((stay.number, name, stay) for name, one in self._stays.items() for stay in one.finish()),
            key=lambda row: row[0],
        )
        return {
            "steps": [where + threads[name] + row for name, row in self._steps],
            "stays": [where + threads[name] + self._stay(stay) for _, name, stay in stays],
            "misses": [where + threads[name] + row for name, row in self._misses],
            "compactions": [where + threads[name] + row for name, row in self._compactions],
        }

    def _thread(self, name: str) -> str:
        shown = self._place.clear.name(name)
        return shown or self._place.digests.word("thread", name.encode("utf-8", "surrogatepass"))

    def _stay(self, stay: Stay) -> Row:
        p, end, digests = stay.copy, stay.end, self._place.digests
        assert end is not None
        counted = stay.is_counted
        item = f"{self.key:016x}\0{p.item}".encode("utf-8", "surrogatepass")
        content = None if p.content is None else digests.number("content", bytes.fromhex(p.content.digest))
        return [
            stay.number, digests.number("item", item), self._place.clear.name(p.kind) or "custom", p.segment,
            *stay.origin, content, stay.first, end.last, end.requests, p.tokens if counted else None,
            end.token_steps if counted else None, end.stale_token_steps if counted else None,
            stay.entered, end.left, None if end.usd is None else single(end.usd),
        ]  # fmt: skip

    def row(self, host: str, client: str | None, branch: str | None, more: dict[str, Any]) -> Row:
        """The session's own row; `more`: `title`, `project`, `labels`, `problems`."""
        sums, clear = self.sums, self._place.clear
        main = self.main
        models = sums.models.get(main)
        return [
            self.key, self._place.source, self.month, self._place.format, self.number, clear.name(self.name),
            more["title"], more["project"], clear.name(branch), client, clear.name(self.client_version), host,
            sorted(more["labels"].items()), models.most_common(1)[0][0] if models else None,
            sums.times[0] if sums.times else None, sums.times[-1] if sums.times else None,
            len(sums.threads[main]), sums.requests, len(sums.threads) - 1, sums.limit, sums.firsts.get(main),
            sums.largest, sums.over, sums.sent, sums.billed, sums.read, sums.written, sums.output, sums.usd,
            sums.unpriced, sums.compactions, sums.breaks, sums.missed, more["problems"],
        ]  # fmt: skip


def single(value: float) -> float:
    """A number as exact as 24 bits of mantissa are: what is shared out is not known any better, and the other
    bits would take most of a dataset's room.
    """
    found: float = unpack("<f", pack("<f", value))[0]
    return found


def month_of(time: int) -> str:
    """YYYY-MM, in UTC, of microseconds since the epoch."""
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(time / 1e6, UTC).strftime("%Y-%m")
    except (OverflowError, ValueError, OSError):
        return UNKNOWN_MONTH
