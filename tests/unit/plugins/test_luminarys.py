from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgpack
import pytest

from ctxctl.analysis.blame import blame_frame
from ctxctl.errors import UnavailableError
from ctxctl.ingest.folder import Folder
from ctxctl.plugins.luminarys import FORMAT
from ctxctl.plugins.luminarys.calls import STATE_LIMIT, arrangement_of
from tests.unit.importers.seed_help import (
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


@pytest.mark.parametrize(
    ("returned", "name", "order", "separator", "result"),
    [
        (("c\n---\nr",), "before", "cr", "\n---\n", None),
        (("c\r\n---\r\nr",), "before", "cr", "\r\n---\r\n", None),
        (("r\n---\nc",), "after", "rc", "\n---\n", None),
        (("r\nc",), "after", "rc", "\n", None),
        (("r", "c"), "block", "rc", "content_block", None),
        (("c", "r"), "block", "cr", "content_block", None),
        (("r",), "alone", "r", None, None),
        (("c",), "alone", "c", None, None),
        # What a host made of the result is what the model got.
        (("c\n---\nR!",), "before", "cr", "\n---\n", "R!"),
        (("R!\n\nc",), "after", "rc", "\n\n", "R!"),
        (("R!", "c"), "block", "rc", "content_block", "R!"),
        (("R!",), "alone", "r", None, "R!"),
        (("<c> R!",), "within", "r", None, "<c> R!"),
    ],
)
def test_placements(
    returned: tuple[str, ...], name: str, order: str, separator: str | None, result: str | None
) -> None:
    made = arrangement_of("c", "r", returned)
    assert made is not None
    named = {"c": "context", "r": "result"}
    assert (made.name, made.order) == (name, tuple(named[letter] for letter in order))
    assert (made.separator, made.result) == (separator, result)


def test_what_nobody_captured_has_no_arrangement() -> None:
    assert arrangement_of("c", "r", ()) is None
    assert arrangement_of(None, None, ("x",)) is None
    # A line of dashes in the result itself is not the host's.
    inner = arrangement_of("c", "a\n---\nb", ("c\n---\na\n---\nb",))
    assert inner is not None
    assert (inner.separator, inner.result) == ("\n---\n", None)
    assert arrangement_of(None, "r", ("r",)) == ("result", ("result",), None, None)


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


def test_what_a_skill_was_given_ends_with_its_call() -> None:
    found, _ = steps(HERE / "stream.msgpack", target="tool")
    gone = [(s.step_id, c.item, c.cause) for s in found for c in s.changes if c.status == "removed"]
    assert gone == [
        ("q2", "args-q1", "expired"), ("q3", "args-q2", "expired"), ("q4", "args-q3", "expired"),
    ]  # fmt: skip
    assert {(s.cache.possible_prefix, s.cache.broken_by) for s in found} == {(None, None)}
    told = subprocess.run(
        [sys.executable, "-m", "ctxctl", "replay", str(HERE / "stream.msgpack"), "--target=tool", "--steps"],
        capture_output=True, check=True, timeout=60, text=True,
    ).stdout  # fmt: skip
    assert "unrecorded" not in told
    assert told.count("cache    not applicable: prompt caches are of a model's requests") == 4


def test_another_skill_s_call_is_no_view_of_the_first_ones_state(tmp_path: Path) -> None:
    state = packed({"schema_version": 1, "data": packed({"n": 1})})
    path = tmp_path / "c.msgpack"
    path.write_bytes(
        stream(asked(1, "a", state), answered(), asked(2, "b"), answered(), asked(3, "a", state), answered())
    )
    found, _ = steps(path, target="tool")
    changes = [[(c.item, c.status, c.cause) for c in s.changes if c.item == "state:a"] for s in found]
    assert changes == [
        [("state:a", "added", None)], [("state:a", "removed", "expired")], [("state:a", "added", None)],
    ]  # fmt: skip


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
    assert FORMAT.detect_folder(Folder("d", tmp_path)) > 90
    found, problems = events("luminarys", tmp_path)
    assert [a["assembly_id"] for a in model(found)] == ["asm-r1", "asm-r2", "asm-r10"]
    assert not problems


def test_detection() -> None:
    assert detected(packed(asked(1))) == "luminarys"
    assert detected(packed(answered())) == "luminarys"
    assert detected((HERE / "calls.jsonl").read_bytes()) == "luminarys"
    assert FORMAT.detect(packed({"version": 1, "spans": []})) == 0
    assert FORMAT.detect(b'{"jsonrpc":"2.0","method":"tools/call","params":{}}\n') == 0
    assert FORMAT.detect(b"") == 0


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


def called(number: int, payload: Any, context: str | None, *returned: str) -> Json:
    row: Json = {"request": {**DECODED["request"], "request_id": f"q{number}"},
                 "response": {"version": 1, "payload": payload}}  # fmt: skip
    if context is not None:
        row["response"]["llm_context"] = context
    if returned:
        row["mcp_result"] = {"content": [{"type": "text", "text": text} for text in returned]}
    return row


def test_each_answer_keeps_its_own_separator(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    rows = [
        called(1, "one", "hint 1", "hint 1\n---\none"),
        called(2, "two", None),
        called(3, "three", "hint 3", "three", "hint 3"),
        called(4, "four", "hint 4", "four\n\nhint 4"),
        called(5, {"n": 5}, "hint 5", 'hint 5\n---\n{"n": 5}'),
    ]
    path.write_bytes(lines(*rows))
    _, inspector = steps(path)
    told = ["hint 1\n---\none", "two", "three\nhint 3", "four\n\nhint 4", 'hint 5\n---\n{"n": 5}']
    for n in range(5):
        assert inspector.assembled(n) == "\n".join(told[: n + 1])
        found = blame_frame(inspector, n)
        assert found.text == inspector.assembled(n)
        assert found.joint.join(found.text[b.start : b.end] for b in found.blocks) == found.text
        assert found.joint_known == (n == 0), "what is between two answers nobody recorded"


@pytest.mark.parametrize(
    ("payload", "returned", "verdict", "placement"),
    [
        ("r", ("c\n---\nr",), "matches", "before"),
        ({"n": 1}, ('c\n---\n{"n": 1}',), "matches", "before"),
        ("r", ("r", "c"), "matches", "block"),
        ({"n": 1}, ('{"n": 1}', "c"), "matches", "block"),
        ("r", ("r\n\nc",), "matches", "after"),
        ("r", ("r", "c"), "differs", "before"),
        ({"n": 1}, ('{"n": 1}', "c"), "differs", "before"),
        ("r", ("c", "r"), "differs", "block"),
        ("r", ("r\nc",), "differs", "block"),
        ("r", ("c\n---\nr",), "differs", "after"),
        ("r", ("r",), "differs", "before"),
    ],
)
def test_verdicts_of_what_a_host_returned(
    tmp_path: Path, payload: Any, returned: tuple[str, ...], verdict: str, placement: str
) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_bytes(lines(called(1, payload, "c", *returned)))
    (step,), _ = steps(path, policy=f"luminarys:placement={placement}")
    view = step.stages["assembly"]
    assert view.verdict == verdict
    if verdict == "differs" and len(returned) == 2 and placement == "before":
        assert view.facts["recorded"]["content"] == list(returned), "two blocks, and no text of both"
        assert view.facts["inputs"]["recorded_placement"] == "block"
