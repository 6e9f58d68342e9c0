"""Captures of pi, opencode, Gemini CLI and goose: each is known, and its bills are those that it holds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from ctxctl.importers import registry
from ctxctl.model.problem import Problem
from ctxctl.trace.source import open_source

Json = dict[str, Any]
COUNTS = {"pi": 32, "pi-rpc": 8, "opencode": 5, "gemini-cli": 19, "goose": 1}
USAGE = "ctxctl.usage.reported"


def captures(kind: str) -> list[Path]:
    top = Path(os.environ.get("CTXCTL_CORPUS") or ".") / "data"
    found = sorted(path for path in (top / kind).rglob("*") if path.is_file())
    return [path for path in found if "recordings" not in path.parts]


def imported(path: Path, kind: str) -> tuple[list[Json], list[Problem]]:
    problems: list[Problem] = []
    with open_source(path) as source:
        found = registry.detect(source)
        assert found is not None, path
        assert found.name == kind, path
        return list(registry.capture_events(found, source, problems.append)), problems


def totals(events: list[Json]) -> tuple[int, int]:
    """Input, cache included, and output of all requests."""
    bills = [event["data"] for event in events if event["event_type"] == USAGE]
    return sum(b["input_tokens"] for b in bills), sum(b.get("output_tokens", 0) for b in bills)


def lines(path: Path) -> Iterator[Any]:
    """The values of a file of JSON lines; several may stand on one."""
    for line in path.read_bytes().splitlines():
        for piece in line.replace(b'}{"type":', b'}\n{"type":').split(b"\n"):
            try:
                yield orjson.loads(piece)
            except orjson.JSONDecodeError:
                continue


@pytest.mark.parametrize("kind", COUNTS)
def test_every_capture_is_known(corpus: Path, kind: str) -> None:
    found = captures(kind)
    assert len(found) >= COUNTS[kind]
    for path in found:
        events, problems = imported(path, kind)
        assert events[-1]["event_type"] == "ctxctl.fidelity.measured"
        assert {p.slug for p in problems} <= {"glued-lines", "unknown-record", "bad-escape"}, path


def test_pi_bills_each_answer_once(corpus: Path) -> None:
    compared = 0
    for path in captures("pi"):
        wanted = [0, 0]
        for value in lines(path):
            message = value.get("message") if isinstance(value, dict) else None
            usage = message.get("usage") if isinstance(message, dict) else None
            if isinstance(message, dict) and isinstance(usage, dict) and message["api"] != "cli":
                wanted[0] += usage["input"] + usage["cacheRead"] + usage["cacheWrite"]
                wanted[1] += usage["output"]
        if any(wanted):
            assert totals(imported(path, "pi")[0]) == tuple(wanted), path
            compared += 1
    assert compared >= 25


def test_opencode_bills_what_its_messages_say(corpus: Path) -> None:
    for path in captures("opencode"):
        latest: dict[str, Json] = {}
        data = path.read_bytes()
        if data.startswith(b"["):
            for hook, *given in lines(path):
                properties = given[0].get("event", {}).get("properties", {}) if hook == "event" else {}
                info = properties.get("info", {})
                if info.get("role") == "assistant":
                    latest[info["id"]] = info
        else:
            latest = {m["info"]["id"]: m["info"] for m in orjson.loads(data)["messages"]}
        tokens = [info["tokens"] for info in latest.values() if "tokens" in info]
        whole = sum(t.get("total", 0) for t in tokens)
        assert sum(totals(imported(path, "opencode")[0])) == whole > 0, path


def test_gemini_bills_its_own_totals(corpus: Path) -> None:
    for path in captures("gemini-cli"):
        if path.suffix == ".responses":
            continue
        chat = orjson.loads(path.read_bytes())
        whole = sum((message.get("tokens") or {}).get("total", 0) for message in chat["messages"])
        assert sum(totals(imported(path, "gemini-cli")[0])) == whole > 0, path
