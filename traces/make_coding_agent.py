"""Writes coding-agent.jsonl: a coding agent repairs a small project, with two sub-agents and a compaction.

Every request carries the whole window, so each assembly is written as a splice of the one before.  The order
is tools, system prompt, state of the working tree, history, plan.  The state stands before the history on
purpose: whenever it changes, nothing behind it can come from the provider's cache.

Run as ``python -m traces.make_coding_agent``.
"""

from __future__ import annotations

import json
from typing import Any

from traces import coding_turns as texts
from traces.coding_tools import READING, SYSTEM, TOOLS
from traces.kit import Data, Piece, Scribe, Window, count, tokens

MODEL = "claude-sonnet-4-5"
LIMIT = 7_000
# Small on purpose: eight turns fill it, and the ninth starts with a compaction.
RESERVED = 1_024
KEEP = 4
"""Messages at the end of the history that a compaction leaves alone."""
HIDDEN = 346
"""What the provider adds to every request that has tools, in its own tokens (its documentation: the system
prompt for tool use, with tools chosen by the model)."""
SCALE = 1.13
"""The provider's tokens per o200k_base token, on this session."""
CACHE_SECONDS = 300.0


def canonical(value: Any) -> str:
    """Text of a structured content."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def billed(size: int) -> int:
    """A size in the provider's tokens."""
    return round(size * SCALE)


class Conversation:
    """One thread: its fixed head, its history, and what is sent behind the history."""

    def __init__(self, scribe: Scribe, thread: str, tools: tuple[str, ...], system: str) -> None:
        self.scribe = scribe
        self.thread = thread
        self.prefix = "" if thread == "main" else f"{thread}-"
        self.window = Window(scribe, thread)
        self.head = [self._tool(name) for name in tools]
        scribe.item(f"{self.prefix}system", "system_prompt", system, title=f"{thread}: system prompt")
        self.head.append(Piece(f"{self.prefix}system", system, role="system"))
        self.status: Piece | None = None
        self.history: list[Piece] = []
        self.plan: Piece | None = None
        self.cut: list[Data] = []
        self._numbers: dict[str, int] = {}
        self._cached: list[Piece] = []
        self._sent_at = 0.0

    def _tool(self, name: str) -> Piece:
        schema = TOOLS[name]
        ref = f"{self.prefix}tool:{name}"
        self.scribe.event("context.item.added", {
            "item_id": ref, "context_kind": "tool_definition", "title": name, "content_mode": "inline",
            "content": schema, "mime_type": "application/json", "visibility": ["model"],
        })  # fmt: skip
        return Piece(ref, canonical(schema), role="system")

    def name(self, what: str) -> str:
        """The next id of this thread for a message, call or result."""
        self._numbers[what] = self._numbers.get(what, 0) + 1
        return f"{self.prefix}{what}-{self._numbers[what]}"

    def say(self, kind: str, text: str) -> None:
        """A message of the person or of the model enters the history."""
        ref = self.scribe.item(self.name("message"), kind, text)
        self.history.append(Piece(ref, text, role="user" if kind == "user_message" else "assistant"))

    def called(self, call: texts.Call, ref: str) -> None:
        """A tool call enters the history."""
        content = {"name": call.tool, "arguments": call.arguments}
        self.scribe.event("context.item.added", {
            "item_id": ref, "context_kind": "tool_call", "title": _title(call), "content_mode": "inline",
            "content": content, "visibility": ["model", "tool"],
        }, tool_call_id=ref)  # fmt: skip
        self.history.append(Piece(ref, canonical(content), role="assistant"))

    def returned(self, call: texts.Call, ref: str) -> None:
        """A tool's result enters the history."""
        result = ref.replace("call-", "result-")
        self.scribe.item(
            result, "tool_result", call.result, title=_title(call), envelope={"tool_call_id": ref}
        )
        self.history.append(Piece(result, call.result, role="tool"))

    def set_status(self, text: str) -> None:
        """The state of the working tree, in front of the history."""
        how = "added" if self.status is None else "updated"
        self.scribe.item("working-tree", "runtime_state", text, how=how, title="Working tree")
        self.status = Piece("working-tree", text, "<environment>\n", "\n</environment>", "system", "system")

    def set_plan(self, text: str) -> None:
        """The plan, behind everything."""
        how = "added" if self.plan is None else "updated"
        self.scribe.item("plan", "runtime_state", text, how=how, title="Plan")
        self.plan = Piece("plan", text, "<plan>\n", "\n</plan>", role="user")

    def blank(self, calls: tuple[str, ...]) -> None:
        """Cut old results to a line; the model can ask again."""
        for call in calls:
            ref = call.replace("call-", "result-")
            at = next(n for n, piece in enumerate(self.history) if piece.ref == ref)
            old = self.history[at]
            cut = f"[{len(old.text.splitlines())} lines, cut: ask again if needed]"
            self.history[at] = Piece(ref, old.text, role="tool", cut=cut)
            self.cut.append({
                "item_ref": ref, "action": "truncated", "reason": "budget_limit",
                "tokens_before": count(old.text), "tokens_after": count(cut),
            })  # fmt: skip

    def compact(self, summary: str) -> None:
        """Replace all but the last messages of the history by a summary."""
        gone, kept = self.history[:-KEEP], self.history[-KEEP:]
        scribe = self.scribe
        before = self.used
        scribe.event("context.compaction.started", {
            "compaction_id": "compaction-1", "scope": "session", "method": "abstractive_summary",
            "source_item_refs": [p.ref for p in gone], "trigger": "token_pressure",
            "created_at": scribe.now(),
        })  # fmt: skip
        scribe.wait(6.4)
        scribe.event("context.summary.created", {
            "summary_id": "summary-1", "title": "Summary of the first eight turns", "content_mode": "inline",
            "content": summary, "source_item_refs": [p.ref for p in gone], "visibility": ["model"],
            "created_at": scribe.now(),
        })  # fmt: skip
        self.history = [Piece("summary-1", summary, role="user"), *kept]
        scribe.event("context.compaction.completed", {
            "compaction_id": "compaction-1", "scope": "session", "source_item_refs": [p.ref for p in gone],
            "summary_ref": "summary-1", "method": "abstractive_summary", "trigger": "token_pressure",
            "coverage": {"items": len(gone), "tokens_before": before, "tokens_after": self.used},
            "loss_notes": ["texts of files read before; they can be read again", "full output of test runs"],
            "replacement_policy": "replace_in_history", "created_at": scribe.now(),
        })  # fmt: skip

    @property
    def pieces(self) -> list[Piece]:
        """The window as it would be sent now."""
        return [
            *self.head, *([self.status] if self.status else []), *self.history,
            *([self.plan] if self.plan else []),
        ]  # fmt: skip

    @property
    def used(self) -> int:
        """Tokens of the window as it would be sent now."""
        return tokens(self.pieces)

    def request(self, step: str, output: str) -> None:
        """One model request: budget, assembly, injection and the bill."""
        scribe = self.scribe
        used = self.used
        data: Data = {
            "target": "model", "max_tokens": LIMIT, "reserved_tokens": RESERVED, "actual_tokens": used,
            "actual_items": len(self.pieces), "overflow_strategy": "summarize_oldest",
        }  # fmt: skip
        if self.cut:
            data["truncation_records"], self.cut = self.cut, []
        budget = scribe.record("context.budget.applied", "budget", data)
        self.window.pieces = self.pieces
        assembly = self.window.assemble(budget_ref=budget, ctxctl={"model": MODEL})
        scribe.inject(assembly, "message_history", native_id=step)
        scribe.wait(1.2 + count(output) / 60)
        self._bill(used, count(output))

    def _bill(self, used: int, output: int) -> None:
        stable = [piece for piece in self.pieces if piece is not self.plan]
        fresh = self.scribe.clock.timestamp() - self._sent_at < CACHE_SECONDS
        shared = 0
        for old, new in zip(self._cached if fresh else [], stable, strict=False):
            if old != new:
                break
            shared += count(new.rendered)
        total = HIDDEN + billed(used)
        cached = HIDDEN + billed(shared) if shared else 0
        plan = billed(count(self.plan.rendered)) if self.plan else 0
        self.scribe.usage(
            model=MODEL, provider="anthropic", input_tokens=total, cached_tokens=cached,
            cache_write_tokens=total - cached - plan, output_tokens=billed(output),
        )  # fmt: skip
        self._cached, self._sent_at = stable, self.scribe.clock.timestamp()


