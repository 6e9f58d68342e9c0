"""Real trajectories: each is known for what it is, its steps are its answers, its bills its own totals.

The captures are not in the repository: CTXCTL_CORPUS names the directory with `data/swe-agent` and so on.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from ctxctl.errors import UnreadableError
from ctxctl.importers import registry
from ctxctl.ingest.about import Level
from ctxctl.model.problem import Problem
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.trace.source import open_source
from ctxctl.trace.validate import validate_event

Json = dict[str, Any]
KINDS = {
    "swe-agent": ("swe-agent", 22),
    "mini-swe-agent": ("mini-swe-agent", 15),
    "tau-bench": ("tau-bench", 2),
    "openhands": ("openhands", 6),
    "inspect-ai": ("inspect-ai", 22),
    "atif": ("atif", 5),
    "mcp-agent-runs": ("live-mcp-bench", 1),
}
EXPECTED_PROBLEMS = {"repaired-document", "not-understood"}
"""Two captures came to us with an invalid escape."""


def files(kind: str) -> list[Path]:
    base = Path(os.environ["CTXCTL_CORPUS"]) / "data" / kind
    return sorted(path for path in base.rglob("*") if path.is_file())


def is_pointer(path: Path) -> bool:
    """A file that Git LFS left in the place of the real one."""
    return path.read_bytes()[:40].startswith(b"version https://git-lfs")


def captures(kind: str) -> Iterator[Path]:
    return (path for path in files(kind) if not is_pointer(path))


def imported(path: Path) -> tuple[list[Json], list[Problem]]:
    problems: list[Problem] = []
    with open_source(path) as source:
        found = registry.detect(source)
        assert found is not None, path
        return list(registry.capture_events(found, source, problems.append)), problems


def documents(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except json.JSONDecodeError:
        return None


def billed(events: list[Json]) -> list[Json]:
    return [event["data"] for event in events if event["event_type"] == "ctxctl.usage.reported"]


def asked(events: list[Json]) -> int:
    return sum(1 for event in events if event["event_type"] == "context.injection.applied")


@pytest.mark.parametrize("kind", KINDS)
def test_every_capture_is_known_imports_and_validates(corpus: Path, kind: str) -> None:
    name, count = KINDS[kind]
    seen = files(kind)
    assert len(seen) == count
    for path in captures(kind):
        events, problems = imported(path)
        assert events[0]["metadata"]["ctxctl"]["format"] == name, path
        assert {p.slug for p in problems} <= EXPECTED_PROBLEMS, path
        assert len({e["event_id"] for e in events}) == len(events), path
        sample = [e for at, e in enumerate(events) if at % 31 == 0 or "compaction" in e["event_type"]]
        assert not [(e["event_id"], fault) for e in sample for fault in validate_event(e)], path
        about = registry.by_name(name).about
        measured = events[-1]["data"]["facts"]
        for fact, levels in measured.items():
            if about.claim(fact).level is Level.NOT_RECORDED:
                assert set(levels) == {"not recorded"}, (path, fact, levels)


@pytest.mark.parametrize("kind", KINDS)
def test_the_ledger_balances_on_every_step(corpus: Path, kind: str) -> None:
    for path in captures(kind):
        steps = 0
        with Inspector.open(path, encoding="o200k_base") as inspector:
            for step in inspector.replay():
                if isinstance(step, Step):
                    steps += 1
                    ledger = step.ledger
                    assert (
                        ledger.window_before + ledger.reweighed + ledger.new - ledger.freed
                        == ledger.window_after
                    ), path
                    assert sum(step.segments.values()) == step.window.used, path
        assert steps or "no-samples" in path.name, path


def test_a_pointer_to_a_log_ends_in_a_reason(corpus: Path) -> None:
    pointers = [path for path in files("inspect-ai") if is_pointer(path)]
    assert len(pointers) == 1
    with pytest.raises(UnreadableError) as raised:
        list(Inspector.open(pointers[0]).replay())
    assert raised.value.slug == "no-events"


def test_steps_are_the_answers(corpus: Path) -> None:
    for kind, field in (("tau-bench", "traj"), ("mcp-agent-runs", "messages")):
        for path in captures(kind):
            answers = sum(m["role"] == "assistant" for task in documents(path) for m in task[field])
            assert asked(imported(path)[0]) == answers, path
    for path in captures("swe-agent"):
        answers = sum(m["role"] == "assistant" for m in documents(path)["history"])
        assert asked(imported(path)[0]) == answers, path


def test_mini_swe_agent_bills_what_its_responses_say(corpus: Path) -> None:
    compared = 0
    for path in captures("mini-swe-agent"):
        value = documents(path)
        if value is None:
            continue
        events, _ = imported(path)
        uses = [m["extra"]["response"]["usage"] for m in value["messages"] if m["role"] == "assistant"]
        bills = billed(events)
        assert asked(events) == value["info"]["model_stats"]["api_calls"] == len(bills), path
        assert [b["input_tokens"] for b in bills] == [u["prompt_tokens"] for u in uses], path
        assert [b["output_tokens"] for b in bills] == [u["completion_tokens"] for u in uses], path
        compared += len(bills)
    assert compared > 600


def test_openhands_bills_add_up_to_the_session_s_own_metrics(corpus: Path) -> None:
    compared = 0
    for path in captures("openhands"):
        if path.suffix != ".jsonl":
            continue
        totals = {}
        for line in path.read_text().splitlines():
            session = json.loads(line)
            total = (session.get("metrics") or {}).get("accumulated_token_usage")
            if total:
                totals[session["instance_id"]] = total["prompt_tokens"], total["completion_tokens"]
        sums: dict[str, list[int]] = {name: [0, 0] for name in totals}
        for event in imported(path)[0]:
            if event["event_type"] == "ctxctl.usage.reported":
                sums[event["session_id"]][0] += event["data"]["input_tokens"]
                sums[event["session_id"]][1] += event["data"]["output_tokens"]
        for name, total in totals.items():
            assert tuple(sums[name]) == total, name
            compared += 1
    assert compared == 3


def test_atif_bills_add_up_to_the_final_metrics(corpus: Path) -> None:
    compared = 0
    for path in captures("atif"):
        value = documents(path)
        # A continuation's metrics are those of the whole run.
        if value is None or ".cont-" in path.name:
            continue
        bills = billed(imported(path)[0])
        totals = value["final_metrics"]
        assert sum(b["input_tokens"] for b in bills) == totals["total_prompt_tokens"], path
        assert sum(b["output_tokens"] for b in bills) == totals["total_completion_tokens"], path
        compared += 1
    assert compared == 3


def inspect_log(path: Path) -> tuple[Json, list[Json]]:
    """The header of a log, and its samples."""
    if path.suffix == ".json":
        log = documents(path)
        return log, log.get("samples") or []
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.startswith("samples/")]
        return json.loads(archive.read("header.json")), [json.loads(archive.read(name)) for name in names]


def test_inspect_bills_add_up_to_the_log_s_own_totals(corpus: Path) -> None:
    compared = 0
    for path in captures("inspect-ai"):
        header, samples = inspect_log(path)
        totals = header["stats"]["model_usage"].values()
        bills = billed(imported(path)[0])
        if not samples or not bills:
            continue
        cached = sum(t.get("input_tokens_cache_read") or 0 for t in totals)
        assert sum(b["input_tokens"] for b in bills) == sum(t["input_tokens"] for t in totals), path
        assert sum(b["output_tokens"] for b in bills) == sum(t["output_tokens"] for t in totals), path
        assert sum(b.get("cached_tokens", 0) for b in bills) == cached, path
        compared += 1
    assert compared >= 18


def resolved(value: Any, texts: Json) -> Any:
    if isinstance(value, str) and value.startswith(("attachment://", "tc://")):
        return texts.get(value.partition("://")[2], value)
    if isinstance(value, dict):
        return {name: resolved(inner, texts) for name, inner in value.items()}
    return [resolved(inner, texts) for inner in value] if isinstance(value, list) else value


def compact(value: Any, *, sort_keys: bool = False) -> str:
    return json.dumps(value, sort_keys=sort_keys, separators=(",", ":"), ensure_ascii=False)


def version(data: Json) -> str:
    """An item's version: the digest of its text; where it names another one, that of its canonical form."""
    text, named = data["content"], data.get("metadata", {}).get("version")
    if named is not None:
        head, brace, rest = text.partition("{")
        text = head + compact(json.loads(brace + rest), sort_keys=True)
    mark = sha256(text.encode()).hexdigest()[:16]
    assert named in (None, mark), data["item_id"]
    return mark


