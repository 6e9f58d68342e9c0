"""A trace held against what the stand-in received: every body, in its frame, and what was billed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from ctxctl.session import Inspector
from tests.unit.providers.wire_rebuild import compare, places, rebuilt
from tools.clients.standin import Call

Json = dict[str, Any]
Key = tuple[str, str, str]
"""Session, thread, step."""


class Held(NamedTuple):
    """How a trace compares."""

    requests: int
    """That the stand-in received."""
    steps: int
    """That the trace has."""
    bodies: int
    """Requests whose body is the frame of a step."""
    usage: int
    """Steps whose usage is what the stand-in told, of `told`."""
    told: int
    """Requests whose answer told its usage."""
    problems: list[str]

    @property
    def equal(self) -> bool:
        """Whether nothing is lacking and nothing differs."""
        return (
            self.requests == self.steps == self.bodies > 0 and self.usage == self.told and not self.problems
        )


def held(trace: Path, calls: list[Call]) -> Held:
    """Compare; a step belongs to the first request whose body it holds."""
    if not trace.exists() or not trace.stat().st_size:
        return Held(len(calls), 0, 0, 0, sum(call.told for call in calls), ["nothing was recorded"])
    left = [(call, json.loads(call.body)) for call in calls]
    bodies = usage = 0
    problems: list[str] = []
    bills = _bills(trace)
    with Inspector.open(str(trace)) as inspector:
        for step, made in _steps(inspector):
            found = next(
                (n for n, (call, sent) in enumerate(left) if compare(made, call.dialect, sent) is None), None
            )
            if found is None:
                nearest = left[0] if left else None
                why = compare(made, nearest[0].dialect, nearest[1]) if nearest else "no request is left"
                problems.append(f"{'/'.join(step)}: {why}"[:300])
                continue
            call, _ = left.pop(found)
            bodies += 1
            if call.told:
                billed = bills.get(step)
                right = billed == (call.usage.total, call.usage.cached, call.usage.output)
                usage += right
                if not right:
                    problems.append(f"{'/'.join(step)}: billed {billed}, told {call.usage}")
        problems += [problem.message for problem in inspector.problems]
        steps = inspector.summary.steps if inspector.summary is not None else 0
    return Held(len(calls), steps, bodies, usage, sum(call.told for call in calls), problems)


def _steps(inspector: Inspector) -> list[tuple[Key, Json]]:
    """Each step, and the body that its frame stands for."""
    list(inspector.replay())
    where = {_key(*key): blocks for key, blocks in places(inspector).items()}
    made = []
    for at in range(inspector.summary.steps if inspector.summary is not None else 0):
        frame = inspector.frame(at)
        key = _key(frame.step.session, frame.step.thread, frame.step.step_id)
        blocks = where.get(key, [])
        texts = [inspector.text(p.content) if p.content is not None else None for p in frame.placements]
        whole = len(blocks) == len(texts)  # not where two steps have one id
        rows = [(place, text) for (_, place), text in zip(blocks, texts, strict=False)] if whole else []
        made.append((key, rebuilt(rows)))
    return made


def _bills(trace: Path) -> dict[Key, tuple[int, ...]]:
    """By step: all input, what of it was cached, output."""
    found = {}
    for line in trace.read_bytes().splitlines():
        event = json.loads(line)
        if event["event_type"] == "ctxctl.usage.reported":
            key = _key(*(event.get(name) for name in ("session_id", "thread_id", "step_id")))
            names = ("input_tokens", "cached_tokens", "output_tokens")
            found[key] = tuple(event["data"].get(name) or 0 for name in names)
    return found


def _key(session: str | None, thread: str | None, step: str | None) -> Key:
    return session or "", thread or "main", step or ""
