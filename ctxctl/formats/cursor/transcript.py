"""Agent transcripts: a line is a message; no ids, no times, no results of tools, no bills."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctxctl.errors import UnreadableError
from ctxctl.formats.build import Json
from ctxctl.formats.cursor.messages import content
from ctxctl.formats.kit.conversation import Conversation
from ctxctl.formats.kit.folder import Folder
from ctxctl.formats.kit.run import Run
from ctxctl.formats.lines import Report
from ctxctl.model import vocab
from ctxctl.trace.source import Source


def events(name: str, source: Source, report: Report) -> Iterator[Json]:
    """One transcript by itself."""
    run = Run(name, report)
    run.emit(vocab.SOURCE_OPENED, {"format": name})
    yield from _read(run, run.thread(), source)
    yield from run.finish()


def folder_events(name: str, folder: Folder, report: Report) -> Iterator[Json]:
    """Every transcript below a directory; those in `subagents/` are threads of the agent above."""
    run = Run(name, report)
    paths = [path for path in folder.files if path.endswith(".jsonl")]
    for path in sorted(paths, key=lambda p: (_owner(p, folder), "subagents" in p.split("/"), p)):
        run.session = _owner(path, folder)
        stem = path.rpartition("/")[2].removesuffix(".jsonl")
        options: dict[str, Any] = {}
        thread = None
        if "subagents" in path.split("/"):
            thread, options = stem, {"origin": {"parent_thread": vocab.MAIN_THREAD}}
        run.make.file = path
        run.emit(vocab.SOURCE_OPENED, {"format": name, "session": run.session})
        try:
            with folder.open(path) as source:
                yield from _read(run, run.thread(thread, **options), source)
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


def _read(run: Run, window: Conversation, source: Source) -> Iterator[Json]:
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
