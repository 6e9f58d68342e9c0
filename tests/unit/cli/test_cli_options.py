"""Shared options as commands take them."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest

from ctxctl import config
from ctxctl.cli import options as opt
from ctxctl.cli.main import run
from ctxctl.cli.parameters import Option

TRACE = str(Path(__file__).parents[3] / "traces" / "coding-agent.jsonl")
Own = Annotated[bool, Option("--own")]


def test_a_command_gets_its_own_parameters_and_one_value() -> None:
    got: list[object] = []

    @opt.takes("json own model", model=Annotated[str | None, Option("--model", help="Another.")])
    def command(options: opt.CommonOptions, trace: str, own: Own = False) -> None:
        """Do it."""
        got.extend((options, trace, own))

    parameters = inspect.signature(command).parameters
    assert list(parameters) == ["trace", "json", "own", "model"]
    assert parameters["model"].annotation.__metadata__[0].help == "Another."
    assert (command.__name__, command.__doc__) == ("command", "Do it.")
    command(trace="t", json=True, own=True, model="m")
    assert got == [opt.CommonOptions(json=True, model="m"), "t", True]


def test_flags_that_were_not_given_leave_the_settings_alone() -> None:
    settings = config.Settings(model="a", learned="c@1", strict=True)
    assert config.with_flags(settings, opt.CommonOptions().flags()) == settings
    given = config.with_flags(settings, opt.CommonOptions(model="b", no_learned=True).flags())
    assert (given.model, given.learned, given.strict) == ("b", "none", True)


@pytest.mark.parametrize(
    "arguments", [("replay", TRACE, "--compare", "--window", "20k"), ("log", TRACE, "system")]
)
def test_the_command_line_loads_the_settings_once(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    load, calls = config.load, 0

    def counting(**given: Any) -> config.Settings:
        nonlocal calls
        calls += sys._getframe(1).f_globals["__name__"].startswith("ctxctl.cli")
        return load(**given)

    monkeypatch.setattr(config, "load", counting)
    assert run(arguments) == 0
    assert calls == 1
