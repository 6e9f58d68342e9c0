"""config.py: who wins, and what a wrong value says."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ctxctl import config
from ctxctl.errors import UsageError


def write(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_defaults(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert config.load(env={}, cwd=tmp_path) == config.Settings()


def test_flags_beat_environment_beats_file_beats_defaults(tmp_path: Path) -> None:
    write(tmp_path, "ctxctl.toml", 'model = "file"\nencoding = "file"\ntarget = "tool"\nproblems = 3\n')
    env = {"CTXCTL_MODEL": "env", "CTXCTL_ENCODING": "env", "CTXCTL_STRICT": "yes", "CTXCTL_POLICY": ""}
    flags = {"model": "flag", "strict": None, "all": True}
    settings = config.with_flags(config.load(env=env, cwd=tmp_path), flags)
    assert (settings.model, settings.encoding, settings.target) == ("flag", "env", "tool")
    assert settings.strict is True
    assert settings.problems == 3
    assert settings.policy is None
    assert settings.files == (str(tmp_path / "ctxctl.toml"),)


def test_nearest_file_above_but_not_above_the_repository(tmp_path: Path) -> None:
    write(tmp_path, "ctxctl.toml", 'model = "outside"\n')
    repo = tmp_path / "repo"
    write(repo, "pyproject.toml", '[tool.ctxctl]\nmodel = "inside"\n')
    (repo / ".git").mkdir()
    write(repo / "a" / "b", "pyproject.toml", "this = 'is not ours'\n")
    found = config.load(env={}, cwd=repo / "a" / "b")
    assert found.model == "inside"
    (repo / "pyproject.toml").unlink()
    assert config.load(env={}, cwd=repo / "a" / "b").model is None


def test_a_foreign_pyproject_that_is_broken_is_none_of_our_business(tmp_path: Path) -> None:
    write(tmp_path, "pyproject.toml", "= broken")
    (tmp_path / ".git").mkdir()
    assert config.load(env={}, cwd=tmp_path).files == ()


def test_the_users_own_file_is_below_the_projects(tmp_path: Path) -> None:
    project, own = tmp_path / "project", tmp_path / "config" / "ctxctl"
    write(own, "config.toml", 'model = "own"\nencoding = "own"\n[keys]\nquit = "x"\nhelp = "h"\n')
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    project.mkdir()
    (project / ".git").mkdir()
    alone = config.load(env=env, cwd=project)
    assert (alone.model, alone.encoding, alone.files) == ("own", "own", (str(own / "config.toml"),))
    write(project, "ctxctl.toml", 'model = "project"\n[keys]\nhelp = "?"\n')
    both = config.load(env=env, cwd=project)
    assert (both.model, both.encoding) == ("project", "own")
    assert both.keys == {"quit": ("x",), "help": ("?",)}
    assert both.files == (str(own / "config.toml"), str(project / "ctxctl.toml"))
    assert config.load(env={**env, "CTXCTL_MODEL": "env"}, cwd=project).model == "env"
    assert config.load(env={**env, "CTXCTL_CONFIG": "off"}, cwd=project) == config.Settings()
    named = {**env, "CTXCTL_CONFIG": str(project / "ctxctl.toml")}
    assert config.load(env=named, cwd=project).encoding is None


def test_the_users_own_file_is_in_the_home_directory_where_nothing_else_is_said(tmp_path: Path) -> None:
    write(tmp_path / ".config" / "ctxctl", "config.toml", 'model = "home"\n')
    (tmp_path / ".git").mkdir()
    assert config.load(env={"HOME": str(tmp_path)}, cwd=tmp_path).model == "home"


def test_a_mistake_in_the_users_own_file_names_it(tmp_path: Path) -> None:
    write(tmp_path / "ctxctl", "config.toml", "strict = 'maybe'\n")
    with pytest.raises(UsageError, match=r"ctxctl/config\.toml: strict must be"):
        config.load(env={"XDG_CONFIG_HOME": str(tmp_path)}, cwd=tmp_path)


def test_named_file_and_off(tmp_path: Path) -> None:
    write(tmp_path, "ctxctl.toml", 'model = "found"\n')
    write(tmp_path, "other.toml", 'model = "named"\n')
    env = {"CTXCTL_CONFIG": str(tmp_path / "other.toml")}
    assert config.load(env=env, cwd=tmp_path).model == "named"
    assert config.load(env={"CTXCTL_CONFIG": "off"}, cwd=tmp_path).model is None
    with pytest.raises(UsageError, match="CTXCTL_CONFIG"):
        config.load(env={"CTXCTL_CONFIG": str(tmp_path / "none.toml")}, cwd=tmp_path)


@pytest.mark.parametrize(
    ("text", "slug", "says"),
    [
        ("strict = 'maybe'\n", "bad-setting", "strict must be true or false"),
        ("problems = -1\n", "bad-setting", "problems must be a number"),
        ("problems = true\n", "bad-setting", "problems must be a number"),
        ("color = 'pink'\n", "bad-setting", "auto, always, never"),
        ("model = 3\n", "bad-setting", "model must be a text"),
        ("modell = 'x'\n", "unknown-setting", "no setting 'modell'"),
        ("file = 'x'\n", "unknown-setting", "no setting 'file'"),
        ("model = \n", "bad-config", "line 1"),
        ("theme = 'pink'\n", "bad-setting", "auto, dark, light"),
        ("mouse = 'maybe'\n", "bad-setting", "mouse must be true or false"),
        ("keys = 'x'\n", "bad-setting", "keys must be a table"),
        ("[keys]\nhelp = 3\n", "bad-setting", '"help" a key or a list'),
        ("[keys]\nhelp = ['?', '']\n", "bad-setting", '"help" a key or a list'),
    ],
)
def test_wrong_values_say_where_they_came_from(tmp_path: Path, text: str, slug: str, says: str) -> None:
    write(tmp_path, "ctxctl.toml", text)
    with pytest.raises(UsageError, match=says) as caught:
        config.load(env={}, cwd=tmp_path)
    assert caught.value.slug == slug
    assert "ctxctl.toml" in str(caught.value)


_KEYS = 'a table such as [keys] with lines like "turn.next" = ["n"]'
_MODELS = 'tables such as [models."my-model"] with lines like window = 128000'
_LINT = 'a table such as [lint] with lines like ignore = ["CTX011"], and [lint.rules.CTX009]'
_KNOWN = (
    "like, provider, window, max_input, max_output, input_price, output_price, cache_read_price, "
    "cache_write_price, cache_write_1h_price"
)


@pytest.mark.parametrize(
    ("text", "name", "wanted", "value"),
    [
        ("model = ''", "model", "a text", ""),
        ("strict = 1", "strict", "true or false", 1),
        ("learned = 'codex'", "learned", "true, false or CLIENT@VERSION", "codex"),
        ("problems = 3.0", "problems", "a number from 0 up", 3.0),
        ("color = ['auto']", "color", "one of auto, always, never", ["auto"]),
        ("keys = 'n'", "keys", _KEYS, "n"),
        ("[keys]\nturn.next = 3", "keys", 'a table of keys, and "turn.next" a key or a list of keys',
         {"turn": {"next": 3}}),
        ("models = 3", "models", _MODELS, 3),
        ("[models]\nm = 3", "models", _MODELS, {"m": 3}),
        ("[models.m]\nsize = 3", "models", f"{_MODELS}; \"m\" has 'size', known are {_KNOWN}",
         {"m": {"size": 3}}),
        ("[models.m]\nlike = 3", "models", f'{_MODELS}; like of "m" is a text', {"m": {"like": 3}}),
        ("[models.m]\nwindow = 128000.0", "models", f'{_MODELS}; window of "m" is a number of tokens',
         {"m": {"window": 128000.0}}),
        ("[models.m]\nwindow = 0", "models", f'{_MODELS}; window of "m" is a number of tokens',
         {"m": {"window": 0}}),
        ("[models.m]\ninput_price = -1", "models",
         f'{_MODELS}; input_price of "m" is US dollars for a million tokens', {"m": {"input_price": -1}}),
        ("[models.m]\ninput_price = true", "models",
         f'{_MODELS}; input_price of "m" is US dollars for a million tokens', {"m": {"input_price": True}}),
        ("lint = 3", "lint", _LINT, 3),
        ("[lint]\nselect = [3]", "lint", f"{_LINT}; 'select' does not fit", {"select": [3]}),
        ("[lint]\nseverity = ''", "lint", f"{_LINT}; 'severity' does not fit", {"severity": ""}),
        ("[lint.rules]\nCTX009 = 3", "lint", f"{_LINT}; 'rules' does not fit", {"rules": {"CTX009": 3}}),
        ("[lint]\nrule = 3", "lint", f"{_LINT}; 'rule' does not fit", {"rule": 3}),
    ],
)  # fmt: skip
def test_what_a_wrong_value_says_to_the_letter(
    tmp_path: Path, text: str, name: str, wanted: str, value: object
) -> None:
    write(tmp_path, "ctxctl.toml", text)
    with pytest.raises(UsageError) as caught:
        config.load(env={}, cwd=tmp_path)
    assert caught.value.slug == "bad-setting"
    assert caught.value.message == f"{tmp_path / 'ctxctl.toml'}: {name} must be {wanted}, not {value!r}"


def test_right_values_of_tables_are_as_they_were_written(tmp_path: Path) -> None:
    write(
        tmp_path,
        "ctxctl.toml",
        "[models.m]\nlike = ''\nwindow = 1_000_000\ninput_price = 3\noutput_price = 0.0\n"
        "[lint]\nselect = 'CTX001'\nignore = []\nbaseline = 'b.json'\n[lint.rules.CTX009]\nshare = 0.5\n",
    )
    found = config.load(env={}, cwd=tmp_path)
    assert found.models == {"m": {"like": "", "window": 1_000_000, "input_price": 3, "output_price": 0.0}}
    assert type(found.models["m"]["input_price"]) is int
    assert found.lint == {
        "select": ["CTX001"], "ignore": [], "baseline": "b.json", "rules": {"CTX009": {"share": 0.5}},
    }  # fmt: skip


def test_wrong_environment(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="environment: problems"):
        config.load(env={"CTXCTL_PROBLEMS": "many"}, cwd=tmp_path)


def test_settings_of_the_ui(tmp_path: Path) -> None:
    write(
        tmp_path,
        "pyproject.toml",
        "[tool.ctxctl]\ntheme = 'light'\nremember = false\nmouse = 'no'\n"
        "[tool.ctxctl.keys]\nturn.next = 'n'\n'turn.previous' = ['N', 'p']\nabout = []\n",
    )
    settings = config.load(env={"CTXCTL_KEYS": "x"}, cwd=tmp_path)
    assert (settings.theme, settings.remember, settings.mouse) == ("light", False, False)
    assert settings.keys == {"turn.next": ("n",), "turn.previous": ("N", "p"), "about": ()}
    assert config.load(env={"CTXCTL_THEME": "terminal-dark"}, cwd=tmp_path).theme == "terminal-dark"


@pytest.mark.parametrize(
    ("given", "bytes_"), [("1000", 1000), ('"2G"', 2 << 30), ('"500 MiB"', 500 << 20), ("0", 0)]
)
def test_a_size_of_the_cache(given: str, bytes_: int, tmp_path: Path) -> None:
    (tmp_path / "ctxctl.toml").write_text(f"[cache]\nmax = {given}\n")
    assert config.load(env={}, cwd=tmp_path).cache == {"max": bytes_}


@pytest.mark.parametrize("given", ["max = -1", 'max = "lots"', "most = 5", "max = true"])
def test_what_is_no_size_of_the_cache(given: str, tmp_path: Path) -> None:
    (tmp_path / "ctxctl.toml").write_text(f"[cache]\n{given}\n")
    with pytest.raises(UsageError, match="max"):
        config.load(env={}, cwd=tmp_path)


def test_a_pipe_in_place_of_settings_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / "ctxctl.toml")
    write(tmp_path, "pyproject.toml", '[tool.ctxctl]\nmodel = "found"\n')
    assert config.load(env={}, cwd=tmp_path).model == "found"
    named = {"CTXCTL_CONFIG": str(tmp_path / "ctxctl.toml")}
    with pytest.raises(UsageError, match=r"ctxctl\.toml \(from CTXCTL_CONFIG\) is not a regular file"):
        config.load(env=named, cwd=tmp_path)


def test_the_null_device_is_an_empty_file_of_settings(tmp_path: Path) -> None:
    write(tmp_path, "ctxctl.toml", 'model = "found"\n')
    assert config.load(env={"CTXCTL_CONFIG": os.devnull}, cwd=tmp_path).model is None


@pytest.mark.parametrize("name", ["ctxctl.toml", "pyproject.toml"])
def test_settings_that_are_too_large_are_not_passed_over_in_silence(name: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write(tmp_path, name, '[tool.ctxctl]\nmodel = "large"\n' + "# more\n" * (3 << 17))
    for env in ({}, {"CTXCTL_CONFIG": str(tmp_path / name)}):
        with pytest.raises(UsageError, match=rf"{name}: settings of more than 1 MB are not read") as caught:
            config.load(env=env, cwd=tmp_path)
        assert caught.value.slug == "bad-config"


def test_a_large_project_file_that_says_nothing_about_ctxctl_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write(tmp_path, "pyproject.toml", "# more\n" * (3 << 17))
    assert config.load(env={}, cwd=tmp_path).files == ()


@pytest.mark.parametrize(
    ("place", "taken"),
    [
        ("fleet", True),
        ("../shared", True),  # from a folder of the project, inside of it
        ("../../fleet", False),
        ("/somewhere/else", False),
        ("s3://bucket/fleet", False),
        ("file:///somewhere", False),
        ("link/fleet", False),
        ("a\0b", False),
    ],
)
@pytest.mark.parametrize(("table", "name"), [("fleet", "dataset"), ("lint", "baseline")])
def test_a_projects_file_names_no_place_outside_of_its_folder(
    table: str, name: str, place: str, taken: bool, tmp_path: Path
) -> None:
    here, own = tmp_path / "project" / "below", tmp_path / "own"
    here.mkdir(parents=True)
    (here / "link").symlink_to(tmp_path)
    said = f"[{table}]\n{name} = {json.dumps(place)}\n"
    write(tmp_path / "project", "pyproject.toml", said.replace("[", "[tool.ctxctl.", 1))
    found = config.load(env={}, cwd=here)
    assert getattr(found, table).get(name) == (place if taken else None)
    assert ([place in why for why in found.refused.values()] or [None]) == [None if taken else True]
    write(own / "ctxctl", "config.toml", said)
    users = config.load(env={"XDG_CONFIG_HOME": str(own)}, cwd=tmp_path)
    assert (getattr(users, table), users.refused) == ({name: place}, {})
