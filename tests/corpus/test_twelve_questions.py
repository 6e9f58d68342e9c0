"""The twelve questions of docs/questions.md, asked of real captures of four formats.

What a capture holds is read by a few lines here: sizes of requests as billed, compactions, large results.
An answer fails where it says something else, or nothing where the capture holds the answer.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ctxctl.wording import MINUS
from tools.independent.counting import tokens

ROOT = Path(__file__).resolve().parents[2]
Json = dict[str, Any]
OPAQUE = re.compile(r"toolu_\w|call_\w{12}|\b(?:asm|inj)-\w|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-|msg_\w{12}")
"""Ids that runtimes and ctxctl make; no answer has one unless `--ids` asks for it."""


class Capture(NamedTuple):
    """A real capture, another one beside it, and what the questions are about in it."""

    path: str
    other: str
    sent: Callable[[Path], list[int]]
    """The input of each billed request of the main thread, in order."""
    limit: int | None
    forgotten: str
    """Words of an item that is asked about; it left where the capture has a compaction."""
    compactions: Callable[[Path], int]
    turns: tuple[str, str]


def objects(path: Path) -> list[Json]:
    text = path.read_text(encoding="utf-8")
    try:
        whole = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return whole if isinstance(whole, list) else [whole]


def claude(path: Path) -> list[int]:
    found: dict[str, int] = {}
    for line in objects(path):
        usage = (line.get("message") or {}).get("usage")
        if line.get("type") == "assistant" and usage and not line.get("isSidechain"):
            parts = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
            found[line["message"]["id"]] = sum(usage.get(part) or 0 for part in parts)
    return [size for size in found.values() if size]


def codex(path: Path) -> list[int]:
    found, total = [], None
    for line in objects(path):
        info = (line.get("payload") or {}).get("info")
        if info and info["total_token_usage"] != total:
            total = info["total_token_usage"]
            found.append(info["last_token_usage"]["input_tokens"])
    return found


def gemini(path: Path) -> list[int]:
    sizes = [(one.get("tokens") or {}).get("input") for one in objects(path)[0]["messages"]]
    return [size for size in sizes if size]


def otel(path: Path) -> list[int]:
    spans = [one["attributes"] for one in objects(path) if "gen_ai.usage.input_tokens" in one["attributes"]]
    return [int(one["gen_ai.usage.input_tokens"]) for one in spans]


def none(_path: Path) -> int:
    return 0


_ENTIRE, _AGENTV = "entireio__cli", "EntityProcess__agentv"
_SPANS = "otel-genai/Arize-ai__openinference/js/packages/openinference-vercel/test/__fixtures__/v6-spans"
CAPTURES = {
    "claude-code": Capture(
        "claude-code/marot__spotter/test/fixtures/transcripts/fa812bfe-b295-4cca-9c2f-fdf01028cb46.jsonl",
        f"claude-code/{_ENTIRE}/be/9f77982406/0/full.jsonl", claude, 200_000, "bd show spotter-a0y #1",
        lambda path: sum(bool(line.get("isCompactSummary")) for line in objects(path)), ("1", "2"),
    ),
    "codex": Capture(
        f"codex/{_AGENTV}/79/6eaddfe2f9/0/full.jsonl", f"codex/{_AGENTV}/1f/4427577930/0/full.jsonl", codex,
        258_400, 'rg -n "prepare|prepared #3',
        lambda path: sum(line["type"] == "compacted" for line in objects(path)), ("3", "4"),
    ),
    "gemini-cli": Capture(
        f"gemini-cli/{_ENTIRE}/ab/2b9748b105/0/full.jsonl", f"codex/{_AGENTV}/1f/4427577930/0/full.jsonl",
        gemini, 1_048_576, "write_file: docs/blue.md #1", none, ("1.1", "1.2"),
    ),
    "otel": Capture(
        f"{_SPANS}/all-spans.json", f"{_SPANS}/spans-by-operation.json", otel, 128_000, "haiku #1", none,
        ("1", "conversation:1"),
    ),
}  # fmt: skip


class Asked(NamedTuple):
    """One capture, and how it is asked."""

    name: str
    capture: Capture
    path: Path
    other: Path
    ask: Callable[..., str]
    """The output of a command on standard output, whatever its findings; cached."""

    def lines(self, *arguments: str) -> list[Json]:
        return [json.loads(line) for line in self.ask(*arguments, "--json").splitlines()]

    @property
    def steps(self) -> list[Json]:
        return [line for line in self.lines("replay", str(self.path)) if line["type"] == "step"]


@pytest.fixture(scope="module", params=CAPTURES)
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    root = Path(os.environ.get("CTXCTL_CORPUS") or "/nowhere")
    root = root / "data" if (root / "data").is_dir() else root
    capture = CAPTURES[request.param]
    place = tmp_path_factory.mktemp("asked")
    env = {name: value for name, value in os.environ.items() if not name.startswith("CTXCTL_")}
    env |= {
        "CTXCTL_CACHE_DIR": str(place / "cache"), "CTXCTL_CONFIG": "off", "COLUMNS": "100",
        "PYTHONPATH": str(ROOT),
    }  # fmt: skip

    @cache
    def ask(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "ctxctl", *arguments], cwd=place, env=env, capture_output=True, text=True,
            timeout=280, check=False,
        )  # fmt: skip
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    return Asked(request.param, capture, root / capture.path, root / capture.other, ask)


def words(text: str) -> str:
    return " ".join(text.split())


def plain(asked: Asked, text: str) -> str:
    """An answer as one line; it must have no ids but those in the names of the captures."""
    for path in (asked.path, asked.other):
        text = text.replace(str(path), "").replace(path.name, "")
    assert OPAQUE.search(text) is None
    return words(text)


def test_raw_sizes_are_those_of_the_steps(asked: Asked) -> None:
    found = [step["window"]["used"] for step in asked.steps if step["window"]["used_method"] == "reported"]
    raw = asked.capture.sent(asked.path)
    assert raw
    left = list(found)
    for size in raw:
        assert size in left, f"{size} is billed and no step says so"
        left.remove(size)


def test_1_why_was_that_forgotten(asked: Asked) -> None:
    said = plain(asked, asked.ask("why", str(asked.path), asked.capture.forgotten, "--no-what-if"))
    if asked.capture.compactions(asked.path):
        assert "it is not in the window: it was, and has left" in said
        assert "compacted" in said
    else:
        assert "it is in the window" in said
    assert re.search(r"line [\d,]+ of (the capture|\S+)", said)


def test_2_what_fills_the_window(asked: Asked) -> None:
    said = plain(asked, asked.ask("replay", "--plain", str(asked.path)))
    main = [step for step in asked.steps if step["thread"] == "main"] or asked.steps
    assert f"sent at the last step, {main[-1]['turn']}." in said or f":{main[-1]['turn']}." in said
    assert re.search(rf": {main[-1]['window']['used']:,} of {asked.capture.limit:,} ", said)
    assert main[-1]["window"]["used"] in asked.capture.sent(asked.path)
    assert "(" in said.split("sent at the last step")[1].split(" cost ")[0]


def test_3_what_would_go_at_100k(asked: Asked) -> None:
    policy = ("--window", "100k", "--policy", "fifo:protect_recent=0")
    said = plain(asked, asked.ask("replay", "--plain", str(asked.path), *policy))
    out: Json = {}
    main = None
    for step in asked.lines("replay", str(asked.path), *policy):
        if step["type"] == "step" and step["thread"] == "main":
            main = step
            for change in step["changes"]:
                if change["status"] in ("added", "updated"):
                    out.pop(change["item"], None)
                elif change["provenance"] == "simulated" and change["status"] != "skipped":
                    out[change["item"]] = change["freed"] or change["tokens"] or 0
    assert main is not None
    assert bool(out) is (max(asked.capture.sent(asked.path)) > 100_000)
    wanted = f"{len(out):,} items, {sum(out.values()):,} tokens: " if out else "nothing"
    assert f"left out at the last step, {main['turn']}.{main['step']}: {wanted}" in said
    assert "what it took is not recorded" not in said


def test_4_when_and_why_the_cache_broke(asked: Asked) -> None:
    said = plain(asked, asked.ask("find", str(asked.path), "is:cachebreak or is:miss"))
    misses = asked.lines("cost", str(asked.path))[-1]["cache_misses"]
    assert len(re.findall(r"↯ missed [\d,]+", said)) == misses["count"]
    if misses["count"]:
        cost = plain(asked, asked.ask("cost", str(asked.path)))
        assert f"for {misses['tokens']:,} tokens that" in cost
    if asked.capture.compactions(asked.path):
        assert "compacted, cache broken by" in said


def test_5_what_the_compaction_took(asked: Asked) -> None:
    text = asked.ask("compactions", str(asked.path))
    wanted = asked.capture.compactions(asked.path)
    assert len(re.findall(r"^◇ ", text, re.MULTILINE)) == wanted
    said = plain(asked, text)
    assert ("no compaction is recorded" in said) is not bool(wanted)
    assert len(re.findall(r"[\d,]+ items, [\d,]+ tokens went", said)) == wanted


def test_6_the_first_turn_over_80_percent(asked: Asked) -> None:
    said = plain(asked, asked.ask("find", "--first", str(asked.path), "sent>80%"))
    assert asked.capture.limit is not None
    over = [size for size in asked.capture.sent(asked.path) if size > 0.8 * asked.capture.limit]
    assert (f"sent {over[0]:,} (" in said) if over else said == ""


def test_7_one_turn_against_another(asked: Asked) -> None:
    one, two = asked.capture.turns
    said = plain(asked, asked.ask("diff", f"{asked.path}@{one}", f"@{two}"))
    sizes = re.search(r"sent ([\d,]+) -> ([\d,]+)", said)
    assert sizes
    raw = asked.capture.sent(asked.path)
    assert all(int(size.replace(",", "")) in raw for size in sizes.groups())
    assert re.search(r"\+[1-9]\d* added", said)
    assert "+ added" in said


def test_8_two_sessions(asked: Asked) -> None:
    text = asked.ask("diff", "--sessions", str(asked.path), str(asked.other))
    names = re.findall(r"^[ab] {9}(\S+)$", text, re.MULTILINE)
    assert len(set(names)) == 2
    # An item without any words has nothing but its id.
    said = plain(asked, re.sub(rf"^ +[{MINUS}+~] .* [01]$", "", text, flags=re.MULTILINE))
    billed = sum(step["usage"]["reported_input"] for step in asked.steps if step["usage"])
    assert f"billed {billed:,} and " in said


def test_9_a_gate(asked: Asked) -> None:
    gate = ("check", str(asked.path), "--max", "80%")
    (found,) = [line for line in asked.lines(*gate) if line["type"] == "condition"]
    assert asked.capture.limit is not None
    largest = max(step["window"]["used"] for step in asked.steps)
    assert largest >= max(asked.capture.sent(asked.path))
    assert found["outcome"] == ("fails" if largest > 0.8 * asked.capture.limit else "holds")
    assert f"{largest:,} billed" in plain(asked, asked.ask(*gate))


def test_10_a_report_to_share(asked: Asked, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    asked.ask("export", str(asked.path), "-o", str(report))
    page = report.read_text(encoding="utf-8")
    meta = re.search(r'id="meta">(.*?)</script>', page)
    assert meta
    assert json.loads(meta[1])["header"]["trace"] == asked.path.name
    assert len(re.findall(r"id=.s\d+.", page)) > 0
    assert re.search(r"(?:src|href)=.https?:", page) is None


def test_11_results_over_10k(asked: Asked) -> None:
    said = plain(asked, asked.ask("find", str(asked.path), "kind:result tokens>10k status:added"))
    if asked.name == "codex":
        # Its outputs are plain texts, and its tokenizer is public.
        payloads = (line.get("payload") or {} for line in objects(asked.path))
        outputs = [str(one["output"]) for one in payloads if one.get("type") == "function_call_output"]
        large = [text for text in outputs if (tokens(text, "o200k_base") or 0) > 10_000]
        assert said.count("+ added tool_result") == len(large) > 0
        return
    assert said.count("+ added tool_result") == sum(
        change["status"] == "added" and change["kind"] == "tool_result" and (change["tokens"] or 0) > 10_000
        for step in asked.steps
        for change in step["changes"]
    )


def test_12_what_it_is_doing(asked: Asked) -> None:
    text = asked.ask("watch", str(asked.path), "--plain", "--idle", "0")
    last = re.findall(r"^    sent +([\d,]+) of", text, re.MULTILINE)
    assert len(last) == len(asked.steps)
    assert {int(size.replace(",", "")) for size in last} == {step["window"]["used"] for step in asked.steps}
    assert re.search(r"^    \+ added ", text, re.MULTILINE)
