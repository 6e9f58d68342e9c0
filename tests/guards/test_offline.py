"""A replay with exact tokens, for whatever model, works where there is no network and asks for none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base", "o200k_harmony"])
def test_every_encoding_counts_offline(ran: Run, small_trace: Path, encoding: str) -> None:
    done = ran("replay", "--json", "--encoding", encoding, str(small_trace))
    assert done.code == 0, done.err
    assert done.network == []
    steps = [row for row in map(json.loads, done.out.splitlines()) if row["type"] == "step"]
    assert [step["window"]["used"] for step in steps] == [2]


@pytest.mark.parametrize(
    "arguments",
    [("replay",), ("replay", "--json", "--model", "nobody-knows-this-one"), ("show",), ("validate",)],
    ids=" ".join,
)
def test_no_command_asks_for_a_network(ran: Run, small_trace: Path, arguments: tuple[str, ...]) -> None:
    done = ran(*arguments, f"{small_trace}@1" if arguments == ("show",) else str(small_trace))
    assert done.code == 0, done.err
    assert done.network == []
