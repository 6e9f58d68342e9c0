"""Clients of this month: each log's frames against the bodies that were sent, each bill against its own."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ctxctl.importers.registry import capture_events, detect
from ctxctl.ingest.about import FACT_NAMES, Level
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.session.assembly import text_of
from ctxctl.trace.source import open_source
from tests.corpus.wire_match import FACTS, Match, Piece, loaded, match, of_block, part_of, piece, squeezed
from tools.independent.wire import Request, answer, chained, requests

UNLOGGED = {
    "codex-websocket": {"002": "asks for no answer: warms the connection", "008": "the same"},
    "opencode": {"001": "asks for the session's title"},
}
"""Requests that a client's log does not tell of, by their number on the wire, and what they are."""
CLIENTS = ("aider", "claude-code", "codex-websocket", "copilot-cli", "mini-swe-agent", "opencode", "pi")
OFF_RECORD = {"claude-code": "x-anthropic-billing-header"}
"""How a piece begins that is in no log of a client, as its format's limits say."""
USAGE_OF_NONE = {"aider": "its logs hold no usage"}
PROBE = 40
"""Characters by which a text is known again."""


class Call(NamedTuple):
    """One request as it went over the wire."""

    number: str
    body: list[Piece]
    usage: dict[str, Any]


class Told(NamedTuple):
    """One step of the log."""

    step: Step
    frame: list[Piece]


def folder(client: str) -> Path:
    found = Path(os.environ["CTXCTL_CORPUS"]) / "data" / "clients" / client
    if not found.is_dir():
        pytest.skip(f"no {client}")
    return found


def native(client: str) -> Path:
    """The log: the one file of its folder, or the one that holds the requests (aider's `llm.history`)."""
    files = sorted((folder(client) / "native").iterdir())
    return files[-1]


def calls(client: str) -> list[Call]:
    """What was sent, in order."""
    told = [json.loads(line) for line in (folder(client) / "calls.jsonl").read_text().splitlines()]
    bodies = chained([unasked(one) for one in requests(folder(client) / "wire")])
    assert len(bodies) == len(told)
    return [
        Call(one["n"], [of_block(block) for block in body], one["usage"])
        for one, body in zip(told, bodies, strict=True)
    ]


def unasked(request: Request) -> Request:
    """A request, without the answer that the stand-in gave to one that asked for none (`generate: false`)."""
    if request.body.get("generate") is not False:
        return request
    return request._replace(said={**answer(request.said), "output": []})


def logged(client: str) -> list[Call]:
    return [call for call in calls(client) if call.number not in UNLOGGED.get(client, {})]


def told(path: Path) -> list[Told]:
    """The log's steps with their frames."""
    found = []
    with Inspector.open(path) as inspector:
        steps = [one for one in inspector.replay() if isinstance(one, Step)]
        for ordinal, step in enumerate(steps):
            placements = inspector.frame(ordinal).placements
            pieces = [
                piece(part_of(one.kind, one.role), text_of(inspector.text, one), one.title or one.item)
                for one in placements
                if one.content is not None
            ]
            found.append(Told(step, pieces))
    return found


def lacks(path: Path) -> set[str]:
    """The facts that the import says the log lacks, for some requests at least."""
    with open_source(path) as source:
        form = detect(source)
        assert form is not None
        *_, last = capture_events(form, source, lambda _: None)
    held = last["data"]["facts"]
    return {
        fact
        for fact in FACT_NAMES
        if Level.NOT_RECORDED.value in held.get(fact, {})
        or (fact not in held and form.about.claim(fact).level is Level.NOT_RECORDED)
    }


def lacked(found: Match, body: list[Piece]) -> dict[str, list[Piece]]:
    """What the frame lacks of a body, by fact; the rest of a piece that it holds in part is its wrapper."""
    whole = {(one.part, squeezed(one.text)) for one in body}
    lacks: dict[str, list[Piece]] = {}
    for one in found.lacking:
        fact = FACTS[one.part] if (one.part, one.text) in whole else "wrapper"
        lacks.setdefault(fact, []).append(one)
    return lacks


