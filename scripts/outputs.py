"""Keep what the command line prints for every capture in some folders, and compare two such keepings.

    python scripts/outputs.py take BEFORE.sqlite ../shared/data fixtures traces   # on the one commit
    python scripts/outputs.py take AFTER.sqlite ../shared/data fixtures traces    # on the other
    python scripts/outputs.py compare BEFORE.sqlite AFTER.sqlite

For a change that should alter no output: each one that differs is named, with the first lines that do.
Commands run in forked children of a process that has ctxctl loaded, with a home, a cache, a width and a
time zone of their own.  Files above `LARGE` bytes get the basic commands only, and so do three in four of the
captures in a folder called ``data``.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import hashlib
import os
import signal
import sqlite3
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn

BASIC = (("replay", "--json", "{}"), ("replay", "--plain", "{}"), ("lint", "{}"), ("cost", "--json", "{}"))
FURTHER = (
    ("show", "{}"),
    ("show", "--json", "--text", "{}"),
    ("diff", "{}@-2", "@-1"),
    ("diff", "--json", "{}@-2", "@-1"),
    ("cost", "{}"),
    ("blame", "{}"),
    ("blame", "--json", "--stat", "{}"),
    ("find", "{}", "tokens > 100"),
    ("find", "--json", "{}", "tokens > 100"),
    ("log", "{}", "a"),
    ("why", "{}", "a"),
    ("why", "--json", "{}", "read"),
    ("replay", "--plain", "--all", "--policy", "tail", "{}"),
    ("lint", "--json", "{}"),
    ("validate", "{}"),
    ("import", "{}"),
    ("export", "{}"),
    ("export", "--format", "html", "{}"),
    ("export", "--format", "markdown", "{}"),
    ("export", "--format", "csv", "{}"),
    ("export", "--format", "otlp", "{}"),
)
TABLE = "CREATE TABLE output (name TEXT, command TEXT, code INT, printed BLOB, PRIMARY KEY (name, command))"
LARGE = 2_000_000
"""Bytes of a file that gets only the basic commands."""
SECONDS = 120
"""CPU seconds of one command, after which it is given up (kept as "out of time")."""


def main() -> int:
    """Take or compare; 1 where two keepings differ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    take = verbs.add_parser("take")
    take.add_argument("into", type=Path)
    take.add_argument("folders", type=Path, nargs="+")
    take.add_argument("--jobs", type=int, default=2)
    take.add_argument("--sample", type=int, default=1, help="only one file in so many")
    compare = verbs.add_parser("compare")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    compare.add_argument("--lines", type=int, default=4, help="differing lines to show of each")
    given = parser.parse_args()
    if given.verb == "compare":
        return compared(given.before, given.after, given.lines)
    taken(given.into, given.folders, given.jobs, given.sample)
    return 0


def captures(folders: list[Path], sample: int) -> Iterator[tuple[str, Path]]:
    """Each file below some folders, with the name it is kept by; damaged and hostile ones too."""
    for folder in folders:
        for path in sorted(
            p for p in folder.rglob("*") if p.is_file() and p.suffix not in (".py", ".md", ".pyc")
        ):
            name = f"{folder.name}/{path.relative_to(folder)}"
            if picked(name, sample):
                yield name, path


def picked(name: str, one_in: int) -> bool:
    """Whether a name is one of a fixed sample."""
    return int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) % one_in == 0


def taken(into: Path, folders: list[Path], jobs: int, sample: int) -> None:
    """Run the commands over all captures and keep what they print."""
    sys.path.insert(0, os.getcwd())
    _load()
    into.unlink(missing_ok=True)
    shares = [into.resolve().with_suffix(f".{share}") for share in range(jobs)]
    works = list(worked(captures([folder.resolve() for folder in folders], sample)))
    with tempfile.TemporaryDirectory() as home:
        _environment(home)
        children = []
        for share, kept in enumerate(shares):
            children.append(os.fork())
            if children[-1] == 0:
                _share(kept, works[share::jobs], home)
        for child in children:
            os.waitpid(child, 0)
    base = sqlite3.connect(into)
    base.execute(TABLE)
    for kept in shares:
        base.execute("ATTACH ? AS share", (str(kept),))
        base.execute("INSERT INTO output SELECT * FROM share.output")
        base.commit()
        base.execute("DETACH share")
        kept.unlink()
    print(f"\r{len(works)} outputs", file=sys.stderr)


