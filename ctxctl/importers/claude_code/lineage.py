"""Where a line of a session belongs: its thread, its parents, and the files of the session's sub-agents.

The parent chain runs over all of a session's files.  `progress` lines (2.1.12 to 2.1.81) are taken into it
by their bytes alone, because there are many and no request carries them: what they hold stands in other
lines too, and a later line may name one as its parent.  Compactions enter the chain with their boundary,
their summary and the messages that newer versions keep behind them.

Other programs write lines of the same shape whose parents are wrong: every line names the prompt.  A walk
over them would show requests that carry nothing but the prompt, so `impossible_parent_line` finds them
first.

Sub-agents' files are `agent-<id>.jsonl` beside the session's, or under `<session>/subagents/`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.errors import CtxctlError
from ctxctl.importers.claude_code import blocks
from ctxctl.importers.claude_code.blocks import Entry, blocks_of
from ctxctl.importers.claude_code.chain import ChainNode, ChainUnit, Compaction
from ctxctl.importers.claude_code.thread import Origin, Thread
from ctxctl.ingest.build import Json, Maker
from ctxctl.ingest.lines import Line, Report
from ctxctl.ingest.parents import Kinship, Lineage, circle
from ctxctl.ingest.parts import mapping, string
from ctxctl.ingest.understood import Understood
from ctxctl.model.problem import Problem
from ctxctl.model.vocab import MAIN_THREAD
from ctxctl.trace.inputs import find_files, note_file
from ctxctl.trace.source import Source, open_source

_FOLLOWERS: Final = 100
"""Lines that may follow one line: each is another answer to it, or one of its parallel calls."""


class OpenTask(NamedTuple):
    """An open call that starts a sub-agent."""

    thread: str
    prompt: str
    agent: str | None


class ThreadRouting:
    """Finds the thread that each line of a transcript belongs to."""

    def __init__(self, graph: ParentChain, own: str | None = None) -> None:
        self._graph = graph
        self._own = own
        """The session of every line, whatever the line says; known where a file begins with lines of another
        session."""
        self.threads: dict[tuple[str | None, str], Thread] = {}
        self.session: str | None = None
        """The session that is being read."""
        self.file: tuple[str, Origin] | None = None
        """The sub-agent's file that is being read: its name, and where the sub-agent was started."""
        self.tasks: dict[str, OpenTask] = {}
        """Open calls that start a sub-agent, by tool use id."""
        self._prompts: dict[str, dict[str, None]] = {}
        """By prompt, the open calls that have it."""
        self._joined: dict[str, str | None] = {}
        """By native session id, the session whose conversation it carries on."""

    def thread(self, value: Json, uuid: str) -> Thread:
        """The thread of a line; a new one where the line begins a sub-agent's conversation."""
        parent = value.get("parentUuid")
        above = self._graph.nodes.get(parent) if isinstance(parent, str) else None
        owner = self._graph.owner.get(above) if above is not None else None
        session = self._session(value, owner)
        if owner is not None and self.file is None and value.get("isSidechain") is not True:
            return self.threads.get((session, MAIN_THREAD)) or self._open(session, MAIN_THREAD, None)
        agent = string(value.get("agentId"))
        if self.file is not None:
            name, origin = self.file
            if agent is not None:
                return self._open(session, f"agent-{agent}", origin)
            return self._open(session, name.rpartition("/")[2].removesuffix(".jsonl"), origin)
        if value.get("isSidechain") is not True:
            return self._open(session, MAIN_THREAD, None)
        if agent is not None:
            return self._open(session, f"agent-{agent}", None)
        if owner is not None and owner.name != MAIN_THREAD:
            return owner
        return self._sidechain(value, session, uuid)

    def _sidechain(self, value: Json, session: str | None, uuid: str) -> Thread:
        """An inline conversation of a sub-agent (1.0.x), named for its first line."""
        message = value.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        origin = Origin(MAIN_THREAD)
        for block in blocks.blocks_of(content):
            text = block.get("text") if isinstance(block, dict) else None
            tools = self._prompts.get(text) if isinstance(text, str) else None
            if tools:
                tool = next(reversed(tools))
                task = self.tasks[tool]
                origin = Origin(task.thread, tool, task.agent)
        return self._open(session, f"sidechain-{uuid[:8]}", origin)

    def _open(self, session: str | None, name: str, origin: Origin | None) -> Thread:
        thread = self.threads.get((session, name))
        if thread is None:
            graph = self._graph
            thread = Thread(session, name, origin, graph.nodes.get, graph.tools.get)
            self.threads[session, name] = thread
        return thread

    def _session(self, value: Json, owner: Thread | None) -> str | None:
        """A conversation keeps the session it began in, also where a later session carries it on."""
        if self._own is not None:
            self.session = self._own
            return self._own
        native = value.get("sessionId")
        if not isinstance(native, str) or not native:
            native = string(value.get("session_id"))
        if owner is not None:
            if native is not None and native not in self._joined:
                self._joined[native] = owner.session
            return owner.session
        if self.file is not None or native is None:
            return self.session
        self.session = self._joined.setdefault(native, native)
        return self.session

    def note_tasks(self, thread: Thread, calls: Container[str], content: list[Any]) -> None:
        """Remember those of a message's calls that start a sub-agent."""
        for block in content:
            if isinstance(block, dict) and block.get("name") in ("Agent", "Task"):
                tool, arguments = string(block.get("id")), block.get("input")
                if tool in calls and tool is not None and isinstance(arguments, dict):
                    self.end_task(tool)
                    prompt = string(arguments.get("prompt")) or ""
                    self.tasks[tool] = OpenTask(thread.name, prompt, string(arguments.get("subagent_type")))
                    self._prompts.setdefault(prompt, {})[tool] = None

    def end_task(self, tool: str) -> OpenTask | None:
        """Forget a call that has its result; None where it started no sub-agent."""
        task = self.tasks.pop(tool, None)
        if task is not None:
            self._prompts.get(task.prompt, {}).pop(tool, None)
        return task


