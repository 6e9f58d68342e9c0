"""One capture: which reader reads it, and what that and ctxctl say differently."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.independent import agents, bills, compare, wire
from tests.independent import asking as questions
from tests.independent.asking import Ask
from tests.independent.bills import Bill
from tests.independent.compare import Disagreement
from tests.independent.raw import Object

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
    """Requests that the raw reader found."""
    wrong: list[Disagreement]


def held(path: Path, ask: Ask, *, asking: bool = False) -> Held:
    """Hold ctxctl's answers on a capture against the raw file; one that neither reads has no requests."""
    told = ask(["replay", str(path), "--json", "--all"])
    form = str(told[0].get("format")) if told else None
    steps = [line for line in told if line.get("type") == "step"]
    requests = wire.requests(path) if form in WIRE | BOTH else []
    if form in WIRE or requests:
        if not requests and steps:
            return Held(form, 0, [Disagreement("items", path.name, "no request read", len(steps))])
        wrong = compare.wire(requests, steps)
        if asking:
            wrong += questions.check(str(path), requests, steps, ask)
        wrong += cost([r.bill for r in requests if r.bill is not None], ask(["cost", str(path), "--json"]))
        return Held(form, len(requests), wrong)
    if form in BILLS:
        found = BILLS[form](path)
        wrong = compare.bills(found, steps)
        return Held(form, len(found), wrong + cost(found, ask(["cost", str(path), "--json"])))
    return Held(form, 0, [])


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
