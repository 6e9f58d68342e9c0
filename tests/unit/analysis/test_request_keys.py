"""What tells a copied request from another one."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from ctxctl.analysis.shared_requests import RequestsHeld, moment, request_key
from ctxctl.importers import registry
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.trace.source import open_source
from ctxctl.trace.writer import TraceWriter

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"


def billed(name: str) -> Step:
    with Inspector.open(FIXTURES / name) as inspector:
        return next(s for s in inspector.replay() if isinstance(s, Step) and s.usage is not None)


def test_a_copy_of_claude_codes_keeps_the_id_of_the_answer_and_the_bill() -> None:
    step = billed("claude_code/session.jsonl")
    key = request_key("claude-code", step)
    assert key is not None
    copied = structs.replace(step, session="another", time="2031-01-01T00:00:00Z", turn=7)
    assert request_key("claude-code", copied) == key
    assert request_key("claude-code", structs.replace(step, step_id="msg_other")) != key
    assert step.usage is not None
    dearer = structs.replace(step.usage, reported_input=(step.usage.reported_input or 0) + 1)
    assert request_key("claude-code", structs.replace(step, usage=dearer)) != key


def test_elsewhere_a_copy_has_all_of_it() -> None:
    step = billed("codex/rollout.jsonl")
    key = request_key("codex", step)
    assert key is not None
    assert request_key("codex", structs.replace(step)) == key
    for other in (
        structs.replace(step, session="another"),
        structs.replace(step, time="2031-01-01T00:00:00Z"),
        structs.replace(step, thread="other"),
        structs.replace(step, turn=step.turn + 1),
    ):
        assert request_key("codex", other) not in (key, None)
    assert request_key("gemini-cli", step) != key


def test_what_nothing_tells_is_no_copy() -> None:
    step = billed("codex/rollout.jsonl")
    for other in (
        structs.replace(step, usage=None),
        structs.replace(step, session=None),
        structs.replace(step, time=None),
    ):
        assert request_key("codex", other) is None


def test_a_day_is_that_of_utc() -> None:
    assert str(moment("2026-05-01T01:30:00+02:00")) == "2026-04-30 23:30:00+00:00"
    assert str(moment("2026-05-01T01:30:00.5Z")) == "2026-05-01 01:30:00.500000+00:00"
    assert str(moment("2026-05-01T01:30:00")) == "2026-05-01 01:30:00+00:00"
    assert moment("yesterday") is None
    assert moment(None) is None


def test_an_imported_trace_holds_the_requests_of_its_capture(tmp_path: Path) -> None:
    capture, mirror = FIXTURES / "claude_code/session.jsonl", tmp_path / "mirror.jsonl"
    found = registry.by_name("claude-code")
    with open_source(capture) as source, mirror.open("wb") as file:
        writer = TraceWriter(file)
        for event in registry.capture_events(found, source, lambda _: None):
            writer.write(event)
    held = []
    for path in (capture, mirror):
        with Inspector.open(path) as inspector:
            requests = RequestsHeld(inspector.params.original_format)
            assert not [s for s in inspector.replay() if isinstance(s, Step) and requests.is_copy(s)]
            held.append(requests.packed())
    assert held[0]
    assert held[0] == held[1]
