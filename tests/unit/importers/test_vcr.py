from __future__ import annotations

import json
import sys

import pytest

from ctxctl.errors import UnavailableError
from tests.unit.importers.calls_help import FIXTURES, detected, events, no_secrets, seen, slugs

OTHERS = ("content.json", "google_genai.json", "vcrpy_binary.yaml")
"""Cassettes of other calls than the one that all these recorders recorded."""
NAMES = sorted(path.name for path in (FIXTURES / "vcr").iterdir() if path.name not in OTHERS)
BILLED = {
    "betamax.json": [70],
    "go.yaml": [70],
    "parsed.yaml": [304, 346],
    "php.yml": [70],
    "ruby.yml": [70, None],
    "typed.yaml": [70, 95],
    "vcrpy.yaml": [70, 95],
}


@pytest.mark.parametrize("name", NAMES)
def test_every_recorders_cassette(name: str) -> None:
    steps, problems = seen(f"vcr/{name}")
    assert [step.billed for step in steps] == BILLED[name]
    assert len({step.thread for step in steps}) == 1
    assert not problems
    assert detected((FIXTURES / "vcr" / name).read_bytes()) == "vcr"
    no_secrets("vcr", f"vcr/{name}")


@pytest.mark.parametrize("name", OTHERS)
def test_other_cassettes(name: str) -> None:
    data = (FIXTURES / "vcr" / name).read_bytes()
    assert detected(data) == "vcr"
    assert detected(json.dumps(json.loads(data)).encode() if name.endswith("json") else data) == "vcr"
    steps, problems = seen(f"vcr/{name}")
    assert not problems
    no_secrets("vcr", f"vcr/{name}")
    billed = {"content.json": [21, 22], "google_genai.json": [41, 61, 41], "vcrpy_binary.yaml": [28, 31]}
    assert [step.billed for step in steps] == billed[name]


def test_bodies_under_content_and_answers_in_base64() -> None:
    steps, _ = seen("vcr/content.json")
    assert [step.thread for step in steps] == ["main", "main"]
    assert steps[1].texts() == [
        "You read sea charts.", "Where is Juist?", "In the North Sea.", "How far from Norden?"
    ]  # fmt: skip


def test_replay_files_of_google_genai() -> None:
    steps, _ = seen("vcr/google_genai.json")
    assert [(step.thread, step.turn, step.model) for step in steps] == [
        ("main", 1, "gemini-2.5-flash"), ("main", 1, "gemini-2.5-flash"), ("main", 2, "gemini-2.5-flash")
    ]  # fmt: skip
    assert steps[1].texts()[1:] == [
        "You read tide tables, and say no more than what they say.", "When is high water at Norddeich?",
        'read_tide {"harbour":"Norddeich"}',
        '{"high":"11:42"}',
    ]  # fmt: skip
    found, _ = events("vcr", (FIXTURES / "vcr/google_genai.json").read_bytes())
    said = [e["data"]["content"] for e in found if e["event_type"] == "context.item.added"]
    assert "High water is at 11:42." in said, "an answer that was streamed in segments is one answer"


def test_the_same_call_gives_the_same_window_whatever_recorded_it() -> None:
    windows = [seen(f"vcr/{name}")[0][0].window for name in NAMES if name != "parsed.yaml"]
    assert all(window == windows[0] for window in windows)
    assert [kind for kind, _ in windows[0]] == ["tool_definition", "system_prompt", "user_message"]


def test_events_name_the_line_of_their_interaction() -> None:
    found, _ = events("vcr", (FIXTURES / "vcr/typed.yaml").read_bytes())
    lines = [e["metadata"]["ctxctl"]["source_line"] for e in found if "injection" in e["event_type"]]
    data = (FIXTURES / "vcr/typed.yaml").read_text().splitlines()
    assert [data[line - 1].strip()[:9] for line in lines] == ["- request"] * 2


def test_a_damaged_interaction_leaves_the_others() -> None:
    data = (FIXTURES / "vcr/typed.yaml").read_bytes()
    damaged = data.replace(b"    status: 200", b"    status: [200", 1)
    found, problems = events("vcr", damaged)
    assert slugs(problems)[:2] == ["bad-yaml", "bad-yaml"]
    assert set(slugs(problems)[2:]) <= {"not-understood"}, "what the damaged one held"
    assert b"headers: *" in data, "what an entry takes over from a damaged one is null"
    assert [e["data"]["input_tokens"] for e in found if "usage" in e["event_type"]] == [95]


def test_nock_recordings() -> None:
    data = json.loads((FIXTURES / "vcr/betamax.json").read_bytes())["http_interactions"][0]
    call = {
        "scope": "https://api.openai.com:443",
        "method": "POST",
        "path": "/v1/chat/completions",
        "body": json.loads(data["request"]["body"]["string"]),
        "status": 200,
        "response": {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}},
    }
    raw = json.dumps([call]).encode()
    assert detected(raw) == "vcr"
    found, problems = events("vcr", raw)
    assert not problems
    assert [e["data"]["input_tokens"] for e in found if "usage" in e["event_type"]] == [3]


BOMBS = {
    "laughs": b"a: &a [x,x,x,x,x,x,x,x,x]\n"
    + b"".join(b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 9)) for c in range(98, 112)),
    "cycle": b"interactions: &a\n- *a\n",
    "deep": b"interactions: " + b"[" * 100_000,
    "merge": b"a: &a {x: 1}\n"
    + b"".join(b"%c: &%c {<<: [%s]}\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 30)) for c in range(98, 112)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused(name: str) -> None:
    found, problems = events("vcr", BOMBS[name])
    assert slugs(problems)[0] == "yaml-bomb"
    assert not [e for e in found if "injection" in e["event_type"]]


def test_entries_of_a_damaged_cassette_are_bounded_together() -> None:
    entry = b"- request: {uri: x}\n  a: &a [" + b"x," * 300 + b"]\n  b: [" + b"*a," * 160 + b"]\n"
    _, problems = events("vcr", b"interactions:\n- request: }\n" + entry * 3)
    assert slugs(problems).count("yaml-bomb") == 2


def test_no_object_is_made_of_a_tag() -> None:
    request = b"!!python/object/apply:os.system [false]"
    data = b"interactions:\n- request: " + request + b"\n  response: !ruby/object:X {a: 1}\n"
    _, problems = events("vcr", data)
    assert slugs(problems) == ["not-a-record", "no-model-calls"]


def test_without_the_extra_it_says_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(UnavailableError) as raised:
        events("vcr", (FIXTURES / "vcr/typed.yaml").read_bytes())
    assert raised.value.slug == "needs-yaml"
    found, _ = events("vcr", (FIXTURES / "vcr/betamax.json").read_bytes())
    assert [e for e in found if "usage" in e["event_type"]], "JSON cassettes need nothing"


def test_detection_of_other_yaml() -> None:
    assert detected(b"name: ci\non: push\njobs:\n  interactions:\n    - request: 1\n") is None
    assert detected(b"interactions: many\n") is None
    assert detected(b"---\n# by hand\ninteractions:\n\n- request:\n    uri: http://x\n") == "vcr"
