"""Reads the lines of a session, and of its sub-agents' files, and gives the events of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from ctxctl.importers.claude_code import blocks, main_transcripts
from ctxctl.importers.claude_code.blocks import Entry
from ctxctl.importers.claude_code.chain import ChainNode, ChainUnit
from ctxctl.importers.claude_code.late_lines import LateLines
from ctxctl.importers.claude_code.lineage import (
    Compactions,
    ParentChain,
    ProgressLines,
    SubAgentFiles,
    ThreadRouting,
    impossible_parent_line,
)
from ctxctl.importers.claude_code.requests import RECORDED, WORDED, RequestRecords, is_since
from ctxctl.importers.claude_code.sent_texts import attachment
from ctxctl.importers.claude_code.shared_calls import SharedCalls, shared_calls
from ctxctl.importers.claude_code.texts import META, TextReading
from ctxctl.importers.claude_code.thread import Origin, StepWriter, Thread
from ctxctl.ingest.build import Json, Maker, Place
from ctxctl.ingest.checkpoint import checkpoint_of
from ctxctl.ingest.folder import Folder, Importer, read_several
from ctxctl.ingest.lines import Line, Report, values
from ctxctl.ingest.parts import string
from ctxctl.ingest.understood import account_of
from ctxctl.model.problem import Problem
from ctxctl.model.vocab import MAIN_THREAD
from ctxctl.trace.source import Source

NAME: Final = "claude-code"
_NOTHING: Final = SharedCalls()
_SUMMARY = TextReading("thread_summary", "compact-summary", False)


class Session:
    """Imports one session: the opened file, and the files of the sub-agents that it started."""

    def __init__(self, report: Report, carried: SharedCalls = _NOTHING) -> None:
        self._send = report
        self._account = account_of(report)
        self._billed_elsewhere = carried.calls
        """The ids of messages that another transcript bills: they are history that this one was given."""
        self._natives: dict[str, Line] = {}
        """The sessions that API calls name, each with the first line that does."""
        self._out: list[Json] = []
        self._make = Maker(NAME, "cc-")
        self._steps = StepWriter(self._make, self._out)
        self._graph = ParentChain(self._report, self._account)
        self._routing = ThreadRouting(self._graph, carried.session)
        self._compactions = Compactions(self._graph, self._make)
        self._agents = SubAgentFiles(self._report)
        self._progress = ProgressLines(self._graph, self._make)
        self.late = LateLines()
        self._late = [self.late]
        """Those of the files around the one that is being read, and its own."""
        self._line = Line(0, 0, b"")
        self._route()
        self._client: str | None = None
        """The client's version that was looked at last."""
        self._is_recorded = False
        """Whether the client writes records of its requests."""
        self._is_worded = False
        """Whether it records how each attachment was worded, and in which role."""
        self._items_of_blocks: list[list[Entry]] = []
        """The items of each block of the line that is being read."""
        self.impossible = 0
        """The line by which the parents of the opened file cannot be right; 0 for none."""

    def _route(self) -> None:
        self._handlers: dict[str, Callable[[Json, str], None]] = {
            "user": self._user,
            "assistant": self._assistant,
            "attachment": self._attachment,
            "system": self._system,
        }
        self._records: dict[str, Callable[[Json], None]] = {
            "api-request-shape": lambda value: self._log(value).shape(value, self._line.number),
            "api-request-blob": lambda value: self._log(value).blob(value, self._line.number),
            "api-request": self._request,
        }

    def brought(self) -> None:
        """Go on, in another run than the one that began."""
        self._route()
        for thread in self._routing.threads.values():
            thread.brought(self._graph.nodes.get, self._graph.tools.get)

    def events(self, source: Source) -> Iterator[Json]:
        """Yield the events of the opened file, and of the files that belong to it."""
        checkpoint = checkpoint_of(source)
        if checkpoint is not None:
            checkpoint.hand_in("reader", lambda: self)
        if checkpoint is None or not checkpoint.state:
            self._agents.around(source)
            self.late.read(source)
            self.impossible = self._check_parents(source)
        yield from self._file(source)
        while (agent := self._agents.leftover(self._routing.session, self._graph.nodes)) is not None:
            yield from self._read_agent(agent, Origin(MAIN_THREAD))
        for thread in self._routing.threads.values():
            self._steps.finish(thread)
        self._graph.report_missing()
        self._report_natives()
        self._report_requests()
        if not self._make.count:
            self._out.append(self._empty_event(source))
        yield from self._out
        self._out.clear()

    def _report(self, problem: Problem) -> None:
        """Pass a problem on; one in a sub-agent's file names the file."""
        if self._make.file is not None:
            message = f"{self._make.file}: {problem.message}"
            problem = Problem(problem.line, problem.byte, problem.slug, message)
        self._send(problem)

    def _report_natives(self) -> None:
        """Report the lines with another session's id than the one that goes on: history that was carried
        in."""
        *others, own = self._natives or [""]
        for name in others:
            line = self._natives[name]
            message = f"API calls from here on name session {name}, later ones {own}: they were carried over"
            self._report(Problem(line.number, line.offset, "carried-history", message))

    def _report_requests(self) -> None:
        """Report the records of requests that the file's lines do not bear out."""
        logs = [thread.requests for thread in self._routing.threads.values() if thread.requests is not None]
        changed, unread = sum(log.changed for log in logs), sum(log.unread for log in logs)
        if changed:
            several = "a message is" if changed == 1 else f"{changed:,} messages are"
            message = (
                f"{several} not what the records of the requests have the digest of: the file was changed"
            )
            message += " since; told by the order of its lines"
            self._report(Problem(0, 0, "changed-messages", message))
        if unread:
            several = "a request names" if unread == 1 else f"{unread:,} requests name"
            message = f"{several} messages that are not in the file: the window is told by its lines"
            self._report(Problem(0, 0, "request-not-read", message))

    def _empty_event(self, source: Source) -> Json:
        """The one event of a transcript that holds no message."""
        data = {"format": NAME, "file": source.name.rpartition("/")[2]}
        return self._make.event("ctxctl.source.opened", data, Place(self._routing.session))

    def _file(self, source: Source) -> Iterator[Json]:
        out = self._out
        for line, value in values(source, self._report, self._progress.taken):
            if not isinstance(value, dict):
                self._report(Problem(line.number, line.offset, "not-a-record", "not a JSON object; skipped"))
                continue
            self._line = self._graph.line = line
            self._record(value)
            while self._agents.wanted:
                name, origin = self._agents.wanted.pop(0)
                agent = self._agents.take(name)
                if agent is not None:
                    yield from out
                    out.clear()
                    yield from self._read_agent(agent, origin)
            if out:
                yield from out
                out.clear()

    def _check_parents(self, source: Source) -> int:
        """Where the parents of a file cannot be right, report that and take its lines in order; the line that
        says so, 0 for none.
        """
        number = impossible_parent_line(source)
        self._graph.is_ordered = number > 0
        if number:
            message = (
                "answers behind tool results name the prompt as their parent, and nothing else: those are"
            )
            message += " no parents, and each line is taken to follow the one before it"
            self._report(Problem(number, 0, "impossible-parents", message))
        return number

    def _read_agent(self, source: Source, origin: Origin) -> Iterator[Json]:
        """Read a sub-agent's file in the middle of another one."""
        make, routing = self._make, self._routing
        outer = make.file, make.time, routing.file, self._line
        is_ordered = self._graph.is_ordered
        make.file = self._agents.relative(source)
        routing.file = (make.file, origin)
        with source:
            self._late.append(LateLines())
            self._late[-1].read(source)
            self._check_parents(source)
            yield from self._file(source)
            self._late.pop()
        for thread in routing.threads.values():
            if thread.origin is origin:
                self._steps.finish(thread)
                self._steps.over(thread)
        yield from self._out
        self._out.clear()
        make.file, time, routing.file, self._line = outer
        make.at(time)
        self._graph.line, self._graph.is_ordered = self._line, is_ordered

    # -- one line ---------------------------------------------------------------------------------------

    def _record(self, value: Json) -> None:
        self._make.at(value.get("timestamp"))
        self._make.by(value.get("version"))
        uuid = value.get("uuid")
        if not isinstance(uuid, str):
            uuid = ""
        value = self._graph.believed(value, uuid) if uuid else value
        kind = value.get("type")
        line = self._line
        handler = self._handlers.get(kind) if isinstance(kind, str) else None
        if handler is None:
            self._account.met(kind, line.number, line.offset, len(line.data), self._make.file)
        if self._make.client is not self._client:
            self._client = self._make.client
            self._is_recorded = self._is_recorded or is_since(self._client, RECORDED)
            self._is_worded = is_since(self._client, WORDED)
        if handler is not None and (uuid or isinstance(value.get("message"), dict)):
            self._items_of_blocks = []
            handler(value, uuid or f"line-{self._line.number}")
            if self._is_recorded and kind in ("user", "assistant") and isinstance(value.get("message"), dict):
                self._note_message(value, uuid)
        elif isinstance(kind, str) and kind in self._records:
            self._is_recorded = True
            self._records[kind](value)
        elif uuid:
            self._skip(value, uuid)

    def _thread(self, value: Json, uuid: str) -> Thread:
        """The thread of a line, ready for records of its requests where there may be some."""
        thread = self._routing.thread(value, uuid)
        if self._is_recorded:
            thread.records()
        return thread

    def _thread_of_request(self, value: Json) -> Thread:
        """The thread of a request's record, which names the sub-agent but no parent."""
        return self._routing.thread({**value, "isSidechain": string(value.get("agentId")) is not None}, "")

    def _log(self, value: Json) -> RequestRecords:
        return self._thread_of_request(value).records()

    def _request(self, value: Json) -> None:
        thread = self._thread_of_request(value)
        turn = thread.last.turn if thread.last is not None else None
        thread.records().request(value, self._line.number, self._make.time, turn)

    def _note_message(self, value: Json, uuid: str) -> None:
        """Note a message that a request may name by its digest."""
        message: Json = value["message"]
        made = self._items_of_blocks
        count = len(blocks.blocks_of(message.get("content")))
        if len(made) != count:
            # The line's items were not made block by block: all of them stand with its first block.
            made = [[entry for entries in made for entry in entries], *([] for _ in range(count - 1))]
        self._routing.thread(value, uuid).records().runs.note(message, made)

    def _skip(self, value: Json, uuid: str) -> None:
        """Take a line that no request carries; it only hands on its parent."""
        nodes = self._graph.nodes
        if uuid in nodes:
            if self._graph.is_second:
                message = f"uuid {uuid} was used before, with another parent, which counts"
                self._report(Problem(self._line.number, self._line.offset, "duplicate-uuid", message))
            return
        above = value.get("parentUuid", "")
        if above is None:
            nodes[uuid] = None
        elif isinstance(above, str) and (node := nodes.get(above)) is not None:
            nodes[uuid] = self._graph.followed(node)
        else:
            nodes[uuid] = self._graph.parent(value, self._routing.thread(value, uuid))

    def _unique_uuid(self, uuid: str, entries: list[Entry]) -> str | None:
        """The uuid to use for a line, another one where an earlier line has the same; None if it only repeats
        that line."""
        if uuid not in self._graph.nodes:
            return uuid
        node = self._graph.nodes[uuid]
        unit = node.unit if node is not None else None
        again = all(unit is not None and unit.holds_text(entry) for entry in entries)
        message = f"uuid {uuid} was used before"
        if again and self._graph.is_second:
            message += ", with another parent, which counts"
        message += "; the line repeats it and is ignored" if again else ""
        self._account.contradictions += not again
        self._report(Problem(self._line.number, self._line.offset, "duplicate-uuid", message))
        return None if again else f"{uuid}~{self._line.number}"

    # -- user lines -------------------------------------------------------------------------------------

    def _user(self, value: Json, uuid: str) -> None:
        message = value.get("message")
        content = message.get("content") if isinstance(message, dict) else message
        if value.get("isCompactSummary") is True:
            self._summary(value, uuid, content)
            return
        if value.get("isVisibleInTranscriptOnly") is True:
            self._skip(value, uuid)
            return
        thread = self._thread(value, uuid)
        results, others = self._user_entries(value, uuid, thread, content)
        fresh = self._unique_uuid(uuid, results + others)
        if fresh is None:
            return
        node = ChainNode(fresh, self._graph.parent(value, thread))
        if results:
            self._results(value, thread, node, results, others)
        elif others:
            node.unit = self._unit_with_reminder(value, thread, node) or ChainUnit(fresh)
            thread.add(node.unit, others, self._make.time, tail=True)
            if _sets_off(value, others):
                node.turn = fresh
        self._graph.add(value, thread, node)

    def _user_entries(
        self, value: Json, uuid: str, thread: Thread, content: Any
    ) -> tuple[list[Entry], list[Entry]]:
        """The items of a user line: tool results, and everything else."""
        reading = META if value.get("isMeta") is True else None
        results: list[Entry] = []
        others: list[Entry] = []
        line = self._line.number
        for index, block in enumerate(content if isinstance(content, list) else blocks.blocks_of(content)):
            item = uuid if index == 0 else blocks.block_id(uuid, index)
            made: list[Entry] = []
            if isinstance(block, dict) and block.get("type") == "tool_result":
                tool = block.get("tool_use_id")
                title = thread.titles.get(tool) if isinstance(tool, str) else None
                for entry in blocks.result_items(block, item, line, title):
                    entry.native = uuid
                    results.append(entry)
                    made.append(entry)
                self._items_of_blocks.append(made)
                continue
            other = blocks.user_item(block, item, line, reading)
            if other is not None:
                other.native = uuid
                others.append(other)
                made.append(other)
            self._items_of_blocks.append(made)
        return results, others

    def _results(
        self, value: Json, thread: Thread, node: ChainNode, results: list[Entry], others: list[Entry]
    ) -> None:
        """Add tool results to the message that made the calls, with what came along."""
        own: ChainUnit | None = None
        for entry in results:
            unit = thread.tools.get(entry.tool) if entry.tool is not None else None
            if unit is None:
                unit = own = own or ChainUnit(node.uuid)
                if entry.tool is not None:
                    self._graph.holds(thread, entry.tool, unit)
            thread.add(unit, [entry], self._make.time, tail=True)
            node.unit = node.unit or unit
            if entry.tool is not None:
                self._finished(value, thread, entry.tool)
        if node.unit is not None:
            thread.add(node.unit, others, self._make.time, tail=True)
        node.results = True

    def _finished(self, value: Json, thread: Thread, tool: str) -> None:
        """Have a sub-agent's file read at the place where its result comes in."""
        task = self._routing.end_task(tool)
        native = value.get("toolUseResult")
        agent = string(native.get("agentId")) if isinstance(native, dict) else None
        unit = thread.tools.get(tool)
        if unit is not None and unit.key in self._billed_elsewhere:
            if agent is not None:
                self._agents.pass_over(agent)
        elif agent is not None and isinstance(native, dict):
            kind = string(native.get("agentType")) or (task.agent if task is not None else None)
            self._agents.wanted.append((agent, Origin(thread.name, tool, kind)))

    def _unit_with_reminder(self, value: Json, thread: Thread, node: ChainNode) -> ChainUnit | None:
        """The unit of a reminder that came along with a tool result."""
        parent = node.parent
        if parent is None or not parent.results or self._graph.owner[parent] is not thread:
            return None
        if value.get("type") != "attachment" and string(value.get("sourceToolUseID")) is None:
            return None
        node.results = True
        return parent.unit

    def _summary(self, value: Json, uuid: str, content: Any) -> None:
        """Take a compaction's summary; without a boundary before it, it is the boundary itself."""
        entries = [
            entry
            for index, block in enumerate(blocks.blocks_of(content))
            if (entry := blocks.user_item(block, blocks.block_id(uuid, index), self._line.number, _SUMMARY))
        ]
        fresh = self._unique_uuid(uuid, entries)
        if fresh is None:
            return
        thread = self._thread(value, uuid)
        self._items_of_blocks = [[entry] for entry in entries]
        self._compactions.summary(value, thread, fresh, entries)

    # -- the rest ---------------------------------------------------------------------------------------

    def _assistant(self, value: Json, uuid: str) -> None:
        message = value.get("message")
        if not isinstance(message, dict) or value.get("isApiErrorMessage") is True:
            # An error text is shown to the person; the next request leaves it out.
            self._failed(value, uuid)
            return
        thread = self._thread(value, uuid)
        entries = blocks.assistant_items(message.get("content"), uuid, self._line.number)
        fresh = self._unique_uuid(uuid, entries)
        if fresh is None:
            return
        self._items_of_blocks = [[entry] for entry in entries]
        graph = self._graph
        superseded = value.get("supersedesUuids")
        if superseded is not None:
            graph.retract(superseded)
        parent = graph.parent(value, thread, wants=True)
        unit = self._message(value, message, thread, fresh, parent)
        calls = [
            entry
            for entry in thread.add(unit, entries, self._make.time, tail=False)
            if entry.kind == "tool_call"
        ]
        for entry in calls:
            graph.holds(thread, entry.item, unit)
            thread.titles[entry.item] = entry.title
        if calls:
            self._routing.note_tasks(thread, {entry.item for entry in calls}, message["content"])
        graph.add(value, thread, ChainNode(fresh, parent, unit))

    def _message(
        self, value: Json, message: Json, thread: Thread, uuid: str, parent: ChainNode | None
    ) -> ChainUnit:
        """The unit of an assistant line; a new unit is a new API call, unless the client made the answer
        up."""
        key = message.get("id")
        if not isinstance(key, str) or not key:
            key = string(value.get("requestId")) or uuid
        unit = thread.messages.get(key)
        if unit is None:
            unit = thread.messages[key] = ChainUnit(key)
            if key in self._billed_elsewhere:
                thread.carried = True
            elif message.get("model") != "<synthetic>":
                request = string(value.get("requestId"))
                asked = thread.requests.answered(value.get("requestRef")) if thread.requests else None
                late = self._late[-1]
                message, thread.compacted_at = message | late.facts.get(key, {}), late.compacted_at
                self._steps.open(thread, unit, parent, message, request, self._line.number, asked)
                native = string(value.get("sessionId"))
                if native is not None and thread.name == MAIN_THREAD:
                    first = self._natives.pop(native, self._line)
                    self._natives[native] = first
        elif thread.call is not None and thread.call.unit is unit:
            thread.call.merge(message)
        return unit

    def _attachment(self, value: Json, uuid: str) -> None:
        entries = attachment(value, uuid, self._line.number, is_worded=self._is_worded)
        if not entries:
            shown = value.get("attachment")
            if isinstance(shown, dict) and shown.get("type") == "prompt_snapshot":
                self._routing.thread(value, uuid).records().snapshot(shown)
            self._skip(value, uuid)
        else:
            self._beside_messages(value, uuid, entries)

    def _beside_messages(self, value: Json, uuid: str, entries: list[Entry]) -> None:
        """Take a line that is no message, and the items of it that requests carry."""
        thread = self._thread(value, uuid)
        fresh = self._unique_uuid(uuid, entries)
        if fresh is None:
            return
        node = ChainNode(fresh, self._graph.parent(value, thread))
        beside = self._unit_with_reminder(value, thread, node)
        prompt = self._unit_of_prompt(thread, node, entries) if beside is None else None
        node.unit = beside or prompt or ChainUnit(fresh)
        # What is worded as the user's stands in front of the prompt that it came with.
        is_tail = prompt is None or entries[0].role != "user"
        thread.add(node.unit, entries, self._make.time, tail=is_tail)
        self._graph.add(value, thread, node)

    def _unit_of_prompt(self, thread: Thread, node: ChainNode, entries: list[Entry]) -> ChainUnit | None:
        """The unit of the prompt with which worded attachments came."""
        parent = node.parent
        if parent is None or parent.unit is None or parent.results or not entries[0].is_rendered:
            return None
        if self._graph.owner[parent] is not thread:
            return None
        prompts = any(entry.kind == "user_message" for entry in parent.unit.tail)
        return parent.unit if prompts else None

    def _failed(self, value: Json, uuid: str) -> None:
        """Take a line that tells why a request got no answer; no request carries it."""
        if self._is_recorded:
            requests = self._routing.thread(value, uuid).requests
            if requests is not None:
                requests.failed(value)
        self._skip(value, uuid)

    def _system(self, value: Json, uuid: str) -> None:
        subtype = value.get("subtype")
        self._graph.retract(value.get("retractedMessageUuids"))
        known = uuid in self._graph.nodes
        if subtype == "compact_boundary" and not known:
            thread = self._routing.thread(value, uuid)
            is_logged = self._agents.wrote_summary(value.get("timestamp"))
            self._compactions.boundary(value, thread, uuid, is_logged=is_logged)
            if thread.requests is not None:
                thread.requests.runs.begin()
        elif subtype == "api_error":
            self._failed(value, uuid)
        elif subtype == "microcompact_boundary" and not known:
            self._compactions.micro(value, self._routing.thread(value, uuid), uuid)
        elif subtype == "local_command" and isinstance(value.get("content"), str):
            # The only notices that requests carry: what a local command was and what it printed.
            entry = blocks.user_item(value["content"], uuid, self._line.number, None)
            if entry is None:
                self._skip(value, uuid)
                return
            entry.native = uuid
            self._beside_messages(value, uuid, [entry])
        else:
            self._skip(value, uuid)


