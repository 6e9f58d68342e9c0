from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import msgpack
import pytest

from ctxctl.errors import UnavailableError
from ctxctl.formats.kit.folder import Folder
from ctxctl.formats.luminarys import Luminarys
from ctxctl.formats.luminarys.calls import STATE_LIMIT, arrangement
from tests.unit.formats.seed_help import (
    FIXTURES,
    Json,
    data,
    deep,
    detected,
    events,
    items,
    lines,
    named,
    slugs,
    spoilt,
    steps,
)

HERE = FIXTURES / "luminarys"
ASSEMBLY, INJECTION = "context.assembly.created", "context.injection.applied"


def packed(value: Any) -> bytes:
    made = msgpack.packb(value, use_bin_type=True)
    assert isinstance(made, bytes)
    return made


def asked(number: int, skill: str = "s", state: bytes | None = None, **more: Any) -> Json:
    return {"version": 1, "request_id": f"r{number}", "session_id": "c", "method": "m", "skill_id": skill,
            "state": state, "payload": packed({"n": number}), **more}  # fmt: skip


def answered(result: Any = "ok", state: bytes | None = None, **more: Any) -> Json:
    return {"version": 1, "state": state, "payload": packed(result), **more}


def stream(*messages: Any) -> bytes:
    return b"".join(packed(message) for message in messages)


def model(found: list[Json]) -> list[Json]:
    return [a for a in data(found, ASSEMBLY) if a["target"] == "model"]


# -- calls ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pairs", "stream.msgpack", "calls.jsonl"])
def test_the_three_spellings_say_the_same(name: str) -> None:
    found, inspector = steps(HERE / name)
    assert [(s.session, s.thread, s.step_id, s.mode) for s in found] == [
        ("s-1", "chat-1", f"q{number}", "append") for number in (1, 2, 3, 4)
    ]
    assert [sorted(named(s, "added")) for s in found] == [
        ["llmctx-q1", "res-q1"],
        [],
        ["llmctx-q3", "res-q3"],
        [],
    ]
    assert found[0].stages["injection"].verdict == "not_recorded"
    assert not inspector.problems
    texts = [inspector.text(p.content) for p in inspector.frame(3).placements if p.content is not None]
    assert sorted(texts) == sorted(
        ["Times are local.\nRound down.", "high 06:12\n---\nlow 12:30", "Times are local.", "high 07:01"]
    )


