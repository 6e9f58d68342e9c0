"""Most command lines, read without Typer, which takes three times as long to import as Python to start.

Read is what leaves no question: a command, its flags as they are declared, words for values, and arguments.
Any other line (help, completion, short flags in one word, numbers, what is missing or unknown) is Typer's,
and so is every message about one.  What both read, both read alike (tests/property/test_command_lines.py).
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, get_args

from ctxctl.cli.commands import COMMANDS, named_words
from ctxctl.cli.parameters import Argument, Option

_FLAGS = (bool, bool | None)
_WORDS = (str, str | None)
_LISTS = (list[str], list[str] | None)


def ordinary(arguments: Sequence[str]) -> Callable[[], None] | None:
    """The call that a command line stands for; None where Typer is to read it."""
    words = named_words(arguments)
    command = COMMANDS.get(" ".join(arguments[:words]))
    if command is None or not command.interspersed or os.environ.get("_CTXCTL_COMPLETE"):
        return None
    if "--help" in arguments or "-h" in arguments:
        return None  # before the command is imported
    function = command.function()
    parameters = inspect.signature(function, eval_str=True).parameters
    given = _given(arguments[words:], parameters)
    return None if given is None else partial(function, **given)


def _given(words: Sequence[str], parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any] | None:
    """The value of every parameter; None where that is in question."""
    by_flag: dict[str, inspect.Parameter] = {}
    places: list[inspect.Parameter] = []
    given: dict[str, Any] = {}
    for parameter in parameters.values():
        how = _how(parameter)
        if isinstance(how, Option):
            given[parameter.name] = parameter.default
            by_flag |= dict.fromkeys(how.flags, parameter)
        else:
            places.append(parameter)
    loose = _flagged(words, by_flag, given)
    return given if loose is not None and _placed(loose, places, given) else None


def _flagged(
    words: Sequence[str], by_flag: Mapping[str, inspect.Parameter], given: dict[str, Any]
) -> list[str] | None:
    """The words that belong to no flag; None where one is in question.  Fills in `given`."""
    loose: list[str] = []
    coming = iter(words)
    for word in coming:
        if word[:1] != "-" or word == "-":
            loose.append(word)
            continue
        flag, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        parameter = by_flag.get(flag)
        kind = None if parameter is None else get_args(parameter.annotation)[0]
        if parameter is None or (kind in _FLAGS and equals) or kind not in (*_FLAGS, *_WORDS, *_LISTS):
            return None
        if kind in _FLAGS:
            given[parameter.name] = True
            continue
        if not equals:
            try:
                value = next(coming)
            except StopIteration:
                return None
        given[parameter.name] = [*(given[parameter.name] or ()), value] if kind in _LISTS else value
    return loose


def _placed(loose: Sequence[str], places: Sequence[inspect.Parameter], given: dict[str, Any]) -> bool:
    """Whether the loose words fit the arguments, of which the last may take several.  Fills in `given`."""
    rest = list(loose)
    for number, parameter in enumerate(places, 1):
        kind = get_args(parameter.annotation)[0]
        taken: Any
        if kind in _LISTS and number == len(places):
            taken, rest = rest, []
        elif kind in _WORDS:
            taken = rest.pop(0) if rest else None
        else:
            return False
        if taken is None or taken == []:
            if parameter.default is inspect.Parameter.empty:
                return False
            taken = parameter.default
        given[parameter.name] = taken
    return not rest


def _how(parameter: inspect.Parameter) -> Option | Argument:
    how = get_args(parameter.annotation)[1]
    assert isinstance(how, Option | Argument)
    return how
