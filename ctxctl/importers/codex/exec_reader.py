"""Reads the log of ``codex exec --json``: what the model said and did, without the context it was given.

The log tells of turns, not of requests.  Only what its order proves is taken for one: a turn's first, and the
one that a word of the model answers behind a result.  Calls that follow one another without a word between
them may be of one answer, whose calls Codex runs and logs one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.importers.codex.records import unwrapped
from ctxctl.ingest.build import Json, canonical
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import Part, call_title, string
from ctxctl.ingest.run import Run
from ctxctl.providers.usage import stated_total
from ctxctl.trace.source import Source

NAME: Final = "codex-exec"
_TOTALS: Final = "codex.turn.completed"
"""The type of the event that keeps the running total at a turn's end as it was logged."""
_ACTIONS: Final = frozenset(
    {"command_execution", "file_change", "mcp_tool_call", "web_search", "collab_tool_call"}
)


class ExecLog(Run):
    """One run of `codex exec`."""

    def __init__(self, name: str, report: Report) -> None:
        super().__init__(name, report)
        self._turns = 0
        self._asked = False
        """Whether the turn has a request."""
        self._answering = False
        """Whether nothing has come since the last request but what the model made."""
        self._begun: set[str] = set()
        """The actions whose start was logged."""

    def events(self, source: Source) -> Iterator[Json]:
        """The log's events."""
        for record in self.records(source):
            event = unwrapped(record)
            if event is None:
                self.met(record.get("type"))
            else:
                self._record(event)
            yield from self.drain()
        yield from self.finish()

    @property
    def _thread(self) -> Conversation:
        return self.thread(None)

    def _record(self, record: Json) -> None:
        self.make.at(record.get("timestamp"))
        kind = record.get("type")
        if kind == "thread.started" and not self.threads:
            self.session = string(record.get("thread_id"))
        elif kind == "turn.started":
            self._turns += 1
            self._thread.turn = f"turn-{self._turns}"
            self._asked = self._answering = False
        elif kind in ("turn.completed", "turn.failed"):
            usage = record.get("usage")
            if isinstance(usage, dict):
                self._total(usage)
            self._asked = self._answering = False
        elif kind in ("item.started", "item.completed"):
            item = record.get("item")
            if isinstance(item, dict):
                self._item(item, done=kind == "item.completed")

    def _total(self, usage: Json) -> None:
        """Take the running total of all requests of the thread, as of the end of a turn."""
        self.emit(_TOTALS, {"usage": usage})
        if not self._asked:  # no answer was logged
            self._thread.request(line=self.line.number, derived=True)
        total = stated_total(
            "session", input_tokens=usage.get("input_tokens"), cached=usage.get("cached_input_tokens"),
            cache_write=usage.get("cache_write_input_tokens"), output_tokens=usage.get("output_tokens"),
            reasoning=usage.get("reasoning_output_tokens"),
        )  # fmt: skip
        self._thread.stated(total, line=self.line.number)

    def _item(self, item: Json, *, done: bool) -> None:
        kind = string(item.get("type")) or string(item.get("item_type"))
        self.met(f"item/{kind}")
        name = string(item.get("id"))
        # Item ids are numbered anew in each turn.
        key = f"{self._thread.turn or 'turn-0'}/{name}" if name is not None else None
        if kind in ("agent_message", "assistant_message", "reasoning"):
            if done:
                made = "reasoning" if kind == "reasoning" else "assistant_message"
                self._answer(
                    Part(made, string(item.get("text")) or "", "assistant", key=key, line=self.line.number)
                )
        elif kind in _ACTIONS:
            self._action(item, kind, key, done)
        elif done and kind == "todo_list":
            text = canonical(item.get("items"))
            self._call(Part("tool_call", f"update_plan {text}", "assistant", key=key, title="update_plan",
                            derived=True, line=self.line.number))  # fmt: skip

    def _action(self, item: Json, kind: str, key: str | None, done: bool) -> None:
        arguments: Any = {
            name: value
            for name, value in item.items()
            if name in ("command", "changes", "server", "tool", "arguments", "query", "prompt")
        }
        title = call_title(kind, arguments)
        if key is None or key not in self._begun:
            if key is not None:
                self._begun.add(key)
            text = f"{kind} {canonical(arguments)}"
            self._call(
                Part(
                    "tool_call", text, "assistant", key=key, title=title, derived=True, line=self.line.number
                )
            )
        if not done:
            return
        result = item.get("aggregated_output", item.get("result", item.get("status")))
        text = result if isinstance(result, str) else canonical(result)
        self._answering = False
        self._thread.append(
            Part("tool_result", text, "tool", key=f"{key}/result" if key is not None else None, title=title,
                 derived=True, line=self.line.number)
        )  # fmt: skip

    def _answer(self, part: Part) -> None:
        """Take a text of the model, which answers a request that carries all results before it."""
        if not self._answering:
            self._answering = self._asked = True
            self._thread.request(line=self.line.number, derived=True)
        self._thread.append(part)

    def _call(self, part: Part) -> None:
        """Take a call, of the last answer or of another one: the log does not tell."""
        if not self._asked:
            self._answer(part)
        else:
            self._thread.append(part)