def _title(call: texts.Call) -> str:
    first = str(next(iter(call.arguments.values())))
    return f"{call.tool} {first if len(first) <= 48 else first[:47] + '…'}"


def loop(talk: Conversation, calls: tuple[texts.Call, ...], answer: str) -> None:
    """The requests of one turn: one for each tool call, and the last one for the answer."""
    scribe = talk.scribe
    for number, call in enumerate(calls):
        if number:
            scribe.step = scribe.number(f"{talk.prefix}request")
            _take(talk, calls[number - 1])
        talk.request(scribe.step or "", call.thought + canonical(call.arguments))
        scribe.wait(0.8)
        if call.sub_agent is not None:
            delegate(scribe, call.sub_agent)
    if calls:
        scribe.step = scribe.number(f"{talk.prefix}request")
        _take(talk, calls[-1])
    talk.request(scribe.step or "", answer)


def _take(talk: Conversation, call: texts.Call) -> None:
    """What the last request came back with, and what the tool said to it."""
    if call.thought:
        talk.say("assistant_message", call.thought)
    ref = talk.name("call")
    talk.called(call, ref)
    talk.returned(call, ref)


def delegate(scribe: Scribe, agent: texts.SubAgent) -> None:
    """The conversation of a sub-agent, in a thread of its own, while the main one waits."""
    outer = (scribe.thread, scribe.turn, scribe.step)
    scribe.thread, scribe.turn = agent.thread, f"{agent.thread}-turn-1"
    scribe.step = scribe.number(f"{agent.thread}-request")
    talk = Conversation(scribe, agent.thread, READING, agent.system)
    talk.say("user_message", agent.task)
    loop(talk, agent.calls, agent.answer)
    scribe.thread, scribe.turn, scribe.step = outer


def main() -> None:
    """Write the trace."""
    scribe = Scribe("tidewatch-agent/1.8", "tidewatch-2026-03-31", "2026-03-31T09:12:40", "coding")
    scribe.thread, talk = "main", None
    answer = ""
    for number, turn in enumerate(texts.TURNS):
        scribe.turn, scribe.step = scribe.number("turn"), scribe.number("request")
        scribe.wait(1500.0 if number == 11 else 35.0 + 20 * (number % 3))
        if talk is None:
            talk = Conversation(scribe, "main", tuple(TOOLS), SYSTEM)
            talk.set_status(texts.STATUS_0)
        else:
            talk.say("assistant_message", answer)
        if turn.compact:
            talk.compact(texts.SUMMARY)
        if turn.blank:
            talk.blank(turn.blank)
        if turn.status is not None:
            talk.set_status(turn.status)
        talk.say("user_message", turn.prompt)
        if turn.plan is not None:
            talk.set_plan(turn.plan)
        loop(talk, turn.calls, turn.answer)
        answer = turn.answer
    scribe.write("coding-agent.jsonl")


if __name__ == "__main__":
    main()
