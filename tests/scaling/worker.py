"""Runs commands under counters: asked on stdin, answers on stdout, one line of JSON each.

The argument is a folder in which modules are kept as they were compiled, for the next of these processes:
of several that start at once, one compiles.

Every run is a fork of this process, which has imported everything before: so a run costs what the command
does, and none finds what another has left.  Bounds that are far above the sizes of a test are lowered, so
that it sees them hold.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import json
import os
import pkgutil
import re
import resource
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.scaling import counting
from tests.scaling.hostile_files import BY_NAME
from tests.scaling.native_inputs import DIMENSIONS, FOLDERS

ROOMS: Final = (
    "analysis", "budget", "cli", "config", "dataset", "engine", "fleet", "importers", "ingest", "item_names",
    "kinds", "lint", "listdiff", "model", "plugins", "policies", "prompt_words", "providers", "record",
    "report", "session", "text", "tokens", "trace", "tui", "wording",
)  # fmt: skip
_BOUNDS: Final = {
    ("ctxctl.engine.replay.cursor", "_MAX_SNAPSHOT_CELLS"): 1000,
    ("ctxctl.session.kept_replays", "LEAST"): 1,
    ("ctxctl.engine.textdiff.unified", "_QUICK_STEPS"): 64,
    ("ctxctl.report.envelopes", "_MOST_REFS"): 100,
    ("ctxctl.engine.replay.stale_copies", "_MAX_MARK_CHANGES"): 100,
    ("ctxctl.engine.replay.stale_copies", "_MIN_COUNTED"): 4,
    ("ctxctl.importers.registry", "REPEATED"): 100,
    ("ctxctl.ingest.run", "WORK"): 500,
    ("ctxctl.ingest.run", "_ONCE_MORE"): 100,
    ("ctxctl.engine.simulate.unfitted_window", "_MAX_SCANNED_ROWS"): 2000,
    ("ctxctl.engine.simulate.incremental", "_SEATS_FREE"): 500,
    ("ctxctl.engine.simulate.incremental", "_SEATS_EACH"): 16,
    ("ctxctl.analysis.spending", "_MAX_VISITED"): 8,
    ("ctxctl.analysis.spending", "_MAX_VISITED_NAMES"): 4,
    ("ctxctl.providers.dialects.threads", "_LOOKED"): 8,
    ("ctxctl.providers.spans.traces", "_SAID_AGAIN"): 100,
    ("ctxctl.tokens.calibrate.expect", "RECENT"): 8,
    ("ctxctl.budget.estimate", "MOST_WORK"): 2000,
    ("ctxctl.tui.loader", "_LOOK"): 0,
    ("ctxctl.record.seams", "_TAIL"): 16,
    ("ctxctl.record.seams", "_HEAD"): 64,
    # What a step that is being written costs to show is bounded by a share of the time: here, by none.
    ("ctxctl.session.live", "_FREE_SECONDS"): 0,
    ("ctxctl.session.live", "_OPEN_SHARE"): 1e-9,
}
_ITEM: Final = re.compile(rb'"data":\{[^{}]*?"item_id":"([^"]+)"')
_REFS: Final = re.compile(rb'"(?:item_refs|selected_item_refs)":\[([^\]]*)\]')
_NAME: Final = re.compile(rb'"([^"@]+)(?:@[^"]*)?"')
_RULES: Final = """
[[rule]]
name = "requests"
measure = "requests-per-turn"
at-most = 1000
days = 0
"""
"""What `fleet check` is asked."""
_CPU: Final = 60
"""Seconds that a run may take."""

Words = list[str]

WARMING: Final = (
    ["replay", "IN"],
    ["lint", "IN"],
    ["why", "IN", "ITEM"],
    ["export", "IN", "--format", "html", "-o", "OUT"],
    ["export", "IN", "--format", "markdown", "-o", "OUT"],
)


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    kept = Path(sys.argv[1])
    counting.install(ROOMS, kept)
    with (kept / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for room in ROOMS:
            module = importlib.import_module(f"ctxctl.{room}")
            for found in pkgutil.walk_packages(getattr(module, "__path__", ()), f"ctxctl.{room}."):
                importlib.import_module(found.name)
    for (name, bound), value in _BOUNDS.items():
        assert hasattr(sys.modules[name], bound)
        setattr(sys.modules[name], bound, value)
    with tempfile.TemporaryDirectory() as folder:
        for command in WARMING:
            _run([command], "turns", 3, Path(folder))
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        asked = json.loads(line)
        answer = _forked(
            partial(_work, asked["command"], asked["dimension"], asked["n"], asked.get("before", ()))
        )
        print(json.dumps(answer), file=answers, flush=True)


def _forked(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (_CPU, _CPU))
            with os.fdopen(write, "w") as file:
                json.dump(work(), file)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        said = file.read()
    os.waitpid(child, 0)
    return json.loads(said) if said else {"code": -1, "error": "the run did not end", "work": {}}


def _work(command: Words, dimension: str, n: int, before: Sequence[Words]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        code, error = _run([*before, command], dimension, n, Path(folder))
        written = sum(
            (Path(folder) / name).stat().st_size
            for name in ("stdout", "out")
            if (Path(folder) / name).is_file()
        )
    work = {f"{name}:{line}": count for (name, line), count in counting.COUNTS.items()}
    work["bytes written"] = written // 64
    return {"code": code, "error": error, "work": work}


def _written(dimension: str, n: int, folder: Path) -> tuple[Path, str]:
    """Write the input of a dimension; its (first) file, and the item that commands are asked for."""
    folder.mkdir(exist_ok=True)
    if (hostile := BY_NAME.get(dimension)) is not None:
        trace = folder / f"trace{hostile.ending}"
        trace.write_bytes(hostile.make(n))
        return trace, hostile.item
    if dimension in FOLDERS:
        paths = []
        for name, lines in FOLDERS[dimension](n):
            paths.append(folder / name)
            paths[-1].write_bytes(b"".join(line + b"\n" for line in lines))
        return paths[0], "prompt"
    trace = folder / "trace.jsonl"
    trace.write_bytes(b"".join(line + b"\n" for line in DIMENSIONS[dimension](n)))
    return trace, _told_most(trace)


def _run(commands: Sequence[Words], dimension: str, n: int, folder: Path) -> tuple[int, str]:
    """Run commands on a new input of a dimension, of which the last one is counted; its exit code, and the
    end of what it said on stderr.

    The first word `UI` makes it one of `views`.  Standard input is the input's file.
    """
    trace, item = _written(dimension, n, folder / "in")
    os.environ["CTXCTL_CACHE_DIR"] = str(folder / "cache")
    os.environ["CTXCTL_DATA_DIR"] = str(folder / "data")
    (folder / "rules.toml").write_text(_RULES)
    names = {
        "IN": str(trace), "OUT": str(folder / "out"), "DIR": str(trace.parent),
        "DATASET": str(folder / "dataset"), "RULES": str(folder / "rules.toml"),
    }  # fmt: skip
    kept = [os.dup(stream) for stream in (0, 1, 2)]
    code = 0
    try:
        for command in commands:
            _redirected(trace, folder)
            counting.COUNTS.clear()
            code = _called([names.get(word, word.replace("ITEM", item)) for word in command], trace, item)
            sys.stdout.flush()
    finally:
        for stream, was in enumerate(kept):
            os.dup2(was, stream)
            os.close(was)
    return int(code), (folder / "stderr").read_text(errors="replace")[-300:]


def _redirected(trace: Path, folder: Path) -> None:
    """Have the standard streams be files."""
    new = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
    for stream, (path, how) in enumerate(
        [(trace, os.O_RDONLY), (folder / "stdout", new), (folder / "stderr", new)]
    ):
        to = os.open(path, how)
        os.dup2(to, stream)
        os.close(to)


def _called(command: Words, trace: Path, item: str) -> int:
    from ctxctl.cli.main import run
    from ctxctl.errors import CtxctlError

    if command[0] != "UI":
        return int(run(command))
    from tests.scaling import views  # brings ctxctl with it, which is imported with counters by then

    try:
        views.VIEWS[command[1]](trace, item)
    except CtxctlError as error:
        print(error, file=sys.stderr, flush=True)
        return int(error.exit_code)
    return 0


def _told_most(trace: Path) -> str:
    """The item of a native trace that most of its events tell of, of those that stand in an assembly."""
    data = trace.read_bytes()
    sent = {name for refs in _REFS.findall(data) for name in _NAME.findall(refs)}
    told = Counter(name for name in _ITEM.findall(data) if name in sent or not sent)
    return told.most_common(1)[0][0].decode() if told else "prompt"


if __name__ == "__main__":
    main()
