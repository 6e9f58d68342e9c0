"""Tools that nobody calls, tools that stand for a context, and calls that never got an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import xxhash

from ctxctl.engine.query.facts import tool_server_of
from ctxctl.lint.context import LONGEST
from ctxctl.lint.rule import Hit, Rule

if TYPE_CHECKING:
    from ctxctl.engine.replay.step_tracker import ThreadKey
    from ctxctl.lint.context import SeenRecord, StepContext, ThreadSums
    from ctxctl.model.findings import Place
    from ctxctl.model.results import Placement

_TOLD: Final = 3
"""Tools named in a message; the others are counted."""
_MOST: Final = 4096
"""Tools of one thread that are looked at."""


class _Tool:
    """One tool's definition in one thread."""

    def __init__(self, placement: Placement, look: StepContext) -> None:
        self.server = server_of(placement)
        self.tokens = placement.tokens
        self.key = placement.key
        self.item = placement.item
        self.place = look.place(placement.line)
        self._running: ThreadSums | None = None
        self._since = (0, Decimal(0), 0)
        self.steps = 0
        self.spent = 0
        self.money: Decimal | None = Decimal(0)
        self.into(placement, look.running)

    def into(self, placement: Placement, running: ThreadSums) -> None:
        """It is in the window from this step on."""
        self.outof()
        self.tokens, self.key, self._running = placement.tokens, placement.key, running
        self._since = (running.steps, running.rates, running.unpriced)

    def outof(self) -> None:
        """It is not any more."""
        running = self._running
        if running is None:
            return
        steps, rates, unpriced = self._since
        self.steps += running.steps - steps
        self.spent += self.tokens * (running.steps - steps)
        if running.unpriced != unpriced:
            self.money = None
        elif self.money is not None:
            self.money += (running.rates - rates) * self.tokens
        self._running = None


class UnusedTools(Rule):
    """Tools are defined in every request of a session and never called, by server.

    Schemas of tool servers are resent with each request; a session with a handful of servers pays tens of
    thousands of tokens for tools that nobody needs for the task.
    """

    code = "CTX008"
    name = "unused-tools"
    needs = "tool definitions and tool calls"
    fix = "Attach the server only where it is needed, allow only tools in use, or load definitions on demand."
    parameters = {  # noqa: RUF012
        "tokens": "fewest tokens per request, of a server's unused tools, that count",
        "own": "the same for the runtime's own tools, which are harder to leave out",
        "steps": "requests that a session needs before it is judged",
    }
    tokens = 1000
    own = 5000
    steps = 10

    def __init__(self) -> None:
        self._tools: dict[ThreadKey, dict[str, _Tool]] = {}
        self._called: dict[ThreadKey, set[str]] = {}

    def seen(self, seen: SeenRecord) -> Iterator[Hit]:
        """Note calls, those of a last answer too, which no request holds."""
        item = seen.item
        if item is not None and item.context_kind == "tool_call":
            called = self._called.setdefault(seen.thread.key, set())
            if len(called) < _MOST:
                known = item.content is not None and item.content.size <= LONGEST
                name = called_tool(seen.around.text(item.content)) if known and item.content else None
                called.update(n for n in (name, item.title) if n)
        return iter(())

    def step(self, look: StepContext) -> Iterator[Hit]:
        """Note definitions."""
        tools = self._tools.setdefault(look.key, {})
        for gone in look.left:
            if gone.kind == "tool_definition" and (name := defined_name(gone)) in tools:
                tool = tools[name]
                if tool.key == gone.key:
                    tool.outof()
        for came in look.came:
            if came.kind == "tool_definition":
                name = defined_name(came)
                if name in tools:
                    tools[name].into(came, look.running)
                elif name is not None and len(tools) < _MOST:
                    tools[name] = _Tool(came, look)
        return iter(())

    def end(self) -> Iterator[Hit]:
        """Unused tools of each thread, by server."""
        for key, tools in self._tools.items():
            called = self._called.get(key, set())
            shorts = {short_name(name) for name in called}
            by_server: dict[str, list[tuple[str, _Tool]]] = {}
            number: dict[str, int] = {}
            for name, tool in tools.items():
                tool.outof()
                number[tool.server] = number.get(tool.server, 0) + 1
                # Some runtimes leave the server's name out of the call, some out of the definition.
                if name not in called and short_name(name) not in called and name not in shorts:
                    by_server.setdefault(tool.server, []).append((name, tool))
            if called:
                for server, unused in by_server.items():
                    yield from self._told(server, unused, number[server])

    def _told(self, server: str, unused: list[tuple[str, _Tool]], number: int) -> Iterator[Hit]:
        tokens = sum(tool.tokens for _, tool in unused)
        steps = max(tool.steps for _, tool in unused)
        if tokens < (self.own if server == OWN else self.tokens) or steps < self.steps:
            return
        unused.sort(key=lambda one: (-one[1].tokens, one[0]))
        listed = ", ".join(name for name, _ in unused[:_TOLD])
        more = f" and {len(unused) - _TOLD} more" if len(unused) > _TOLD else ""
        whole = "none" if len(unused) == number else f"{len(unused)}"
        verb = "was called" if whole == "none" else "were never called"
        message = (
            f"{server}: {whole} of {number} tools {verb} in {steps} requests, "
            f"{tokens:,} tokens in each ({listed}{more})"
        )
        moneys = [tool.money for _, tool in unused]
        money = None if None in moneys else sum((m for m in moneys if m is not None), Decimal(0))
        spent = sum(tool.spent for _, tool in unused)
        first = unused[0][1]
        yield Hit(server, message, first.place, first.item, spent, money, steps)


