"""The true window over every capture with bills: what is in front is what was billed, and it adds up."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ctxctl.errors import CtxctlError
from ctxctl.inspector import Inspector
from ctxctl.model.results import Step

KINDS = {
    "claude-code": 4_630, "claude-stream-json": 656, "codex": 1_900, "gemini-cli": 127, "copilot-cli": 3,
    "copilot-sdk-events": 0, "copilot-chat": 4, "pi": 1_779, "pi-rpc": 4, "opencode": 34, "clients": 28,
}  # fmt: skip
"""Folders of captures, and how many billed steps there are at least in each."""


def captures(corpus: Path, kind: str) -> list[Path]:
    root = corpus / "data" / kind if (corpus / "data").is_dir() else corpus / kind
    return sorted(path for path in root.rglob("*") if path.is_file() and "wire" not in path.parts)


def held(step: Step) -> None:
    """The laws of one step (DESIGN section 3, the true window)."""
    window = step.window
    assert window.recorded == step.ledger.window_after == sum(window.by_method.values())
    assert sum(step.segments.values()) == window.used
    if window.unrecorded is not None:
        assert window.used == window.recorded + window.unrecorded
    if window.cap is not None:
        assert window.free == max(0, window.cap - window.used)
        assert window.over == max(0, window.used - window.cap)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_in_front_is_what_was_billed(corpus: Path, kind: str) -> None:
    found: Counter[str] = Counter()
    for path in captures(corpus, kind):
        try:
            inspector = Inspector.open(path, calibration="saved")
        except CtxctlError:
            continue
        before: dict[tuple[str | None, str], Step] = {}
        with inspector:
            try:
                for step in inspector.replay():
                    if not isinstance(step, Step):
                        continue
                    held(step)
                    check(step, before.get((step.session, step.thread)), found, path)
                    before[step.session, step.thread] = step
            except CtxctlError:
                continue
    assert found["billed"] - found["unsound"] == found["in front"]
    assert found["billed"] >= KINDS[kind], dict(found)
    assert found["unsound"] <= found["billed"] // 1000, dict(found)


def check(step: Step, last: Step | None, found: Counter[str], path: Path) -> None:
    window, usage = step.window, step.usage
    reported = usage.reported_input if usage is not None else None
    if reported is None:
        assert window.used_method != "reported", path
        return
    found["billed"] += 1
    if window.used_method != "reported":
        assert reported <= 0 or reported < 0.4 * window.recorded, (path, step.turn, step.step)
        found["unsound"] += 1
        return
    assert window.used == reported
    found["in front"] += 1
    if last is not None and last.window.unrecorded is not None and window.unrecorded is not None:
        flow = step.ledger.new - step.ledger.freed
        assert window.used - last.window.used == flow + window.unrecorded - last.window.unrecorded
