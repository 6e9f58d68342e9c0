"""A bill of half or less than the one before, in one thread and of one model, has a cause in the record."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from ctxctl.errors import CtxctlError
from ctxctl.model.results import Step
from ctxctl.session import Inspector

CAUSES: Final = frozenset(
    {"cleared", "branched", "compacted", "detached", "truncated", "expired", "redacted"}
)
COUNTS: Final = "only its counts are in the file, and no content that could have left"
CANNED: Final = "canned answers of a test, each of another conversation"
FILES: Final = "the contents of the files in the chat are in no history, and some were dropped or had shrunk"
SUMMED: Final = (
    "the first bill of the prompt is two or three times the others: nothing says of what it is the sum"
)
REASONS: Final = {
    "codex/steipete__CodexBar/*/archived_sessions/*.jsonl": COUNTS,
    "gemini-cli/google-gemini__gemini-cli/integration-tests/*.responses": CANNED,
    "gemini-cli/lanegrid__agtrace/*/gemini_session.json": SUMMED,
    "aider/Aider-AI__aider/tests/fixtures/chat-history.md": FILES,
    "atif/meridianlabs-ai__inspect_scout/*context-summarization-linear-history.trajectory.cont-1.json": (
        "a mock's counts: the first request's hold those of the summary's"
    ),
    "api-captures/pydantic__pydantic-ai/*/test_openai_responses_image_generation_with_tool_output.yaml": (
        "the first bill holds what a tool of the provider's was sent"
    ),
    "claude-code/handgemacht-ai__claude-code-log/*/representative_messages.jsonl": "made by hand",
}
"""By file, why no cause is recorded."""


class Fall(NamedTuple):
    """A bill of half or less than the one before."""

    file: str
    address: str
    before: int
    now: int


def falls(path: Path, top: Path) -> Iterator[Fall]:
    """Those of a file for which the record has no cause, and whose recorded content did not fall either."""
    last: dict[tuple[str | None, str], Step] = {}
    between: dict[tuple[str | None, str], list[Step]] = {}
    with Inspector.open(str(path), encoding="o200k_base", calibration="none") as inspector:
        for step in inspector.replay():
            if not isinstance(step, Step):
                continue
            key = (step.session, step.thread)
            between.setdefault(key, []).append(step)
            if step.usage is None or not step.usage.reported_input:
                continue
            before, since = last.get(key), between.pop(key)
            last[key] = step
            if before is None or before.model != step.model or before.usage is None:
                continue
            told, now = before.usage.reported_input or 0, step.usage.reported_input
            fell = step.window.recorded * 2 <= before.window.recorded > 0
            if now * 2 <= told and not fell and not any(map(_has_cause, since)):
                yield Fall(path.relative_to(top).as_posix(), f"{step.turn}.{step.step}", told, now)


def _has_cause(step: Step) -> bool:
    left = {change.cause for change in step.changes if change.status == "removed"}
    return bool(step.annotations.compactions) or not CAUSES.isdisjoint(left)


@pytest.fixture(scope="module")
def found(corpus: Path) -> list[Fall]:
    top = corpus / "data"
    made: list[Fall] = []
    for path in sorted(path for path in top.rglob("*") if path.is_file()):
        try:
            made += falls(path, top)
        except CtxctlError:
            continue
    return made


def test_every_fall_of_a_bill_has_a_cause_or_a_reason(found: list[Fall]) -> None:
    assert [fall for fall in found if not any(fnmatch(fall.file, name) for name in REASONS)] == []


def test_every_reason_is_needed(found: list[Fall]) -> None:
    assert [name for name in REASONS if not any(fnmatch(fall.file, name) for fall in found)] == []
