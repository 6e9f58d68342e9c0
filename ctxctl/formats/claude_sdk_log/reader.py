"""The messages of the control protocol as steps: one for each id of the model's messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.formats.build import Json
from ctxctl.formats.kit.conversation import Conversation
from ctxctl.formats.kit.document import document
from ctxctl.formats.kit.parts import Part, string
from ctxctl.formats.kit.run import Run
from ctxctl.formats.lines import Report
from ctxctl.formats.wire import by_name
from ctxctl.formats.wire.dialect import Names
from ctxctl.trace.source import Source

NAME: Final = "claude-sdk-log"


def read(source: Source, report: Report) -> Iterator[Json]:
    """The log's events."""
    run = Run(NAME, report)
    log = _Log(run)
    for record in _records(source, run):
        message = record.get("message")
        if isinstance(message, dict):
            log.take(message, sent=record.get("direction") == "send")
        else:
            run.problem("not-a-record", "no message in it; skipped")
        yield from run.drain()
    log.flush()
    yield from run.finish()


def _records(source: Source, run: Run) -> Iterator[Json]:
    if b'"messages"' not in source.read(0, 8192):
        yield from run.records(source)
        return
    found = document(source, run.report)
    records = found.get("messages") if isinstance(found, dict) else None
    for record in records if isinstance(records, list) else []:
        if isinstance(record, dict):
            yield record
        else:
            run.problem("not-a-record", "not a JSON object; skipped")


class _Log:
    def __init__(self, run: Run) -> None:
        self._run = run
        self._dialect = by_name("anthropic")
        self._names = Names()
        self._told: set[str] = set()
        """Ids of the model's messages; one comes in several lines, between which results may stand."""
        self._prompts = 0
        self._calls: dict[str, str] = {}
        self._waiting: list[Json] = []
        """Prompts that were sent before the session had its id."""

    def take(self, message: Json, *, sent: bool) -> None:
        """The next message."""
        kind = message.get("type")
        session = string(message.get("session_id"))
        if not sent and session is not None:
            self._run.session = session
            self.flush()
        self._run.make.at(message.get("timestamp"))
        if kind == "user" and sent:
            self._waiting.append(message)
            if self._run.session is not None:
                self.flush()
        elif kind == "user":
            self._user(message)
        elif kind == "assistant":
            self._assistant(message)

    def flush(self) -> None:
        """Tell the prompts that wait for the session to have its id."""
        waiting, self._waiting = self._waiting, []
        for message in waiting:
            self._prompts += 1
            self._thread(message).turn = f"turn-{self._prompts}"
            self._user(message)

    def _user(self, message: Json) -> None:
        conversation = self._thread(message)
        conversation.append(*self._parts(message, conversation))

    def _assistant(self, message: Json) -> None:
        said = message.get("message")
        if not isinstance(said, dict):
            return
        conversation = self._thread(message)
        identity = string(said.get("id")) or string(message.get("uuid")) or ""
        model = string(said.get("model"))
        if identity not in self._told and model != "<synthetic>":
            self._told.add(identity)
            conversation.request(identity, model=model, native_id=identity, derived=True)
            bill = self._dialect.usage(said, model)
            if bill is not None and said.get("stop_reason") is None:
                # Until the answer ends its output is counted so far.
                bill = {key: value for key, value in bill.items() if key != "output_tokens"}
            conversation.usage(bill)
        for block in said["content"] if isinstance(said.get("content"), list) else []:
            if isinstance(block, dict) and block.get("type") == "tool_use" and string(block.get("id")):
                kind = block["input"].get("subagent_type") if isinstance(block.get("input"), dict) else None
                self._calls[block["id"]] = kind if isinstance(kind, str) else ""
        conversation.append(*self._parts(message, conversation))

    def _parts(self, message: Json, conversation: Conversation) -> list[Part]:
        parts = self._dialect.message(message.get("message"), len(conversation) + 1, names=self._names)
        for part in parts:
            # The stream shows messages; the body of a request, and places in it, are not recorded.
            part.wire = ""
        return parts

    def _thread(self, message: Json) -> Conversation:
        """The main thread, or that of the sub-agent which a call began."""
        call = string(message.get("parent_tool_use_id"))
        if call is None:
            return self._run.thread(None)
        origin: dict[str, Any] = {"parent_thread": "main", "parent_tool_call": call}
        if self._calls.get(call):
            origin["agent_type"] = self._calls[call]
        return self._run.thread(f"agent-{call}", origin=origin)
