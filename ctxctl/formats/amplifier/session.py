"""One session of Amplifier: what its events say of its turns, its requests and their windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from ctxctl.formats.amplifier import parts as shapes
from ctxctl.formats.amplifier.compactions import Compaction, Counters, Limits, ingress
from ctxctl.formats.amplifier.identity import Names
from ctxctl.formats.amplifier.origins import Origins
from ctxctl.formats.amplifier.records import Record, body
from ctxctl.formats.amplifier.usage import reported
from ctxctl.formats.build import Json
from ctxctl.formats.kit.conversation import Conversation
from ctxctl.formats.kit.parts import Part, call_title, count, string
from ctxctl.model import vocab

if TYPE_CHECKING:
    from ctxctl.formats.amplifier.transcript import Script
    from ctxctl.formats.wire.dialect import Dialect

_HISTORY: Final = frozenset({"user_message", "assistant_message", "tool_call", "tool_result", "reasoning"})
VIEW: Final = "context-view"
"""The item that stands for a compacted window whose messages are not recorded."""


class Session:
    """The state of one session while its log is read.

    A window comes from the request's body where the log holds it; else it is put together from the events since
    the last one.
    """

    def __init__(
        self, conversation: Conversation, aside: Callable[[], Conversation], script: Script | None = None
    ) -> None:
        self.conversation = conversation
        self._aside = aside
        self._script = script
        self._told = conversation
        """The conversation of the present request."""
        self._loops = self._asked = False
        self._first: int | None = None
        self.origins = Origins()
        self.counters = Counters()
        self.limits = Limits()
        self.turns = 0
        self._submitted = False
        self.provider: str | None = None
        self.model: str | None = None
        self.held: tuple[Record, Json | None] | None = None
        """A request that was announced; its body may follow in an event of its own."""
        self.stage = "idle"
        """`idle`, `sent` (a request without an answer yet), `answered`."""
        self.children: dict[str, tuple[str, str | None]] = {}
        """Call id and agent by the session that a delegation set off."""
        self._names = Names()
        self._waiting: list[Part] = []
        self._results: list[tuple[int, Part]] = []
        self._calls: dict[str, int] = {}
        self._replied = False
        self._billed = False
        self._compactions: list[Compaction] = []
        self._cleared: Json | None = None
        self._told_budget = False
        self._system = False
        self._reasons: dict[str, str] = {}
        self.bodies = 0
        """Requests whose body the log held."""

    # -- what goes into the next request ----------------------------------------------------------------------

    def turn(self, text: Any, line: int) -> None:
        """A person's prompt begins a turn."""
        self.turns += 1
        self._submitted = True
        self.conversation.turn = f"turn-{self.turns}"
        self.stage = "idle"
        self._settle()
        self._waiting.append(shapes.prompt(shapes.plain(text), line))

    def say(self, *found: Part) -> None:
        """Context that entered between requests."""
        self._settle()
        self._waiting += found

    def call(self, found: Record) -> None:
        """A tool is about to run; loops that log no content blocks tell of the call here alone."""
        name = string(found.field("tool_name")) or "tool"
        key = string(found.data.get("tool_call_id"))
        if self._replied or (key is not None and key in self._calls):
            return
        if key is not None:
            self._calls[key] = len(self._calls)
        self._waiting.append(shapes.called(key, name, found.data.get("tool_input"), found.line.number))

    def result(self, found: Record) -> None:
        """A tool has run; results join in the order of their calls, whichever finished first."""
        key = string(found.data.get("tool_call_id"))
        given = found.field("result")
        if given is None:
            given = found.field("error")
        structured = not isinstance(given, str)
        part = shapes.result(key, None, given, found.line.number, derived=structured)
        part.title = call_title(string(found.field("tool_name")) or "tool", found.data.get("tool_input"))
        order = self._calls.get(key, len(self._calls)) if key is not None else len(self._calls)
        self._results.append((order, part))
        self._delegated(key, found)

    def _delegated(self, key: str | None, found: Record) -> None:
        given, asked = found.field("result"), found.data.get("tool_input")
        output = given.get("output") if isinstance(given, dict) else None
        child = string(output.get("session_id")) if isinstance(output, dict) else None
        if child is not None and key is not None:
            self.children[child] = (key, string(asked.get("agent")) if isinstance(asked, dict) else None)

    def clear(self, data: Json) -> None:
        """The history was cleared."""
        self._waiting.clear()
        self._results.clear()
        self._cleared = data

    def compacted(self, found: Compaction) -> None:
        """A compaction of the view that the next request carries."""
        self._compactions.append(found)
        self.limits.compaction(found, self.model)
        self._told_budget = True

    def budget(self, data: Json) -> None:
        """The budget changed."""
        self.limits.budget(data, self.model)
        self._told_budget = True

    def ingress(self, data: Json, line: int) -> None:
        """A tool result was cut before it was stored."""
        key = string(data.get("tool_call_id"))
        if key is not None:
            # The item stays, cut: the budget's record names it, the compaction's sources are what leaves.
            self._reasons[f"{key}/result"] = "ingress"
        record = ingress(data)
        self.conversation.compacted([], None, line=line, **record)

    # -- requests ---------------------------------------------------------------------------------------------

    def asked(self, found: Record) -> None:
        """The loop is about to ask the provider; the request itself is told of later."""
        iteration = count(found.data.get("iteration"))
        if found.data.get("phase") is not None or (iteration == 0 and self._first not in (None, 0)):
            # A reminder to hooks at the turn's start; a loop that counts from one asks on its own behalf.
            return
        self._first = iteration if self._first is None else self._first
        self._loops = self._asked = True
        self.stage = "idle"

    def seal(self) -> None:
        """A request that was announced goes out."""
        if self.held is None:
            return
        found, sent = self.held
        self.held = None
        self.request(found, sent)

    def request(self, found: Record, sent: Json | None) -> None:
        """A request goes out: with its body, or with what is known of it."""
        self.provider = string(found.field("provider")) or self.provider
        self.model = string(found.field("model")) or self.model
        if sent is not None:
            self.model = string(sent.get("model")) or self.model
        wire = _dialect(sent)
        line = found.line.number
        self._told = self.conversation
        if wire is not None and sent is not None:
            self._from_body(wire, sent, line)
        else:
            self._from_events(found, line)
        if self._told is self.conversation:
            self._tell_budget()
        marks: Json = {} if wire is not None else {"derived": True}
        messages = count(found.field("message_count"))
        if messages is not None and wire is None:
            marks["message_count"] = messages
        self._told.turn = self.conversation.turn
        self._told.request(
            string(found.field("request_id")), line=line, model=self.model,
            native_id=string(found.field("request_id")), **marks,
        )  # fmt: skip
        self.stage = "sent"
        self._asked = False
        self._replied = self._billed = False
        self._calls.clear()

    def _from_body(self, wire: Dialect, sent: Json, line: int) -> None:
        self.bodies += 1
        made = shapes.spread(wire.cut(sent, line), self.origins.of)
        self._names.give(made)
        if self._is_aside(made):
            self._told = self._aside()
            self._told.replace(made)
            return
        before = [(block.ref, block.item, kind) for block, kind in self.conversation.rows]
        cause = "cleared" if self._cleared is not None else None
        self.conversation.replace(made, cause=cause)
        self._names.learn(made)
        stays = {part.item for part in made}
        gone = [ref for ref, item, kind in before if item not in stays and kind != "policy_note"]
        for at, one in enumerate(self._compactions, 1):
            last = at == len(self._compactions)
            self.conversation.compacted(gone if last else [], None, line=one.line, **one.fields())
        self._forget()

    def _is_aside(self, made: list[Part]) -> bool:
        """A request that the loop did not announce and that holds nothing of the conversation.

        Modules ask the same provider for a name of the session, or whether a goal is reached.
        """
        if self._asked or not self._loops or not self.conversation.rows:
            return False
        held = {block.item for block, kind in self.conversation.rows if kind in _HISTORY}
        return not any(part.item in held for part in made)

    def _from_events(self, found: Record, line: int) -> None:
        self._settle()
        told = self.conversation
        if self._cleared is not None:
            self._clear(self._cleared)
        if (found.field("has_system") or found.field("has_instructions")) and not self._system:
            self._system = True
            note = Part(
                "system_prompt", None, "system", key="system-prompt", title="system prompt", line=line
            )
            told.splice(0, 0, [note, *self.origins.parts(line)])
        self._read_script()
        told.append(*self._waiting)
        for one in self._compactions:
            self._opaque(one)
        self._forget()

    def _read_script(self) -> None:
        """Take what entered from the transcript, where one fills in for the events."""
        if self._script is None:
            return
        found, prompts = self._script.entered(self.origins)
        self._waiting[:] = found
        if prompts and not self._submitted:
            self.turns += prompts
            self.conversation.turn = f"turn-{self.turns}"

    def _clear(self, data: Json) -> None:
        """Empty the window; `preserve_system` keeps what stands in the system prompt."""
        keep = data.get("preserve_system") is True
        kinds = {block.item: (kind, block.segment) for block, kind in self.conversation.rows}

        def goes(item: str) -> bool:
            kind, segment = kinds[item]
            return not keep or (kind != "system_prompt" and segment != "system")

        self.conversation.drop(goes, cause="cleared")
        self._system = self._system and keep

    def _opaque(self, one: Compaction) -> None:
        """Which messages are left is not recorded: one item of the runtime's own size stands for them."""
        after, before = one.number("after_messages"), one.number("before_messages")
        title = f"{after} of {before} messages after compaction; which ones is not recorded"
        mark = "-".join(str(one.number(n)) for n in ("after_messages", "after_tokens", "before_messages"))
        view = Part(
            "session_history", None, "user", key=VIEW, title=title, line=one.line, version=mark,
            estimate=one.tokens, truncated=True,
        )  # fmt: skip
        self.conversation.compact([view], line=one.line, **one.fields())
        self._system = True

    def _settle(self) -> None:
        """Put the results behind what was said before them, in the order of their calls."""
        self._waiting += [part for _, part in sorted(self._results, key=lambda row: row[0])]
        self._results.clear()

    def _forget(self) -> None:
        self._waiting.clear()
        self._results.clear()
        self._cleared = None

    def _tell_budget(self) -> None:
        acted = self._compactions[-1] if self._compactions else None
        cuts = [
            {
                "item_ref": block.ref,
                "action": "truncated",
                "reason": self._reasons.get(block.item, "compaction"),
            }
            for block, kind in self.conversation.rows
            if block.truncated and block.item != VIEW
        ]
        record = self.limits.record(self.model, acted=acted, cuts=cuts, told=self._told_budget)
        if record is not None:
            self.conversation.tell(vocab.BUDGET_APPLIED, record, line=acted.line if acted is not None else 0)
        self._compactions = []
        self._told_budget = False

    # -- answers ----------------------------------------------------------------------------------------------

    def answered(self, found: Record) -> None:
        """The provider's answer: its usage, and its text where the log holds it."""
        if self.stage != "sent":
            self.request(found, None)
        sent = body(found)
        model = string(found.field("model")) or self.model
        if not self._billed:
            self._bill(_billed(sent, model) or self._reported(found.field("usage"), model), found)
        if found.field("status") != "error" and not found.field("error"):
            self.stage = "answered"
            wire = _dialect(sent)
            if wire is not None and sent is not None:
                self._reply(shapes.spread(wire.reply(sent), self.origins.of))

    def raw_answer(self, found: Record) -> None:
        """The provider's answer in an event of its own, beside `llm:response`."""
        sent = body(found)
        wire = _dialect(sent)
        if self.stage != "idle" and not self._replied and wire is not None and sent is not None:
            self._reply(wire.reply(sent))

    def block(self, found: Record) -> None:
        """A content block as the loop tells it; usage is repeated on each one."""
        if self.stage == "idle":
            self.request(found, None)
        self.stage = "answered"
        if not self._billed:
            self._bill(self._reported(found.field("usage"), self.model), found)
        one = found.data.get("block")
        if isinstance(one, dict) and not self._replied:
            part = shapes.block(one, found.line.number)
            if part is not None:
                self._add(part)

    def loop_answer(self, found: Record) -> None:
        """The loop's own record of an answer, with the usage in print."""
        if self.stage == "idle":
            self.request(found, None)
        self.stage = "answered"
        if not self._billed:
            self._bill(self._reported(found.field("usage"), self.model), found)

    def completed(self, found: Record) -> None:
        """The turn's last answer, where nothing else holds its text."""
        text = string(found.data.get("response"))
        preview = string(found.data.get("response_preview"))
        if text is None and preview is not None and found.data.get("length") == len(preview):
            text = preview
        said = any(part.kind == "assistant_message" for part in self._waiting)
        if text is not None and not said and not self._replied and self.stage == "answered":
            self.say(Part("assistant_message", text, "assistant", line=found.line.number))

    def _reported(self, usage: Any, model: str | None) -> Json | None:
        return reported(usage, self.provider, model)

    def _bill(self, record: Json | None, found: Record) -> None:
        if record is not None:
            self._billed = True
            self._told.usage(record, line=found.line.number)

    def _reply(self, made: Iterable[Part]) -> None:
        for part in made:
            self._add(part)
        self._replied = True

    def _add(self, part: Part) -> None:
        if self._told is not self.conversation:
            return
        if part.kind == "tool_call" and part.item:
            self._calls[part.item] = len(self._calls)
        self._waiting.append(part)

    def finish(self) -> None:
        """The log ends: the last answer is known, and no request carried it."""
        self.seal()
        self._settle()
        self._read_script()
        self.conversation.append(*self._waiting)
        self._waiting.clear()


def _dialect(sent: Json | None) -> Dialect | None:
    if sent is None:
        return None
    # The dialects are slow to import, and many logs hold no body.
    try:
        from ctxctl.formats import wire
    except ImportError:  # TEMP
        return None

    return wire.of_body(sent)


def _billed(sent: Json | None, model: str | None) -> Json | None:
    """The provider's own bill in its own words: no convention of Amplifier's can shift it."""
    wire = _dialect(sent)
    return wire.usage(sent, model) if wire is not None and sent is not None else None