class ParentChain:
    """All lines by uuid, what follows what, and where tool calls are."""

    def __init__(self, report: Report, account: Understood) -> None:
        self._report = report
        self._account = account
        self.line = Line(0, 0, b"")
        """The line that is being read."""
        self.nodes: dict[str, ChainNode | None] = {}
        """The nodes by uuid. A line that no request carries stands for its parent; None is the root."""
        self.owner: dict[ChainNode, Thread] = {}
        self.tools: dict[str, ChainUnit] = {}
        """Units by tool use id, of any thread."""
        self.after: dict[ChainNode, ChainNode] = {}
        """By a node before a compaction, the node that its later followers really follow: for a preserved
        message its copy after the compaction, for the anchor and the last line before the boundary the last
        preserved message."""
        self.copied: dict[ChainNode, ChainNode] = {}
        """By the copy of a preserved message, the message before the compaction."""
        self.is_ordered = False
        """Whether the parents of the file that is being read are wrong, so that its lines follow each
        other."""
        self.lineage: Lineage[str] = Lineage()
        self.is_second = False
        """Whether the line that is being read has another parent than an earlier one of its uuid."""
        self._is_root = False
        """Whether the line that is being read closes a circle of parents, and so begins a conversation."""
        self._missing: dict[str, Line] = {}

    def believed(self, value: Json, uuid: str) -> Json:
        """A line as far as its parent can be believed; reports one that leads back to the line."""
        above = value.get("parentUuid")
        self._is_root = self.is_second = False
        if self.is_ordered:
            return value
        kinship = self.lineage.enter(uuid, above if isinstance(above, str) else None)
        if kinship is Kinship.CIRCLE and isinstance(above, str):
            self._is_root = above != uuid
            instead = "begin a conversation" if self._is_root else "follow the line before it"
            self._report(circle(self.line.number, self.line.offset, uuid, above, instead))
            return {name: one for name, one in value.items() if name != "parentUuid"}
        self.is_second = kinship is Kinship.SECOND
        return value

    def parent(self, value: Json, thread: Thread, *, wants: bool = False) -> ChainNode | None:
        """The node that a line follows; `wants`: a root is no answer (before an API call there is a prompt).

        Where the parent is not in the file, the thread's line before stands in for it.
        """
        uuid = value.get("parentUuid")
        if self.is_ordered:
            return thread.last
        if self._is_root:
            return None
        if not isinstance(uuid, str):
            return thread.last if wants or "parentUuid" not in value else None
        if uuid in self.nodes:
            node = self.nodes[uuid]
            if node is None:
                return thread.last if wants else None
            if self.owner[node] is thread:
                return self.followed(node)
            # The file of an agent that writes a compaction's summary is read after the compaction, but names
            # lines before it.
            return self.copied.get(node, node) if _is_summariser(value) else node
        self._missing.setdefault(uuid, self.line)
        return thread.last

    def followed(self, node: ChainNode) -> ChainNode:
        """The node that later lines really follow if they name this one as their parent."""
        last, passed = node, []
        while (further := self.after.get(last)) is not None:
            passed.append(last)
            last = further
        for one in passed[:-1]:
            self.after[one] = last
        return last

    def add(self, value: Json, thread: Thread, node: ChainNode) -> None:
        """Put a line into the chain."""
        nodes = self.nodes
        wanted = value.get("parentUuid")
        if isinstance(wanted, str) and wanted not in nodes and not self.is_ordered:
            node.wanted = wanted
        nodes[node.uuid] = node
        if node.parent is not None:
            node.parent.followers += 1
            self._account.contradictions += node.parent.followers > _FOLLOWERS
        native = value.get("uuid")
        if isinstance(native, str) and native != node.uuid:
            nodes[native] = node
        self.owner[node] = thread
        thread.last = node

    def holds(self, thread: Thread, tool: str, unit: ChainUnit) -> None:
        """Note which unit a tool call is in, so that its result is put there."""
        thread.tools[tool] = self.tools[tool] = unit

    def retract(self, uuids: Any) -> None:
        """Take lines out of the context that the runtime says it took back."""
        for uuid in uuids if isinstance(uuids, list) else ():
            node = self.nodes.get(uuid) if isinstance(uuid, str) else None
            if node is None or node.unit is None:
                continue
            thread = self.owner[node]
            for entry in node.unit.head + node.unit.tail:
                if entry.native == uuid and not entry.retracted:
                    entry.retracted = True
                    thread.retracted.append(entry)
                    thread.path.touch(node.unit)

    def too_many_preserved(self, most: int) -> None:
        """Report a compaction whose kept messages are not followed."""
        message = f"compactions up to here keep more than {most:,} lines by their first and last one:"
        message += " what this one keeps is not followed"
        self._report(Problem(self.line.number, self.line.offset, "windows-too-large", message))

    def report_missing(self) -> None:
        """Report the parents that never came."""
        for uuid, line in self._missing.items():
            if uuid not in self.nodes:
                message = f"parent {uuid} is not in the file; the line is taken to follow the one before it"
                self._report(Problem(line.number, line.offset, "missing-parent", message))


