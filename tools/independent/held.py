"""One capture: which reader reads it, and what that and ctxctl say differently of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tools.independent import agents, bills, compactions, compare, stated, wire
from tools.independent import asking as questions
from tools.independent.asking import Ask
from tools.independent.bills import Bill
from tools.independent.compare import Disagreement
from tools.independent.raw import Object

WIRE = {
    "api", "claude-trace", "claude-tap", "goose-recordings", "har", "http-requests", "lhar",
    "openhands-completions", "pi-recordings", "swe-agent-calls", "vcr",
}  # fmt: skip
"""Formats that hold the bodies themselves, by the name that ctxctl gives them."""
BOTH = {"amplifier", "inspect-ai"}
"""Formats that hold them in some versions, and else only bills."""
BILLS: dict[str, Callable[[Path], list[Bill]]] = {
    **agents.READERS,
    "claude-code": bills.claude_code, "codex": bills.codex, "pi": bills.pi, "opencode": bills.opencode,
    "gemini-cli": bills.gemini_cli, "roo": bills.roo,
}  # fmt: skip
"""Formats of which only the bills are known from the file alone."""


class Held(NamedTuple):
    """What was found of one capture."""

    format: str | None
    requests: int
    """Requests, and scopes of stated totals, that the raw reader found."""
    wrong: list[Disagreement]


def held(path: Path, ask: Ask, *, asking: bool = False) -> Held:
    """Hold ctxctl's answers on a capture against the raw file; one that neither reads has no requests."""
    files = [one for one in path.rglob("*") if one.is_file()] if path.is_dir() else []
    replayed = ask(["replay", str(path), "--json", "--all"])
    form = str(replayed[0].get("format")) if replayed else None
    steps = [line for line in replayed if line.get("type") == "step"]
    name, path = str(path), files[0] if len(files) == 1 else path
    requests = wire.requests(path) if form in WIRE | BOTH else []
    if form in WIRE or requests:
        if not requests and steps:
            return Held(form, 0, [Disagreement("items", path.name, "no request read", len(steps))])
        wrong = compare.wire(requests, steps)
        if asking:
            wrong += questions.check(name, requests, steps, ask)
        wrong += cost([r.bill for r in requests if r.bill is not None], ask(["cost", name, "--json"]))
        return Held(form, len(requests), wrong)
    known = form in BILLS or form in stated.READERS
    told = ask(["cost", name, "--json"]) if known else []
    found = BILLS[form](path) if form in BILLS else []
    wrong = compare.bills(found, steps) + cost(found, told) if form in BILLS else []
    raw = stated.by_scope(stated.READERS[form](path)) if form in stated.READERS else {}
    if form in stated.READERS:
        said = stated.said(told)
        wrong += [] if raw == said else [Disagreement("stated", "the whole capture", raw, said)]
    if form in compactions.UNBILLED and (count := compactions.UNBILLED[form](path)) > 0 and not bound(told):
        wrong.append(Disagreement("bound", "the whole capture", f"{count} compactions in no log", "no bound"))
    if form == "claude-code":
        wrong += compare.cleared(compactions.cleared(path), steps)
    return Held(form, len(found) + len(raw), wrong)


def bound(told: list[Object]) -> bool:
    """Whether the cost is said to be a lower bound."""
    return any(line["lower_bound"] for line in told if line.get("type") == "cost")


def cost(found: list[Bill], told: list[Object]) -> list[Disagreement]:
    """The tokens that are billed: in sum, and by what they are."""
    said = next((line["billed_tokens"] for line in told if line.get("type") == "cost"), None)
    said = said or {}
    read = sum(bill.cached or 0 for bill in found)
    written = sum(bill.written or 0 for bill in found)
    raw = {
        "input": sum(bill.sent for bill in found) - read - written,
        "cached": read,
        "written": written,
    }
    if all(bill.output is not None for bill in found):
        raw["output"] = sum(bill.output or 0 for bill in found)
    theirs = {name: said.get(name) or 0 for name in raw}
    theirs["written"] += said.get("written_1h") or 0
    return [] if raw == theirs else [Disagreement("cost", "the whole capture", raw, theirs)]
