"""What tests of trajectories look at: an import's requests, each with its items."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from ctxctl.importers import registry
from ctxctl.ingest.folder import Folder
from ctxctl.model.problem import Problem
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.trace.source import Source

Json = dict[str, Any]
FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"


class Request(NamedTuple):
    """One request: where it belongs, and what it carried."""

    session: str | None
    thread: str
    turn: str | None
    step: str
    items: list[str]
    model: str | None
    derived: bool
    data: Json


class Import(NamedTuple):
    """An import's events, in the shape that tests ask about."""

    format: str
    events: list[Json]
    problems: list[Problem]

    def of(self, event_type: str) -> list[Json]:
        """The data of the events of a type."""
        return [event["data"] for event in self.events if event["event_type"] == event_type]

    def items(self) -> dict[str, Json]:
        """The last record of each item."""
        return {e["data"]["item_id"]: e["data"] for e in self.events if ".item." in e["event_type"]}

    def usage(self) -> list[tuple[int, int | None, int | None]]:
        """Input, cached and output tokens of each bill."""
        bills = self.of("ctxctl.usage.reported")
        return [(b["input_tokens"], b.get("cached_tokens"), b.get("output_tokens")) for b in bills]

    def requests(self) -> list[Request]:
        """Each request with the ids in its window, by expanding the splices."""
        windows: dict[str, list[str]] = {}
        found = []
        for event in self.events:
            if event["event_type"] != "context.assembly.created":
                continue
            data = event["data"]
            marks = data["metadata"]["ctxctl"]
            ids = [block["block_id"] for block in data["ordered_blocks"]]
            window = list(windows.get(marks.get("base"), []))
            shift = 0
            for start, removed, inserted in marks.get("splices", [[0, 0, len(ids)]]):
                window[start + shift : start + shift + removed] = [ids.pop(0) for _ in range(inserted)]
                shift += inserted - removed
            windows[data["assembly_id"]] = window
            found.append(
                Request(
                    event.get("session_id"),
                    event.get("thread_id", "main"),
                    event.get("turn_id"),
                    event["step_id"],
                    window,
                    marks.get("model"),
                    bool(marks.get("derived")),
                    data,
                )
            )
        return found

    def kinds(self, request: int) -> list[str]:
        """The kinds of the items in a request."""
        asked = self.requests()[request]
        kinds = {
            event["data"]["item_id"]: event["data"]["context_kind"]
            for event in self.events
            if ".item." in event["event_type"]
            and (event.get("session_id"), event.get("thread_id", "main")) == (asked.session, asked.thread)
        }
        return [kinds[name] for name in asked.items]


def read(data: bytes | str | Json | list[Any] | Path) -> Import:
    """Import a fixture by its path, a capture's bytes, or the JSON value of one; a directory as a whole."""
    problems: list[Problem] = []
    if isinstance(data, Path):
        path = data if data.is_absolute() else FIXTURES / data
        if path.is_dir():
            folder = Folder(str(path), path)
            found = next(
                f for f in registry.built_in() if f.detect_folder is not None and f.detect_folder(folder)
            )
            assert isinstance(found, registry.Format)
            return Import(found.name, list(found.folder_events(folder, problems.append)), problems)
        data = path.read_bytes()
    if isinstance(data, str):
        data = data.encode()
    elif not isinstance(data, bytes):
        data = json.dumps(data).encode()
    source = Source.from_bytes("capture", data)
    importer = registry.detect(source)
    assert importer is not None
    return Import(importer.name, list(importer.events(source, problems.append)), problems)


def detected(data: bytes | str | Json | list[Any]) -> str | None:
    """The name of the format that claims a capture."""
    if isinstance(data, str):
        data = data.encode()
    elif not isinstance(data, bytes):
        data = json.dumps(data).encode()
    found = registry.of_head(data[: registry.HEAD])
    return found.name if found is not None else None


def steps(path: Path) -> list[Step]:
    """The steps that a replay of a fixture gives."""
    opened = Inspector.open(FIXTURES / path, encoding="o200k_base")
    return [one for one in opened.replay() if isinstance(one, Step)]
