"""``make bench``: run everything and write ``docs/benchmarks.md``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tests.bench import report
from tests.bench.cases import Bench


def main() -> int:
    """Run the benchmark; exit code 1 if a target was missed and `--check` was given."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="rounds of the large cases (default 5)")
    parser.add_argument("--no-gigabyte", action="store_true", help="leave the 1 GB file out")
    parser.add_argument("--only", help="only cases whose name holds this text; writes no page")
    parser.add_argument("--out", type=Path, default=Path("docs") / "benchmarks.md", help="the page to write")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target was missed")
    args = parser.parse_args()
    load = os.getloadavg()[0]
    print("Writing the input, once…", file=sys.stderr)
    bench = Bench(args.runs, not args.no_gigabyte, args.only)
    total = sum(case.runs for case in bench.cases.values())
    for number, name in enumerate(bench.rounds(), 1):
        print(f"\r\x1b[K[{number}/{total}] {name}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for case in bench.cases.values():
        if case.failed is not None:
            print(f"{case.name}: not measured: {case.failed}", file=sys.stderr)
    if args.only:
        for case in bench.cases.values():
            if case.ready:
                print(f"{case.name}: {case.cpu:.3f} s CPU, {case.wall:.3f} s, {case.rss / 1e6:.0f} MB")
        return 0
    report.write(bench, args.out, load)
    missed = [row for row in report.rows(bench) if row.met is False]
    for row in missed:
        print(f"missed: {row.what}: {row.reached}, to reach {row.target}", file=sys.stderr)
    print(f"{args.out} written")
    return 1 if args.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