_HEAD: Final = re.compile(
    rb'\{"parentUuid":(?:"([^"\\]{1,64})"|null),"isSidechain":[^{]*+(?<="type":"progress","data":)\{'
)
_TAIL: Final = 129
"""The most bytes that the end of such a line takes."""
_USUAL: Final = 85
"""The bytes that it takes with an id of 36 digits and a time with milliseconds."""
_ENDS: Final = re.compile(
    rb'"(?:uuid":"([^"\\]{1,64})","timestamp":"([^"\\]{1,40})|timestamp":"([^"\\]{1,40})","uuid":"([^"\\]{1,64}))"\}\Z'
)


class ProgressLines:
    """Takes `progress` lines into the chain without parsing them."""

    def __init__(self, graph: ParentChain, make: Maker) -> None:
        self._graph = graph
        self._make = make

    def taken(self, data: bytes) -> bool:
        """Whether a line is a `progress` line and was taken; in any doubt it is left to be parsed."""
        head = _HEAD.match(data)
        if head is None:
            return False
        size = len(data)
        ends = _ENDS.match(data, max(0, size - _USUAL)) or _ENDS.search(data, max(0, size - _TAIL))
        # Another record may be glued to this one.
        if ends is None or data.find(b'"parentUuid":', head.end()) >= 0:
            return False
        nodes, above = self._graph.nodes, head.group(1)
        uuid = (ends.group(1) or ends.group(4)).decode("utf-8", "replace")
        if uuid in nodes:
            node = nodes[uuid]
        elif above is None:
            node = None
        else:
            parent = above.decode("utf-8", "replace")
            node = nodes.get(parent)
            if node is None or self._graph.lineage.enter(uuid, parent) is not Kinship.FITS:
                return False
        nodes[uuid] = node
        self._make.at((ends.group(2) or ends.group(3)).decode("utf-8", "replace"))
        return True


