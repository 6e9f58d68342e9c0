"""Totals that a runtime states of a turn, a session or a request, read from the raw files.

Each reader gives what was stated last of each turn and each session: of a running total its last figure.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from tools.independent.raw import Object, at, lines, number, objects


class Total(NamedTuple):
    """What is stated; 0 where nothing is."""

    scope: str
    usd: Decimal = Decimal(0)
    sent: int = 0
    """Cache reads and writes included."""
    output: int = 0


def _total(scope: str, usd: Any, sent: Iterable[Any], output: Any) -> Total:
    return Total(scope, Decimal(str(usd or 0)), sum(number(one) or 0 for one in sent), number(output) or 0)


_REPORT = re.compile(r"^> Tokens: .*received.*(?:\nCost: .*)?", re.M)
_FIGURE = re.compile(r"([\d.,]+[kM]?) (sent|cache write|cache hit|cached|received)")
_COSTS = re.compile(r"Cost: \$([\d.,]+) \w+, \$([\d.,]*\d) session")


def aider(path: Path) -> list[Total]:
    """aider's `> Tokens:` lines, summed up by prompt; of a session the last cost.

    A report may go on in a line of its own, what was sent holds the cached part but in old versions, and a
    session's cost that falls is that of another.
    """
    found = []
    for session in path.read_text(encoding="utf-8", errors="replace").split("\n# aider chat started at")[1:]:
        costs: list[Decimal] = []
        for turn in re.split(r"(?:^####.*\n)+", session, flags=re.M):
            told = Total("turn")
            rounded = False
            for report in _REPORT.findall(turn):
                figures = _FIGURE.findall(report)
                of = {name: _figure(one) for one, name in figures}
                sent = of.get("sent", 0)
                cached = sum(count for name, count in of.items() if "cache" in name)
                usd = sum((_usd(one) for one, _ in _COSTS.findall(report)), Decimal(0))
                costs += [_usd(whole) for _, whole in _COSTS.findall(report)]
                rounded = rounded or any(one[-1] in "kM" for one, _ in figures)
                told = Total(
                    "turn", told.usd + usd, told.sent + sent + (cached if cached > sent else 0),
                    told.output + of.get("received", 0),
                )  # fmt: skip
            found += [told] if rounded or told.usd else []
        ends = [one for one, after in pairwise([*costs, Decimal(-1)]) if after < one]
        found += [Total("session", usd) for usd in ends]
    return found


def _usd(printed: str) -> Decimal:
    return Decimal(printed.replace(",", "").rstrip("."))


def _figure(printed: str) -> int:
    scale = {"k": 1_000, "M": 1_000_000}.get(printed[-1], 1)
    return round(float(printed.rstrip("kM").replace(",", "")) * scale)


def codex_exec(path: Path) -> list[Total]:
    """`codex exec --json`: each turn's end states what the thread came to so far."""
    usages = [at(one, "usage") for one in lines(path) if at(one, "type") == "turn.completed"]
    usages = [one for one in usages if isinstance(one, dict)]
    return [_total("session", 0, [one.get("input_tokens")], one.get("output_tokens")) for one in usages[-1:]]


_PARTS = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
_USAGE = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def claude_results(path: Path) -> list[Total]:
    """Claude Code's results: the cost and `modelUsage` are of the whole process, `usage` of the turn.

    At a session's first end the process is the turn.
    """
    turns, sessions = [], {}
    for one in objects(path):
        if at(one, "type") == "result" and "usage" not in one and isinstance(one.get("message"), dict):
            one = {**one["message"], **{k: v for k, v in one.items() if k != "message"}}
        if at(one, "type") != "result":
            continue
        models = [m for m in (one.get("modelUsage") or {}).values() if isinstance(m, dict)]
        usage = one.get("usage") if isinstance(one.get("usage"), dict) else {}
        turn = _total("turn", 0, map(usage.get, _USAGE), usage.get("output_tokens"))
        whole = _total(
            "session", one.get("total_cost_usd"), [m.get(n) for m in models for n in _PARTS],
            sum(number(m.get("outputTokens")) or 0 for m in models),
        )  # fmt: skip
        ident = one.get("session_id")
        if ident in sessions:
            turns.append(turn)
            sessions[ident] = whole
        else:
            turns.append((whole if models else turn)._replace(scope="turn", usd=whole.usd))
            sessions[ident] = None
    return [one for one in (*turns, *sessions.values()) if one is not None and any(one[1:])]


