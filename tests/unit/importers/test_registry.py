from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ctxctl import entry_points
from ctxctl.errors import UsageError
from ctxctl.importers import registry
from ctxctl.ingest.about import FACT_NAMES
from ctxctl.model.problem import Problem
from ctxctl.policies import registry as policies
from ctxctl.trace.source import Source
from tests.unit.importers.plugin_help import Install

ROOT = Path(__file__).resolve().parents[3]
CAPTURE = b"""\
{"type":"start","my_runtime_version":"2.4.0","time":"2026-01-01T00:00:00Z"}
{"type":"prompt","id":"p1","text":"Which buoy is green?"}
{"type":"call","id":"c1","model":"m","input":12}
{"type":"answer","text":"Starboard."}
"""


PAGE = (ROOT / "docs" / "importers.md").read_text(encoding="utf-8")
DECLARED = """\
from ctxctl.ingest.about import About
from ctxctl.ingest.declaration import Format

FORMAT = Format(
    name="my-calls", title="Calls", detect=lambda head: 0, reader="my_calls.reader:read",
    about=About(reads="Calls.", places=(), turns="None.", claims={}),
)
"""


def printed(folder: str = "my_runtime") -> dict[str, str]:
    """The files of docs/importers.md in that folder, as printed, by their paths."""
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, re.DOTALL)
    return {path: code for path, code in blocks if path.startswith(f"{folder}/")}


def printed_project() -> dict[str, Any]:
    """The pyproject.toml of docs/importers.md."""
    found = re.search(r"```toml\n# pyproject.toml\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return tomllib.loads(found[1])


def printed_points() -> str:
    """Return the entry points of docs/importers.md, as an installer writes them down."""
    groups = printed_project()["project"]["entry-points"]
    return "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in groups.items()
    )


def test_the_printed_importer_runs_as_printed(install: Install) -> None:
    files = printed()
    assert set(files) == {"my_runtime/__init__.py", "my_runtime/reader.py"}
    install(files, printed_points())
    source = Source.from_bytes("x", CAPTURE)
    found = registry.detect(source)
    assert found is not None
    assert found.name == "my-runtime"
    assert "my_runtime.reader" not in sys.modules
    problems: list[Problem] = []
    made = list(registry.capture_events(found, source, problems.append))
    assert problems == []
    assert [event["event_type"] for event in made].count("context.injection.applied") == 1
    facts = made[-1]["data"]["facts"]
    assert facts["input_tokens"] == {"native": 1}
    assert facts["messages"] == {"native": 2}


def test_the_printed_project_names_what_is_printed() -> None:
    project = printed_project()
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert {path.partition("/")[0] for path in printed()} == set(packages)
    assert project["build-system"] == {"requires": ["hatchling"], "build-backend": "hatchling.build"}


def test_the_printed_test_of_a_plug_in_passes(install: Install) -> None:
    install(printed(), printed_points())
    space: dict[str, Any] = {}
    exec(printed("tests")["tests/test_my_runtime.py"], space)
    checks = [value for name, value in space.items() if name.startswith("test_")]
    assert len(checks) == 2
    for check in checks:
        check()


def test_the_printed_importer_of_a_document_runs_as_printed(install: Install) -> None:
    install(printed("my_document"), "[ctxctl.formats]\nmy-document = my_document:FORMAT\n")
    system, asked = {"role": "system", "content": "Pilot."}, {"role": "user", "content": "Which buoy?"}
    call = {"id": "c1", "function": {"name": "look", "arguments": "{}"}}
    reply = {"role": "assistant", "content": "", "tool_calls": [call]}
    given = {"role": "tool", "tool_call_id": "c1", "content": "green"}
    whole = {
        "my_schema": 3,
        "runs": [
            {
                "id": "r1", "model": "m", "messages": [system, asked], "reply": reply,
                "usage": {"input": 9, "cached": 4},
            },
            "torn",
            {
                "id": "r2", "model": "m", "messages": [system, asked, reply, given],
                "reply": {"role": "assistant", "content": "The green one."}, "usage": {"input": 20},
            },
        ],
    }  # fmt: skip
    data = json.dumps(whole, indent=1).encode()
    source = Source.from_bytes("x", data)
    found = registry.detect(source)
    assert found is not None
    assert found.name == "my-document"
    problems: list[Problem] = []
    made = list(registry.capture_events(found, source, problems.append))
    assert [problem.slug for problem in problems] == ["not-a-record", "newer-version"]
    assert data[problems[0].byte :].startswith(b'"torn"')
    assert data.split(b"\n")[problems[0].line - 1].strip() == b'"torn",'
    items = [event["data"] for event in made if event["event_type"] == "context.item.added"]
    assert [item["context_kind"] for item in items] == [
        "system_prompt", "user_message", "tool_call", "tool_result", "assistant_message",
    ]  # fmt: skip
    facts = made[-1]["data"]["facts"]
    assert facts["input_tokens"] == {"native": 2}
    assert facts["model"] == {"native": 2}


