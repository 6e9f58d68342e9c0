"""Codex and Copilot captures: bills add up to what each capture says in the end; counts are plausible."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from ctxctl.importers import registry
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.trace.source import open_source

Json = dict[str, Any]
FIELDS = {
    "input_tokens": "input_tokens",
    "cached_input_tokens": "cached_tokens",
    "output_tokens": "output_tokens",
    "reasoning_output_tokens": "reasoning_tokens",
}
HIDDEN = (3_000, 9_000)
"""Tokens of the built-in tool schemas, which no rollout holds."""


def captures(*kinds: str) -> list[Path]:
    top = Path(os.environ.get("CTXCTL_CORPUS") or ".") / "data"
    return [path for kind in kinds for path in sorted((top / kind).rglob("*")) if path.is_file()]


def name_of(path: Path) -> str:
    return "/".join(path.parts[-4:])


def lines(path: Path) -> Iterator[Json]:
    for line in path.read_bytes().split(b"\n"):
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            yield value


def bills(path: Path, format_name: str) -> list[Json]:
    with open_source(path) as source:
        found = registry.detect(source)
        assert found is not None, path
        assert found.name == format_name, path
        events = list(found.events(source, lambda problem: None))
    return [e["data"] for e in events if e["event_type"] == "ctxctl.usage.reported"]


def infos(path: Path) -> list[Json]:
    """The token counts of a rollout, in order."""
    found = []
    for record in lines(path):
        payload = record.get("payload")
        if isinstance(payload, dict) and payload.get("type") == "token_count":
            info = payload.get("info")
            total = info.get("total_token_usage") if isinstance(info, dict) else None
            if isinstance(total, dict) and total["input_tokens"]:
                found.append(info)
    return found


def copied(path: Path) -> int:
    """How many of a fork's counts are its parent's: those that another rollout beside it has as well."""
    metas = [r["payload"] for r in lines(path) if r.get("type") == "session_meta"]
    if not any(isinstance(meta, dict) and meta.get("forked_from_id") for meta in metas):
        return 0
    home = next((up for up in path.parents if up.name == "codex-home"), path.parent)
    others = [other for other in home.rglob("*.jsonl") if other != path]
    known = [info["total_token_usage"] for other in others for info in infos(other)]
    mine = [info["total_token_usage"] for info in infos(path)]
    return max((n for n, total in enumerate(mine, 1) if total in known), default=0)


@pytest.mark.parametrize("path", captures("codex"), ids=name_of)
def test_the_bills_of_a_rollout_add_up_to_its_own_total(path: Path, corpus: Path) -> None:
    found = bills(path, "codex")
    counts = infos(path)
    if own := copied(path):
        before = counts[own - 1]["total_token_usage"]
        for native, ours in FIELDS.items():
            grown = counts[-1]["total_token_usage"].get(native, 0) - before.get(native, 0)
            assert sum(bill.get(ours, 0) for bill in found) == grown, native
        return
    if not counts:
        assert not found
        return
    first, total = counts[0], counts[-1]["total_token_usage"]
    for native, ours in FIELDS.items():
        before = first["total_token_usage"].get(native, 0) - first["last_token_usage"].get(native, 0)
        assert sum(bill.get(ours, 0) for bill in found) == total.get(native, 0) - before, native


@pytest.mark.parametrize("path", captures("copilot-cli"), ids=name_of)
def test_what_a_copilot_session_wrote_is_what_it_says_at_its_end(path: Path, corpus: Path) -> None:
    found = bills(path, "copilot-cli")
    stated = [r["data"] for r in lines(path) if r.get("type") == "session.shutdown"]
    usages = [m["usage"] for d in stated for m in d["modelMetrics"].values() if "usage" in m]
    requests = sum(m["requests"]["count"] for d in stated for m in d["modelMetrics"].values() if "usage" in m)
    if len(stated) != 1 or not any(u["outputTokens"] for u in usages) or len(found) != requests:
        return
    assert sum(bill.get("output_tokens", 0) for bill in found) == sum(u["outputTokens"] for u in usages)


def steps(path: Path) -> list[Step]:
    return [r for r in Inspector.open(str(path)).replay() if isinstance(r, Step)]


@pytest.mark.parametrize("path", [p for p in captures("codex") if p.name == "full.jsonl"], ids=name_of)
def test_only_the_built_in_tools_are_missing_from_a_first_request(path: Path, corpus: Path) -> None:
    first = steps(path)[0]
    assert first.usage is not None
    assert first.usage.reported_input is not None
    assert HIDDEN[0] < first.usage.reported_input - first.window.recorded < HIDDEN[1]


@pytest.mark.parametrize("path", captures("copilot-cli"), ids=name_of)
def test_the_system_prompt_counts_as_copilot_itself_counts_it(path: Path, corpus: Path) -> None:
    stated = [r["data"] for r in lines(path) if r.get("type") == "session.shutdown"]
    found = steps(path)
    if len(stated) != 1 or len(found) != 1 or "gpt" not in str(stated[0].get("currentModel")):
        return
    told = stated[0]["systemTokens"] + stated[0]["conversationTokens"]
    assert abs(found[0].window.recorded - told) <= max(40, told // 50)