_HEAD_BYTES: Final = 512 * 1024
_LINES: Final = 400
_ANSWERS: Final = 2
"""The least number of answers behind results whose parents must be wrong."""


def impossible_parent_line(source: Source) -> int:
    """The first line of a file whose parents cannot be right; 0 where nothing speaks against them.

    They cannot where every line of every answer follows a prompt, though tools answered behind it: an answer
    behind a result follows that result, what came along with it, or a later prompt.
    """
    prompts: set[str] = set()
    answers: set[str] = set()
    first = 0
    before: set[str] = set()
    """The prompts in front of the last result."""
    for number, value in _messages(source):
        uuid, parent = string(value.get("uuid")), string(value.get("parentUuid"))
        if value["type"] == "assistant":
            if parent is not None and parent not in prompts:
                return 0
            if before and (parent is None or parent in before):
                first = first or number
                answers.add(str(value["message"].get("id")))
            continue
        results = any(
            isinstance(block, dict) and block.get("type") == "tool_result"
            for block in blocks_of(value["message"].get("content"))
        )
        if results:
            before |= prompts
        elif uuid is not None:
            prompts.add(uuid)
    return first if len(answers) >= _ANSWERS else 0


def _messages(source: Source) -> Iterator[tuple[int, Json]]:
    """The first messages of the main conversation, with their lines."""
    head = source.read(0, _HEAD_BYTES)
    rows = head.split(b"\n", _LINES)[:_LINES]
    for number, row in enumerate(rows, 1):
        if b'"parentUuid"' not in row:
            continue
        try:
            value = orjson.loads(row)
        except orjson.JSONDecodeError:
            continue
        if not isinstance(value, dict) or value.get("type") not in ("user", "assistant"):
            continue
        if isinstance(value.get("message"), dict) and value.get("isSidechain") is not True:
            yield number, value


_PRESERVED: Final = 100_000
"""The most lines that all compactions of a session together keep by naming the first and the last one: a line
that names two stands for any number of them."""


