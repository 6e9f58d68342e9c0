"""Reads trajectories, alone or linked by their files' names; their steps become the windows of requests."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from ctxctl.ingest.build import Block, Json
from ctxctl.ingest.chat import Chat, texts, thoughts, tools
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.document import document, document_of_file
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.lines import WHOLE_FILE
from ctxctl.ingest.parents import Kinship, Lineage, circle
from ctxctl.ingest.parts import Part, call_title, mapping, string
from ctxctl.ingest.run import Run
from ctxctl.providers import dialects
from ctxctl.providers.usage import clock, stated_total, usage_record
from ctxctl.trace.source import Source

if TYPE_CHECKING:
    from ctxctl.ingest.run import Run

_MAX_LINKS: Final = 1000
_MAX_DEPTH: Final = 50


class Capture(Run):
    """One import of a trajectory, or of a directory of linked ones."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._documents: dict[str, Json] = {}
        self._circular: set[tuple[str, str]] = set()
        """By file and file that it names, the references that lead back."""
        self._sessions: dict[str, int] = {}
        self._named: dict[str, int] = {}
        """How often a session, or a thread of the present session, was given a name."""

    def events(self, source: Source) -> Iterator[Json]:
        """The trajectory of one file, with the sub-trajectories inside it."""
        value = document(source, self.report)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                version = one.get("schema_version")
                if isinstance(version, str):
                    self.understood.version(version.upper().removeprefix("ATIF-V"), 1)
                self._open(one, 1)
                yield from self._with_continuations(one, None)
            elif one is not None:
                self.problem("not-a-record", "not a trajectory; not read")

    def folder_events(self, folder: Folder) -> Iterator[Json]:
        """Yield the trajectories that no other one of the directory names, each with those that it names."""
        for name in folder.files:
            if name.endswith(".json"):
                self._load(folder, name)
        self._break_circles()
        named = {other for name in self._documents for _, other, _ in self._links(name)}
        roots = [name for name in self._documents if name not in named]
        for number, name in enumerate(roots):
            self._open(self._documents[name], number + 1)
            yield from self._with_continuations(self._documents[name], name)

    def _break_circles(self) -> None:
        """Leave out the references by which a file would go on or be within itself, and tell of them."""
        self.make.file = None
        lineage: Lineage[str] = Lineage()
        for name in self._documents:
            for _, other, _ in self._links(name):
                if lineage.enter(other, name) is Kinship.CIRCLE:
                    self._circular.add((name, other))
                    place = WHOLE_FILE.number, WHOLE_FILE.offset
                    self.report(circle(*place, other, name, "begin a session"))

    def _load(self, folder: Folder, name: str) -> None:
        value = document_of_file(self, folder, name)
        if isinstance(value, dict) and isinstance(value.get("steps"), list):
            self._documents[name] = value

    def _open(self, trajectory: Json, number: int) -> None:
        """Begin the session of a trajectory; ids that come again are told apart."""
        name = string(trajectory.get("session_id")) or string(trajectory.get("trajectory_id"))
        name = (name or f"trajectory-{number}").replace("/", "_")
        again = self._sessions[name] = self._sessions.get(name, 0) + 1
        self.session = name if again == 1 else f"{name}~{again}"
        self._named = {}

    def _with_continuations(self, trajectory: Json, name: str | None) -> Iterator[Json]:
        """Yield a trajectory with its continuations and sub-trajectories, and close its session."""
        reading = Reading(self, self.thread(), name)
        done: set[str] = set()
        while True:
            self.make.file = name
            links = self._links(name) if name is not None else []
            reading.continues = any(kind == "continued" and other not in done for kind, other, _ in links)
            yield from reading.steps(trajectory)
            yield from self._embedded(trajectory, reading)
            following = None
            for kind, other, reference in links:
                if other in done or len(done) > _MAX_LINKS:
                    continue
                done.add(other)
                if kind == "continued":
                    following = other
                else:
                    self.make.file = other
                    yield from self._sub_trajectory(self._documents[other], reference, reading)
            if following is None:
                break
            name, trajectory = following, self._documents[following]
            reading.go_on(name)
        yield from self.end_session()
        self.make.file = None

    def _embedded(self, trajectory: Json, reading: Reading, depth: int = 0) -> Iterator[Json]:
        inner = trajectory.get("subagent_trajectories")
        references = {
            string(r.get("trajectory_id")) or string(r.get("session_id")): r for r in _references(trajectory)
        }
        for one in inner if isinstance(inner, list) else ():
            if isinstance(one, dict):
                ident = string(one.get("trajectory_id")) or string(one.get("session_id"))
                yield from self._sub_trajectory(one, references.get(ident, {}), reading, depth + 1)

    def _sub_trajectory(
        self, trajectory: Json, reference: Json, parent: Reading, depth: int = 0
    ) -> Iterator[Json]:
        """Yield a sub-trajectory as a thread of the session."""
        ident = string(trajectory.get("trajectory_id")) or string(trajectory.get("session_id")) or "sub"
        ident = ident.removeprefix(self.session or "").strip("-/_") or ident
        again = self._named[ident] = self._named.get(ident, 0) + 1
        name = ident if again == 1 else f"{ident}~{again}"
        origin: Json = {"parent_thread": parent.thread.thread or "main"}
        call = string(reference.get("source_call_id"))
        if call is not None:
            origin["parent_tool_call"] = call
        agent = trajectory.get("agent")
        kind = string(agent.get("name")) if isinstance(agent, dict) else None
        if kind is not None:
            origin["agent_type"] = kind
        inner = Reading(self, self.thread(name, origin=origin), self.make.file)
        yield from inner.steps(trajectory)
        if depth < _MAX_DEPTH:
            yield from self._embedded(trajectory, inner, depth)

    def _links(self, name: str) -> list[tuple[str, str, Json]]:
        """The files that a trajectory names: (`continued` or `sub`, file, the reference)."""
        trajectory = self._documents[name]
        found: list[tuple[str, str, Json]] = []
        target = self._file(name, trajectory.get("continued_trajectory_ref"))
        for reference in _references(trajectory):
            path = self._file(name, reference.get("trajectory_path"))
            if path is not None and path != target:
                found.append(("sub", path, reference))
        if target is not None:
            found.append(("continued", target, {}))
        return [link for link in found if (name, link[1]) not in self._circular]

    def _file(self, name: str, path: Any) -> str | None:
        """A loaded file by the name that another one gives it; a prefix of the names may have been added."""
        if not isinstance(path, str) or not path:
            return None
        folder, _, base = name.rpartition("/")
        wanted = f"{folder}/{path}" if folder else path
        if wanted in self._documents and wanted != name:
            return wanted
        stem, _, _ = base.partition("trajectory")
        wanted = f"{folder}/{stem}{path}" if folder else f"{stem}{path}"
        return wanted if wanted in self._documents and wanted != name else None


