"""`ctxctl why` against an independent walk of the events, on 200 pairs of an item and a step.

They are of real captures and of hand-made traces, present and absent.  A capture is cut to its first events:
the walk looks at all lines for every step.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from random import Random

from ctxctl.analysis.why.answer import explain_item
from ctxctl.errors import CtxctlError
from ctxctl.importers import registry
from ctxctl.report import jsonout
from ctxctl.report.why import to_json
from ctxctl.session import Inspector
from ctxctl.session.store_rows import lives_of
from tests.oracle import real
from tests.oracle.build import Event
from tests.oracle.walk import Walk

FOLDERS = (
    "claude-code", "codex", "pi", "copilot-sdk-events", "amplifier", "api-captures", "gemini-cli", "goose",
    "opencode", "openhands", "sibyl", "mcp-agent-runs", "inspect-ai", "swe-agent",
)  # fmt: skip
MAPPED = ("sanqian", "sibyl", "luminarys", "amplifier")
EACH = 14
PAIRS = 200
LINES = 160
"""Events of a capture that are looked at."""
LARGEST = 400_000
"""Bytes of the largest capture that is taken."""


def is_small(path: Path) -> bool:
    return path.suffix in (".json", ".jsonl", ".eval") and 10_000 < path.stat().st_size < LARGEST


def captures() -> list[Path]:
    """A small capture of each folder."""
    root = Path(os.environ["CTXCTL_CORPUS"])
    found = [root / "samples" / "mapped-context-events" / f"{name}.jsonl" for name in MAPPED]
    for folder in FOLDERS:
        files = [path for path in sorted((root / "data" / folder).rglob("*")) if is_small(path)]
        found += files[:: max(1, len(files) // 3)][:3]
    return found


def events_of(path: Path) -> list[Event]:
    """The first events of a capture, as its importer makes them; none where it holds nothing to replay."""
    try:
        with Inspector.open(path) as inspector:
            source = inspector.trace.source
            lines = source.read(0, source.size).splitlines()[:LINES]
    except CtxctlError:
        return []
    events = [json.loads(line) for line in lines]
    about = ("ctxctl.fidelity.measured", "ctxctl.source.opened", "ctxctl.session.ended", "ctxctl.step.failed")
    return [event for event in events if event["event_type"] not in about]


def test_pairs_of_the_corpus(tmp_path: Path) -> None:
    some, states, wrong, formats = Random(7), Counter[str](), dict[str, list[str]](), set[str]()
    own = Path(__file__).parents[2] / "traces"
    for path in [*captures(), *sorted(own.glob("*.jsonl"))]:
        events = events_of(path)
        if not events:
            continue
        walk = Walk(events)
        with real.opened(tmp_path / "trace.jsonl", events) as inspector:
            known = lives_of(inspector)
            formats.add(path.parent.name)
            pairs = [
                (n, e.item)
                for n in range(len(known))
                for e in known.entries()
                if e.thread == known.thread_of(n)
            ]
            for ordinal, item in some.sample(pairs, min(EACH, len(pairs))):
                line = jsonout.line(to_json(explain_item(inspector, ordinal, item, everything=True), None))
                why = json.loads(line)
                states[why["state"]] += 1
                if complaints := walk.complaints(why):
                    wrong[f"{path.parent.name}/{path.name} {item} at {ordinal}"] = complaints
    assert wrong == {}
    assert states.total() >= PAIRS
    assert states["current"] >= PAIRS // 4
    assert states["out"] + states["omitted"] + states["later"] >= PAIRS // 4
    assert len(formats) >= 8
    assert registry.available()
