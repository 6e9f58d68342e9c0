"""What holds of every import: what is written is valid, and replays as the capture itself does."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from ctxctl.cli.main import run

Json = dict[str, Any]

WORTH_NOTHING = ("problem", "trace")
"""Lines that speak of the file and not of what is in it: a capture's are of the capture."""


AS_THEY_ARE = {"agent-context": frozenset({"bad-field", "declares-runtime-status"})}
"""By format, what may be wrong with an import.  Records of Agent Context are passed on with all that
they say,
so a field of theirs that is not as the standard has it is told of the trace as it is of the capture."""


class Ran(NamedTuple):
    """What one command of this process gave."""

    code: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[Json]:
        """Standard output as lines of JSON."""
        return [json.loads(line) for line in self.out.splitlines()]


def command(*arguments: str) -> Ran:
    """Run a command in this process."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(arguments)
        out.flush()
    assert isinstance(out.buffer, io.BytesIO)
    return Ran(code, out.buffer.getvalue(), err.getvalue())


def faults(capture: Path, trace: Path, read_as: str) -> list[str]:
    """What is wrong with the import of a capture, which is written to `trace`; empty if nothing is.

    A capture in which nothing is found may be refused, by both ways alike.
    """
    trace.unlink(missing_ok=True)
    made = command("import", str(capture), "-o", str(trace), "--read-as", read_as, "--all")
    direct = command("replay", "--json", "--no-learned", "--read-as", read_as, str(capture))
    found = [*_crashed("import", made), *_crashed("replay", direct)]
    if made.code or found:
        return found
    checked = command("validate", "--json", str(trace))
    found += _crashed("validate", checked)
    if checked.code not in (0, 1):
        return [*found, f"validate: {checked.err.strip()}"]
    lines = checked.lines
    allowed = AS_THEY_ARE.get(read_as, frozenset())
    wrong = [line for line in lines if line["type"] == "problem" and line["slug"] not in allowed]
    found += [f"validate: {line['slug']}: line {line['line']}: {line['message']}" for line in wrong]
    again = command("replay", "--json", "--no-learned", str(trace))
    found += _crashed("replay of the import", again)
    if (direct.code, _told(direct)) != (again.code, _told(again)):
        found.append(f"replay: {_difference(direct, again)}")
    return found


def _crashed(what: str, ran: Ran) -> list[str]:
    if ran.code in (0, 1, 3) and "bug in ctxctl" not in ran.err and "Traceback" not in ran.err:
        return []
    return [f"{what}: exit {ran.code}: {ran.err.strip()[-500:]}"]


def _told(ran: Ran) -> list[Json]:
    told = []
    for line in ran.lines if ran.code in (0, 1) else []:
        if line["type"] not in WORTH_NOTHING:
            told.append({name: value for name, value in line.items() if name != "problems"})
    return told


def _difference(one: Ran, other: Ran) -> str:
    if one.code != other.code:
        return f"exit {one.code} and {other.code}: {one.err.strip()[-200:]} | {other.err.strip()[-200:]}"
    first, second = _told(one), _told(other)
    for before, after in zip(first, second, strict=False):
        if before != after:
            names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
            return "; ".join(
                f"{before['type']}.{name}: {before.get(name)!r:.150} and {after.get(name)!r:.150}"
                for name in names
            )
    return f"{len(first)} and {len(second)} lines"
