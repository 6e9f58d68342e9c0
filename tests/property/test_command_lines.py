"""A command line that is read without Typer means what Typer reads in it; help and faults are Typer's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.cli import app, commands
from ctxctl.cli.ordinary import ordinary
from ctxctl.cli.parameters import Option

PLAIN = [name for name, command in commands.COMMANDS.items() if command.interspersed]
WORDS = [
    "",
    "-",
    "a.jsonl",
    "run.jsonl@3",
    "\0-@3",
    "x=y",
    "3",
    "-1",
    "--",
    "-h",
    "--nope",
    "-j",
    "é",
    "\udcff",
]


def flags(name: str) -> list[str]:
    """What a command is asked by, and with what follows an equals sign; none of it asks for help."""
    parameters = inspect.signature(commands.COMMANDS[name].function(), eval_str=True).parameters
    found = [how for one in parameters.values() if isinstance(how := get_args(one.annotation)[1], Option)]
    return [flag + more for how in found for flag in how.flags for more in ("", "=", "=v")]


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    name = draw(st.sampled_from(PLAIN))
    word = st.sampled_from([*WORDS, *flags(name)])
    return [*name.split(), *draw(st.lists(word, max_size=7))]


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What commands were called with from here on; none of them runs."""
    calls: list[dict[str, Any]] = []
    function = commands.Command.function

    def instead(command: commands.Command) -> Callable[..., None]:
        def called(**told: Any) -> None:
            calls.append(told)

        called.__signature__ = inspect.signature(function(command), eval_str=True)  # type: ignore[attr-defined]
        return called

    monkeypatch.setattr(commands.Command, "function", instead)
    return calls


def by_typer(arguments: list[str]) -> None:
    app.app(args=arguments, prog_name="ctxctl", standalone_mode=False)


@given(lines())
def test_both_read_a_line_alike(arguments: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        calls = recorded(patch)
        call = ordinary(arguments)
        if call is None:
            return
        call()
        by_typer(arguments)
        ours, theirs = calls
        assert ours == theirs
        assert list(map(type, ours.values())) == [type(theirs[name]) for name in ours]


@pytest.mark.parametrize(
    "arguments",
    [
        ["replay", "--json", "a.jsonl"],
        ["replay", "a.jsonl", "--turn=-1", "--drop", "kind:x", "--drop=kind:y"],
        ["show", "a.jsonl@-1", "--text", "--stage", "assembly"],
        ["diff", "a.jsonl@1", "@2"],
        ["cost", "a.jsonl", "--by", "item"],
        ["lint", "a.jsonl", "b.jsonl"],
        ["formats"],
        ["replay"],
        ["why", "@3", "tool:search"],
        ["ls", "--since", "2d", "--here"],
        ["export", "a.jsonl", "-o", "x.md"],
    ],
    ids=" ".join,
)
def test_usual_lines_need_no_typer(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    calls = recorded(monkeypatch)
    call = ordinary(arguments)
    assert call is not None
    call()
    by_typer(arguments)
    assert calls[0] == calls[1]


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["--help"], ["nope"], ["replay", "--help"], ["replay", "a", "-h"],
        ["replay", "a", "b"],
        ["replay", "a", "--turn"], ["replay", "a", "--jso"],
        ["replay", "a", "--json=yes"], ["replay", "--", "a"],
        ["cost", "a", "--top", "3"], ["export", "a", "-oX"], ["record", "--", "cmd"], ["--version", "replay"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_every_other_line_is_typers(arguments: list[str]) -> None:
    assert ordinary(arguments) is None


def test_a_shell_that_asks_for_completions_is_answered_by_typer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ordinary(["formats"]) is not None
    monkeypatch.setenv("_CTXCTL_COMPLETE", "complete_bash")
    assert ordinary(["formats"]) is None