def is_off_record(client: str, path: Path, one: Piece) -> bool:
    """Whether a piece is one that the format says no log holds."""
    begins = OFF_RECORD.get(client)
    if begins is None or not one.text.startswith(begins):
        return False
    with open_source(path) as source:
        form = detect(source)
    return form is not None and any(begins in limit for limit in form.about.limits)


def strings(value: Any) -> Iterator[str]:
    """Every text of a JSON value, keys too; texts that are JSON themselves are looked into."""
    if isinstance(value, str):
        inner = loaded(value) if value[:1] in {"{", "["} else value
        yield from (value,) if inner == value else strings(inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def held(path: Path) -> str:
    """All that a log's file says, less white space; of a database, its text columns."""
    if path.suffix == ".db":
        with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as base:
            tables = [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            rows = [row for name in tables for row in base.execute(f'SELECT * FROM "{name}"')]
        return squeezed("\n".join(one for row in rows for cell in row for one in strings(cell)))
    text = path.read_text()
    values = [loaded(text)] if path.suffix == ".json" else [loaded(line) for line in text.splitlines()]
    return squeezed("\n".join(one for value in values for one in strings(value)))


def probe(one: Piece) -> str:
    """A stretch from the middle of a text that is long enough to be no chance; empty if it is not."""
    value = loaded(one.text) if one.part in {"tools", "call"} else one.text
    text = squeezed(max(strings(value), key=len, default=""))
    return text[len(text) // 3 :][:PROBE] if len(text) >= 2 * PROBE else ""


@pytest.mark.parametrize("client", CLIENTS)
def test_what_a_frame_lacks_is_not_in_the_log(client: str) -> None:
    path = native(client)
    said, wrong = held(path), []
    for call, one in zip(logged(client), told(path), strict=True):
        for piece_ in match(one.frame, call.body).lacking:
            wanted = probe(piece_)
            if wanted and wanted in said:
                wrong.append(f"{call.number}: the log holds {piece_.part} {piece_.name!r}: {wanted[:60]!r}")
    assert not wrong, "\n".join(wrong[:60])


@pytest.mark.parametrize("client", CLIENTS)
def test_each_frame_is_the_body_less_what_the_log_is_said_to_lack(client: str) -> None:
    path = native(client)
    steps, sent, absent = told(path), logged(client), lacks(path)
    assert len(steps) == len(sent)
    wrong = []
    for call, one in zip(sent, steps, strict=True):
        found = match(one.frame, call.body)
        wrong += [
            f"{call.number}: not sent, or not there: {p.part} {p.name!r} {p.text[:80]!r}"
            for p in found.strange
        ]
        for fact, lacking in lacked(found, call.body).items():
            pieces = [p for p in lacking if not is_off_record(client, path, p)]
            if pieces and fact not in absent:
                size = sum(len(p.text) for p in pieces)
                wrong.append(
                    f"{call.number}: {fact} lacks {size} characters: {[p.text[:60] for p in pieces][:4]}"
                )
    assert not wrong, "\n".join(wrong[:60])


@pytest.mark.parametrize("client", sorted(set(CLIENTS) - set(USAGE_OF_NONE)))
def test_each_bill_is_that_of_its_request(client: str) -> None:
    sent = [call.usage for call in logged(client)]
    steps = told(native(client))
    billed = [
        {
            "input": step.usage.reported_input if step.usage else None,
            "cached": step.cache.reported_cached or 0,
            "write": step.cache.reported_cache_write or 0,
            "output": step.usage.reported_output if step.usage else None,
        }
        for step, _ in steps
    ]
    assert billed == [{name: one[name] for name in ("input", "cached", "write", "output")} for one in sent]
