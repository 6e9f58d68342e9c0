"""A replay with exact tokens, for whatever model, works where there is no network and asks for none."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
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


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs Linux's network namespaces")
def test_commands_work_where_there_is_no_interface(small_trace: Path, tmp_path: Path) -> None:
    """By the system and not by Python: not even the loopback interface is up."""
    inside = ["unshare", "--net", "--map-root-user"]
    if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
        pytest.skip("may not make a network namespace here")
    code = (
        "import socket, sys; from ctxctl.cli.main import run\n"
        "try: socket.create_connection(('127.0.0.1', 9), 1)\n"
        "except OSError as error: assert error.errno == 101, error\n"
        "sys.exit(max(run(words.split('|')) for words in sys.argv[1:]))\n"
    )
    name = str(small_trace)
    commands = [
        *(f"{one}|{name}" for one in ("replay", "cost", "lint", "validate", "compactions", "calibrate")),
        f"show|{name}@1", f"replay|{name}|--model|nobody-knows-this-one", "models", "formats", "policies",
        f"export|{name}|-o|{tmp_path}/out.html", f"watch|{name}|--plain|--idle|0", f"ls|{small_trace.parent}",
    ]  # fmt: skip
    done = subprocess.run(
        [*inside, sys.executable, "-c", code, *commands], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("error")) == (0, 0), done.stderr


@pytest.mark.parametrize(
    "arguments",
    [("replay",), ("replay", "--json", "--model", "nobody-knows-this-one"), ("show",), ("validate",)],
    ids=" ".join,
)
def test_no_command_asks_for_a_network(ran: Run, small_trace: Path, arguments: tuple[str, ...]) -> None:
    done = ran(*arguments, f"{small_trace}@1" if arguments == ("show",) else str(small_trace))
    assert done.code == 0, done.err
    assert done.network == []
