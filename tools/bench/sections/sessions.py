"""How soon the sessions of a machine are listed."""

from __future__ import annotations

import sys

from tools.bench import generate
from tools.bench.cases import Bench, command, probe
from tools.bench.peers.homes import claude_home
from tools.bench.rows import Row, measured
from tools.bench.section import Section

SESSIONS = (5_000, 4_000, 0.1)
"""Number of sessions, bytes that each has at least, and the length of their texts."""
MOST = 0.5
"""Seconds of CPU until the first screen."""


def _add(bench: Bench) -> None:
    folder = generate.transcripts(*SESSIONS)
    bench.add_input("5 000 sessions", folder)
    home = claude_home(bench.scratch / "sessions", folder).path
    empty = bench.scratch / "nothing"
    empty.mkdir(exist_ok=True)
    bench.before(lambda: bench.run_once(["env", f"HOME={home}", *command("ls", "--json")], "sessions"))
    bench.add("ls, 5 000 sessions", ["env", f"HOME={home}", *command("ls", "--json")], cache="sessions")
    if sys.platform != "win32":
        picker = ["env", f"HOME={home}", *probe("picker", str(home), str(empty))]
        bench.add("picker, 5 000 sessions", picker, cache="sessions", keep=True)


def _rows(bench: Bench) -> list[Row]:
    def listed() -> tuple[str, bool]:
        spent = bench.cases["ls, 5 000 sessions"].cpu
        return f"{spent:.2f} s", spent <= MOST

    def shown() -> tuple[str, bool]:
        spent, live = (bench.cases["picker, 5 000 sessions"].printed(column) for column in range(2))
        return f"{spent:.2f} s, {live:.0f} of them live", spent <= MOST and live > 0

    target = f"≤ {MOST} s of CPU"
    return [
        measured(bench, "`ctxctl ls`, all known", target, ("ls, 5 000 sessions",), listed),
        measured(bench, "`ctxctl` alone, until the first screen", target, ("picker, 5 000 sessions",), shown),
    ]


SECTION = Section(
    "sessions",
    "And the list of this machine's sessions?",
    "5 000 Claude Code sessions of a user who has listed them before. Two have been written to since, and"
    " are live. CPU time includes the start of the interpreter. The first screen counts as shown once it "
    "says how many sessions there are.",
    _add,
    _rows,
)
