"""Reads Cursor's agent transcripts and logs of its hooks, and hands its databases on to `database`.

A transcript has a message on each line: no ids, no times, no results of tools and no bills.  A log of hooks
has prompts, tool calls, answers with their bills, and sub-agents.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ctxctl.errors import UnreadableError
from ctxctl.importers.cursor import NAME, SQLITE, is_hooks
from ctxctl.importers.cursor.parts import call, content, user_parts
from ctxctl.ingest import build
from ctxctl.ingest.build import Json, Place
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import Part, string
from ctxctl.ingest.run import Run
from ctxctl.model import vocab
from ctxctl.providers.usage import usage_record
from ctxctl.trace.source import Source


def read(source: Source, report: Report) -> Iterator[Json]:
    """The file's events."""
    head = source.read(0, 1 << 16)
    if head.startswith(SQLITE):
        from ctxctl.importers.cursor import database  # slow to import

        return database.events(NAME, source, report)
    if is_hooks(head):
        return HookLog(NAME, report).events(source)
    return _transcript_events(source, report)


def _transcript_events(source: Source, report: Report) -> Iterator[Json]:
    """Read one transcript by itself."""
    run = Run(NAME, report)
    run.opened()
    yield from _transcript(run, run.thread(), source)
    yield from run.finish()


def read_folder(folder: Folder, report: Report) -> Iterator[Json]:
    """Read every transcript below a directory; those in `subagents/` are threads of the agent above."""
    run = Run(NAME, report)
    paths = [path for path in folder.files if path.endswith(".jsonl")]
    for path in sorted(paths, key=lambda p: (_owner(p, folder), "subagents" in p.split("/"), p)):
        run.session = _owner(path, folder)
        stem = path.rpartition("/")[2].removesuffix(".jsonl")
        options: dict[str, Any] = {}
        thread = None
        if "subagents" in path.split("/"):
            thread, options = stem, {"origin": {"parent_thread": vocab.MAIN_THREAD}}
        run.make.file = path
        run.opened(session=run.session)
        try:
            with folder.open(path) as source:
                yield from _transcript(run, run.thread(thread, **options), source)
        except UnreadableError as error:
            run.problem(error.slug, error.message)
        run.make.file = None
    yield from run.finish()


def _owner(path: str, folder: Folder) -> str:
    """The session that a transcript belongs to: its agent's id."""
    steps = path.split("/")
    if "subagents" in steps:
        at = steps.index("subagents")
        return steps[at - 1] if at else folder.path.resolve().name
    return steps[-1].removesuffix(".jsonl")


def _transcript(run: Run, window: Conversation, source: Source) -> Iterator[Json]:
    turns = 0
    for record in run.records(source):
        run.make.at(record.get("timestamp"))
        role, message = record.get("role"), record.get("message")
        if role not in ("user", "assistant") or not isinstance(message, dict):
            continue
        line = run.line.number
        parts = content(role, message.get("content"), line)
        if role == "assistant":
            window.request(line=line, derived=True)
        elif any(part.kind == "user_message" for part in parts):
            turns += 1
            window.turn = f"turn-{turns}"
        window.append(*parts)
        yield from run.drain()


class _Started(NamedTuple):
    """A sub-agent that was started and has not been heard of yet."""

    session: str | None
    origin: Json
    task: str | None
    line: int