def _references(trajectory: Json) -> list[Json]:
    found: list[Json] = []
    steps = trajectory.get("steps")
    for step in steps if isinstance(steps, list) else ():
        observation = step.get("observation") if isinstance(step, dict) else None
        results = observation.get("results") if isinstance(observation, dict) else None
        for result in results if isinstance(results, list) else ():
            refs = result.get("subagent_trajectory_ref") if isinstance(result, dict) else None
            for ref in refs if isinstance(refs, list) else [refs]:
                if isinstance(ref, dict):
                    found.append({**ref, "source_call_id": result.get("source_call_id")})
    return found


class Reading:
    """What has been read of one thread, over its continuations."""

    def __init__(self, run: Run, thread: Conversation, file: str | None) -> None:
        self.run = run
        self.thread = thread
        self._file = file
        self._chat = Chat()
        self._part = 0
        """Number of the continuation."""
        self._turn: str | None = None
        self._model: str | None = None
        self._asked = False
        self._copied: list[Part] | None = None
        """Steps that a continuation copied from before; None outside of one."""
        self._bodies = False
        """Whether steps keep their requests' bodies, so that other steps add nothing to the window."""
        self._exact = False
        self._last = False
        self._ended: Json = {}
        """The summarisation that this continuation follows."""
        self.continues = False
        """Whether a continuation will be read, which tells the window after the last summarisation."""

    def go_on(self, file: str) -> None:
        """Go on with the next document, which continues this one."""
        self._file = file
        self._part += 1
        self._copied = []
        # The steps that it copied hold the same calls again.
        self._chat = Chat()

    def steps(self, trajectory: Json) -> Iterator[Json]:
        """The events of a document."""
        agent = mapping(trajectory.get("agent"))
        self._model = string(agent.get("model_name")) or self._model
        if not self._part:
            self.thread.append(*tools(agent.get("tool_definitions")))
        found = trajectory.get("steps")
        steps = [step for step in found if isinstance(step, dict)] if isinstance(found, list) else []
        self._bodies = any(_body(step) is not None for step in steps)
        for number, step in enumerate(steps, 1):
            self._last = number == len(steps)
            self.run.make.at(string(step.get("timestamp")) or clock(step.get("timestamp")))
            ident = step.get("step_id")
            name = (
                str(ident) if isinstance(ident, int | str) and not isinstance(ident, bool) else f"n{number}"
            )
            self._step(step, f"{self._part}.{name}" if self._part else name)
            yield from self.run.drain()
        self._settle()
        metrics = mapping(trajectory.get("final_metrics"))
        if self.thread.thread is None:
            total = stated_total(
                "session", usd=metrics.get("total_cost_usd"), input_tokens=metrics.get("total_prompt_tokens"),
                cached=metrics.get("total_cached_tokens"),
                output_tokens=metrics.get("total_completion_tokens"),
            )  # fmt: skip
            self.thread.stated(total)

    def _step(self, step: Json, name: str) -> None:
        copied = step.get("is_copied_context") is True
        if self._copied is not None and not copied:
            self._settle()
        source = _source(step)
        body = _body(step)
        if body is not None:
            self.thread.replace(_sent(body))
            self._exact = True
        if source == "agent":
            self._answer(step, name, copied)
        elif body is None and not self._bodies:
            self._told(step, name, "system" if source == "system" else "user", copied)
        if not copied and source == "user" and not (self._bodies and body is None):
            self._turn = f"step-{name}"

    def _told(self, step: Json, name: str, role: str, copied: bool) -> None:
        if role == "system" and _is_compaction(step):
            self._compact(step, name)
            return
        kind = "user_message"
        if role == "system":
            kind = "policy_note" if self._asked else "system_prompt"
            self._asked = self._asked or bool(step.get("message"))
        self._add(texts(step.get("message"), kind, role), name, copied)
        self._add(self._results(step), f"{name}/observation", copied)

    def _answer(self, step: Json, name: str, copied: bool) -> None:
        calls = step.get("llm_call_count")
        self._asked = True
        if not copied and calls != 0:
            self.thread.turn = self._turn
            model = string(step.get("model_name")) or self._model
            self.thread.request(f"step-{name}", model=model, derived=None if self._exact else True)
            self._exact = False
            if not (isinstance(calls, int) and calls > 1):
                self.thread.usage(_bill(step.get("metrics"), model))
        parts = [*thoughts(step), *texts(step.get("message"), "assistant_message", "assistant")]
        found = step.get("tool_calls")
        for call in found if isinstance(found, list) else ():
            if isinstance(call, dict):
                flat = {
                    "id": call.get("tool_call_id"),
                    "name": call.get("function_name"),
                    "arguments": call.get("arguments"),
                }
                parts.append(self._chat.call(flat))
        self._add(parts, name, copied)
        self._add(self._results(step), f"{name}/observation", copied)

    def _results(self, step: Json) -> list[Part]:
        observation = step.get("observation")
        results = observation.get("results") if isinstance(observation, dict) else None
        parts: list[Part] = []
        for result in results if isinstance(results, list) else ():
            content = result.get("content") if isinstance(result, dict) else None
            if content is None:
                continue
            call = string(result.get("source_call_id"))
            found = self._chat.result(call, content, role="user" if call is None else "tool")
            for part in found if call is None else ():
                part.title = _only_call(step)
            parts += found
        return parts

    def _add(self, parts: list[Part], name: str, copied: bool) -> None:
        unnamed = 0
        for part in parts:
            if not part.item:
                part.place = f"step-{name}" if not unnamed else f"step-{name}/{unnamed}"
                unnamed += 1
        if copied and self._copied is not None:
            # Which earlier items they are is known only when all have been read.
            self._copied += parts
        else:
            self.thread.append(*parts)

    # -- compaction ---------------------------------------------------------------------------------------

    def _compact(self, step: Json, name: str) -> None:
        """Take a summarisation: the window follows in a continuation; without one, what stays is not
        recorded."""
        self._ended = {"compaction_id": f"step-{name}", "trigger": string(step.get("message"))}
        if self.continues and self._last:
            return
        first = next((b.item for b, kind in self.thread.rows if kind == "user_message"), None)
        standing = {b.item for b, kind in self.thread.rows if kind in ("system_prompt", "tool_definition")}
        standing |= {first} if first is not None else set()
        note = "what stays beside the system prompt and the first message is not recorded"
        self.thread.compact(
            [],
            keep=standing.__contains__,
            loss_notes=[note],
            metadata={"ctxctl": {"derived": True}},
            **self._ended,
        )

    def _settle(self) -> None:
        """Make a continuation's copied steps the window that it goes on with."""
        copied, self._copied = self._copied, None
        if not copied:
            return
        thread = self.thread
        before = [block for block, _ in thread.rows]
        again = {(part.role, part.mark) for part in copied}
        at = sum(1 for _ in takewhile(lambda row: _stays_in_front(row, again), thread.rows))
        thread.identify(copied, at=at, fresh=True)
        held = {block.item for block in before}
        summary = next((part for part in copied if part.role == "user" and part.item not in held), None)
        if summary is not None:
            summary.kind = "thread_summary"
        thread.replace(copied, at=at, fresh=True)
        stays = {block.item for block, _ in thread.rows}
        refs = [block.ref for block in before if block.item not in stays]
        if refs or summary is not None:
            into = summary.block().ref if summary is not None else None
            thread.compacted(refs, into, **self._ended)


