"""A plug-in whose code fails is told as that plug-in, with the line of its code, and fails nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl.cli.main import BUG, run
from ctxctl.errors import PluginError, UnreadableError, UsageError
from ctxctl.importers import registry
from ctxctl.model.problem import Problem
from ctxctl.trace.source import Source
from tests.unit.importers.plugin_help import Install

Out = pytest.CaptureFixture[str]
POINTS = "[ctxctl.formats]\nkiln = kiln:FORMAT\n"
DECLARED = """\
from ctxctl.ingest.about import About
from ctxctl.ingest.declaration import Format


def detect(head):
    {detect}


FORMAT = Format(
    name="{name}",
    title="A kiln",
    detect=detect,
    reader="{reader}",
    about=About(reads="Kilns.", places=(), turns="None.", claims={{}}),
)
"""
READER = """\
from ctxctl.ingest.parts import Part
from ctxctl.ingest.run import Run


def read(source, report):
    run = Run("kiln", report)
    window = run.thread()
    for record in run.records(source):
        if record.get("text") == "burst":
            raise ValueError("boom\\nat once")
        window.append(Part("user_message", record.get("text"), "user"))
        window.request(model="m")
        yield from run.drain()
    yield from run.finish()
"""
KILN = b'{"kiln":1,"text":"fire"}\n'


def plugin(
    detect: str = "return 95 * (b'\"kiln\"' in head)", reader: str = "kiln.reader:read", name: str = "kiln"
) -> str:
    return DECLARED.format(detect=detect, reader=reader, name=name)


@pytest.fixture
def kiln(tmp_path: Path) -> str:
    return written(tmp_path, KILN)


def written(folder: Path, data: bytes) -> str:
    path = folder / "captures" / "one.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return str(path)


@pytest.mark.parametrize(
    ("files", "reader", "says"),
    [
        (
            {"kiln/reader.py": "def read(*_):\n    raise ValueError('boom\\x1b[31m')\n    yield\n"},
            "kiln.reader:read",
            "ValueError: boom␛[31m (kiln/reader.py:2)",
        ),
        (
            {"kiln/reader.py": READER},
            "kiln.reader:raed",
            "AttributeError: module 'kiln.reader' has no attribute 'raed'",
        ),
        (
            {"kiln/reader.py": "x = 1\nimport cofee\n"},
            "kiln.reader:read",
            "ModuleNotFoundError: No module named 'cofee' (kiln/reader.py:2)",
        ),
        ({}, "kiln.raeder:read", "ModuleNotFoundError: No module named 'kiln.raeder'"),
        (
            {"kiln/reader.py": "class Read:\n    def __init__(self, name, report): pass\n"},
            "kiln.reader:Read",
            "AttributeError: 'Read' object has no attribute 'events'",
        ),
        (
            {"kiln/reader.py": "def read(source, report):\n    return None\n"},
            "kiln.reader:read",
            "TypeError: 'NoneType' object is not iterable",
        ),
        (
            {"kiln/reader.py": "def read(source, report):\n    yield 'text'\n"},
            "kiln.reader:read",
            "TypeError: its reader yielded str where an event (a dict) belongs",
        ),
        (
            {"kiln/reader.py": "def read(source, report):\n    raise SystemExit('out')\n"},
            "kiln.reader:read",
            "SystemExit: out (kiln/reader.py:2)",
        ),
    ],
)
def test_a_reader_that_raises_is_the_plug_in_s_failure(
    install: Install, kiln: str, capsys: Out, files: dict[str, str], reader: str, says: str
) -> None:
    install({"kiln/__init__.py": plugin(reader=reader), **files}, POINTS)
    assert run(["replay", kiln]) == 4
    told = capsys.readouterr().err
    assert f"error: the plug-in kiln:FORMAT failed: {says}\n" in told
    assert "bug in ctxctl" not in told


def test_what_a_plug_in_yielded_before_it_failed_is_kept(
    install: Install, tmp_path: Path, capsys: Out
) -> None:
    install({"kiln/__init__.py": plugin(), "kiln/reader.py": READER}, POINTS)
    path = written(tmp_path, KILN + b'{"kiln":1,"text":"burst"}\n' + KILN)
    message = "the plug-in kiln:FORMAT failed: ValueError: boom at once (kiln/reader.py:10)"
    assert run(["replay", "--json", path]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["message"] for line in lines if line.get("slug") == "plugin-failed"] == [message]
    assert sum(line["type"] == "step" for line in lines) == 1
    assert run(["replay", "--strict", path]) == 1
    assert f"one.jsonl: plugin-failed: {message}\n" in capsys.readouterr().err


def test_in_a_directory_the_other_captures_are_read(install: Install, tmp_path: Path, capsys: Out) -> None:
    install({"kiln/__init__.py": plugin(), "kiln/reader.py": READER}, POINTS)
    folder = Path(written(tmp_path, KILN)).parent
    (folder / "a.jsonl").write_bytes(b'{"kiln":1,"text":"burst"}\n')
    assert run(["replay", "--json", str(folder)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    failed = [line["message"] for line in lines if line.get("slug") == "plugin-failed"]
    assert [message.partition(":")[0] for message in failed] == ["a.jsonl"]
    assert sum(line["type"] == "step" for line in lines) == 1


def test_the_whole_story_on_request(
    install: Install, tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    install({"kiln/__init__.py": plugin(), "kiln/reader.py": READER}, POINTS)
    path = written(tmp_path, KILN + b'{"kiln":1,"text":"burst"}\n')
    monkeypatch.setenv("CTXCTL_TRACEBACK", "1")
    assert run(["replay", path]) == 4
    assert 'raise ValueError("boom' in capsys.readouterr().err


def test_a_built_in_importer_that_raises_stays_a_bug(
    install: Install, kiln: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    install({}, "")

    def broken(*_: Any) -> Any:
        raise ValueError("ours")

    monkeypatch.setattr("ctxctl.importers.chat_messages.reader.read", broken)
    assert run(["replay", "--read-as", "chat-messages", kiln]) == BUG
    assert "bug in ctxctl: ValueError" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("detect", "says"),
    [
        ("raise KeyError('x')", "KeyError: 'x' (kiln/__init__.py:6)"),
        ("return '95'", "TypeError: detect gave '95', and not a whole number from 0 to 100"),
        ("return None", "TypeError: detect gave None, and not a whole number from 0 to 100"),
    ],
)
def test_a_detect_that_fails_counts_as_no_and_is_told(
    install: Install, kiln: str, capsys: Out, detect: str, says: str
) -> None:
    install({"kiln/__init__.py": plugin(detect), "kiln/reader.py": READER}, POINTS)
    assert registry.detect(Source.from_bytes("x", KILN)) is None
    assert [(one.name, one.error) for one in registry.broken_plugins()] == [("kiln", says)]
    assert run(["replay", kiln]) == 3
    assert "1 plug-in failed to detect: kiln (`ctxctl formats kiln`)" in capsys.readouterr().err
    assert run(["formats", "kiln"]) == 0
    assert capsys.readouterr().out.endswith(f"the plug-in kiln (kiln:FORMAT) failed to detect: {says}\n")
    assert run(["replay", "--read-as", "kiln", kiln]) == 0


def test_a_detect_that_fails_at_some_file_only_fails_no_other(install: Install) -> None:
    install({"kiln/__init__.py": plugin("return 95 * (head[2] > 0)"), "kiln/reader.py": READER}, POINTS)
    found = registry.detect(Source.from_bytes("x", KILN))
    assert found is not None
    assert found.name == "kiln"
    assert registry.detect(Source.from_bytes("x", b"1")) is None


def test_an_unrecognised_file_names_the_plug_ins_that_did_not_load(
    install: Install, kiln: str, capsys: Out, tmp_path: Path
) -> None:
    install({"kiln/__init__.py": "raise ImportError('lacks a part')"}, POINTS)
    hint = "1 plug-in did not load: kiln (`ctxctl formats kiln`)"
    for arguments in (["replay", kiln], ["replay", str(Path(kiln).parent)], ["import", kiln, "-o", "-"]):
        assert run(arguments) == 3
        assert f"; {hint}\n" in capsys.readouterr().err
    assert run(["formats"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    error = "ImportError: lacks a part (kiln/__init__.py:1)"
    assert last == f"the plug-in kiln (kiln:FORMAT) did not load: {error}"
    assert run(["formats", "--json"]) == 0
    record = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert record == {"type": "plugin", "name": "kiln", "value": "kiln:FORMAT", "error": error}


def test_the_hint_for_the_ui_is_the_same(install: Install) -> None:
    install({"kiln/__init__.py": "raise ImportError('lacks a part')"}, POINTS)
    told = registry.hint_with_plugins(UnreadableError("no-events", "nothing"))
    assert told == "1 plug-in did not load: kiln (`ctxctl formats kiln`)"
    assert registry.hint_with_plugins(UsageError("no-such-step", "nothing", hint="look")) == "look"


def test_without_broken_plug_ins_nothing_is_said_of_them(install: Install, kiln: str, capsys: Out) -> None:
    install({}, "")
    assert run(["replay", kiln]) == 3
    assert "plug-in" not in capsys.readouterr().err
    assert run(["formats"]) == 0
    assert "plug-in" not in capsys.readouterr().out


CHAT = b'{"role":"user","content":"Which buoy?"}\n{"role":"assistant","content":"The green one."}\n'
CODEX = b'{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"x","cwd":"/"}}\n'


@pytest.mark.parametrize(
    ("score", "data", "name"),
    [(95, CHAT, "kiln"), (53, CHAT, "kiln"), (51, CHAT, "chat-messages"), (100, CODEX, "codex")],
)
def test_the_surest_wins_and_a_built_in_one_of_equals(
    install: Install, score: int, data: bytes, name: str
) -> None:
    install({"kiln/__init__.py": plugin(f"return {score}"), "kiln/reader.py": READER}, POINTS)
    found = registry.of_head(data)
    assert found is not None
    assert found.name == name


def test_no_plug_in_is_loaded_where_a_built_in_format_is_sure(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install({}, "")
    monkeypatch.setattr(registry, "_plugins", lambda: pytest.fail("loaded"))
    assert registry.of_head(CODEX) is not None


def test_a_format_is_found_by_its_name_and_by_that_of_its_entry_point(
    install: Install, kiln: str, capsys: Out
) -> None:
    points = "[ctxctl.formats]\nkiln-runtime = kiln:FORMAT\n"
    install({"kiln/__init__.py": plugin(), "kiln/reader.py": READER}, points)
    assert registry.by_name("kiln") is registry.by_name("kiln-runtime")
    assert run(["replay", "--read-as", "kiln-runtime", kiln]) == 0
    assert not registry.broken_plugins()


def test_a_name_that_is_taken_is_told(install: Install, capsys: Out) -> None:
    points = "[ctxctl.formats]\nkiln = kiln:FORMAT\nother = kiln.other:FORMAT\n"
    files = {"kiln/__init__.py": plugin(name="codex"), "kiln/other.py": plugin()}
    install(files, points)
    assert [(one.name, one.error) for one in registry.broken_plugins()] == [
        ("kiln", "its format's name 'codex' is taken by ctxctl")
    ]
    with pytest.raises(UsageError) as caught:
        registry.by_name("kiln-")
    assert "kiln" in (caught.value.hint or "")


def test_a_wrong_keyword_of_the_kit_names_the_nearest_one(install: Install) -> None:
    reader = READER.replace('model="m"', 'modl="m"')
    install({"kiln/__init__.py": plugin(), "kiln/reader.py": reader}, POINTS)
    problems: list[Problem] = []
    with pytest.raises(PluginError, match="request has no keyword 'modl'; did you mean 'model'") as caught:
        list(registry.capture_events(registry.by_name("kiln"), Source.from_bytes("x", KILN), problems.append))
    assert "(kiln/reader.py:12)" in caught.value.message