def copilot(path: Path) -> list[Total]:
    """Copilot's shutdown: tokens by model, the session's runs before included."""
    ends = [at(one, "data") for one in lines(path) if at(one, "type") == "session.shutdown"]
    found = []
    for data in ends[-1:]:
        inner = at(data, "accountingSnapshot")
        held = inner if isinstance(inner, dict) else data
        usages = [at(one, "usage") or {} for one in (at(held, "modelMetrics") or {}).values()]
        sent = [one.get("inputTokens") for one in usages]
        output = sum(number(one.get("outputTokens")) or 0 for one in usages)
        if not any(usages):
            sent = [at(held, "tokenDetails", "input", "tokenCount")]
            output = number(at(held, "tokenDetails", "output", "tokenCount")) or 0
        found.append(_total("session", 0, sent, output))
    return [one for one in found if any(one[1:])]


def crush(path: Path) -> list[Total]:
    """Crush's table of sessions: what they cost, and the tokens of their last request."""
    with sqlite3.connect(f"file:{path}?immutable=1", uri=True) as database:
        rows = database.execute("SELECT cost, prompt_tokens, completion_tokens FROM sessions").fetchall()
    found = [_total("session", usd, (), 0) for usd, _, _ in rows]
    return found + [_total("request", 0, [sent], output) for _, sent, output in rows]


def gemini_printed(path: Path) -> list[Total]:
    """`gemini -p … --output-format stream-json`: the statistics at the end of a prompt's run."""
    stats = [at(one, "stats") for one in objects(path) if at(one, "type") == "result"]
    return [_total("turn", 0, [at(one, "input_tokens")], at(one, "output_tokens")) for one in stats]


def roo(path: Path) -> list[Total]:
    """Roo's and Cline's item of the list of tasks."""
    file = path / "history_item.json" if path.is_dir() else path
    items = objects(file) if file.exists() and file.name == "history_item.json" else []
    anthropic = ("tokensIn", "cacheReads", "cacheWrites")
    return [
        _total("session", one.get("totalCost"), map(one.get, anthropic), one.get("tokensOut"))
        for one in items
    ]


def mini_swe(path: Path) -> list[Total]:
    """mini-swe-agent: what an instance cost."""
    stats = [at(one, "info", "model_stats") for one in objects(path)]
    return [_total("session", at(one, "instance_cost"), (), 0) for one in stats if at(one, "instance_cost")]


def swe_agent(path: Path) -> list[Total]:
    """SWE-agent: what an instance cost, and the tokens of all its requests."""
    stats = [at(one, "info", "model_stats") for one in objects(path)]
    return [
        _total("session", one.get("instance_cost"), [one.get("tokens_sent")], one.get("tokens_received"))
        for one in stats
        if isinstance(one, dict)
    ]


def atif(path: Path) -> list[Total]:
    """ATIF: the final metrics of a trajectory."""
    ends = [at(one, "final_metrics") for one in objects(path)]
    return [
        _total(
            "session", one.get("total_cost_usd"), [one.get("total_prompt_tokens")],
            one.get("total_completion_tokens"),
        )
        for one in ends
        if isinstance(one, dict)
    ]  # fmt: skip


READERS: dict[str, Callable[[Path], list[Total]]] = {
    "aider": aider, "atif": atif, "claude-stream-json": claude_results, "cline": roo,
    "codex-exec": codex_exec, "copilot-cli": copilot, "crush": crush, "gemini-cli": gemini_printed,
    "mini-swe-agent": mini_swe, "roo": roo, "swe-agent": swe_agent,
}  # fmt: skip
"""By the name that ctxctl gives the format."""


def by_scope(totals: Iterable[Total]) -> dict[str, Total]:
    """The totals of each scope in sum."""
    found: dict[str, Total] = {}
    for one in totals:
        sums = [a + b for a, b in zip(found.get(one.scope, Total(one.scope))[1:], one[1:], strict=True)]
        found[one.scope] = Total(one.scope, *sums)
    return {scope: one for scope, one in found.items() if any(one[1:])}


def said(told: list[Object]) -> dict[str, Total]:
    """The same of what `ctxctl cost --json` says."""
    runs = next((at(line, "stated", "runs") for line in told if line.get("type") == "cost"), None)
    return by_scope(
        _total(run["scope"], run["usd"], [run["input_tokens"]], run["output_tokens"]) for run in runs or ()
    )
