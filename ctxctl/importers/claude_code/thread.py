"""One conversation of a session: the main one, or a sub-agent's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ctxctl.importers.claude_code.blocks import Entry
from ctxctl.importers.claude_code.chain import ChainNode, ChainPath, ChainUnit
from ctxctl.importers.claude_code.last_request import LastRequest
from ctxctl.importers.claude_code.requests import RequestRecords
from ctxctl.ingest.build import Json, Place, Window
from ctxctl.model.billed import fields_of
from ctxctl.providers.usage import hour_writes, miss_cause

_COUNTS = (
    ("input_tokens", "input_tokens"),
    ("cached_tokens", "cache_read_input_tokens"),
    ("cache_write_tokens", "cache_creation_input_tokens"),
)


class Origin(NamedTuple):
    """Where a sub-agent was started."""

    thread: str
    tool_call: str | None = None
    agent: str | None = None
    """Its type, where recorded (`Explore`)."""

    def metadata(self) -> Json:
        """For `metadata.ctxctl` of the thread's first assembly."""
        made: Json = {"parent_thread": self.thread}
        if self.tool_call is not None:
            made["parent_tool_call"] = self.tool_call
        if self.agent is not None:
            made["agent_type"] = self.agent
        return made


class Call:
    """One API call whose lines are still coming: the provider's numbers, merged."""

    __slots__ = ("cause", "line", "model", "output", "place", "prompt", "terms", "tier", "time", "unit")

    def __init__(self, unit: ChainUnit, place: Place, line: int, time: str) -> None:
        self.unit = unit
        self.place = place
        self.line = line
        self.time = time
        self.model: str | None = None
        self.prompt: dict[str, int] = {}
        self.output: int | None = None
        self.tier: str | None = None
        self.terms: Json = {}
        """How it was served and what is billed apart, as the last line that tells says."""
        self.cause: str | None = None
        """Why the cache was not read, as the API told the client."""

    def merge(self, message: Json) -> None:
        """Take over a line's usage: the prompt side once, of the output the largest."""
        model = message.get("model")
        if isinstance(model, str):
            self.model = model
        self.cause = miss_cause(message) or self.cause
        usage = message.get("usage")
        if not isinstance(usage, dict):
            return
        if not self.prompt:
            self.prompt = {
                name: count for name, key in _COUNTS if (count := _count(usage.get(key))) is not None
            }
            hour = hour_writes(usage)
            if hour is not None and "cache_write_tokens" in self.prompt:
                self.prompt["cache_write_1h_tokens"] = hour
        output = _count(usage.get("output_tokens"))
        if output is not None and (self.output is None or output > self.output):
            self.output = output
        tier = usage.get("service_tier")
        if isinstance(tier, str):
            self.tier = tier
        self.terms |= fields_of(usage)

    def usage(self) -> Json | None:
        """The record of `ctxctl.usage.reported`; None where the lines hold no usage."""
        if "input_tokens" not in self.prompt:
            return None
        cached = self.prompt.get("cached_tokens")
        written = self.prompt.get("cache_write_tokens")
        made: Json = {
            "provider": "anthropic",
            # The provider's own count leaves out what was read from or written to its cache.
            "input_tokens": self.prompt["input_tokens"] + (cached or 0) + (written or 0),
        }
        for name, value in (
            ("model", self.model),
            ("cached_tokens", cached),
            ("cache_write_tokens", written),
            ("cache_write_1h_tokens", self.prompt.get("cache_write_1h_tokens")),
            ("cache_miss_cause", self.cause),
            ("output_tokens", self.output),
        ):
            if value is not None:
                made[name] = value
        made |= self.terms
        if self.tier is not None:
            made["metadata"] = {"native": {"service_tier": self.tier}}
        return made


def _count(value: Any) -> int | None:
    """A token count, or None for what is not one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


class Thread:
    """What an importer knows of one conversation while it reads."""

    def __init__(
        self,
        session: str | None,
        name: str,
        origin: Origin | None,
        lookup: Callable[[str], ChainNode | None],
        elsewhere: Callable[[str], ChainUnit | None],
    ) -> None:
        self.session = session
        self.name = name
        self.origin = origin
        self.path = ChainPath(
            lookup, lambda tool: self.tools[tool] if tool in self.tools else elsewhere(tool)
        )
        self.window = Window()
        self.view = LastRequest(self.path)
        self.requests: RequestRecords | None = None
        """The records of its requests, in versions that write such."""
        self.messages: dict[str, ChainUnit] = {}
        """The units by message id."""
        self.tools: dict[str, ChainUnit] = {}
        """The units by the tool use ids that they hold."""
        self.titles: dict[str, str | None] = {}
        """The title of each tool call, which its result shares."""
        self.pending: list[Entry] = []
        """The items that no step has announced yet."""
        self.retracted: list[Entry] = []
        self.foreign: set[Entry] = set()
        """The items of other threads that this one has announced as well."""
        self.last: ChainNode | None = None
        """The line read last."""
        self.call: Call | None = None
        self.started = False
        self.carried = False
        """Whether some of its API calls are billed in another transcript."""
        self._turn: str | None = None
        self._native_turn: str | None = None
        self._turns: dict[str, int] = {}

    def records(self) -> RequestRecords:
        """The records of its requests; what lines hold is held against them from now on."""
        if self.requests is None:
            self.requests = RequestRecords(self, self.pending)
        return self.requests

    def place(self, step: str | None = None) -> Place:
        """The turn, step and thread of an event of this thread now."""
        return Place(self.session, self.name, self._turn if step is not None else None, step)

    def turn_to(self, turn: str | None) -> None:
        """Enter the turn of the next step; None stays in the present one.

        A turn that was left and is taken up again (a retry of an older prompt) is a turn of its own, named
        for the same prompt.
        """
        if turn is None or turn == self._native_turn:
            return
        self._native_turn = turn
        again = self._turns[turn] = self._turns.get(turn, 0) + 1
        self._turn = turn if again == 1 else f"{turn}~{again}"

    def add(self, unit: ChainUnit, entries: list[Entry], time: str, *, tail: bool) -> list[Entry]:
        """Add items to a unit and to what the next step announces; repeats of its own items are left out."""
        target = unit.tail if tail else unit.head
        added = []
        for entry in entries:
            for known in target:
                if entry.version == known.version and _repeats(entry, known):
                    break
            else:
                entry.home = self
                entry.time = time
                if self.requests is not None:
                    self.requests.sent.note(entry)
                target.append(entry)
                self.pending.append(entry)
                added.append(entry)
        if added:
            self.path.touch(unit)
        return added


def _repeats(entry: Entry, known: Entry) -> bool:
    """Whether of two entries of one version one is a streamed duplicate of the other.

    That is the same block on another line of the message, or the same result again.
    """
    if entry.kind != known.kind:
        return False
    if entry.item == known.item:
        return True
    return entry.kind in _WITHOUT_ID and entry.native != known.native


_WITHOUT_ID = frozenset({"assistant_message", "reasoning"})
"""Kinds of blocks without an id of their own: a repeat is recognised by its text."""
