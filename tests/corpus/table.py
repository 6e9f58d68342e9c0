"""Imports and replays every capture of one kind and says what came of each: one JSON line a file.

    python -m tests.corpus.table FOLDER

Run as a process of its own, so that the peak of its memory is that of the kind.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from ctxctl.errors import CtxctlError
from ctxctl.importers import registry
from ctxctl.ingest.about import Level
from ctxctl.model.results import Step, Summary
from ctxctl.session import Inspector


def replayed(path: Path) -> dict[str, Any]:
    """What became of one capture."""
    begun = time.process_time()
    found: dict[str, Any] = {"steps": 0, "billed": 0, "unbalanced": 0, "problems": {}, "reason": None}
    try:
        with Inspector.open(path) as inspector:
            found["format"] = inspector.format
            for result in inspector.replay():
                if isinstance(result, Step):
                    found["steps"] += 1
                    found["billed"] += result.usage is not None
                    found["unbalanced"] += not _balanced(result)
            found["problems"] = Counter(problem.slug for problem in inspector.problems)
            assert inspector.summary is not None
            found["overclaimed"] = _contradictions(inspector.summary)
    except CtxctlError as error:
        found |= {"format": None, "reason": error.message, "slug": error.slug, "exit": int(error.exit_code)}
    found["seconds"] = time.process_time() - begun
    return found


def _balanced(step: Step) -> bool:
    ledger = step.ledger
    return (
        ledger.window_before + ledger.reweighed + ledger.new - ledger.freed
        == ledger.window_after
        == step.window.recorded
        and sum(step.segments.values()) == step.window.used
    )


def _contradictions(summary: Summary) -> list[str]:
    """Facts that a format declares as never recorded and that a capture held."""
    known = {f.name: f.about for f in registry.available() if hasattr(f, "about")}
    return [
        fact
        for one in summary.fidelity
        if (about := known.get(one.format or "")) is not None
        for fact, levels in one.facts.items()
        if about.claim(fact).level is Level.NOT_RECORDED and set(levels) - {Level.NOT_RECORDED.value}
    ]


def main() -> None:
    """Go over a folder."""
    for path in sorted(p for p in Path(sys.argv[1]).rglob("*") if p.is_file()):
        print(json.dumps({"path": str(path), **replayed(path)}), flush=True)
    print(json.dumps({"peak": _peak()}))


def _peak() -> int:
    """Bytes of memory at most, of this process alone.

    `getrusage` would not do: what it says begins at the peak of the process that started this one.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


if __name__ == "__main__":
    main()
