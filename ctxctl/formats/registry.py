"""Foreign formats: what an importer is, which ones there are, and which one a file needs.

A plug-in brings another importer through the entry point group ``ctxctl.formats``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

from ctxctl.errors import UsageError
from ctxctl.formats.agent_context import AgentContext
from ctxctl.formats.aider import Aider
from ctxctl.formats.amplifier import Amplifier
from ctxctl.formats.api import Api
from ctxctl.formats.atif import Atif
from ctxctl.formats.build import Maker, Place
from ctxctl.formats.chat_messages import ChatMessages
from ctxctl.formats.claude_bodies import ClaudeBodies
from ctxctl.formats.claude_code import ClaudeCode
from ctxctl.formats.claude_sdk_log import ClaudeSdkLog
from ctxctl.formats.claude_stream import ClaudeStream
from ctxctl.formats.claude_tap import ClaudeTap
from ctxctl.formats.claude_trace import ClaudeTrace
from ctxctl.formats.codex import Codex, CodexExec
from ctxctl.formats.copilot_chat import ChatReplay, CopilotChat
from ctxctl.formats.copilot_cli import CopilotCli
from ctxctl.formats.copilot_snapshots import CopilotSnapshots
from ctxctl.formats.ctxdiff import CtxDiff
from ctxctl.formats.cursor import Cursor
from ctxctl.formats.enough import Enough
from ctxctl.formats.fidelity import About, Meter
from ctxctl.formats.gemini_cli import GeminiCli
from ctxctl.formats.goose import Goose
from ctxctl.formats.goose_recordings import GooseRecordings
from ctxctl.formats.har import Har
from ctxctl.formats.http_requests import HttpRequests
from ctxctl.formats.iflow import IFlow
from ctxctl.formats.inspect_ai import InspectAi
from ctxctl.formats.kit.folder import Folder
from ctxctl.formats.kit.measure import measure
from ctxctl.formats.kit.still import Still
from ctxctl.formats.langfuse import Langfuse
from ctxctl.formats.langsmith import LangSmith
from ctxctl.formats.lhar import Lhar
from ctxctl.formats.lines import Report
from ctxctl.formats.live_mcp_bench import LiveMcpBench
from ctxctl.formats.luminarys import Luminarys
from ctxctl.formats.mcp import McpLog, McpTools
from ctxctl.formats.mini_swe_agent import MiniSweAgent
from ctxctl.formats.opencode import OpenCode
from ctxctl.formats.openhands import OpenHands
from ctxctl.formats.openhands_completions import OpenHandsCompletions
from ctxctl.formats.openinference import OpenInference
from ctxctl.formats.otel import Otel
from ctxctl.formats.others import FactoryDroid, HailSession, KimiCode, QwenCode
from ctxctl.formats.outline import OUTLINED, outline
from ctxctl.formats.pi import Pi
from ctxctl.formats.pi_recordings import PiRecordings
from ctxctl.formats.pi_rpc import PiRpc
from ctxctl.formats.roo import ClineSdk, Roo
from ctxctl.formats.sanqian import Sanqian
from ctxctl.formats.sibyl import Sibyl
from ctxctl.formats.swe_agent import SweAgent
from ctxctl.formats.swe_agent_calls import SweAgentCalls
from ctxctl.formats.tau_bench import TauBench
from ctxctl.formats.understood import Understood
from ctxctl.formats.vcr import Vcr
from ctxctl.model import vocab
from ctxctl.trace.guess import is_native
from ctxctl.trace.source import Source

GROUP: Final = "ctxctl.formats"
HEAD: Final = 64 * 1024
"""Bytes of a file that detection looks at; where they do not tell, it looks at an outline of more."""
_THRESHOLD = 50
_BEGINNINGS: Final = frozenset({"mcp-tools"})
"""Formats that other documents begin as: a request may have its tools first, and more than `HEAD` of them."""


@runtime_checkable
class Format(Protocol):
    """One foreign runtime's trace format."""

    name: str
    """As `--format` takes it."""
    title: str
    """For people."""
    default_policy: str
    """The policy that replays such a trace unless another is asked for."""
    about: About
    """What is read, from where, by which rules, and how far it can be trusted."""

    def detect(self, head: bytes) -> int:
        """How sure the content looks like this format: 0 (not at all) to 100."""
        ...

    def events(self, source: Source, report: Report) -> Iterator[dict[str, Any]]:
        """The file as complete `context_event` records, in an order that replay can follow.

        Problems name the line and byte of the foreign file.  Nothing in the file raises.
        """
        ...


@runtime_checkable
class FolderFormat(Protocol):
    """A format whose captures may be directories: a session spread over several files."""

    name: str

    def detect_folder(self, folder: Folder) -> int:
        """How sure the directory is one capture of this format: 0 to 100; reads the heads of few files."""
        ...

    def folder_events(self, folder: Folder, report: Report) -> Iterator[dict[str, Any]]:
        """As `events`, of the whole directory; events carry `source_file` (`Maker.file`)."""
        ...


