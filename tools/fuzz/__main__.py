"""``python -m tools.fuzz``: damaged captures through whole commands, for some minutes; ``make fuzz`` runs it.

    python -m tools.fuzz --minutes 5 --seed 7 [--corpus DIR] [--each 4]
    python -m tools.fuzz --again FOLDER       runs one finding again

Each finding is kept in `.fuzz/found/NAME`: the input and `run.json`, which says of which capture and seed it
is made and what was run.  What went wrong in the same way at the same place is kept once.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tools.fuzz import commands, seeds
from tools.fuzz.mutations import mutated
from tools.fuzz.seeds import ROOT, Seed
from tools.fuzz.tally import COMMANDS, Slowest, Tally, read, told

FOUND = ROOT / ".fuzz" / "found"
SOUND = seeds.TRACES / "retrieval-agent.jsonl"
_WIDEST = 30_000
"""Bytes of captures whose records are put into others."""
_AT_ONCE = 16
"""Inputs that are laid out together, and share a child while nothing goes wrong."""


class Drawn(NamedTuple):
    """One input: the capture it is made of, the seed of its damage, and what is run."""

    seed: Seed
    number: int
    data: bytes
    read_as: str | None


def main() -> int:
    """Fuzz for some minutes, or run one finding again; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--inputs", type=int, default=0, help="stop after so many, whatever the minutes")
    parser.add_argument("--seed", type=int, default=0, help="0: another one each day")
    parser.add_argument("--corpus", default="", help="a folder of further captures")
    parser.add_argument("--each", type=int, default=4, help="commands for each input")
    parser.add_argument("--again", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ctxctl-fuzz-") as scratch:
        _isolated(Path(scratch))
        commands.warm(SOUND)
        gc.freeze()
        if given.again is not None:
            return _again(given.again, Path(scratch))
        return _fuzzed(given, Path(scratch))


def _isolated(folder: Path) -> None:
    """The machine of the tests: no settings, no cache and no sessions of the user's."""
    for name in [name for name in os.environ if name.startswith("CTXCTL_")]:
        del os.environ[name]
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        os.environ[name] = str(folder / "home")
    os.environ.update(CTXCTL_CONFIG="off", TZ="UTC", COLUMNS="100", TERM="xterm-256color", CTXCTL_PAGER="")


def _fuzzed(given: argparse.Namespace, scratch: Path) -> int:
    first = given.seed or int(time.strftime("%Y%m%d"))
    pool = seeds.fixtures()
    corpus = seeds.corpus(Path(given.corpus)) if given.corpus and Path(given.corpus).is_dir() else []
    print(f"seed {first}; {len(pool)} captures of the repository, {len(corpus)} of a corpus", file=sys.stderr)
    random = Random(first)
    donors = [seed.read() for seed in pool if seed.path.stat().st_size <= _WIDEST]
    counts: Counter[str] = Counter()
    tally = Tally(COMMANDS, FOUND.parent / "tally.json")
    done = ran = 0
    ends = time.monotonic() + given.minutes * 60
    while time.monotonic() < ends and not (given.inputs and done >= given.inputs):
        many = min(_AT_ONCE, given.inputs - done) if given.inputs else _AT_ONCE
        drawn = [_draw(random, pool, corpus, donors) for _ in range(many)]
        works = [_work(one, scratch / f"{number}", given.each) for number, one in enumerate(drawn)]
        for one, work, result in zip(drawn, works, commands.results(works, scratch), strict=True):
            for failure in result.failures:
                name = _signature(failure)
                if name not in counts:
                    _keep(name, one, failure, work)
                counts[name] += 1
                tally.failed(name)
            what = (
                f"{' '.join(map(_abstract, result.slowest.split(' ')))} of {one.seed.name}, seed {one.number}"
            )
            tally.add(1, len(work.commands), Slowest(result.seconds, what))
        done, ran = done + many, ran + sum(len(work.commands) for work in works)
    tally.save()
    failed = f"{sum(counts.values())} failures of {len(counts)} kinds"
    print(f"{done} inputs, {ran} commands, {failed} (seed {first})")
    for name, count in counts.most_common():
        print(f"  {count} times: {os.path.relpath(FOUND / name, ROOT)}: {_told(name)}")
    print("Over all runs:", *told(read(FOUND.parent / "tally.json")), sep="\n  ")
    return 1 if counts else 0


def _work(drawn: Drawn, place: Path, each: int) -> commands.Job:
    folder, path = _laid_out(place, drawn)
    return commands.job(path, folder, SOUND, Random(drawn.number), each, drawn.read_as)


def _draw(random: Random, pool: list[Seed], corpus: list[Seed], donors: list[bytes]) -> Drawn:
    seed = random.choice(corpus if corpus and random.random() < 0.3 else pool)
    number = random.randrange(1 << 48)
    own = Random(number)
    data = mutated(seed.read(), own, donors)
    return Drawn(seed, number, data, seed.format() if own.random() < 0.5 else None)


def _laid_out(scratch: Path, drawn: Drawn) -> tuple[Path, Path]:
    for name in ("input", "cache"):
        shutil.rmtree(scratch / name, ignore_errors=True)
    folder = scratch / "input"
    folder.mkdir(parents=True)
    path = folder / f"capture{drawn.seed.path.suffix}"
    path.write_bytes(drawn.data)
    return folder, path


def _signature(failure: commands.Failure) -> str:
    """What went wrong and where, without what differs from input to input."""
    what = re.sub(r"\d+\.\d+ s", "s", failure.what)
    if failure.arguments[0] == commands.LAW:
        what = ":".join(what.split(":")[:3])  # of which format, which law, and which slug
        what = re.sub(r"line \d+.*", "", what)
    if "bug in" not in what and " at " not in what:
        what = f"{failure.arguments[0]} {what}"
    where = re.sub(r"[^A-Za-z0-9]+", "-", what)[:80].strip("-").lower()
    return f"{where}-{sha256(what.encode()).hexdigest()[:6]}"


def _keep(name: str, drawn: Drawn, failure: commands.Failure, work: commands.Job) -> None:
    folder = FOUND / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"capture{drawn.seed.path.suffix}").write_bytes(drawn.data)
    # Places of this machine are written as what stands for them.
    template = [_abstract(part) for part in failure.arguments]
    run = {
        "capture": drawn.seed.name, "seed": drawn.number, "what": failure.what, "arguments": template,
        "cached": "CTXCTL_CACHE_DIR" in work.environment, "before": [list(map(_abstract,
        one)) for one in work.commands],
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    again = f"python -m tools.fuzz --again {os.path.relpath(folder, ROOT)}"
    print(f"{' '.join(template)}: {failure.what}\n  again: {again}", file=sys.stderr, flush=True)


def _abstract(part: str) -> str:
    part = part.replace(str(SOUND), "{sound}")
    found = re.match(r"(.*/input/capture[.\w]*)(@.*)?$", part)
    if found:
        return "{}" + (found[2] or "")
    return "{folder}" if part.endswith("/input") else re.sub(r"^.*/out(?=\.)", "{out}", part)


def _told(name: str) -> str:
    run: dict[str, Any] = json.loads((FOUND / name / "run.json").read_text(encoding="utf-8"))
    return f"{' '.join(run['arguments'])}: {run['what']}"


def _again(found: Path, scratch: Path) -> int:
    run = json.loads((found / "run.json").read_text(encoding="utf-8"))
    kept = next(path for path in sorted(found.iterdir()) if path.name != "run.json")
    folder, path = _laid_out(scratch, Drawn(Seed("again", kept), 0, kept.read_bytes(), None))
    places = {"{}": str(path), "{folder}": str(folder), "{out}": str(scratch / "out"), "{sound}": str(SOUND)}
    cache = {"CTXCTL_CACHE_DIR": str(scratch / "cache")} if run["cached"] else {"CTXCTL_CACHE": "off"}
    environment = {**cache, "CTXCTL_TRACEBACK": "1"}
    rows = [run["arguments"]] if not run["cached"] else run["before"]
    work = commands.Job(
        tuple(tuple(commands.filled(part, places) for part in row) for row in rows), environment
    )
    failed = commands.failures(work, scratch)
    for failure in failed:
        print(f"{' '.join(failure.arguments)}: {failure.what}")
    for stream in ("stdout", "stderr"):
        print((scratch / stream).read_text("utf-8", "replace")[-4000:], end="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