class HookLog:
    """Reads one log of hooks, which may tell of several conversations."""

    def __init__(self, name: str, report: Report) -> None:
        self._run = Run(name, report)
        self._places: dict[str, tuple[str | None, str | None, Json]] = {}
        """The session, the thread and the origin of each conversation."""
        self._asked: dict[str, str] = {}
        """By conversation, the generation of its last step."""
        self._steps: dict[str, Place] = {}
        self._billed: set[str] = set()
        self._started: list[_Started] = []

    def events(self, source: Source) -> Iterator[Json]:
        """Yield the log's steps as its lines are read."""
        self._run.opened()
        for record in self._run.records(source):
            payload = record.get("payload")
            self._run.make.at(record.get("ts"))
            if isinstance(payload, dict):
                event = str(record.get("evt") or payload.get("hook_event_name"))
                self._run.met(event)
                self._run.understood.version(payload.get("cursor_version"), self._run.line.number)
                self._hook(event, payload)
            yield from self._run.drain()
        yield from self._run.finish()

    def _hook(self, event: str, payload: Json) -> None:
        conversation = string(payload.get("conversation_id"))
        if conversation is None:
            return
        if event == "subagentStart":
            self._subagent(conversation, payload)
        elif event == "beforeSubmitPrompt":
            self._prompt(conversation, payload)
        elif event == "stop":
            self._bill(conversation, payload)
        elif (parts := self._answer(event, payload)) is not None:
            window = self._seal_generation(conversation, payload)
            window.append(*parts)
            if event == "afterAgentResponse":
                self._bill(conversation, payload)

    def _window(self, conversation: str) -> Conversation:
        if conversation not in self._places:
            if self._started:
                self._begin_subagent(conversation, self._started.pop(0))
            else:
                self._places[conversation] = conversation, None, {}
        session, thread, origin = self._places[conversation]
        self._run.session = session
        return self._run.thread(thread, origin=origin)

    def _begin_subagent(self, conversation: str, begun: _Started) -> None:
        """Begin the window of a sub-agent with its task, when it is first heard of."""
        self._places[conversation] = begun.session, conversation, begun.origin
        self._run.session = begun.session
        if begun.task is not None:
            part = Part("user_message", begun.task, "user", line=begun.line)
            self._run.thread(conversation, origin=begun.origin).append(part)

    def _subagent(self, conversation: str, payload: Json) -> None:
        self._window(conversation)
        session, thread, _ = self._places[conversation]
        native = string(payload.get("tool_call_id"))
        origin = {
            "parent_thread": thread or vocab.MAIN_THREAD,
            "parent_tool_call": native.split("\n")[0] if native is not None else None,
            "agent_type": string(payload.get("subagent_type")),
        }
        told = {name: value for name, value in origin.items() if value is not None}
        self._started.append(_Started(session, told, string(payload.get("task")), self._line))

    def _prompt(self, conversation: str, payload: Json) -> None:
        window = self._window(conversation)
        generation = string(payload.get("generation_id"))
        window.turn = generation
        parts = user_parts(text, self._line) if (text := string(payload.get("prompt"))) is not None else []
        for index, part in enumerate(parts):
            if part.source is None and generation is not None:
                part.item = f"{generation}/prompt" + (f"/{index}" if index else "")
        attached = payload.get("attachments")
        for one in attached if isinstance(attached, list) else []:
            path = string(one.get("file_path") or one.get("filePath")) if isinstance(one, dict) else None
            if path is not None:
                # The log tells which file it was, but not its text.
                parts.append(
                    Part("external_resource", None, "user", source=path, title=path, line=self._line)
                )
        window.append(*parts)

    def _seal_generation(self, conversation: str, payload: Json) -> Conversation:
        """The conversation of an event, its step sealed at the first sign that the model was asked."""
        window = self._window(conversation)
        generation = string(payload.get("generation_id")) or conversation
        if self._asked.get(conversation) != generation:
            self._asked[conversation] = generation
            window.turn = generation
            model = string(payload.get("model"))
            model = None if model == "default" else model
            place = window.request(
                generation, line=self._line, model=model, native_id=generation, derived=True
            )
            self._steps[f"{conversation}/{generation}"] = place
        return window

    def _answer(self, event: str, payload: Json) -> list[Part] | None:
        """The part that a hook tells of an answer or of a tool; None for hooks that tell nothing of the
        context."""
        text = string(payload.get("text"))
        if event == "afterAgentResponse":
            return [] if text is None else [Part("assistant_message", text, "assistant", line=self._line)]
        if event == "afterAgentThought":
            return [] if text is None else [Part("reasoning", text, "assistant", line=self._line)]
        native = string(payload.get("tool_use_id"))
        block = {"name": payload.get("tool_name"), "input": payload.get("tool_input"), "id": native}
        if event == "preToolUse":
            return [call(block, self._line)]
        if event in ("postToolUse", "postToolUseFailure"):
            made = call(block)
            output = payload.get("tool_output", payload.get("error_message"))
            shown = output if isinstance(output, str) else build.canonical(output)
            key = f"{made.item}/result" if made.item else None
            # This is the runtime's own summary of the result, and not the result.
            return [
                Part("tool_result", shown, "tool", key=key, title=made.title, line=self._line, derived=True)
            ]
        if event == "beforeReadFile":
            path, held = string(payload.get("file_path")), payload.get("content")
            if path is not None and isinstance(held, str) and held:
                return [Part("external_resource", held, "tool", source=path, title=path, line=self._line)]
            return []
        return None

    def _bill(self, conversation: str, payload: Json) -> None:
        """Take what a whole generation was billed: it is told with its answer, and again when it stops."""
        name = f"{conversation}/{string(payload.get('generation_id')) or conversation}"
        place = self._steps.get(name)
        if place is None or name in self._billed:
            return
        model = string(payload.get("model"))
        record = usage_record(
            input_tokens=payload.get("input_tokens"), output_tokens=payload.get("output_tokens"),
            cached=payload.get("cache_read_tokens"), cache_write=payload.get("cache_write_tokens"),
            model=None if model == "default" else model, native={"scope": "generation"},
        )  # fmt: skip
        if record is not None:
            self._billed.add(name)
            self._window(conversation).usage(record, line=self._line, place=place)

    @property
    def _line(self) -> int:
        return self._run.line.number