class ToolAsContext(Rule):
    """Each turn begins with the same tool called with the same arguments: a context dressed as a tool.

    What is wanted on every turn is context.  As a tool it costs a request of its own each time, and its
    results pile up in the history; sanqian's context providers and Sibyl's hooks are for this.
    """

    code = "CTX005"
    name = "tool-as-context"
    needs = "tool calls with arguments, and turns"
    fix = "Inject it as a context item at the beginning of a turn, and only if it changed."
    parameters = {"turns": "fewest turns in a row that count"}  # noqa: RUF012
    turns = 4

    def __init__(self) -> None:
        self._threads: dict[ThreadKey, _Firsts] = {}

    def step(self, look: StepContext) -> Iterator[Hit]:
        """The first call of a turn, and its result."""
        firsts = self._threads.setdefault(look.key, _Firsts())
        if "branched" in look.step.flags:
            firsts.again()  # a retry of the same turn is no turn of its own
        for came in look.came:
            if came.kind == "tool_call":
                text = look.text(came)
                if text is not None:
                    yield from firsts.call(look, came, text, self.turns)
            elif came.kind == "user_message":
                firsts.asked = True
            elif came.kind == "tool_result" and firsts.waits:
                firsts.waits = False
                if firsts.run >= self.turns:
                    money = look.money(came.tokens)
                    yield Hit(firsts.tool, firsts.message, look.place(came.line), None, came.tokens, money, 0)


class _Firsts:
    """The first call of each turn of a thread."""

    def __init__(self) -> None:
        self.asked = True
        """Somebody has said something since the last call."""
        self.run = 0
        self.waits = False
        self.tool = self.message = ""
        self._digest = 0
        self._since: Place | None = None

    def again(self) -> None:
        """The conversation went back: what follows is no further turn."""
        self.run, self._digest, self.waits = 0, 0, False

    def call(self, look: StepContext, came: Placement, text: str, least: int) -> Iterator[Hit]:
        """A call; only the first after a message of the user says anything."""
        if not self.asked:
            return
        self.asked = False
        digest = xxhash.xxh3_64_intdigest(text.encode("utf-8", "replace"))
        self.run = self.run + 1 if digest == self._digest else 1
        self.waits = True
        if self.run == 1:
            self._since = look.place(came.line)
        self._digest = digest
        if self.run >= least and self._since is not None:
            self.tool = called_tool(text) or came.title or came.item
            shown = came.title or text[:60]
            self.message = f"{shown}: the first call of {self.run} turns in a row, with the same arguments"
            steps = self.run if self.run == least else 1
            yield Hit(
                self.tool,
                self.message,
                look.place(came.line),
                None,
                came.tokens,
                look.money(came.tokens),
                steps,
            )


