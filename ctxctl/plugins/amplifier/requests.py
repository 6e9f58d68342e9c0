"""The requests of one session: what entered the window, what each request carried, and what none carried.

context-simple makes a view for each request, and what came since the last one may be left out of the first
view that it could have been in: answers leave, and results are cut, unsent.  The request's body does not
tell of it then; the events do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ctxctl.ingest.build import Block, Json
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.parts import Part, count, string
from ctxctl.model import vocab
from ctxctl.plugins.amplifier.bodies import Bodies
from ctxctl.plugins.amplifier.compactions import (
    BudgetLimits,
    Compaction,
    CompactionCounters,
    ingress_compaction,
)
from ctxctl.plugins.amplifier.parts import KnownNames
from ctxctl.plugins.amplifier.records import Record
from ctxctl.plugins.amplifier.transcript import FileOrigins

if TYPE_CHECKING:
    from ctxctl.plugins.amplifier.transcript import TranscriptBeside
    from ctxctl.providers.dialects.base import Dialect
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ctxctl.model.vocab import ANSWERS
from ctxctl.plugins.amplifier.parts import CUT

_HISTORY: Final = frozenset(
    {"user_message", "assistant_message", "tool_call", "tool_result", "reasoning", "image"}
)
"""Kinds of the messages that context-simple holds."""
VIEW: Final = "context-view"
"""The item that stands for a compacted window whose messages are not recorded."""


class Requests:
    """What goes into a session's requests, and the requests themselves.

    A window comes from the request's body where the log holds it; else it is put together from the events
    since the last one.
    """

    def __init__(
        self,
        conversation: Conversation,
        aside: Callable[[], Conversation],
        script: TranscriptBeside | None = None,
    ) -> None:
        self.conversation = conversation
        self._aside = aside
        self._script = script
        self.told = conversation
        """The conversation of the present request."""
        self._loops = self._asked = False
        self._first: int | None = None
        self.origins = FileOrigins()
        self.counters = CompactionCounters()
        self.limits = BudgetLimits()
        self.turns = 0
        self.submitted = False
        self.provider: str | None = None
        self.model: str | None = None
        self.held: tuple[Record, Json | None] | None = None
        """A request that was announced; its body may follow in an event of its own."""
        self.stage = "idle"
        """`idle`, `sent` (a request without an answer yet), `answered`."""
        self.children: dict[str, tuple[str, str | None]] = {}
        """Call id and agent by the session that a delegation set off."""
        self._names = KnownNames()
        self._unsent = UnsentHistory()
        self._bodies = Bodies(self.origins.of)
        self.waiting: list[Part] = []
        self.results: list[tuple[int, Part]] = []
        self.stored: dict[str, tuple[str, ...]] = {}
        """By result that waits, the texts that the history may hold of it."""
        self.calls: dict[str, int] = {}
        self.replied = self.responded = self.said = False
        self.billed = False
        self._compactions: list[Compaction] = []
        self._cleared: Json | None = None
        self._told_budget = False
        self._system = False
        self._reasons: dict[str, str] = {}
        self._whole: dict[str, str] = {}
        """By item of the present request that was cut before it was ever sent, what it was whole."""
        self.bodies = 0
        """Requests whose body the log held."""

    # -- what goes into the next request -----------------------------------------------------------------

    def say(self, *found: Part) -> None:
        """Context that entered between requests."""
        self.settle()
        self.waiting += found

    def clear(self, data: Json) -> None:
        """Note that the history was cleared."""
        self._forget()
        self._cleared = data

    def compacted(self, found: Compaction) -> None:
        """A compaction of the view that the next request carries."""
        self._compactions.append(found)
        self.limits.compaction(found, self.model)
        self._told_budget = True

    def budget(self, data: Json) -> None:
        """Note that the budget changed."""
        self.limits.budget(data, self.model)
        self._told_budget = True

    def ingress(self, data: Json, line: int) -> None:
        """A tool result was cut before it was stored."""
        key = string(data.get("tool_call_id"))
        if key is not None:
            # The item stays, cut: the budget's record names it, the compaction's sources are what leaves.
            self._reasons[f"{key}/result"] = "ingress"
        record = ingress_compaction(data)
        self.conversation.compacted([], None, line=line, **record)

    # -- requests ----------------------------------------------------------------------------------------

    def mentioned(self, data: Json) -> None:
        """Files of the system prompt were resolved."""
        self.origins.resolved(data)
        self._bodies.forget()

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
        dialects = _dialect(sent)
        line = found.line.number
        self.told = self.conversation
        if dialects is not None and sent is not None:
            self._from_body(dialects, sent, line)
        else:
            self._from_events(found, line)
        if self.told is self.conversation:
            self._tell_budget()
        marks: Json = {} if dialects is not None else {"derived": True}
        messages = count(found.field("message_count"))
        if messages is not None and dialects is None:
            marks["message_count"] = messages
        self.told.turn = self.conversation.turn
        self.told.injected = {} if dialects is not None else _lacking(found)
        self.told.request(
            string(found.field("request_id")), line=line, model=self.model,
            native_id=string(found.field("request_id")), **marks,
        )  # fmt: skip
        self.stage = "sent"
        self._asked = False
        self.replied = self.billed = self.said = self.responded = False
        self.calls.clear()

    def _from_body(self, dialects: Dialect, sent: Json, line: int) -> None:
        self.bodies += 1
        self.settle()
        if self._may_be_aside():
            made = self._bodies.alone(dialects, sent, line)
            self.conversation.name(*self._names.give(made, self.waiting))
            if self._shares_nothing(made):
                self.told = self._aside()
                self.told.replace(made)
                return
        else:
            made = self._bodies.cut(dialects, sent, line, self.waiting)
            self.conversation.name(*self._names.give(made, self.waiting))
        before = [(block.ref, block.item, kind) for block, kind in self.conversation.rows]
        passed = self._passed(made)
        cause = "cleared" if self._cleared is not None else None
        self.conversation.replace(made, cause=cause)
        self._names.learn(self._bodies.fresh)
        stays = {part.item for part in made}
        gone = [ref for ref, item, kind in before if item not in stays and kind in _HISTORY]
        gone += passed
        told = {ref for ref, _, _ in before}
        summary = next((p for p in made if p.kind == "thread_summary" and p.block().ref not in told), None)
        into: Json = {} if summary is None else {"method": "abstractive_summary"}
        ref = summary.block().ref if summary is not None else None
        for one in self._compactions[:-1]:
            self.conversation.compacted([], None, line=one.line, **one.fields())
        if self._compactions:
            one = self._compactions[-1]
            self.conversation.compacted(gone, ref, line=one.line, **{**one.fields(), **into})
        elif summary is not None:
            self.conversation.compacted(gone, ref, line=line, metadata={"ctxctl": {"derived": True}})
        self._forget()

    def _passed(self, made: list[Part]) -> list[str]:
        """Tell of what a compaction left out, or cut, before any request carried it; refs of the former."""
        found = self._unsent.of(self.waiting, self.stored, made) if self._compactions else None
        self._unsent.carried(made, self.stored)
        self._whole = {}
        if found is None:
            return []
        self.conversation.pass_over(*found.gone, *found.cut)
        self._names.learn(found.gone)
        self._whole = {part.item: part.block().ref for part in found.cut}
        return [part.block().ref for part in found.gone]

    def _may_be_aside(self) -> bool:
        """Whether the loop did not announce the request.

        Modules ask the same provider for a name of the session, or whether a goal is reached.
        """
        return self._loops and not self._asked and bool(self.conversation.rows)

    def _shares_nothing(self, made: list[Part]) -> bool:
        held = {block.item for block, kind in self.conversation.rows if kind in _HISTORY}
        return not any(part.item in held for part in made)

    def _from_events(self, found: Record, line: int) -> None:
        self._bodies.forget()
        self.settle()
        told = self.conversation
        if self._cleared is not None:
            self._clear(self._cleared)
        if (found.field("has_system") or found.field("has_instructions")) and not self._system:
            self._system = True
            note = Part("system_prompt", None, "system", key="system:0", title="system prompt", line=line)
            told.splice(0, 0, [note, *self.origins.parts(line)])
        self.read_script()
        told.append(*self.waiting)
        for one in self._compactions:
            self._opaque(one)
        if not told.rows:
            messages = count(found.field("message_count"))
            title = f"{messages} messages; not recorded" if messages else "messages; not recorded"
            told.append(Part("session_history", None, "user", key=VIEW, title=title, line=line))
        self._forget()

    def read_script(self) -> None:
        """Take what entered from the transcript, where one fills in for the events."""
        if self._script is None:
            return
        found, prompts = self._script.entered(self.origins)
        self.waiting[:] = found
        if prompts and not self.submitted:
            self.turns += prompts
            self.conversation.turn = f"turn-{self.turns}"

    def _clear(self, data: Json) -> None:
        """Empty the window; `preserve_system` keeps what stands in the system prompt."""
        keep = data.get("preserve_system") is True
        stay = {block.item for block, kind in self.conversation.rows if keep and _stands(block, kind)}
        self.conversation.drop(lambda item: item not in stay, cause="cleared")
        self._system = self._system and keep

    def _opaque(self, one: Compaction) -> None:
        """Which messages are left is not recorded: one item of the runtime's own size stands for them."""
        rows = self.conversation.rows
        kept = next((at for at, row in enumerate(rows) if not _stands(*row)), len(rows))
        after, before = one.number("after_messages"), one.number("before_messages")
        among = ", the system prompt among them" if kept else ""
        title = f"{after} of {before} messages after compaction{among}; which ones is not recorded"
        mark = "-".join(str(one.number(n)) for n in ("after_messages", "after_tokens", "before_messages"))
        fields = one.fields()
        fields["loss_notes"] = [*fields["loss_notes"], "which messages remain is not recorded"]
        view = Part(
            "session_history", None, "user", key=VIEW, title=title, line=one.line, version=mark,
            estimate=one.tokens, truncated=True,
        )  # fmt: skip
        left = [row for row in rows[kept:] if row[0].item != VIEW]
        gone = [block.ref for block, _ in left]
        marks = fields["metadata"]["ctxctl"]
        marks["remains_in"] = VIEW
        # No runtime leaves out the prompt that the request is to answer.
        prompts = [block.ref for block, kind in left if kind == "user_message" and block.role == "user"]
        marks["spares"] = prompts[-1:]
        self.conversation.splice(kept, len(rows) - kept, [view])
        self.conversation.compacted(gone, None, line=one.line, **fields)
        self._system = True

    def settle(self) -> None:
        """Put the results behind what was said before them, in the order of their calls."""
        self.waiting += [part for _, part in sorted(self.results, key=lambda row: row[0])]
        self.results.clear()

    def _forget(self) -> None:
        self.waiting.clear()
        self.results.clear()
        self.stored.clear()
        self._cleared = None

    def _tell_budget(self) -> None:
        acted = self._compactions[-1] if self._compactions else None
        cuts = [
            {
                "item_ref": self._whole.get(block.item, block.ref),
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


def _stands(block: Block, kind: str) -> bool:
    """Whether context-simple keeps a placement whatever its budget: the system prompt and its files."""
    return block.segment == "system" or kind in ("system_prompt", "developer_instruction")


def _lacking(found: Record) -> Json:
    """Marks of a request without a body; one that only its answer tells of is derived."""
    marks: Json = {"lacks": ["wrapper"]}
    if not found.event.startswith("llm:request"):
        marks["derived"] = True
    return marks


def _dialect(sent: Json | None) -> Dialect | None:
    """The API that a request's body speaks; None if the log holds none, or one that nobody knows."""
    if sent is None:
        return None
    # The dialects are slow to import, and many logs hold no body.
    from ctxctl.providers import dialects

    return dialects.of_body(sent)


_MARKER: Final = re.compile(r"\[truncated: ~([\d,]+) tokens - call tool again if needed\] ")
_ENDS: Final = "..."
Texts = Mapping[str, tuple[str, ...]]
"""By result, the texts that the history may hold of it: one for each spelling of a loop's."""


class PassedOver(NamedTuple):
    """What a request did not carry, in the order of the history."""

    gone: list[Part]
    """Left out whole."""
    cut: list[Part]
    """Results as they were before they were cut; the request has what is left of them."""


class UnsentHistory:
    """Compares what entered between two requests with what the second one carried.  Holds ids, no texts."""

    def __init__(self) -> None:
        self._carried: set[str] = set()
        """Results that a request had, whole or cut."""
        self._spelling = 0
        """Which of the spellings of a result the loop stores, as far as seen."""

    def of(self, entered: Sequence[Part], stored: Texts, made: Sequence[Part]) -> PassedOver:
        """What of `entered` the request `made` does not carry.

        Args:
            entered: What came since the last request: an answer, its results, prompts.
            stored: By result, the texts that the history may hold of it.
            made: The request's parts; those that no request had before have no name yet.
        """
        held = {part.item for part in made}
        gone = self._gone(entered, stored, made, held)
        cut: list[Part] = []
        for part in made:
            if part.kind == "tool_result" and part.truncated and part.item not in self._carried:
                shown = part.text or ""
                found = [text for text in stored.get(part.item, ()) if abbreviates(shown, text)]
                if found:
                    cut.append(_result(part, found[0]))
        return PassedOver(gone, cut)

    def carried(self, made: Sequence[Part], stored: Texts) -> None:
        """Note what a request carried."""
        for part in made:
            if part.kind != "tool_result":
                continue
            self._carried.add(part.item)
            texts = stored.get(part.item, ())
            if part.text in texts:
                self._spelling = texts.index(part.text)

    def _gone(
        self, entered: Sequence[Part], stored: Texts, made: Sequence[Part], held: set[str]
    ) -> list[Part]:
        answer = [part for part in entered if part.role == "assistant" and part.kind in ANSWERS]
        calls = {part.item for part in answer if part.kind == "tool_call"}
        if not answer or not calls.isdisjoint(held):
            return []
        if not calls and any(not part.item and part.kind in ANSWERS for part in made):
            # An answer that nobody knew yet: it is this one, though its text may be told otherwise.
            return []
        gone = []
        for part in entered:
            if part in answer:
                gone.append(part)
            elif part.kind == "tool_result" and part.item.removesuffix("/result") in calls:
                texts = stored.get(part.item) or (part.text or "",)
                gone.append(_result(part, texts[min(self._spelling, len(texts) - 1)]))
        return gone


def abbreviates(shown: str, text: str) -> bool:
    """Whether `shown` is what context-simple leaves of a result of this text."""
    match = _MARKER.match(shown) if shown.startswith(CUT) else None
    if match is None or not shown.endswith(_ENDS):
        return False
    head = shown[match.end() : -len(_ENDS)]
    return f"{len(text) // 4:,}" == match.group(1) and text.startswith(head)


def _result(part: Part, text: str) -> Part:
    """The result with the text that the history holds."""
    made = Part("tool_result", text, "tool", key=part.item, title=part.title, line=part.line, derived=True)
    made.time = part.time
    return made
