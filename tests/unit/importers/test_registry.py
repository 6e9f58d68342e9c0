from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ctxctl import entry_points
from ctxctl.errors import UsageError
from ctxctl.importers import registry
from ctxctl.model.problem import Problem
from ctxctl.policies import registry as policies
from ctxctl.trace.source import Source

ROOT = Path(__file__).resolve().parents[3]
CAPTURE = b"""\
{"type":"start","my_runtime_version":"2.4.0","time":"2026-01-01T00:00:00Z"}
{"type":"prompt","id":"p1","text":"Which buoy is green?"}
{"type":"call","id":"c1","model":"m","input":12}
{"type":"answer","text":"Starboard."}
"""
Install = Callable[[dict[str, str], str], None]


def printed() -> dict[str, str]:
    """The files of docs/importers.md, as printed, by their paths."""
    page = (ROOT / "docs" / "importers.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```", page, re.DOTALL)
    return dict(blocks)


def printed_points() -> str:
    """Return the entry points of docs/importers.md, as an installer writes them down."""
    page = (ROOT / "docs" / "importers.md").read_text(encoding="utf-8")
    found = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    assert found is not None
    groups = tomllib.loads(found[1])["project"]["entry-points"]
    return "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in groups.items()
    )


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Put packages where an installer puts them, with metadata of their own."""

    def put(files: dict[str, str], points: str) -> None:
        about = tmp_path / "my_runtime-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-runtime\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(points)
        for name, code in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(code)
        forget()

    def forget() -> None:
        for cached in (registry.available, registry.built_in, registry._plugins, registry._loaded):
            cached.cache_clear()
        for name in [name for name in sys.modules if name.partition(".")[0] == "my_runtime"]:
            del sys.modules[name]

    monkeypatch.syspath_prepend(str(tmp_path))
    yield put
    monkeypatch.undo()
    forget()


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