OWN = "the runtime itself"
_HEAD = 400
_COPILOT = re.compile(r"([a-z0-9-]+-mcp-server)-(.+)")


def defined_name(tool: Placement) -> str | None:
    """The name that a tool is called by."""
    if tool.title:
        return tool.title
    return tool.item.removeprefix("tool:").removeprefix("tool/") or None


def server_of(tool: Placement) -> str:
    """The server that a tool is from, by its name or its source."""
    found = tool_server_of(tool)
    if found is not None:
        return found
    name = defined_name(tool) or ""
    match = _COPILOT.match(name)
    if match is not None:
        return match[1]
    head, between, _ = name.partition("__")
    return head if between and head else OWN


def short_name(name: str) -> str:
    """A tool's name without its server's."""
    return name.rpartition("__")[2]


def called_tool(text: str) -> str | None:
    """The tool that a call's text names: `NAME {arguments}`, or an object with a name."""
    if not text.startswith("{"):
        name = text.partition(" ")[0].partition("\n")[0]
        return name if 0 < len(name) <= _HEAD else None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    for inner in (value, value.get("function"), value.get("function_call")):
        found = inner.get("name") if isinstance(inner, dict) else None
        if isinstance(found, str) and found:
            return found
    return None


_SPEAKS: Final = frozenset({"user_message", "assistant_message"})


class _Call:
    """A call without a result so far."""

    def __init__(self, hit: Hit, tool: str | None, title: str | None) -> None:
        self.hit = hit
        self.tool = tool
        self.title = title
        self.passed = False
        """The conversation went on without one."""


class CallWithoutResult(Rule):
    """A tool call stands in the window, the conversation went on, and there is no result of it.

    Providers refuse such a request, or the model takes it that the tool did what it was asked.  It happens
    where a result is dropped or compacted without its call, or a run is interrupted.
    """

    code = "CTX018"
    name = "call-without-result"
    needs = "tool calls and results"
    fix = "Keep call and result together; if there is no result, insert one that says so."

    def __init__(self) -> None:
        self._open: dict[ThreadKey, dict[str, _Call]] = {}
        self._answered: dict[ThreadKey, set[str]] = {}
        """Tools that had a result at some time: of others the trace may hold none."""

    def step(self, look: StepContext) -> Iterator[Hit]:
        """Calls and results that came, in the order of the frame."""
        calls = self._open.setdefault(look.key, {})
        for gone in look.left:
            if gone.kind == "tool_call":
                calls.pop(gone.item, None)
        for came in look.came:
            if came.kind == "tool_call":
                if len(calls) < _MOST and came.item not in calls:
                    calls[came.item] = _call(look, came)
            elif came.kind == "tool_result":
                tool = _answer(calls, came)
                if tool is not None:
                    self._answered.setdefault(look.key, set()).add(tool)
            elif came.kind in _SPEAKS and calls:
                for call in calls.values():
                    call.passed = True
        return iter(())

    def end(self) -> Iterator[Hit]:
        """Calls that were never answered, of tools that do have results in the thread."""
        for key, calls in self._open.items():
            answered = self._answered.get(key, set())
            yield from (c.hit for c in calls.values() if c.passed and c.tool in answered)


def _call(look: StepContext, came: Placement) -> _Call:
    text = look.text(came)
    tool = called_tool(text) if text is not None else None
    message = f"{look.called(came)}: a call without a result, and the conversation went on"
    hit = Hit(came.item, message, look.place(came.line), came.item, came.tokens)
    return _Call(hit, tool or came.title, came.title)


def _answer(calls: dict[str, _Call], result: Placement) -> str | None:
    """A result closes the call that its id or its title names, else the oldest one; the tool's name."""
    item = result.item
    while item:
        call = calls.pop(item, None)
        if call is not None:
            return call.tool
        item = item.rpartition("/")[0]
    if not calls:
        return None
    swapped = result.item.replace("result", "call")
    if swapped not in calls:
        same = (name for name, call in calls.items() if result.title and call.title == result.title)
        swapped = next(same, next(iter(calls)))
    return calls.pop(swapped).tool