def test_the_printed_importer_of_calls_runs_as_printed(install: Install) -> None:
    files = {**printed("my_calls"), "my_calls/__init__.py": DECLARED}
    install(files, "[ctxctl.formats]\nmy-calls = my_calls:FORMAT\n")
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": "Which buoy?"}]}
    answer = {
        "choices": [{"message": {"role": "assistant", "content": "Green."}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2},
    }
    url = "https://api.openai.com/v1/chat/completions"
    record = {"url": url, "body": body, "response": {"status": 200, "body": answer}}
    source = Source.from_bytes("x", json.dumps(record).encode())
    problems: list[Problem] = []
    made = list(registry.capture_events(registry.by_name("my-calls"), source, problems.append))
    assert problems == []
    assert made[-1]["data"]["requests"] == 1


def test_the_page_names_every_fact() -> None:
    assert all(f"`{name}`" in PAGE for name in FACT_NAMES)
    assert f"of {len(FACT_NAMES)} facts" in PAGE


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ("title=", "titel=", "Format has no keyword 'titel'; it takes: name, title, detect, reader, about,"),
        ("places=", "place=", "About has no keyword 'place'; it takes: reads, places, turns, claims,"),
        ("client=", "clients=", "HeldAgainst has no keyword 'clients'; it takes: client, newest, oldest,"),
        ('"turns": native()', '"turn": native()', "my-runtime claims 'turn', which is no fact; there are:"),
    ],
)
def test_a_wrong_keyword_is_told_with_those_that_exist(
    install: Install, right: str, wrong: str, says: str
) -> None:
    files = printed()
    code = files["my_runtime/__init__.py"]
    assert code.count(right) == 1
    broken = code.replace(right, wrong)
    with pytest.raises(TypeError, match=re.escape(says)):
        exec(broken, {})
    install({**files, "my_runtime/__init__.py": broken}, printed_points())
    with pytest.raises(UsageError) as caught:
        registry.by_name("my-runtime")
    assert caught.value.slug == "unknown-format"
    assert f"the plug-in my_runtime:FORMAT did not load: TypeError: {says}" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("raise ImportError('lacks a part')", "ImportError: lacks a part"),
        ("raise SystemError('\\x1b[31m' + 'much ' * 100)", "SystemError: "),
        ("FORMAT = object()", "TypeError: is no ctxctl.ingest.declaration.Format"),
        ("OTHER = 1", "AttributeError: module 'my_runtime' has no attribute 'FORMAT'"),
    ],
)
def test_a_broken_plug_in_is_left_out_and_told_to_who_asks_for_it(
    install: Install, code: str, error: str
) -> None:
    install({"my_runtime/__init__.py": code}, printed_points())
    assert registry.available() == registry.built_in()
    assert registry.detect(Source.from_bytes("x", CAPTURE)) is None
    assert [plugin.name for plugin in registry.broken_plugins()] == ["my-runtime"]
    with pytest.raises(UsageError) as caught:
        registry.by_name("my-runtime")
    assert f"my_runtime:FORMAT did not load: {error}" in (caught.value.hint or "")


def test_a_bundled_plug_in_that_breaks_is_treated_as_anybodys(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("ctxctl.plugins.sibyl.FORMAT")
    monkeypatch.setitem(sys.modules, "ctxctl.plugins.sibyl.policy.packs", None)
    install({}, "")
    assert "sibyl" not in {one.name for one in registry.available()}
    with pytest.raises(UsageError) as caught:
        registry.by_name("sibyl")
    assert "ctxctl.plugins.sibyl:FORMAT did not load: AttributeError" in (caught.value.hint or "")
    with pytest.raises(UsageError) as caught:
        policies.policy_by_name("sibyl")
    assert caught.value.slug == "unknown-policy"
    assert "ctxctl.plugins.sibyl.policy.packs:Sibyl did not load: ModuleNotFoundError" in (
        caught.value.hint or ""
    )
    assert "sibyl" not in {about.name for about in policies.described_policies()}


def test_a_policy_of_a_plug_in_is_found_and_a_broken_one_told(install: Install) -> None:
    code = "class Mine:\n    'Keeps all.'\n    name = 'mine'\n"
    points = "[ctxctl.policies]\nmine = my_runtime:Mine\nbad = my_runtime:Bad\n"
    install({"my_runtime/__init__.py": code}, points)
    made = policies.policy_by_name("mine")
    assert made is not None
    assert made.name == "mine"
    assert policies.policy_names()[-1] == "mine"
    with pytest.raises(UsageError) as caught:
        policies.policy_by_name("bad")
    assert "my_runtime:Bad did not load: AttributeError" in (caught.value.hint or "")


def test_the_bundled_plug_ins_are_those_of_the_package() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    assert {group: declared[group] for group in entry_points.BUNDLED} == entry_points.BUNDLED
    assert all(group in entry_points.BUNDLED for group in declared if group.startswith("ctxctl."))


def test_what_the_metadata_say_of_the_bundled_ones_adds_nothing(install: Install) -> None:
    own = entry_points.BUNDLED[entry_points.FORMATS]
    install({}, "[ctxctl.formats]\n" + "".join(f"{name} = {value}\n" for name, value in own.items()))
    assert not registry._plugins()
    assert registry.available() == registry.built_in()


def test_names() -> None:
    assert registry.by_name("sanqian").default_policy == "sanqian"
    with pytest.raises(UsageError) as caught:
        registry.by_name("claude")
    assert caught.value.slug == "unknown-format"
    assert "claude-code" in (caught.value.hint or "")


@pytest.mark.parametrize("data", [b"", b"\0\1\2", b"[1, 2]", b'{"a": 1}', b'{"event_type":"x","source":"y"}'])
def test_what_nobody_knows(data: bytes) -> None:
    assert registry.detect(Source.from_bytes("x", data)) is None
