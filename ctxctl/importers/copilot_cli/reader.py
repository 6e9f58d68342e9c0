"""Reads the events of a Copilot CLI session, from its log on disk or as `copilot --json` prints them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from ctxctl.importers.copilot_cli.parts import (
    UniqueKeys,
    assistant_parts,
    call_part,
    is_injected,
    is_left_behind,
    is_reply,
    result_parts,
    user_parts,
)
from ctxctl.importers.copilot_cli.thread import SessionThread, usage_of
from ctxctl.ingest.build import Json
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import Part, count, shallow, string
from ctxctl.ingest.run import Run
from ctxctl.model import vocab
from ctxctl.providers.usage import stated_total
from ctxctl.trace.source import Source

NAME: Final = "copilot-cli"
_MAX_ID: Final = 80
_TOTALS: Final = "copilot.session.shutdown"
"""The type of the event that keeps a session's own totals as they were logged."""
_TOTAL_FIELDS: Final = (
    "modelMetrics", "tokenDetails", "currentTokens", "systemTokens", "conversationTokens",
    "toolDefinitionsTokens", "currentModel",
)  # fmt: skip
_SHORT_ERRORS: Final = (1, 0, 100)
"""Versions since log a short message of a call that failed and send another; of older ones that is not known.
Found in runs of 1.0.102 beside what they sent."""
_USED: Final = (
    ("input_tokens", "inputTokens", "input"),
    ("cached_tokens", "cacheReadTokens", "cachedInput"),
    ("cache_write_tokens", "cacheWriteTokens"),
    ("output_tokens", "outputTokens", "output"),
)
"""The counts of a compaction's request, with the names that versions give them."""
_KEPT: Final = frozenset({"assistant.usage", "session.usage_info", "session.snapshot_rewind"})
"""Types of events that tell of requests although the runtime does not keep them."""


_TRANSIENT: Final = re.compile(
    rb'\{"type":"(?:hook\.(?:start|end)|tool\.execution_partial_result|assistant\.[a-z_]*_delta|'
    rb'session\.background_tasks_changed|permission\.[a-z]+)"'
)
"""Types of events that no request carries; hooks repeat whole tool results."""