def windows(events: list[Json]) -> Iterator[tuple[str, list[str]]]:
    """The session of each request, and the texts that were sent of its window, in their order.

    A block's own text goes before its item's, which is the one that was sent first.
    """
    held: dict[str, list[tuple[str, str | None]]] = {}
    texts: dict[tuple[Any, ...], str] = {}
    for event in events:
        data, home = event["data"], (event.get("session_id"), event.get("thread_id"))
        if ".item." in event["event_type"] and data.get("content"):
            texts[(*home, f"{data['item_id']}@{version(data)}")] = data["content"]
        if event["event_type"] != "context.assembly.created":
            continue
        marks, blocks = data["metadata"]["ctxctl"], list(data["ordered_blocks"])
        window, shift = list(held.get(marks.get("base"), [])), 0
        for at, removed, inserted in marks.get("splices", [[0, 0, len(blocks)]]):
            new = [blocks.pop(0) for _ in range(inserted)]
            window[at + shift : at + shift + removed] = [(b["item_refs"][0], b.get("content")) for b in new]
            shift += inserted - removed
        held[data["assembly_id"]] = window
        found = [texts.get((*home, ref)) if own is None else own for ref, own in window]
        yield event["session_id"], [text for text in found if text is not None]


def flat(body: Json) -> list[str]:
    """The texts of a request body in its order, as they stand there: tools and messages; images left out."""
    found = [compact({k: v for k, v in t.items() if k != "cache_control"}) for t in body.get("tools") or []]
    for message in body["messages"]:
        content = message.get("content")
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content or []:
            if block["type"] == "text" and block["text"]:
                found.append(block["text"])
        for call in message.get("tool_calls") or []:
            found.append(f"{call['function']['name']} {call['function']['arguments']}")
    return found


def test_inspect_frames_are_the_wire_bodies(corpus: Path) -> None:
    compared = 0
    for path in captures("inspect-ai"):
        _, samples = inspect_log(path)
        bodies = {}
        for sample in samples:
            session = f"{sample['id']}.epoch-{sample['epoch']}"
            asks = [e for e in sample.get("events") or [] if e["event"] == "model"]
            for number, event in enumerate(asks):
                if event.get("call"):
                    body = resolved(event["call"]["request"], sample.get("attachments") or {})
                    bodies[session, number] = flat(body)
        numbers: dict[str, int] = {}
        for session, texts in windows(imported(path)[0]):
            number = numbers[session] = numbers.get(session, -1) + 1
            if (session, number) in bodies:
                assert texts == bodies[session, number], (path, session, number)
                compared += 1
    assert compared > 300
