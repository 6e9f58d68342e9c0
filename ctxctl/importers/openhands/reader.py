"""Reads the containers of event streams: arrays, JSON lines, evaluation outputs, directories."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ctxctl.errors import CtxctlError
from ctxctl.importers.openhands.stream import Stream, state_of
from ctxctl.ingest.build import Json
from ctxctl.ingest.document import document, document_of_file
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.lines import ignore_problem, values
from ctxctl.ingest.parts import string
from ctxctl.ingest.run import Run
from ctxctl.trace.source import Source

_NUMBERED = re.compile(r"(?:^|/)(?:event-)?(\d+)(?:-[0-9a-fA-F-]{8,})?\.json$")
_STREAMS = ("history", "trajectory", "events")


def numbered(names: Iterable[str]) -> list[str]:
    """The event files among the names, in the order of their numbers."""
    found = [(int(match.group(1)), name) for name in names if (match := _NUMBERED.search(name))]
    return [name for _, name in sorted(found)]


class Capture(Run):
    """Imports a file or a directory of events."""

    def events(self, source: Source) -> Iterator[Json]:
        """Yield the sessions of a file."""
        stream: Stream | None = None
        names: set[str] = set()
        for record in self._values(source):
            inner = next((record[name] for name in _STREAMS if isinstance(record.get(name), list)), None)
            if inner is not None:
                yield from self._session(record, inner, names)
                continue
            if stream is None:
                self.session = None
                stream = Stream(self)
                if "kind" in record:
                    for state in self._states(source):
                        stream.read_state(state)
            stream.read(record)
            yield from self.drain()
        if stream is not None:
            self.session = None
            stream.totals()
        yield from self.finish()

    def folder_events(self, folder: Folder) -> Iterator[Json]:
        """Yield the sessions of a directory; the files of one folder are one session."""
        sessions: dict[str, list[str]] = {}
        for name in numbered(folder.files):
            sessions.setdefault(name.rpartition("/")[0], []).append(name)
        for parent, names in sessions.items():
            self.session = parent.removesuffix("events").strip("/") or None if len(sessions) > 1 else None
            stream = Stream(self)
            stream.read_state(self._state(folder, parent))
            for name in names:
                yield from self._file(folder, name, stream)
            self.make.file = None
            stream.totals()
            yield from self.end_session()

    def _file(self, folder: Folder, name: str, stream: Stream) -> Iterator[Json]:
        value = document_of_file(self, folder, name)
        for record in value if isinstance(value, list) else [value]:
            if isinstance(record, dict):
                stream.read(record)
        yield from self.drain()

    def _state(self, folder: Folder, parent: str) -> Any:
        """The SDK's `base_state.json`, which lies beside the events."""
        above = parent.rpartition("/")[0]
        name = f"{above}/base_state.json" if above else "base_state.json"
        if name not in folder.files:
            return None
        try:
            with folder.open(name) as source:
                return document(source, ignore_problem)
        except CtxctlError:
            return None

    def _states(self, source: Source) -> Iterator[Any]:
        """Look ahead for the usage that the events of a file tell, which comes after its responses."""
        for _, value in values(source, ignore_problem):
            for one in value if isinstance(value, list) else [value]:
                state = state_of(one) if isinstance(one, dict) else None
                if state is not None:
                    yield state

    def _values(self, source: Source) -> Iterator[Json]:
        start = source.read(0, 4096).lstrip(b"\xef\xbb\xbf \t\r\n\0")
        if not start.startswith(b"["):
            yield from self.records(source)
            return
        value = document(source, self.report)
        for record in value if isinstance(value, list) else []:
            if isinstance(record, dict):
                yield record
            elif isinstance(record, list):
                yield {"history": [record]}
            else:
                self.problem("not-a-record", "not a JSON object; skipped")

    def _session(self, record: Json, history: Sequence[Any], names: set[str]) -> Iterator[Json]:
        """Yield the session of one line of an evaluation's output, or of a downloaded trajectory's only
        object."""
        number = len(names) + 1
        ident = record.get("instance_id", record.get("id"))
        named = isinstance(ident, str | int) and not isinstance(ident, bool)
        name = str(ident) if named and "/" not in str(ident) else f"session-{number}"
        if name in names:
            name = f"{name}~{number}"
        names.add(name)
        self.session = name
        stream = Stream(self, model=_model(record.get("metadata")))
        for event in history:
            # Old outputs pair each action with its observation.
            for one in event if isinstance(event, list) else [event]:
                if isinstance(one, dict):
                    stream.read(one)
            yield from self.drain()
        stream.totals(record.get("metrics"))
        yield from self.end_session()


def _model(metadata: Any) -> str | None:
    metadata = metadata if isinstance(metadata, dict) else {}
    config = metadata.get("llm_config")
    return string(config.get("model")) if isinstance(config, dict) else string(metadata.get("model_name"))