def test_the_committed_bytes_are_those_of_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = runpy.run_path(str(HERE / "make.py"))
    monkeypatch.setitem(made["main"].__globals__, "HERE", tmp_path)
    made["main"]()
    written = {p.relative_to(tmp_path): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert written == {name: (HERE / name).read_bytes() for name in written}
    assert len(written) == 10


def test_ids_of_the_runtime_are_kept() -> None:
    found, _ = events("luminarys", (HERE / "stream.msgpack").read_bytes())
    calls = {
        (e["tool_call_id"], e["run_id"], e["session_id"], e["thread_id"])
        for e in found
        if "tool_call_id" in e
    }
    assert calls == {(f"q{number}", "t-1", "s-1", "chat-1") for number in (1, 2, 3, 4)}


def test_context_and_result_are_joined_as_documented() -> None:
    (first, *_), inspector = steps(HERE / "pairs")
    assert inspector.assembled(0) == "Times are local.\nRound down.\n---\nhigh 06:12\n---\nlow 12:30"
    assert first.stages["assembly"].facts["separator"] == "\n---\n"
    found, _ = events("luminarys", HERE / "pairs")
    assert [a["metadata"]["ctxctl"] for a in model(found)] == [
        {"mode": "append", "simulated": True},
        {"mode": "append", "simulated": True},
        {"mode": "append"},
    ]


def test_what_the_host_returned_tells_the_placement() -> None:
    found, _ = events("luminarys", (HERE / "calls.jsonl").read_bytes())
    made = [(a["metadata"]["native"], [b["block_id"] for b in a["ordered_blocks"]]) for a in model(found)]
    assert made == [
        ({"llm_context": "before"}, ["llmctx-q1", "res-q1"]),
        ({"llm_context": "after"}, ["res-q3", "llmctx-q3"]),
        ({}, []),
    ]
    assert model(found)[0]["metadata"]["ctxctl"] == {"mode": "append", "derived": True}


def test_placements() -> None:
    before = arrangement("c", "r", ("c\n---\nr",))
    after = arrangement("c", "r", ("r\n---\nc",))
    block = arrangement("c", "r", ("r", "c"))
    assert before is not None
    assert after is not None
    assert block is not None
    assert (before.name, before.after, before.separator) == ("before", False, "\n---\n")
    assert (after.name, after.after, after.separator) == ("after", True, "\n---\n")
    assert (block.name, block.after, block.separator) == ("block", True, None)
    assert arrangement("c", "r", ("something else",)) is None
    # A line of dashes in the result itself is not the host's.
    inner = arrangement("c", "a\n---\nb", ("c\n---\na\n---\nb",))
    assert inner is not None
    assert inner.separator == "\n---\n"


def test_the_call_of_another_skill_is_not_the_models() -> None:
    found, _ = events("luminarys", (HERE / "stream.msgpack").read_bytes())
    visible = {name: item["visibility"] for name, item in items(found).items()}
    assert visible["res-q2"] == visible["llmctx-q2"] == ["tool"]
    assert visible["res-q1"] == ["model"]


def test_an_error_is_missing_context() -> None:
    found, _ = events("luminarys", (HERE / "stream.msgpack").read_bytes())
    (missing,) = data(found, "context.missing.detected")
    assert (missing["question"], missing["severity"]) == ("no station", "high")


def test_nested_calls_answer_innermost_first() -> None:
    capture = stream(asked(1, "a"), asked(2, "b", caller_id="a"), answered("inner"), answered("outer"))
    found, problems = events("luminarys", capture)
    assert {n: i["content"] for n, i in items(found).items() if n.startswith("res-")} == {
        "res-r1": "outer", "res-r2": "inner",
    }  # fmt: skip
    assert not problems


def test_calls_cut_short() -> None:
    found, problems = events("luminarys", stream(asked(1)))
    assert slugs(problems) == ["no-answer"]
    assert "args-r1" in items(found)
    found, problems = events("luminarys", stream(answered("lone", llm_context="c")))
    assert {name: i["content"] for name, i in items(found).items()} == {
        "res-call-1": "lone",
        "llmctx-call-1": "c",
    }
    assert not problems


# -- state ---------------------------------------------------------------------------------------------------


def test_state_is_the_tools_alone_and_never_counted() -> None:
    found, _ = events("luminarys", (HERE / "stream.msgpack").read_bytes())
    states = {name: item for name, item in items(found).items() if item["context_kind"] == "runtime_state"}
    assert sorted(states) == ["state:acme.maps", "state:acme.tides"]
    assert {tuple(s["visibility"]) for s in states.values()} == {("tool",)}
    replayed, inspector = steps(HERE / "stream.msgpack")
    assert not any(c.kind == "runtime_state" for s in replayed for c in s.changes)
    assert all(p.kind == "tool_result" for p in inspector.frame(3).placements)


def test_a_skill_sees_its_own_state_only() -> None:
    found, _ = steps(HERE / "stream.msgpack", target="tool")
    assert [named(s, "added") for s in found] == [
        ["args-q1"], ["args-q2"], ["args-q3", "state:acme.tides"], ["args-q4"],
    ]  # fmt: skip
    assert found[3].changes[1].status == "updated"
    assert {s.layer for s in found} == {"injected"}


def test_versions_and_migrations_of_state() -> None:
    found, _ = events("luminarys", (HERE / "stream.msgpack").read_bytes())
    told = [
        (e["step_id"], e["data"]["metadata"]["native"], e["data"]["content"])
        for e in found
        if e["data"].get("item_id") == "state:acme.tides" and "content" in e["data"]
    ]
    skill = {"skill_id": "acme.tides", "seen_in": "response"}
    assert told == [
        ("q1", {**skill, "schema_version": 1}, '{"data":{"reads":1},"schema_version":1}'),
        (
            "q3",
            {**skill, "schema_version": 2, "migrated_from": 1},
            '{"data":{"reads":2,"unit":"m"},"schema_version":2}',
        ),
    ]


def test_a_state_beyond_the_limit() -> None:
    large = packed({"schema_version": 1, "data": b"\0" * STATE_LIMIT})
    found, problems = events("luminarys", stream(asked(1), answered(state=large)))
    assert slugs(problems) == ["state-too-large"]
    (budget,) = data(found, "context.budget.applied")
    assert (budget["target"], budget["max_bytes"], budget["actual_bytes"]) == (
        "tool",
        STATE_LIMIT,
        len(large),
    )
    assert budget["metadata"]["ctxctl"] == {"derived": True}


def test_state_that_is_no_envelope() -> None:
    found, _ = events("luminarys", stream(asked(1, state=b"\xc1\xff"), answered(state=packed([1, 2]))))
    versions = [e["data"] for e in found if e["data"].get("item_id") == "state:s"]
    assert [v["content_mode"] for v in versions] == ["opaque", "inline"]
    assert versions[0]["byte_size"] == 2
    assert versions[1]["content"] == "[1,2]"


def test_sessions_keep_their_own_state() -> None:
    one, two = packed({"schema_version": 1, "data": b"\x01"}), packed({"schema_version": 1, "data": b"\x02"})
    calls = (asked(1, state=one), asked(2, session_id="d", state=two), asked(3, state=one))
    found, _ = events("luminarys", stream(*(message for call in calls for message in (call, answered()))))
    told = [(e["session_id"], e["event_type"]) for e in found if e["data"].get("item_id") == "state:s"]
    assert told == [("c", "context.item.added"), ("d", "context.item.added")]


# -- damage, detection ---------------------------------------------------------------------------------------


def test_damaged_streams_are_read_as_far_as_they_go() -> None:
    whole = stream(asked(1), answered("one"), asked(2), answered("two"))
    found, problems = events("luminarys", whole[:-3])
    assert "res-r1" in items(found)
    assert slugs(problems) == ["bad-msgpack", "no-answer"]
    assert problems[0].byte == len(stream(asked(1), answered("one"), asked(2)))
    found, problems = events("luminarys", stream(asked(1), answered("one")) + b"\xc1\xc1")
    assert "res-r1" in items(found)
    assert slugs(problems) == ["bad-msgpack"]


def test_hostile_sizes_and_depths() -> None:
    deep: Any = "x"
    for _ in range(400):
        deep = [deep]
    for claim in (b"\xdd\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\x91" * 5000):
        _, problems = events("luminarys", stream(asked(1), answered()) + claim)
        assert slugs(problems) == ["bad-msgpack"]
    found, _ = events(
        "luminarys", stream(asked(1), answered(deep), asked(2, payload=b"\x91" * 5000), answered())
    )
    assert "…" in items(found)["res-r1"]["content"]


def test_odd_values_are_survived() -> None:
    record = {"request": asked(1, caller_id="x", trace_id="t", llm_session_id="l", deadline_ns=1),
              "response": answered(commands=[{"type": "emit_event"}], error="e", llm_context="c"),
              "mcp_result": {"content": [{"type": "text", "text": "c\n---\nok"}]}}  # fmt: skip
    decoded = {**record, "request": {**record["request"], "payload": {"b64": "gA=="}, "state": {"b64": ""}},
               "response": {**record["response"], "payload": {"b64": "gA=="}}}  # fmt: skip
    found, problems = events("luminarys", lines(*spoilt(decoded)))
    assert found
    assert set(slugs(problems)) <= {"no-answer"}
    for odd in spoilt(record):
        events("luminarys", packed(odd))


def test_deep_values_are_cut() -> None:
    whole = {
        "request": asked(1, payload="?", state="?"),
        "response": {"version": 1, "payload": "?", "commands": "?"},
    }
    for levels in (150, 300, 900, 5000):
        events("luminarys", lines(whole, whole).replace(b'"?"', deep(levels)))


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "msgpack", None)
    with pytest.raises(UnavailableError, match="msgpack") as caught:
        events("luminarys", stream(asked(1)))
    assert caught.value.slug == "needs-msgpack"


