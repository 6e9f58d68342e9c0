"""Trajectories, alone or linked with each other by the names of their files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.errors import CtxctlError
from ctxctl.formats.atif.trajectory import Reading
from ctxctl.formats.build import Json
from ctxctl.formats.kit.document import document
from ctxctl.formats.kit.folder import Folder
from ctxctl.formats.kit.parts import string
from ctxctl.formats.kit.run import Run
from ctxctl.trace.source import Source

_MAX_LINKS: Final = 1000
_MAX_DEPTH: Final = 50


class Capture(Run):
    """One import of a trajectory, or of a directory of linked ones."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._documents: dict[str, Json] = {}
        self._sessions: dict[str, int] = {}
        self._named: dict[str, int] = {}
        """How often a session, or a thread of the present one, was named so."""

    def events(self, source: Source) -> Iterator[Json]:
        """The trajectory of one file, with the sub-trajectories inside it."""
        value = document(source, self.report)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                version = one.get("schema_version")
                if isinstance(version, str):
                    self.understood.version(version.upper().removeprefix("ATIF-V"), 1)
                self._open(one, 1)
                yield from self._whole(one, None)
            elif one is not None:
                self.problem("not-a-record", "not a trajectory; not read")

    def folder_events(self, folder: Folder) -> Iterator[Json]:
        """The trajectories of a directory that no other one names, each with those that it names."""
        for name in folder.files:
            if name.endswith(".json"):
                self._load(folder, name)
        named = {other for name in self._documents for _, other, _ in self._links(name)}
        roots = [name for name in self._documents if name not in named] or list(self._documents)[:1]
        for number, name in enumerate(roots):
            self._open(self._documents[name], number + 1)
            yield from self._whole(self._documents[name], name)

    def _load(self, folder: Folder, name: str) -> None:
        self.make.file = name
        try:
            with folder.open(name) as source:
                value = document(source, self.report)
        except CtxctlError as error:
            self.problem(error.slug, error.message)
            return
        if isinstance(value, dict) and isinstance(value.get("steps"), list):
            self._documents[name] = value

    def _open(self, trajectory: Json, number: int) -> None:
        """Begin the session of a trajectory; ids that come again are told apart."""
        name = string(trajectory.get("session_id")) or string(trajectory.get("trajectory_id"))
        name = (name or f"trajectory-{number}").replace("/", "_")
        again = self._sessions[name] = self._sessions.get(name, 0) + 1
        self.session = name if again == 1 else f"{name}~{again}"
        self._named = {}

    def _whole(self, trajectory: Json, name: str | None) -> Iterator[Json]:
        """A trajectory, its continuations and sub-trajectories; then its session is closed."""
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
                    yield from self._sub(self._documents[other], reference, reading)
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
                yield from self._sub(one, references.get(ident, {}), reading, depth + 1)

    def _sub(self, trajectory: Json, reference: Json, parent: Reading, depth: int = 0) -> Iterator[Json]:
        """A sub-trajectory: a thread of the session."""
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
        return found

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
