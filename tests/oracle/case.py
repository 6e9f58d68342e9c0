"""A case: a small trace and what `--json` must say of it; and how the two are compared.

An expectation holds only the fields that the case is about.  A step is addressed as in the command line:
`1.2` (turn 1, step 2), `explorer:1.1` (another thread), `other/1.1` (a session that is not `s`).  In a step:

* nested dicts are compared key by key, everything else for equality;
* `changes` maps every item that must have a change, skipped ones included, to fields of that change;
* `bar` lists the segments of the window in their order, each with its tokens;
* `order` lists the items of the changes in their order; `flags_has` and `flags_lacks` look into a list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.build import Event

Expected = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One trace with its expectations."""

    name: str
    events: list[Event]
    steps: dict[str, Expected]
    turns: dict[str, Expected] = field(default_factory=dict)
    target: str = "model"
    model: str | None = None
    problems: list[int] | None = None
    """Lines on which a problem must be reported; None: not looked at."""


@dataclass(frozen=True)
class Replayed:
    """What a replay said, as the JSON objects of DESIGN section 6."""

    steps: list[dict[str, Any]]
    turns: list[dict[str, Any]]
    problems: list[dict[str, Any]]


Engine = Callable[[Case], Replayed]


def address(said: dict[str, Any]) -> str:
    """The address of a step or turn object."""
    session = "" if said["session"] == "s" else f"{said['session'] or '-'}/"
    thread = "" if said["thread"] == "main" else f"{said['thread']}:"
    step = f".{said['step']}" if said["type"] == "step" else ""
    return f"{session}{thread}{said['turn']}{step}"


def check(case: Case, said: Replayed) -> list[str]:
    """Every difference between what is expected and what was said, one line each."""
    steps = {address(step): step for step in said.steps}
    turns = {address(turn): turn for turn in said.turns}
    wrong = []
    if len(steps) != len(said.steps) or sorted(steps) != sorted(case.steps):
        wrong.append(f"steps: expected {sorted(case.steps)}, got {[address(step) for step in said.steps]}")
    for where, expected in case.steps.items():
        wrong += _compare(where, expected, steps.get(where, {}))
    for where, expected in case.turns.items():
        wrong += _compare(f"turn {where}", expected, turns.get(where, {}))
    if case.problems is not None:
        lines = sorted({problem["line"] for problem in said.problems})
        if lines != case.problems:
            wrong.append(f"problems: expected lines {case.problems}, got {lines}")
    return wrong


def _compare(where: str, expected: Expected, got: dict[str, Any]) -> list[str]:
    wrong = []
    for key, want in expected.items():
        if key == "changes":
            wrong += _changes(where, want, got.get("changes", []))
        elif key == "order":
            have = [change["item"] for change in got.get("changes", [])]
            wrong += [] if have == want else [f"{where} order: expected {want}, got {have}"]
        elif key == "bar":
            drawn = [list(pair) for pair in got.get("segments", {}).items()]
            wrong += [] if drawn == want else [f"{where} bar: expected {want}, got {drawn}"]
        elif key in ("flags_has", "flags_lacks"):
            there = set(got.get("flags") or ())
            bad = set(want) - there if key == "flags_has" else set(want) & there
            wrong += [f"{where} {key} {sorted(bad)}: got {sorted(there)}"] if bad else []
        elif key not in got:
            wrong.append(f"{where} {key}: missing")
        elif isinstance(want, dict) and isinstance(got[key], dict):
            wrong += _compare(f"{where} {key}", want, got[key])
        elif got[key] != want:
            wrong.append(f"{where} {key}: expected {want!r}, got {got[key]!r}")
    return wrong


def _changes(where: str, expected: dict[str, Expected], got: list[dict[str, Any]]) -> list[str]:
    by_item = {change["item"]: change for change in got}
    wrong = []
    if len(by_item) != len(got):
        wrong.append(f"{where} changes: an item has several: {[change['item'] for change in got]}")
    if by_item.keys() != expected.keys():
        have = {change["item"]: change["status"] for change in got}
        wrong.append(f"{where} changes: expected {sorted(expected)}, got {have}")
    for name, fields in expected.items():
        if name in by_item:
            wrong += _compare(f"{where} {name}", fields, by_item[name])
    return wrong


def added(**fields: Any) -> Expected:
    """An expected change with status `added`."""
    return {"status": "added", **fields}


def updated(**fields: Any) -> Expected:
    """An expected change with status `updated`."""
    return {"status": "updated", **fields}


def removed(**fields: Any) -> Expected:
    """An expected change with status `removed`."""
    return {"status": "removed", **fields}


def skipped(**fields: Any) -> Expected:
    """An expected change with status `skipped`."""
    return {"status": "skipped", **fields}


def omitted(**fields: Any) -> Expected:
    """An expected change with status `omitted`."""
    return {"status": "omitted", **fields}


def ledger(before: int, new: int, freed: int, after: int, **more: Any) -> Expected:
    """An expected ledger."""
    return {"window_before": before, "new": new, "freed": freed, "window_after": after, **more}