def worked(files: Iterable[tuple[str, Path]]) -> Iterator[tuple[str, Path, tuple[str, ...]]]:
    """The commands to run on each file."""
    for name, path in files:
        whole = path.stat().st_size <= LARGE and (picked(name, 4) or not name.startswith("data/"))
        for command in (*BASIC, *(FURTHER if whole else ())):
            yield name, path, command


def _share(kept: Path, works: list[tuple[str, Path, tuple[str, ...]]], home: str) -> NoReturn:
    """In a forked worker, which has one thread only: run a part of the commands."""
    kept.unlink(missing_ok=True)
    base = sqlite3.connect(kept)
    base.execute(TABLE)
    for done, (name, path, command) in enumerate(works):
        code, printed = run(path, command, home)
        row = (name, " ".join(command), code, zlib.compress(printed))
        base.execute("INSERT INTO output VALUES (?, ?, ?, ?)", row)
        if done % 100 == 0:
            base.commit()
            print(f"\r{done} of {len(works)}", end="", file=sys.stderr)
    base.commit()
    base.close()
    os._exit(0)


def _load() -> None:
    """Import what the commands would, so that children do not."""
    import importlib
    import pkgutil

    import ctxctl

    for module in pkgutil.walk_packages(ctxctl.__path__, "ctxctl."):
        if not any(part in module.name for part in (".tui", ".testing", "__main__", ".record", ".hooks")):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)


def _environment(home: str) -> None:
    for name in list(os.environ):
        if name.startswith(("CTXCTL", "XDG_")):
            del os.environ[name]
    os.environ |= {
        "HOME": home,
        "XDG_CACHE_HOME": home,
        "COLUMNS": "120",
        "LINES": "40",
        "TZ": "UTC",
        "NO_COLOR": "1",
    }


def run(path: Path, command: tuple[str, ...], home: str) -> tuple[int, bytes]:
    """The exit code of a command on a file, and what it printed: standard output, then errors."""
    argv = [part.format(path.name) if "{}" in part else part for part in command]
    with tempfile.TemporaryFile(dir=home) as out, tempfile.TemporaryFile(dir=home) as err:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            _command(argv, path.parent, out.fileno(), err.fileno())
        _, status = os.waitpid(child, 0)
        out.seek(0)
        err.seek(0)
        code = os.waitstatus_to_exitcode(status)
        if code in (-signal.SIGXCPU, -signal.SIGKILL, -signal.SIGALRM):
            return code, b"out of time"
        return code, out.read() + b"\n== errors\n" + err.read()


def _command(argv: list[str], folder: Path, out: int, err: int) -> NoReturn:
    """In the child: run the command line, never return."""
    import resource

    code = 70
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.chdir(folder)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        signal.alarm(10 * SECONDS)
        sys.argv = ["ctxctl", *argv]
        from ctxctl.__main__ import main as ctxctl

        code = ctxctl()
        sys.stdout.flush()
        sys.stderr.flush()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # told in the output
        import traceback

        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def compared(before: Path, after: Path, lines: int) -> int:
    """Print how two keepings differ, the commands first; 1 if they do."""
    base = sqlite3.connect(before)
    base.execute("ATTACH ? AS other", (str(after),))
    rows = base.execute(
        "SELECT a.name, a.command, a.code, a.printed, b.code, b.printed "
        "FROM main.output a JOIN other.output b USING (name, command) "
        "WHERE a.code != b.code OR a.printed != b.printed ORDER BY 2, 1"
    ).fetchall()
    both = base.execute(
        "SELECT count(*) FROM main.output JOIN other.output USING (name, command)"
    ).fetchone()[0]
    for name, command, code, printed, other, reprinted in rows:
        print(f"-- {command}: {name}" + (f" (exit {code} -> {other})" if code != other else ""))
        old, new = (
            zlib.decompress(kept).decode("utf-8", "replace").splitlines() for kept in (printed, reprinted)
        )
        if max(len(old), len(new)) > 20_000:
            print(f"   {len(old)} and {len(new)} lines")
            continue
        differing = [
            d
            for d in difflib.unified_diff(old, new, n=0, lineterm="")
            if not d.startswith(("---", "+++", "@@"))
        ]
        for line in differing[:lines]:
            print(f"   {line[:200]}")
    for command, count in Counter(row[1] for row in rows).most_common():
        print(f"{count:6} differ: {command}")
    print(f"{len(rows)} of {both} outputs differ")
    return 1 if rows else 0


if __name__ == "__main__":
    sys.exit(main())
