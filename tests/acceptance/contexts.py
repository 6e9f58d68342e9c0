"""Traces of the draft's own scenarios, made by hand, and the three places in which a fact must be shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from runs import Done, ctxctl

from ctxctl.session import Inspector
from ctxctl.tui.app import CtxApp
from tests.tui.helpers import running

Json = dict[str, Any]
WIDE = (200, 60)


def event(kind: str, data: Json, **ids: Any) -> Json:
    """One event, complete but for its id and time, which `trace` gives."""
    names = {"turn": "turn_id", "step": "step_id", "thread": "thread_id", "session": "session_id"}
    return {
        "schema_version": "0.1.1",
        "event_type": f"context.{kind}",
        "source": "made-by-hand",
        **{names.get(name, name): value for name, value in ids.items()},
        "data": {"schema_version": "0.1.1", **data},
    }


def item(name: str, text: str | None, kind: str = "retrieval_result", **more: Any) -> Json:
    """The record of an item that the model can see."""
    ids = {key: more.pop(key) for key in ("turn", "step", "session", "attempt_id", "task_id") if key in more}
    data = {
        "item_id": name,
        "context_kind": kind,
        "content_mode": "opaque" if text is None else "inline",
        "visibility": more.pop("visibility", ["model"]),
        **more,
    }
    if text is not None:
        data["content"] = text
    return event("item.added", data, **ids)


def selection(name: str, selected: list[Any], omitted: list[Any] = (), **more: Any) -> Json:  # type: ignore[assignment]
    ids = {
        key: more.pop(key) for key in list(more) if key.endswith("_id") or key in ("turn", "step", "session")
    }
    refs = {"selected_item_refs": selected, "omitted_item_refs": list(omitted)}
    return event(
        "selection.completed", {"selection_id": name, "surface_id": "surface-1", **refs, **more}, **ids
    )


def assembly(name: str, blocks: list[Any], target: str = "model", **ids: Any) -> Json:
    rows = [
        {"block_id": f"b{n}", "item_refs": [b]} if isinstance(b, str) else b for n, b in enumerate(blocks)
    ]
    return event("assembly.created", {"assembly_id": name, "target": target, "ordered_blocks": rows}, **ids)


def injection(name: str, of: str, point: str = "message_history", target: str = "model", **ids: Any) -> Json:
    data = {"injection_id": name, "assembly_id": of, "target": target, "injection_point": point}
    return event("injection.applied", data, **ids)


def trace(path: Path, *events: Json) -> Path:
    """The events as a file, each with an id and a time of its own."""
    lines = []
    for number, one in enumerate(events, 1):
        time = f"2026-05-08T00:00:{number:02d}Z"
        made = {"event_id": f"e{number}", "time": time, **one}
        data = dict(made["data"])
        data.setdefault("created_at", time)
        lines.append(json.dumps({**made, "data": data}) + "\n")
    path.write_text("".join(lines))
    return path


def plain(path: Path, *options: str) -> str:
    """The plain report, on one line a paragraph."""
    done = ctxctl("replay", path, "--steps", "--ids", *options, env={"COLUMNS": "400"})
    assert done.code == 0, done.err
    return done.out


def steps(path: Path, *options: str) -> list[Json]:
    """The steps of ``--json``."""
    done: Done = ctxctl("replay", path, "--json", *options)
    assert done.code == 0, done.err
    return done.of_type("step")


async def screens(path: Path, *keys: str, target: str = "model") -> str:
    """What the UI shows after each key, all in one text; ``.`` presses none and shows the first screen."""
    app = CtxApp(lambda: Inspector.open(path, target=target), str(path))
    async with running(app, WIDE) as session:
        seen = ""
        for key in keys:
            if key != ".":
                await session.press(key)
            seen += session.text
    return seen


def says(text: str, *words: str) -> None:
    """Every word stands in the text."""
    lacking = [word for word in words if word not in text]
    assert not lacking, (lacking, text)


def findings(path: Path) -> list[str]:
    """Slugs of what ``ctxctl validate`` finds."""
    return [problem["slug"] for problem in ctxctl("validate", path, "--json").of_type("problem")]