def _sets_off(value: Json, entries: list[Entry]) -> bool:
    """Whether a line without tool results is what somebody asked for, by the reading of each of its texts."""
    origin = value.get("origin")
    if isinstance(origin, dict) and origin.get("kind") not in (None, "human"):
        return False
    if value.get("isMeta") is True or value.get("toolUseResult") is not None:
        return False
    texts = [entry for entry in entries if entry.kind != "image"]
    return any(entry.kind == "user_message" for entry in texts) or not texts


def read(source: Source, report: Report) -> Iterator[Json]:
    """The session's steps as `context_event` records; bounded by the session, linear in the file."""
    return Session(report).events(source)


def read_folder(folder: Folder, report: Report) -> Iterator[Json]:
    """Each session in the order of the files' names; its sub-agents' files are read along with it.

    An API call that stands in several files is one request, of the file that has it first.
    """
    mains = main_transcripts(folder.files)
    readers = readers_beside(folder, mains, report)
    yield from read_several(folder, [(name, readers[name]) for name in mains], report)


def readers_beside(folder: Folder, names: list[str], report: Report) -> dict[str, Importer]:
    """The reader of each of several files of a directory: none bills what another one does."""
    elsewhere = shared_calls(folder, names, report)
    return {name: _SharedTranscript(elsewhere.get(name, _NOTHING)) for name in names}


class _SharedTranscript:
    """Reads one of several transcripts, without the requests that another file bills."""

    def __init__(self, copied: SharedCalls) -> None:
        self._copied = copied

    def events(self, source: Source, report: Report) -> Iterator[Json]:
        """The session's events."""
        return Session(report, self._copied).events(source)
