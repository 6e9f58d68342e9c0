"""One thread of a Copilot session: the requests of the main agent, or of a sub-agent."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from ctxctl.ingest.build import Json, Maker
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.parts import Part, count
from ctxctl.providers.usage import usage_record


class SessionThread:
    """A conversation and where its present request stands.

    A request is what `assistant.turn_start` begins; versions without that event are read by the answer: it
    ends the request, and everything before it was sent.
    """

    def __init__(self, conversation: Conversation, make: Maker) -> None:
        self.conversation = conversation
        self._make = make
        self.model: str | None = None
        self.reasoning: str | None = None
        """Reasoning that was shown before its message came."""
        self._head: Part | None = None
        self._open = False
        """Whether a turn has started."""
        self.between = False
        """Whether the last turn that began is over."""
        self._asked = False
        """Whether its request was made."""
        self._answering = False
        self._call: str | None = None
        """The id that tells the present request from others."""
        self._late: list[Part] = []
        """Input that came while the model was answering, and belongs to the next request."""
        self._calls: dict[str, int] = {}
        """The place of each call in the present answer."""
        self._places: list[int] = []
        """The places of the calls whose results have come, ascending."""
        self._results: list[str] = []
        """The first items of these results, likewise; so they stand in the window."""
        self._near: tuple[int, int] = 0, 0
        """The row of the result that came last, and the one behind it."""
        self._covered: int | None = None
        """How many rows of the history the summary that is being written will stand for."""
        self._outputs: dict[str, int] = {}
        self._bill: Json | None = None
        self._next_bill: Json | None = None
        self._line = 0

    @property
    def answering(self) -> bool:
        """Whether what comes is still the answer to the last request."""
        return self._answering

    @property
    def has_bill(self) -> bool:
        """Whether the bill of the last request came with it."""
        return self._bill is not None

    @property
    def start(self) -> int:
        """The number of rows that stand before the history."""
        return 1 if self._head is not None else 0

    def system(self, part: Part) -> None:
        """Set the system prompt from now on."""
        if self._head is None:
            self.conversation.splice(0, 0, [part])
        elif self._head.mark != part.mark:
            self.conversation.put(0, part)
        self._head = part

    def turn(self) -> None:
        """Begin a request."""
        self._catch_up()
        self._open, self._asked, self._answering = True, False, False
        self.between = False

    def turn_end(self, line: int) -> None:
        """End the request's turn, perhaps without an answer."""
        if self._open and not self._asked:
            self._request(None, line, derived=True)
        self.between = self._open or self.between
        self._open = self._answering = False
        self._catch_up()

    def abort(self) -> None:
        """End the request that the person stopped."""
        self._open = self._answering = False
        self._catch_up()

    def take(self, parts: list[Part]) -> None:
        """Take input of the next request."""
        if self._open and not self._asked:
            self._late += parts
        else:
            self._answering = False
            self.conversation.append(*parts)

    def result(self, parts: list[Part], call: str | None) -> None:
        """Add what a tool gave back; a request carries results in the order of their calls."""
        self._answering = False
        place = self._calls.get(call) if call is not None else None
        at = self._before(place) if place is not None else None
        if at is None:
            at = len(self.conversation.rows)
            self.conversation.append(*parts)
        else:
            self.conversation.splice(at, 0, parts)
            self._cover_less(at)
        if place is not None:
            seat = bisect_right(self._places, place)
            self._places.insert(seat, place)
            self._results.insert(seat, parts[0].item)
            self._near = at, at + len(parts)

    def _before(self, place: int) -> int | None:
        """The row of the first result whose call is later; None where there is none."""
        seat = bisect_right(self._places, place)
        while seat < len(self._results):
            found = self._row_of(self._results[seat])
            if found is not None:
                return found
            # The window has it no more.
            del self._places[seat], self._results[seat]
        return None

    def _row_of(self, item: str) -> int | None:
        rows = self.conversation.rows
        for at in self._near:
            if self.start <= at < len(rows) and rows[at][0].item == item:
                return at
        for at in range(len(rows) - 1, self.start - 1, -1):
            if rows[at][0].item == item:
                self._make.work += len(rows) - at
                return at
        self._make.work += len(rows)
        return None

    # -- the history ----------------------------------------------------------------------------------------

    def start_compaction(self) -> None:
        """Begin a compaction: its summary will stand for what is there now, while the session goes on."""
        self._covered = len(self.conversation.rows) - self.start

    def end_compaction(self) -> int:
        """How many rows of the history the summary stands for; all of them where no compaction was begun."""
        rows = len(self.conversation.rows) - self.start
        covered, self._covered = self._covered, None
        return rows if covered is None else covered

    def cut(self, at: int, cause: str) -> None:
        """Take out all rows from `at` on."""
        self.conversation.splice(at, len(self.conversation.rows) - at, cause=cause)
        self._cover_less(at)

    def drop(self, items: set[str]) -> None:
        """Take out items."""
        if self._covered is not None:
            covered = self.conversation.rows[self.start : self.start + self._covered]
            self._covered -= sum([row[0].item in items for row in covered])
        self.conversation.drop(items.__contains__)

    def _cover_less(self, at: int) -> None:
        """Of what a summary will stand for, row `at` is another one now."""
        if self._covered is not None:
            self._covered = min(self._covered, at - self.start)

    def called(self, calls: list[str]) -> None:
        """Note the calls of the present answer, in its order."""
        for call in calls:
            self._calls.setdefault(call, len(self._calls))

    def answer(self, parts: list[Part], call: str | None, step: str | None, line: int) -> None:
        """Take a message of the model; `call` tells its request from others, `step` names the step."""
        other = call is not None and self._call is not None and call != self._call
        if not self._answering or other:
            if self._asked:
                self._catch_up()
            self._request(step, line)
            self._call = call
        self.conversation.append(*parts)

    def more(self, parts: list[Part]) -> None:
        """Add something that belongs to the present answer."""
        self.conversation.append(*parts)

    def _request(self, step: str | None, line: int, **marks: Any) -> None:
        self.settle()
        self.conversation.request(step, line=line, model=self.model, native_id=step, **marks)
        self._asked = self._answering = True
        self._call = None
        self._calls, self._places, self._results = {}, [], []
        self._line = line
        self._bill, self._next_bill = self._next_bill, None

    def _catch_up(self) -> None:
        if self._late:
            self.conversation.append(*self._late)
            self._late = []

    # -- usage ----------------------------------------------------------------------------------------------

    def wrote(self, message: str, tokens: Any) -> None:
        """Take the output tokens of a message; pieces of one message report them once."""
        found = count(tokens)
        if found is not None:
            self._outputs[message] = found

    def billed(self, record: Json | None) -> None:
        """Take the bill of a request, where its event is kept."""
        if self._open and not self._asked:
            self._next_bill = record
        else:
            self._bill = record

    def settle(self) -> None:
        """Report what is known of the last request's bill."""
        record = self._bill
        if record is None and self._outputs:
            record = {"output_tokens": sum(self._outputs.values())}
            if self.model is not None:
                record["model"] = self.model
        if record is not None and self.conversation.steps:
            self.conversation.usage(record, line=self._line)
        self._bill = None
        self._outputs.clear()

    def finish(self) -> None:
        """End what the log left open."""
        self.settle()
        self._catch_up()


def usage_of(data: Json, model: str | None) -> Json | None:
    """The record of an `assistant.usage` event, or of one model's usage in `session.shutdown`."""
    return usage_record(
        input_tokens=data.get("inputTokens"),
        output_tokens=data.get("outputTokens"),
        cached=data.get("cacheReadTokens"),
        cache_write=data.get("cacheWriteTokens"),
        reasoning=data.get("reasoningTokens"),
        model=model,
        # Its `cost` counts premium requests, and no dollars.
        bill={name: value for name, value in data.items() if name != "cost"},
    )
