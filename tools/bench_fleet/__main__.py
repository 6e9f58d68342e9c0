"""`make bench-fleet`: how fast a fleet goes into a dataset, how large that is, and the next run."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from ctxctl.dataset import opening, questions
from ctxctl.dataset.duck import Asked
from tools.bench_fleet import asking, generator, model, sizes
from tools.bench_fleet.page import Measured, page

ROOT = Path(__file__).parents[2]
FORMATS = ("claude-code", "codex", "pi", "gemini-cli")
MEAN = 265_000
"""Bytes of a session, at the most: shapes are taken until they have so many on average."""


class Run(NamedTuple):
    """One run of the command."""

    wall: float
    cpu: float
    """Seconds, of it and its processes."""
    memory: int
    """Bytes of the largest process."""
    told: dict[str, object]


def main() -> None:
    """Make a fleet, add it, change one in a hundred, add it again, ask all questions; write the page."""
    asked = _asked()
    place = Path(asked.dir or tempfile.mkdtemp(prefix="ctxctl-bench-fleet-"))
    try:
        text = page(_measured(asked, place))
        if asked.print:
            print(text)
            return
        (ROOT / "docs" / "benchmarks-fleet.md").write_text(text, encoding="utf-8")
        about = ROOT / "docs" / "fleet.md"
        about.write_text(model.replaced(about.read_text("utf-8"), model.block(text)), encoding="utf-8")
    finally:
        if asked.dir is None:
            shutil.rmtree(place, ignore_errors=True)


def _measured(asked: argparse.Namespace, place: Path) -> Measured:
    fleet, dataset = place / "logs", place / "dataset"
    _make(asked, fleet)
    size = sum(path.stat().st_size for path in fleet.rglob("*") if path.is_file())
    count = sum(path.is_file() for path in fleet.rglob("*"))
    shutil.rmtree(dataset, ignore_errors=True)
    first = _added(fleet, dataset, asked.jobs, place)
    print("first:", json.dumps(first._asdict()), file=sys.stderr)
    status = _status(dataset, place)
    same = _added(fleet, dataset, asked.jobs, place)
    print("same:", json.dumps(same._asdict()), file=sys.stderr)
    grown = generator.change(fleet, 100)
    time.sleep(2.5)  # what was written a moment ago is read again each time
    second = _added(fleet, dataset, asked.jobs, place)
    print("changed:", json.dumps(second._asdict()), file=sys.stderr)
    timed = asking.asked(dataset, _with_texts(fleet, place, asked), _environment(place))
    return Measured(
        count, size, asked.jobs, first.wall, first.cpu, first.memory, int(str(first.told["sessions"])),
        status, same.cpu, grown, second.wall, second.cpu,
        f"Python {platform.python_version()}, {platform.system()}", os.cpu_count() or 1,
        bool(os.environ.get("CTXCTL_CORPUS")), time.strftime("%Y-%m-%d", time.gmtime()), _versions(),
        timed[: len(questions.ORDER)], timed[len(questions.ORDER) :],
        asking.overview_seconds(dataset, _environment(place)), _points(dataset, place, asked.beyond),
    )  # fmt: skip


def _with_texts(fleet: Path, place: Path, asked: argparse.Namespace) -> Path:
    """The same sessions with their texts, for the questions that read them; made once."""
    dataset = place / "texts"
    if not dataset.is_dir():
        _added(fleet, dataset, asked.jobs, place, "--texts")
    return dataset


def _points(dataset: Path, place: Path, beyond: int) -> list[tuple[model.Point, int]]:
    """The dataset at several sizes, the smallest first: size, and the times of the questions."""
    whole = opening.opened(str(dataset)).files
    folder = place / "sizes"
    found = []
    for name, files in (
        ("part", lambda: sizes.sampled(whole, folder / "part", 16)),
        ("quarter", lambda: sizes.sampled(whole, folder / "quarter", 4)),
        ("whole", lambda: whole),
        ("more", lambda: sizes.repeated(whole, folder / "more", beyond)),
    ):
        found.append(_point(files()))
        print(name, found[-1], file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
    return found


def _point(files: Mapping[str, Sequence[str]]) -> tuple[model.Point, int]:
    with Asked(files) as connection:
        counts = "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM stays)"
        ((sessions, stays),) = connection.select(counts, {}).rows
    times = asking.again(files)
    slowest = max(times, key=lambda name: times[name])
    size = sum(os.path.getsize(path) for paths in files.values() for path in paths)
    return model.Point(sessions, size / 1e6, slowest, times[slowest], sum(times.values())), stays


def _versions() -> str:
    return f"DuckDB {version('duckdb')}, pyarrow {version('pyarrow')}"


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-fleet")
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--dir", help="where the fleet is made, and stays for the next run")
    parser.add_argument("--beyond", type=int, default=10, help="how many times over the largest dataset is")
    parser.add_argument("--print", action="store_true", help="print the page instead of writing it")
    return parser.parse_args()


def _make(asked: argparse.Namespace, fleet: Path) -> None:
    if fleet.is_dir() and sum(path.is_file() for path in fleet.rglob("*")) == asked.sessions:
        return
    shutil.rmtree(fleet, ignore_errors=True)
    corpus = os.environ.get("CTXCTL_CORPUS")
    places = (
        [(name, Path(corpus, name)) for name in FORMATS]
        if corpus
        else [(name, ROOT / "fixtures" / name.replace("-", "_")) for name in FORMATS]
    )
    made = generator.make(generator.shapes(places, MEAN), fleet, asked.sessions)
    print(f"{made.captures:,} captures, {made.bytes / 1e6:,.0f} MB", file=sys.stderr)
    time.sleep(2.5)


def _environment(place: Path) -> dict[str, str]:
    """A machine of its own: no cache, settings or keys of the user's."""
    folders = {f"XDG_{kind}_HOME": str(place / kind.lower()) for kind in ("CACHE", "CONFIG", "STATE", "DATA")}
    return {**os.environ, **folders, "CTXCTL_CONFIG": "off", "PYTHONPATH": str(ROOT)}


def _added(fleet: Path, dataset: Path, jobs: int, place: Path, *more: str) -> Run:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    command = [
        "-m",
        "ctxctl",
        "fleet",
        "add",
        str(fleet),
        "--to",
        str(dataset),
        "--jobs",
        str(jobs),
        "--json",
        *more,
    ]
    done = subprocess.run(
        [sys.executable, *command], env=_environment(place), stdout=subprocess.PIPE, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(
        time.perf_counter() - begun, cpu, after.ru_maxrss * 1024, json.loads(done.stdout.splitlines()[-1])
    )


def _status(dataset: Path, place: Path) -> dict[str, dict[str, int]]:
    command = [sys.executable, "-m", "ctxctl", "fleet", "status", "--dataset", str(dataset), "--json"]
    done = subprocess.run(command, env=_environment(place), stdout=subprocess.PIPE, check=True)
    found: dict[str, dict[str, int]] = json.loads(done.stdout)["tables"]
    return found


main()
