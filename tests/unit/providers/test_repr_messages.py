"""Messages that were written down as the repr of a Python object."""

from __future__ import annotations

import re

import pytest

from ctxctl.providers.spans import shapes

CALL = "{'id': 'c', 'function': {'name': 'find', 'arguments': '{}'}}"


def calls(rest: str) -> object:
    (message,) = shapes.messages_from_text("role='assistant' content=None" + rest)
    found = message.get("tool_calls", [])
    return [call["function"]["name"] for call in found]


@pytest.mark.parametrize(
    ("rest", "names"),
    [
        (f" tool_calls=[{CALL}] name=None", ["find"]),
        (f" x=1 tool_calls=[{CALL}, {CALL}] name=None", ["find", "find"]),
        (f" tool_calls=[{CALL}]", []),
        (f" tool_calls=[{CALL}] Name=None", []),
        (" tool_calls=None name=None", []),
    ],
)
def test_the_calls_of_a_repr(rest: str, names: list[str]) -> None:
    assert calls(rest) == names


class _Pattern:
    """A pattern that counts how often it is searched for."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern
        self.searched = 0

    def search(self, text: str, at: int) -> re.Match[str] | None:
        self.searched += 1
        return self.pattern.search(text, at)


def test_the_end_of_calls_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = _Pattern(shapes._REPR_CALLS_END)
    monkeypatch.setattr(shapes, "_REPR_CALLS_END", pattern)
    assert calls(" tool_calls=[{" * 1000) == []
    assert pattern.searched == 1