FORMATS: Final[tuple[Format, ...]] = (
    AgentContext(),
    Amplifier(),
    ClaudeCode(),
    Codex(),
    CodexExec(),
    CopilotChat(),
    ChatReplay(),
    CopilotCli(),
    Luminarys(),
    Sanqian(),
    Sibyl(),
    SweAgent(),
    MiniSweAgent(),
    TauBench(),
    LiveMcpBench(),
    McpLog(),
    McpTools(),
    OpenHands(),
    Atif(),
    IFlow(),
    InspectAi(),
    ChatMessages(),
    ClaudeBodies(),
    ClaudeSdkLog(),
    ClaudeStream(),
    ClaudeTap(),
    ClaudeTrace(),
    CopilotSnapshots(),
    GooseRecordings(),
    Har(),
    HttpRequests(),
    Lhar(),
    OpenHandsCompletions(),
    PiRecordings(),
    Pi(),
    PiRpc(),
    OpenCode(),
    GeminiCli(),
    Goose(),
    SweAgentCalls(),
    Vcr(),
    Roo(),
    ClineSdk(),
    Aider(),
    Cursor(),
    CtxDiff(),
    KimiCode(),
    HailSession(),
    QwenCode(),
    FactoryDroid(),
    Api(),
    Langfuse(),
    LangSmith(),
    OpenInference(),
    Otel(),
)


@cache
def available() -> tuple[Format, ...]:
    """The built-in formats and those that plug-ins bring; a plug-in that fails to load is left out."""
    # Slow to import, and needed only where no format of ours claims a file.
    from importlib.metadata import entry_points

    found = list(FORMATS)
    for point in entry_points(group=GROUP):
        try:
            made = point.load()
            candidate = made() if isinstance(made, type) else made
        except Exception:
            # Somebody else's package must not break ours.
            continue
        if isinstance(candidate, Format) and all(candidate.name != f.name for f in found):
            found.append(candidate)
    return tuple(found)


def detect(source: Source) -> Format | None:
    """The format of a file by its content; None for a native trace, and for what nobody knows.

    Plug-ins are asked about what no built-in format claims.
    """
    head = source.read(0, HEAD)
    if is_native(head):
        return None
    return of_file(None if source.spooled else source.path, head, source)


def of_file(path: Path | None, head: bytes, source: Source | None = None) -> Format | None:
    """The format of a foreign file by its first bytes, and where they do not tell, by what lies further on.

    A database is told by the tables that it defines; a request's messages may come behind longer tools.

    Args:
        path: The file, if there is one of these very bytes.
        head: Its first `HEAD` bytes.
        source: The open file, where there is one; without it, what is asked for is read from the path.
    """
    if head.startswith(b"SQLite format 3\0"):
        from ctxctl.formats.kit import database  # slow to import

        told = False
        for defined in database.schemas(path, lambda: _more(path, head, source, database.MAX_DATABASE + 1)):
            told = True
            if (found := of_head(defined)) is not None:
                return found
        return None if told else of_head(head)
    found = of_head(head)
    if found is not None and (found.name not in _BEGINNINGS or len(head) < HEAD):
        return found
    layout = outline(head if len(head) < HEAD else _more(path, head, source, OUTLINED))
    further = of_head(layout) if layout else None
    return further or found


def _more(path: Path | None, head: bytes, source: Source | None, size: int) -> bytes:
    """As many of a file's first bytes as asked for; its head where there is no more to be had."""
    if source is not None:
        return source.read(0, size)
    try:
        with path.open("rb") if path is not None else BytesIO(head) as file:
            return file.read(size)
    except OSError:
        return head


def of_head(head: bytes) -> Format | None:
    """The format of a foreign file by its first bytes; None for what nobody knows."""
    return _surest(FORMATS, head) or _surest(available(), head)


def _surest(formats: Sequence[Format], head: bytes) -> Format | None:
    best: Format | None = None
    top = _THRESHOLD - 1
    for candidate in formats:
        score = candidate.detect(head)
        if score > top:
            best, top = candidate, score
    return best


def events(importer: Format, source: Source | Folder, report: Report) -> Iterator[dict[str, Any]]:
    """A capture's events; the first one names the format, and the policy that the format is replayed under.

    So an imported trace replays as the capture itself does.  The last one says what the capture held of each
    fact (`ctxctl.fidelity.measured`); a capture without any event gives one that says so.
    """
    account = Understood(importer.about.held_against)
    meter, still = Meter(importer.about, account), Still()
    first = True
    enough = Enough(report, account)
    for event in _read(importer, source, enough):
        if first:
            first = False
            _stamp(event, importer)
        meter.see(event)
        if not still.moved:
            still.see(event)
        yield event
    measured = measure(source, meter, account, [*still.problems()], enough)
    enough.finish()
    make = Maker(importer.name, f"{importer.name}-end-")
    if first:
        data = {"format": importer.name, "file": source.name.rpartition("/")[2]}
        opened = make.event(vocab.SOURCE_OPENED, data, Place())
        _stamp(opened, importer)
        yield opened
    yield make.event(vocab.FIDELITY_MEASURED, {"format": importer.name, **measured}, Place())


def _read(importer: Format, source: Source | Folder, report: Report) -> Iterator[dict[str, Any]]:
    if isinstance(source, Source):
        return importer.events(source, report)
    if isinstance(importer, FolderFormat):
        return importer.folder_events(source, report)
    raise TypeError(f"{importer.name} reads files, not directories")


def _stamp(event: dict[str, Any], importer: Format) -> None:
    ours = event.setdefault("metadata", {}).setdefault("ctxctl", {})
    ours["format"] = importer.name
    ours["policy"] = importer.default_policy


def by_name(name: str) -> Format:
    """A format by its `--format` name; raises UsageError("unknown-format") naming what comes near."""
    for candidate in available():
        if candidate.name == name:
            return candidate
    from difflib import get_close_matches

    near = get_close_matches(name, [f.name for f in available()], n=3, cutoff=0.5)
    meant = f"did you mean {', '.join(near)}? " if near else ""
    raise UsageError("unknown-format", f"no format named {name!r}", hint=f"{meant}ctxctl formats lists them")
