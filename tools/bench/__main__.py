"""``make bench``: run everything and write ``docs/benchmarks.md``."""

from __future__ import annotations

import argparse
import compileall
import os
import sys
from pathlib import Path

from tools.bench import report
from tools.bench.cases import Bench
from tools.bench.run import progress, scratch_folder
from tools.bench.section import Section
from tools.bench.sections.registry import chosen


def main() -> int:
    """Run the benchmark; exit code 1 if a target was missed and `--check` was given."""
    args = _parser().parse_args()
    try:
        sections = chosen(args.only)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    load = os.getloadavg()[0]
    with scratch_folder() as scratch:
        runs = 1 if args.quick else args.runs
        gigabyte = not (args.no_gigabyte or args.quick)
        bench = Bench(runs, gigabyte=gigabyte, scratch=scratch, peers=args.peers)
        compileall.compile_dir("ctxctl", quiet=2)  # as an installer does
        for section in sections:
            print(f"Setting up: {section.name}…", file=sys.stderr)
            bench.set_up(section.name, section.add)
        progress(bench, args.minutes * 60)
        text = report.page(bench, sections, load)
        told = [row for section in sections for row in section.rows(bench)]
    return _finish(args, sections, text, told)


def _finish(
    args: argparse.Namespace, sections: tuple[Section, ...], text: str, told: list[report.Row]
) -> int:
    out = args.out if args.out or args.only or args.quick else Path("docs") / "benchmarks.md"
    if out is None:
        print(text)
    else:
        report.write(out, text)
        print(f"{out} written")
    missed = [row for row in told if row.met is False]
    for row in missed:
        print(f"missed: {row.what}: {row.reached}, to reach {row.target}", file=sys.stderr)
    return 1 if args.check and missed else 0


def _parser() -> argparse.ArgumentParser:
    names = ", ".join(section.name for section in chosen(None))
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="rounds of the large cases (default 5)")
    parser.add_argument("--minutes", type=float, default=18, help="no further rounds after (default 18)")
    parser.add_argument(
        "--quick", action="store_true", help="one round, without the 1 GB file; prints the page"
    )
    parser.add_argument("--no-gigabyte", action="store_true", help="leave the 1 GB file out")
    parser.add_argument("--only", help=f"only these sections, with commas between ({names}); prints the page")
    parser.add_argument(
        "--peers", type=Path, default=Path(".peers"), help="where `make bench-peers` installs"
    )
    parser.add_argument("--out", type=Path, help="the page to write (docs/benchmarks.md)")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target was missed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
