"""The 50 MB session of Claude Code, its floors, and its first reading, which several sections need."""

from __future__ import annotations

from pathlib import Path

from tools.bench import generate, load
from tools.bench.cases import Bench, probe

SESSION = "50 MB session"
ORJSON = "orjson, 50 MB session"
TIKTOKEN = "tiktoken, 50 MB session"
FIRST = "replay, 50 MB session, first"


def add_floors(bench: Bench) -> Path:
    """The session, one orjson pass over it, and tiktoken over its contents; returns the file."""
    path = generate.transcript_50mb()
    bench.add_input(SESSION, path)
    bench.loads[SESSION] = load.of_sessions(path)
    bench.add_probe(ORJSON, "orjson", str(path))
    bench.add_probe(TIKTOKEN, "tiktoken", str(unique_contents(bench, path)))
    return path


def add_first_reading(bench: Bench) -> None:
    """A replay of it with nothing cached."""
    bench.add_command(FIRST, "replay", "--json", str(generate.transcript_50mb()), cache="cold")


def unique_contents(bench: Bench, path: Path) -> Path:
    """A file with each text of a session, or of a folder of sessions, once."""
    unique = path.with_suffix(".unique")
    if not unique.exists():
        done = bench.run_once(probe("extract-sessions", str(path), str(unique)), "floors")
        if not done.good:
            raise RuntimeError(done.complaint)
    return unique