class Compactions:
    """Puts compactions into the chain."""

    def __init__(self, graph: ParentChain, make: Maker) -> None:
        self._graph = graph
        self._make = make
        self._walked = 0
        """How many lines were walked by, to those that compactions kept."""

    def boundary(self, value: Json, thread: Thread, uuid: str, *, is_logged: bool) -> None:
        """Take a `compact_boundary`, which is a root: requests carry what follows it and nothing else."""
        meta = mapping(value.get("compactMetadata"))
        node = ChainNode(uuid, None)
        node.compaction = compaction = self._begin(thread, uuid, meta)
        anchor, compaction.preserved = self._preserved(meta)
        compaction.is_logged = is_logged
        before = value.get("logicalParentUuid")
        compaction.before = self._graph.nodes.get(before) if isinstance(before, str) else None
        self._graph.add({}, thread, node)
        if isinstance(anchor, str) and anchor in self._graph.nodes:
            # Without an anchor they come behind the summary, which is still to be read.
            self._keep_preserved(compaction, node)

    def summary(self, value: Json, thread: Thread, uuid: str, entries: list[Entry]) -> None:
        """Take a summary; one without a boundary in front is a boundary itself (1.0.x)."""
        above = value.get("parentUuid")
        boundary = self._graph.nodes.get(above) if isinstance(above, str) else None
        compaction = boundary.compaction if boundary is not None else None
        parent = self._graph.parent(value, thread) if compaction is not None else None
        node = ChainNode(uuid, parent, ChainUnit(uuid))
        if compaction is None:
            compaction = node.compaction = self._begin(thread, uuid, {})
        if entries:
            compaction.summary = entries[0]
        assert node.unit is not None
        thread.add(node.unit, entries, self._make.time, tail=True)
        self._graph.add({"uuid": uuid}, thread, node)
        self._keep_preserved(compaction, node)

    def micro(self, value: Json, thread: Thread, uuid: str) -> None:
        """Take a `microcompact_boundary`: from here on requests carry some tool results blanked."""
        meta = mapping(value.get("microcompactMetadata"))
        ids = meta.get("compactedToolIds")
        node = ChainNode(uuid, self._graph.parent(value, thread))
        if isinstance(ids, list):
            node.blanks = tuple(tool for tool in ids if isinstance(tool, str))
        self._graph.retract(meta.get("clearedAttachmentUUIDs"))
        self._graph.add(value, thread, node)

    def _begin(self, thread: Thread, uuid: str, meta: Json) -> Compaction:
        made = Compaction(uuid, meta, self._graph.line.number)
        made.pending = {entry.item: entry.block(set()).ref for entry in thread.pending}
        return made

    def _preserved(self, meta: Json) -> tuple[Any, list[ChainNode]]:
        """The uuid that preserved messages come after, and their lines in order (2.1.177 on)."""
        kept, segment = meta.get("preservedMessages"), meta.get("preservedSegment")
        nodes = self._graph.nodes
        if isinstance(kept, dict):
            uuids = kept.get("uuids")
            named = [nodes.get(u) for u in uuids if isinstance(u, str)] if isinstance(uuids, list) else []
            return kept.get("anchorUuid"), [self._graph.followed(node) for node in named if node is not None]
        if not isinstance(segment, dict):
            return None, []
        head, tail = segment.get("headUuid"), segment.get("tailUuid")
        first = nodes.get(head) if isinstance(head, str) else None
        node = nodes.get(tail) if isinstance(tail, str) else None
        first, node = (one and self._graph.followed(one) for one in (first, node))
        found: dict[ChainNode, None] = {}
        # Where other lines stand in for parents that are missing, a walk can come by a line again.
        while first is not None and node is not None and node is not first and node not in found:
            found[node] = None
            node = node.parent
        if first is None or node is not first:
            return None, []
        self._walked += len(found)
        if self._walked > _PRESERVED:
            self._graph.too_many_preserved(_PRESERVED)
            return None, []
        return segment.get("anchorUuid"), [first, *reversed(found)]

    def _keep_preserved(self, compaction: Compaction, anchor: ChainNode) -> None:
        """Put the preserved messages after their anchor; later followers of the anchor, or of the last line
        before the boundary,
        come after them."""
        graph, last = self._graph, anchor
        for node in dict.fromkeys(compaction.preserved):
            clone = ChainNode(node.uuid, last, node.unit)
            clone.turn = node.turn
            clone.results = node.results
            graph.owner[clone] = graph.owner[anchor]
            graph.copied[clone] = node
            graph.nodes[node.uuid] = graph.after[node] = last = clone
        compaction.preserved = []
        if last is not anchor:
            graph.after[anchor] = last
            graph.owner[anchor].last = last
        if compaction.before is not None and compaction.before not in graph.after:
            graph.after[compaction.before] = anchor


_AGENT_HEAD = 256 * 1024
_SUMMARISER: Final = "acompact-"
"""The beginning of the ids of sub-agents that write the summary of a compaction."""
_TIME: Final = re.compile(rb'"timestamp":\s*+"([^"\\]{1,40})"')


