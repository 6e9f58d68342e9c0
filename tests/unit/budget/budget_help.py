"""Plans in few words for tests."""

from __future__ import annotations

from pathlib import Path

from ctxctl.budget.estimate import Estimate, estimate
from ctxctl.budget.plan import parse

HAND = """
policy = "POLICY"
runs = 4
[model]
window = 1000
[[part]]
name = "rules"
tokens = 100
segment = "system"
[conversation]
turns = 4
user = 200
answer = 100
"""
"""By hand: turn n wants 100 + 200 n + 100 (n - 1): 300, 600, 900, 1200."""


def worked_out(text: str, folder: Path = Path()) -> Estimate:
    """Return the estimate of a plan's text."""
    return estimate(parse(text, "plan"), "plan", folder, {})


def hand(policy: str = "reject", more: str = "", **changed: object) -> Estimate:
    """Return the estimate of the plan that was worked out by hand, with other values for some keys."""
    text = HAND.replace("POLICY", policy)
    for name, value in changed.items():
        lines = [f"{name} = {value}" if line.startswith(f"{name} =") else line for line in text.splitlines()]
        text = "\n".join(lines)
    return worked_out(text + more)
