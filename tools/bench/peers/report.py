# ruff: noqa: E501 - the page is written with its own line lengths
"""Writes docs/benchmarks-peers.md."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tools.bench.cases import Bench
from tools.bench.machine import load_line, machine
from tools.bench.peers.running import case_name
from tools.bench.peers.specs import OURS, PEERS, QUESTIONS
from tools.bench.redacted import without_places
from tools.bench.rows import megabytes

_METHOD = """\
# ctxctl compared with other tools

Written by `make bench-peers`; do not edit. The same captures in one run, by turns, {runs} rounds: CPU time, user and system, of the
tool and all that it started (medians), elapsed time (medians), and the highest peak memory of one process. Each tool has a
home of its own; without a network, so that one that asks for prices outside cannot. “First”: with an empty home or
cache; “again”: after the same question. The captures are made by `tools/bench/generate.py`. Whoever is asked what a directory
cost must name the exact number of billed output tokens, else the row says so.

The answers are not the same: ctxctl counts tokens exactly and replays every request; tools that only add up what was
billed have less to do.
"""


def page(bench: Bench, versions: Mapping[str, str], missing: Mapping[str, str], load: float) -> str:
    """The page as Markdown. `missing`: why a tool is not here, by its name."""
    lines = [_METHOD.format(runs=bench.runs), machine(), "", load_line(load), "", "## Tools", ""]
    lines += ["| tool | version | asked with |", "|---|---|---|"]
    ours = "<br>".join(f"`ctxctl {' '.join(words)}`" for words in OURS.values())
    lines.append(f"| ctxctl | {versions['ctxctl']} | {ours} |")
    for peer in PEERS:
        asked = "<br>".join(f"`{peer.name} {' '.join(words)}`" for words in peer.asks.values())
        note = f"<br>{peer.note}" if peer.note else ""
        found = f"not here: {missing[peer.name]}" if peer.name in missing else versions[peer.name]
        lines.append(f"| {peer.name} | {found} | {asked}{note} |")
    for question in QUESTIONS:
        lines += ["", f"## {question[0].upper()}{question[1:]}", "", *_table(bench, question, missing)]
    sizes = ", ".join(f"{name}: {size:,} bytes" for name, size in bench.inputs.items())
    return without_places("\n".join([*lines, "", f"Captures: {sizes}.", ""]), bench.scratch)


def _table(bench: Bench, question: str, missing: Mapping[str, str]) -> list[str]:
    if not any(f": {question}, " in name for name in bench.cases):
        return ["Not asked in this run."]
    lines = ["| tool | capture | | CPU s | relative to ctxctl | elapsed s | peak memory | runs |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    names = ["ctxctl", *(peer.name for peer in PEERS if question in peer.asks)]
    for capture in bench.inputs:
        for tool in names:
            if tool in missing:
                continue
            for state in ("first", "again"):
                name = case_name(tool, question, capture, state)
                if name in bench.cases:
                    lines.append(_line(bench, name, tool, question, capture, state))
    lines += [f"| {tool} | | | not here | | | | |" for tool in names if tool in missing]
    return lines


def _line(bench: Bench, name: str, tool: str, question: str, capture: str, state: str) -> str:
    case = bench.cases[name]
    if not case.ready:
        return f"| {tool} | {capture} | {state} | not measured: {(case.failed or 'it did not run')[:160]} | | | | |"
    own = case_name("ctxctl", question, capture, state)
    beside = f"{case.cpu / bench.cases[own].cpu:.2f} ×" if bench.ready(own) else "-"
    return (
        f"| {tool} | {capture} | {state} | {case.cpu:.2f} | {beside} | {case.wall:.2f} | "
        f"{megabytes(case.rss)} | {len(case.samples)} |"
    )


def write(path: Path, text: str) -> None:
    """Write the page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