class Session(Run):
    """One session; sub-agents are threads."""

    def __init__(self, name: str, report: Report) -> None:
        super().__init__(name, report)
        self._lanes: dict[str | None, SessionThread] = {}
        self._agents: dict[str, Json] = {}
        """What `subagent.started` told, by the tool call that started the sub-agent."""
        self._titles: dict[str, str] = {}
        """The titles of calls that have no result yet."""
        self._prompts: dict[str, str] = {}
        """The prompts that calls gave to sub-agents."""
        self._calls: dict[str, str] = {}
        """The call that started a sub-agent, by the agent's id: events name either."""
        self._untold_prompts: dict[SessionThread, Part] = {}
        """The prompts of sub-agents that none of their own events has told so far."""
        self._failed: dict[str, Part] = {}
        """By item, the results of failed calls as a client sends them that goes on from the log."""
        self._unsent_reasoning: set[str] = set()
        """The reasoning that a client does not send when it goes on from the log."""
        self._model: str | None = None
        self._version: tuple[int, ...] = ()
        self._answers_are_named = False
        """Whether an answer came that names its request or model: from then on one that names neither is the
        client's own."""
        self._keys = UniqueKeys()
        self._ordinal: dict[str, int] = {}
        self._made_at: dict[str, int] = {}
        """By item, how many events had been read when it came."""
        self._handlers: dict[str, Callable[[Json, Json], None]] = {
            "session.start": self._start,
            "session.resume": self._resume,
            "session.model_change": self._model_change,
            "session.auto_mode_resolved": self._model_change,
            "system.message": self._system,
            "user.message": self._user,
            "system.notification": self._notification,
            "assistant.turn_start": self._turn_start,
            "assistant.turn_end": self._turn_end,
            "assistant.message": self._message,
            "assistant.reasoning": self._reasoning,
            "assistant.usage": self._usage,
            "tool.execution_start": self._tool_start,
            "tool.execution_complete": self._tool_complete,
            "subagent.started": self._subagent,
            "session.truncation": self._truncation,
            "session.usage_info": self._usage_info,
            "session.usage_record": self._usage_record,
            "session.compaction_start": self._compaction_start,
            "session.compaction_complete": self._compaction,
            "session.context_cleared": self._cleared,
            "session.snapshot_rewind": self._rewind,
            "session.shutdown": self._shutdown,
            "abort": self._abort,
        }

    def events(self, source: Source) -> Iterator[Json]:
        """The session's events; holds ids, not texts."""
        for record in self.records(source, _is_transient):
            self._record(record)
            if self.out:
                yield from self.drain()
        for lane in self._lanes.values():
            lane.finish()
        yield from self.finish()

    def _record(self, record: Json) -> None:
        kind = record.get("type")
        if not isinstance(kind, str) or (record.get("ephemeral") is True and kind not in _KEPT):
            return
        self.make.at(record.get("timestamp"))
        handler = self._handlers.get(kind)
        name = string(record.get("id"))
        if name is not None and record.get("ephemeral") is not True:
            self._ordinal[name] = len(self._ordinal)
        if handler is None:
            return
        data = record.get("data")
        if not isinstance(data, dict):
            self.problem("unknown-record", f"{kind} without its data; skipped")
            return
        handler(data, record)

    def _thread_of(self, data: Json, record: Json) -> SessionThread:
        """The thread that an event belongs to."""
        agent = string(record.get("agentId"))
        name = string(data.get("parentToolCallId")) or self._calls.get(agent or "", agent)
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = SessionThread(self.thread(name, origin=self._origin(name)), self.make)
            if name is not None and name in self._prompts:
                self._untold_prompts[lane] = Part(
                    "user_message", self._prompts.pop(name), "user", derived=True, line=self.line.number
                )
        return lane

    def _give_prompt(self, lane: SessionThread) -> None:
        """Give a sub-agent's first request the prompt of its call, where no event told one."""
        prompt = self._untold_prompts.pop(lane, None)
        if prompt is not None:
            lane.take([prompt])

    def _origin(self, name: str | None) -> Json | None:
        if name is None:
            return None
        told = self._agents.get(name, {})
        made: Json = {"parent_thread": vocab.MAIN_THREAD, "parent_tool_call": told.get("call", name)}
        if told.get("agent") is not None:
            made["agent_type"] = told["agent"]
        return made

    def _placed(self, parts: list[Part]) -> list[Part]:
        """Remember when the parts came, for a rewind."""
        now = len(self._ordinal)
        for part in parts:
            if part.item:
                self._made_at[part.item] = now
        return parts

    # -- the session ----------------------------------------------------------------------------------------

    def _start(self, data: Json, _record: Json) -> None:
        if self.session is None and not self.threads:
            self.session = string(data.get("sessionId"))
        self.make.by(data.get("copilotVersion"))
        self._version = _numbers(data.get("copilotVersion")) or self._version
        self._model = string(data.get("selectedModel")) or self._model

    def _resume(self, data: Json, record: Json) -> None:
        """Go on from the log as the client does: it sends the short message of failed calls now, and leaves
        some reasoning out."""
        self._start(data, record)
        for lane in self._lanes.values():
            self.make.work += 1
            if self._unsent_reasoning:
                lane.drop(self._unsent_reasoning)
            if self._failed:
                self.make.work += len(lane.conversation.rows)
            for at, row in enumerate(lane.conversation.rows) if self._failed else ():
                part = self._failed.pop(row[0].item, None)
                if part is not None:
                    lane.conversation.put(at, part)
        # What no window has now, none will have again.
        self._unsent_reasoning.clear()
        self._failed.clear()

    def _model_change(self, data: Json, record: Json) -> None:
        model = string(data.get("newModel")) or string(data.get("chosenModel"))
        if string(record.get("agentId")) is not None:
            lane = self._thread_of(data, record)
            lane.model = model or lane.model
        else:
            self._model = model or self._model

    def _subagent(self, data: Json, record: Json) -> None:
        call = string(data.get("toolCallId"))
        agent = string(record.get("agentId"))
        if call is not None and agent is not None:
            self._calls.setdefault(agent, call)
        told = {"call": call, "agent": string(data.get("agentName"))}
        for name in (call, string(record.get("agentId")), string(data.get("agentId"))):
            if name is not None:
                self._agents[name] = told

    def _system(self, data: Json, record: Json) -> None:
        text = string(data.get("content"))
        if text is not None:
            self._thread_of(data, record).system(
                Part("system_prompt", text, "system", key="system", line=self.line.number)
            )

    def _truncation(self, data: Json, record: Json) -> None:
        lane = self._thread_of(data, record)
        native = {name: value for name, value in data.items() if isinstance(value, int | str)}
        limit = count(data.get("tokenLimit")) or None
        budget = {"budget_id": "truncation", "target": vocab.MODEL, "max_tokens": limit}
        lane.conversation.tell(
            vocab.BUDGET_APPLIED, {**budget, "metadata": {"native": native}}, line=self.line.number
        )

    def _usage_info(self, data: Json, record: Json) -> None:
        limit = count(data.get("tokenLimit"))
        if limit:
            budget = {"budget_id": "tokenLimit", "target": vocab.MODEL, "max_tokens": limit}
            self._thread_of(data, record).conversation.tell(
                vocab.BUDGET_APPLIED, budget, line=self.line.number
            )

    def _usage_record(self, data: Json, record: Json) -> None:
        """Take the bill of a request, which comes in front of its answer, and the longest prompt that its
        model takes."""
        usage = data.get("usage")
        if not isinstance(usage, dict):
            return
        lane = self._thread_of(data, record)
        longest = count(usage.get("maxPromptTokens"))
        if longest:
            budget = {"budget_id": "maxPromptTokens", "target": vocab.MODEL}
            meta = {"ctxctl": {"max_input": longest}}
            lane.conversation.tell(vocab.BUDGET_APPLIED, {**budget, "metadata": meta}, line=self.line.number)
        lane.billed(usage_of(usage, string(usage.get("model"))))

    def _compaction_start(self, data: Json, record: Json) -> None:
        self._thread_of(data, record).start_compaction()

    def _compaction(self, data: Json, record: Json) -> None:
        lane = self._thread_of(data, record)
        covered = lane.end_compaction()
        if data.get("success") is False:
            return
        conversation = lane.conversation
        text = string(data.get("summaryContent"))
        key = self._keys.unique(string(record.get("id")), "summary")
        summary = Part(
            "thread_summary", text, "user", key=key, title="compaction summary", line=self.line.number
        )
        gone = [row[0].ref for row in conversation.rows[lane.start : lane.start + covered]]
        conversation.splice(lane.start, len(gone), self._placed([summary]))
        native = {name: value for name, value in data.items() if isinstance(value, int | bool)}
        used = data.get("compactionTokensUsed")
        request = conversation.unbilled(count(data.get("preCompactionTokens")))
        if isinstance(used, dict):
            native["compactionTokensUsed"] = shallow(used)
            told = {ours: n for ours, *names in _USED for name in names if (n := count(used.get(name)))}
            request = told or request
        conversation.compacted(
            gone, summary.block().ref, line=self.line.number,
            metadata={"native": native, "ctxctl": {"derived": True}}, request=request,
        )  # fmt: skip

    def _cleared(self, data: Json, record: Json) -> None:
        """Empty the history, which may begin with a message of the client's."""
        lane = self._thread_of(data, record)
        lane.cut(lane.start, "cleared")
        text = string(data.get("initialMessage"))
        if text is not None:
            key = self._keys.unique(string(record.get("id")), "initial")
            lane.take(self._placed([Part("user_message", text, "user", key=key, line=self.line.number)]))

    def _rewind(self, data: Json, record: Json) -> None:
        at = self._ordinal.get(string(data.get("upToEventId")) or "")
        if at is None:
            return
        # Versions differ on whether the named event itself is removed; the number of removed events tells.
        stays = count(data.get("eventsRemoved")) == len(self._ordinal) - at - 1
        lane = self._thread_of(data, record)
        rows = lane.conversation.rows
        cut = len(rows)
        while cut > lane.start and self._made_at.get(rows[cut - 1][0].item, 0) > at + stays:
            cut -= 1
        lane.cut(cut, "branched")

    def _shutdown(self, data: Json, _record: Json) -> None:
        self.emit(_TOTALS, {name: data[name] for name in _TOTAL_FIELDS if name in data})
        metrics = data.get("modelMetrics")
        asked = [lane for lane in self._lanes.values() if lane.conversation.steps]
        if (
            isinstance(metrics, dict)
            and len(metrics) == 1
            and len(asked) == 1
            and asked[0].conversation.steps == 1
        ):
            ((model, told),) = metrics.items()
            requests = told.get("requests") if isinstance(told, dict) else None
            number = requests.get("count") if isinstance(requests, dict) else requests
            usage = told.get("usage") if isinstance(told, dict) else None
            if number == 1 and isinstance(usage, dict):
                bill = usage_of(usage, model)
                if bill is not None and bill["input_tokens"] and not asked[0].has_bill:
                    bill["metadata"] = {"ctxctl": {"derived": True}}
                    asked[0].billed(bill)

        if asked:
            lane = self._lanes[None] if self._lanes.get(None) in asked else asked[0]
            lane.conversation.stated(_total(data), line=self.line.number)

    # -- messages -------------------------------------------------------------------------------------------

    def _user(self, data: Json, record: Json) -> None:
        lane = self._thread_of(data, record)
        self._untold_prompts.pop(lane, None)
        name = string(record.get("id"))
        parts = user_parts(data, name, self._keys, self.line.number)
        if not is_injected(data):
            lane.conversation.turn = string(data.get("interactionId")) or name
        lane.take(self._placed(parts))

    def _notification(self, data: Json, record: Json) -> None:
        text = string(data.get("content"))
        if text is not None:
            told = data.get("kind")
            title = string(told.get("type")) if isinstance(told, dict) else None
            key = self._keys.unique(string(record.get("id")))
            part = Part("policy_note", text, "user", key=key, title=title, line=self.line.number)
            self._thread_of(data, record).take(self._placed([part]))

    def _turn_start(self, data: Json, record: Json) -> None:
        lane = self._thread_of(data, record)
        lane.model = string(data.get("model")) or lane.model
        self._give_prompt(lane)
        lane.turn()

    def _turn_end(self, data: Json, record: Json) -> None:
        lane = self._thread_of(data, record)
        lane.model = lane.model or self._model
        lane.turn_end(self.line.number)

    def _abort(self, data: Json, record: Json) -> None:
        self._thread_of(data, record).abort()

    def _reasoning(self, data: Json, record: Json) -> None:
        self._thread_of(data, record).reasoning = string(data.get("content"))

    def _message(self, data: Json, record: Json) -> None:
        lane = self._thread_of(data, record)
        self._give_prompt(lane)
        model = string(data.get("model"))
        ids = [string(data.get(name)) for name in ("apiCallId", "requestId", "serviceRequestId")]
        call = ids[0] or ids[1]
        # Some call ids are sealed, and hundreds of characters long.
        step = next((found for found in ids if found is not None and len(found) <= _MAX_ID), None)
        parts = assistant_parts(
            data, lane.reasoning, self._keys, self._titles, self._prompts, self.line.number
        )
        lane.reasoning = None
        reply = is_reply(data)
        self._answers_are_named = self._answers_are_named or reply
        if lane.between and self._answers_are_named and not reply:
            lane.take(self._placed(parts))
            lane.called(_calls(data))
            return
        if is_left_behind(data):
            self._unsent_reasoning.update(part.item for part in parts if part.kind == "reasoning")
        if model is not None or lane.model is None:
            # The bill of the request before is reported with its own model.
            if not lane.answering:
                lane.settle()
            lane.model = model or self._model
        lane.answer(self._placed(parts), call, step, self.line.number)
        lane.called(_calls(data))
        lane.wrote(string(data.get("messageId")) or str(self.line.number), data.get("outputTokens"))

    def _usage(self, data: Json, record: Json) -> None:
        self._thread_of(data, record).billed(usage_of(data, string(data.get("model"))))

    # -- tools ----------------------------------------------------------------------------------------------

    def _tool_start(self, data: Json, record: Json) -> None:
        """Take a call that no message lists (its list was blanked): the start is all there is of it."""
        call = string(data.get("toolCallId"))
        lane = self._thread_of(data, record)
        if call is None or call in self._titles or not lane.answering:
            return
        request = {"toolCallId": call, "name": data.get("toolName"), "arguments": data.get("arguments")}
        part = call_part(request, self._keys, self._titles, self._prompts, self.line.number)
        lane.more(self._placed([part]))
        lane.called([call])

    def _tool_complete(self, data: Json, record: Json) -> None:
        lane = self._thread_of(data, record)
        # The stream names no version; `rte` is of the same age.
        short = self._version >= _SHORT_ERRORS or (not self._version and "rte" in data)
        parts = result_parts(data, self._keys, self._titles, self.line.number, short=short)
        lane.result(self._placed(parts), string(data.get("toolCallId")))
        # Versions around 1.0.20 name the model nowhere else.
        lane.model = lane.model or string(data.get("model"))
        first = parts[0]
        error = (first.native or {}).get("error")
        if isinstance(error, str) and first.text is None:
            self._failed[first.item] = Part(
                first.kind, error, first.role, key=first.item, title=first.title, native=first.native,
                line=first.line,
            )  # fmt: skip


