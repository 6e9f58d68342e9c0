"""Folders of the user are those that platformdirs says, whether it is asked or not."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import get_args

import platformdirs
import pytest

from ctxctl import user_folders
from ctxctl.importers.session_places import files_below
from ctxctl.trace.inputs import files_under
from ctxctl.trace.source import open_source
from ctxctl.user_folders import Kind, make_private, user_folder

VARIABLES = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
VALUES = [None, "", "/x/y", "/x/", "//x", "x", "~/x", "/x/~", " /x", "/x ", "$HOME/x", "/"]


@pytest.mark.parametrize("named", VALUES)
@pytest.mark.parametrize("home", ["/home/u", "/", "/home/u/", "", "u", None])
@pytest.mark.parametrize("android", [False, True])
def test_they_are_where_platformdirs_has_them(
    named: str | None, home: str | None, android: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in (*((name, named) for name in VARIABLES), ("HOME", home)):
        if value is None:
            monkeypatch.delenv(variable, raising=False)
        else:
            monkeypatch.setenv(variable, value)
    if android:
        monkeypatch.setenv("ANDROID_DATA", "/data")
    assert user_folder("cache") == platformdirs.user_cache_path("ctxctl", appauthor=False)
    assert user_folder("config") == platformdirs.user_config_path("ctxctl", appauthor=False)
    assert user_folder("data") == platformdirs.user_data_path("ctxctl", appauthor=False)
    assert user_folder("state") == platformdirs.user_state_path("ctxctl", appauthor=False)


@pytest.mark.parametrize("kind", get_args(Kind))
def test_elsewhere_platformdirs_is_asked(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/u")
    expected = getattr(platformdirs, f"user_{kind}_path")("ctxctl", appauthor=False)
    asked: list[str] = []
    real = platformdirs.PlatformDirs
    monkeypatch.setattr(platformdirs, "PlatformDirs", lambda **told: asked.append(kind) or real(**told))
    monkeypatch.setattr(user_folders.sys, "platform", "darwin")
    assert user_folder(kind) == expected
    monkeypatch.undo()
    assert asked == [kind]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems ask")
def test_on_linux_it_need_not_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/u")
    monkeypatch.delenv("ANDROID_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    assert str(user_folder("data")).endswith("/ctxctl")


@pytest.mark.parametrize(
    ("variables", "kept"),
    [
        ({}, ".cache/ctxctl/captures/k/events.jsonl"),
        ({}, ".local/state/ctxctl/trace.jsonl"),
        ({}, ".local/share/ctxctl/learned/trace.jsonl"),
        ({"XDG_CACHE_HOME": "cache"}, "cache/ctxctl/captures/k/events.jsonl"),
        # The default place too, whatever a variable says now.
        ({"XDG_CACHE_HOME": "cache"}, ".cache/ctxctl/captures/k/events.jsonl"),
        ({"CTXCTL_CACHE_DIR": "kept"}, "kept/captures/k/events.jsonl"),
    ],
)
def test_what_is_kept_is_no_session(
    variables: dict[str, str], kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in (*VARIABLES, "CTXCTL_CACHE_DIR", "CTXCTL_DATA_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable, value in variables.items():
        monkeypatch.setenv(variable, str(tmp_path / value))
    for name in (kept, "kept/own.jsonl", "own/.cache/other/trace.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}\n")
    others = ["kept/own.jsonl", "own/.cache/other/trace.jsonl"]
    assert [*files_under(tmp_path).files] == others
    assert sorted(path for path, _ in files_below(tmp_path)) == [str(tmp_path / name) for name in others]
    inside = (tmp_path / kept).parent
    assert files_under(inside).files == () == tuple(files_below(inside))
    with open_source(tmp_path / kept) as source:
        assert source.size == 3, "who names a file itself means it"


def test_every_folder_that_is_made_is_the_users_alone(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o755)
    before = os.umask(0o022)
    try:
        for below in ("cache/ctxctl/fleet/id", "cache/ctxctl/replays", "cache"):
            make_private(tmp_path / "home" / below)
    finally:
        os.umask(before)
    made = [path for path in (tmp_path / "home").rglob("*") if path.is_dir()]
    assert {path.stat().st_mode & 0o777 for path in made} == {0o700}
    assert len(made) == 5
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o755
