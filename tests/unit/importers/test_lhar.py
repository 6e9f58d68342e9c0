from __future__ import annotations

import json

from tests.unit.importers.calls_help import FIXTURES, detected, events, seen, slugs


def test_entries_with_bodies_are_read_from_them() -> None:
    steps, problems = seen("lhar/full.lhar")
    assert [step.billed for step in steps] == [304, 304]
    assert steps[1].kinds()[-3:] == ["assistant_message", "tool_call", "tool_result"]
    assert not problems


def test_a_wrapped_archive_is_the_same() -> None:
    wrapped, _ = seen("lhar/wrapped.lhar.json")
    lines, _ = seen("lhar/full.lhar")
    assert wrapped[0].window == lines[0].window


def test_entries_without_bodies_show_what_the_collector_counted_and_no_text() -> None:
    steps, problems = seen("lhar/standard.lhar")
    assert [step.window for step in steps] == [
        [("tool_definition", None), ("system_prompt", None), ("user_message", None)]
    ] * 2
    assert [step.billed for step in steps] == [344, 344], "cached tokens are beside Anthropic's input count"
    assert not problems


def test_the_collectors_counts_are_declared_and_the_window_is_told() -> None:
    found, _ = events("lhar", (FIXTURES / "lhar/standard.lhar").read_bytes())
    items = [e["data"] for e in found if ".item." in e["event_type"]]
    assert [i.get("token_estimate") for i in items] == [90, 12, 70, 80]
    limits = [e["data"]["max_tokens"] for e in found if e["event_type"] == "context.budget.applied"]
    assert limits == [200000, 200000]


def test_openai_counts_include_cached_tokens_and_an_estimate_is_no_bill() -> None:
    session, first, second = [
        json.loads(x) for x in (FIXTURES / "lhar/standard.lhar").read_text().splitlines()
    ]
    first["gen_ai"] |= {"system": "openai"}
    second["gen_ai"]["usage"] |= {"output_tokens": 0}
    data = "\n".join(map(json.dumps, (session, first, second))).encode()
    found, problems = events("lhar", data)
    assert [e["data"]["input_tokens"] for e in found if "usage" in e["event_type"]] == [4]
    assert slugs(problems) == []


def test_detection() -> None:
    for name in ("full.lhar", "standard.lhar", "wrapped.lhar.json"):
        assert detected((FIXTURES / "lhar" / name).read_bytes()) == "lhar"
    lines = (FIXTURES / "lhar/full.lhar").read_bytes().splitlines(keepends=True)
    assert detected(b"".join(lines[1:])) == "lhar", "the session line may be missing"
    assert detected(lines[1][:300]) == "lhar"
    assert detected(b'{"type":"session","id":"x","cwd":"/"}\n') != "lhar"