def _total(data: Json) -> Json | None:
    """The total of the whole session, earlier runs included, by the end of a run."""
    metrics, details = data.get("modelMetrics"), data.get("tokenDetails")
    by_model = []
    for model, told in metrics.items() if isinstance(metrics, dict) else ():
        told = told if isinstance(told, dict) else {}
        usage, requests = told.get("usage"), told.get("requests")
        usage = usage if isinstance(usage, dict) else {}
        by_model.append(
            stated_total(
                "session",
                input_tokens=usage.get("inputTokens"),
                cached=usage.get("cacheReadTokens"),
                cache_write=usage.get("cacheWriteTokens"),
                output_tokens=usage.get("outputTokens"),
                reasoning=usage.get("reasoningTokens"),
                model=model,
                requests=requests.get("count") if isinstance(requests, dict) else requests,
            )
        )
    kinds = details.items() if isinstance(details, dict) else ()
    counts = {kind: one.get("tokenCount") for kind, one in kinds if isinstance(one, dict)}
    return stated_total(
        "session", by_model=by_model, premium_requests=data.get("totalPremiumRequests"),
        input_tokens=None if any("input_tokens" in (one or {}) for one in by_model) else counts.get("input"),
        cached=counts.get("cache_read"), cache_write=counts.get("cache_write"),
        output_tokens=counts.get("output"),
    )  # fmt: skip


def _calls(data: Json) -> list[str]:
    """The ids of the calls of a message."""
    requests = data.get("toolRequests")
    found = (
        [string(one.get("toolCallId")) for one in requests if isinstance(one, dict)]
        if isinstance(requests, list)
        else []
    )
    return [call for call in found if call is not None]


def _numbers(version: Any) -> tuple[int, ...]:
    """A version as numbers; empty where it is none."""
    match = re.match(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})", version) if isinstance(version, str) else None
    return tuple(int(number) for number in match.groups()) if match is not None else ()


def _is_transient(line: bytes) -> bool:
    """Whether a whole line is an event that need not be parsed."""
    return _TRANSIENT.match(line) is not None and line.rstrip().endswith(b"}")