class SubAgentFiles:
    """Finds sub-agents' files and hands each out once."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._own: dict[str, Path] = {}
        """The files under the session's own directory, by agent id."""
        self._beside: dict[str, Path] = {}
        """The files beside the transcript, which may be of other sessions."""
        self._root: Path | None = None
        self._summaries: list[str] | None = None
        """The times of the last lines of files whose request wrote a summary; None: not looked up yet.  Times
        of compactions
        that were read are removed."""
        self.wanted: list[tuple[str, Origin]] = []
        """The agents whose result was read and whose files are to be read next."""

    def around(self, source: Source) -> None:
        """Look around the opened file; a stream, and a sub-agent's own file, has nothing around it."""
        path = source.path
        if path is None or path.name.startswith("agent-"):
            return
        self._root = path.parent
        try:
            self._own = _agents(find_files(path.with_suffix("") / "subagents", "**/agent-*.jsonl"))
            self._beside = _agents(find_files(path.parent, "agent-*.jsonl"))
        except OSError as error:
            message = f"the files of sub-agents cannot be listed: {error.strerror or error}"
            self._report(Problem(0, 0, "sub-agents-not-read", message))

    def wrote_summary(self, time: Any) -> bool:
        """Whether a sub-agent's file has the request that wrote the summary of a compaction (2.1.39)."""
        if self._summaries is None:
            paths = [path for agent, path in self._own.items() if agent.startswith(_SUMMARISER)]
            self._summaries = sorted(filter(None, map(_last_time, paths)))
        if not self._summaries or not isinstance(time, str) or self._summaries[0] > time:
            return False
        del self._summaries[0]
        return True

    def take(self, agent: str) -> Source | None:
        """Hand out the file of an agent; None if there is none, or it was handed out before."""
        path = self._own.pop(agent, None) or self._beside.pop(agent, None)
        return self._opened(path) if path is not None else None

    def pass_over(self, agent: str) -> None:
        """Leave out an agent that another session started and that the copied history tells of."""
        self._beside.pop(agent, None)

    def leftover(self, session: str | None, known: Container[str]) -> Source | None:
        """Hand out a file of this session that no result named: of an agent that was killed or is
        asynchronous, or of a compaction's own call."""
        for agent in sorted(self._own):
            return self.take(agent)
        for agent in sorted(self._beside):
            path = self._beside[agent]
            if _belongs(path, session, known):
                return self.take(agent)
            del self._beside[agent]
        return None

    def relative(self, source: Source) -> str:
        """A file's name as problems and events give it."""
        path = source.path
        if path is not None and self._root is not None and path.is_relative_to(self._root):
            return path.relative_to(self._root).as_posix()
        return source.name.rpartition("/")[2]

    def _opened(self, path: Path) -> Source | None:
        try:
            return open_source(path)
        except CtxctlError as error:
            self._report(Problem(0, 0, error.slug, f"{path.name}: {error.message}"))
            return None


def _is_summariser(value: Json) -> bool:
    return str(value.get("agentId")).startswith(_SUMMARISER)


def _agents(paths: Iterable[Path]) -> dict[str, Path]:
    return {path.stem.removeprefix("agent-"): path for path in sorted(paths) if path.is_file()}


def _last_time(path: Path) -> str | None:
    note_file(path)
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _AGENT_HEAD))
            times = _TIME.findall(file.read(_AGENT_HEAD))
    except OSError:
        return None
    return times[-1].decode("utf-8", "replace") if times else None


def _belongs(path: Path, session: str | None, known: Container[str]) -> bool:
    """Whether the first line of a file is of this session, or follows one of its lines."""
    note_file(path)
    try:
        with path.open("rb") as file:
            value: Json = orjson.loads(file.readline(_AGENT_HEAD))
    except (OSError, orjson.JSONDecodeError):
        return False
    if not isinstance(value, dict):
        return False
    parent = string(value.get("parentUuid"))
    ours = session is not None and value.get("sessionId") == session
    return ours or (parent is not None and parent in known)