def _stays_in_front(row: tuple[Block, str], copied: set[tuple[str, str]]) -> bool:
    """Whether a row of the window's head stays in front of what was copied."""
    block, kind = row
    mark = block.ref[len(block.item) + 1 :]
    return kind in ("tool_definition", "system_prompt") and (block.role, mark) not in copied


def _only_call(step: Json) -> str | None:
    """The title of a step's call, where it made one: results without a call's id are its."""
    calls = step.get("tool_calls")
    call = calls[0] if isinstance(calls, list) and len(calls) == 1 else None
    name = string(call.get("function_name")) if isinstance(call, dict) else None
    return call_title(name, call.get("arguments")) if name is not None and isinstance(call, dict) else None


def _source(step: Json) -> str:
    """Whose step it is; one of an unknown source is the agent's if a model answered it."""
    source = step.get("source")
    if source in ("system", "user", "agent"):
        return str(source)
    return "agent" if isinstance(step.get("metrics"), dict) or step.get("tool_calls") else "user"


def _is_compaction(step: Json) -> bool:
    extra = step.get("extra")
    management = extra.get("context_management") if isinstance(extra, dict) else None
    if isinstance(management, dict) and management.get("type") == "compaction":
        return True
    message = step.get("message")
    return isinstance(message, str) and message.startswith("Performed context summarization")


def _body(step: Json) -> Json | None:
    """The body of the request, where an exporter kept it."""
    extra = step.get("extra")
    body = extra.get("llm_request") if isinstance(extra, dict) else None
    return body if isinstance(body, dict) and dialects.of_body(body) is not None else None


def _sent(body: Json) -> list[Part]:
    dialect = dialects.of_body(body)
    return dialect.cut(body) if dialect is not None else []


def _bill(metrics: Any, model: str | None) -> Json | None:
    if not isinstance(metrics, dict):
        return None
    extra = mapping(metrics.get("extra"))
    cached = metrics.get("cached_tokens")
    return usage_record(
        input_tokens=metrics.get("prompt_tokens"),
        output_tokens=metrics.get("completion_tokens"),
        cached=cached if cached is not None else extra.get("cache_read_tokens"),
        cache_write=extra.get("cache_creation_input_tokens", extra.get("cache_write_tokens")),
        reasoning=extra.get("reasoning_tokens"),
        model=model,
        bill={**extra, **metrics},
    )