def test_pairs_in_the_order_of_their_numbers_and_only_once(tmp_path: Path) -> None:
    for number in (1, 2, 10):
        (tmp_path / f"call-{number}.request.msgpack").write_bytes(packed(asked(number)))
        (tmp_path / f"call-{number}.response.msgpack").write_bytes(packed(answered(number)))
    (tmp_path / "calls.jsonl").write_bytes(
        lines({"request": {**asked(2), "payload": None}, "response": {"version": 1}})
    )
    assert Luminarys().detect_folder(Folder("d", tmp_path)) > 90
    found, problems = events("luminarys", tmp_path)
    assert [a["assembly_id"] for a in model(found)] == ["asm-r1", "asm-r2", "asm-r10"]
    assert not problems


def test_detection() -> None:
    assert detected(packed(asked(1))) == "luminarys"
    assert detected(packed(answered())) == "luminarys"
    assert detected((HERE / "calls.jsonl").read_bytes()) == "luminarys"
    assert Luminarys().detect(packed({"version": 1, "spans": []})) == 0
    assert Luminarys().detect(b'{"jsonrpc":"2.0","method":"tools/call","params":{}}\n') == 0
    assert Luminarys().detect(b"") == 0


DECODED = {
    "request": {"request_id": "q1", "session_id": "s", "method": "m", "skill_id": "k", "payload": {"n": 1}},
    "response": {"version": 1, "payload": "r", "llm_context": "c"},
}


def test_a_host_that_returned_one_of_the_two_placed_only_that() -> None:
    for text, block in (("r", "res-q1"), ("c", "llmctx-q1")):
        row = {**DECODED, "mcp_result": {"content": [{"type": "text", "text": text}]}}
        found, _ = events("luminarys", lines(row))
        (made,) = model(found)
        assert [b["block_id"] for b in made["ordered_blocks"]] == [block]
        assert made["metadata"]["ctxctl"] == {"mode": "append", "derived": True}


def test_a_join_that_nobody_recorded_is_shown_as_simulated(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_bytes(lines(DECODED))
    (step,), _ = steps(path)
    assert step.stages["assembly"].facts["provenance"] == "simulated"
