"""``make bench-peers``: ctxctl compared with other tools; writes ``docs/benchmarks-peers.md``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import ctxctl
from tools.bench import generate
from tools.bench.cases import Bench, command
from tools.bench.measure import Sample, run
from tools.bench.peers import report
from tools.bench.peers.homes import ClaudeHome, claude_home
from tools.bench.peers.install import install, version
from tools.bench.peers.running import add_peer, case_name, checked, filled
from tools.bench.peers.specs import COSTS, OURS, PEERS, QUESTIONS
from tools.bench.run import progress, scratch_folder
from tools.bench.sections.fleet import FLEETS

SESSION = "50 MB session"


def main() -> int:
    """Install what was asked for, run all, and write the page; exit code 2 if none of the tools is here."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.peers", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(".peers"), help="where the tools are installed")
    parser.add_argument(
        "--install", action="store_true", help="install those that are not there (needs a network)"
    )
    parser.add_argument("--runs", type=int, default=5, help="rounds (default 5)")
    parser.add_argument("--minutes", type=float, default=15, help="no further rounds after (default 15)")
    parser.add_argument(
        "--quick", action="store_true", help="one round on the 240 sessions alone; prints the page"
    )
    parser.add_argument("--only", help="only tools of these names, with commas between; writes no page")
    parser.add_argument(
        "--out", type=Path, default=Path("docs") / "benchmarks-peers.md", help="the page to write"
    )
    args = parser.parse_args()
    load = os.getloadavg()[0]
    peers = [peer for peer in PEERS if args.only is None or peer.name in args.only.split(",")]
    missing = {}
    for peer in peers:
        why = install(peer, args.folder) if args.install else None
        if not peer.installed(args.folder):
            missing[peer.name] = why or "not installed (`make bench-peers INSTALL=1`)"
            print(f"{peer.name} is not here: {missing[peer.name]}", file=sys.stderr)
    if len(missing) == len(peers):
        print("None of the tools is here: make bench-peers INSTALL=1", file=sys.stderr)
        return 2
    with scratch_folder() as scratch:
        bench = Bench(1 if args.quick else args.runs, gigabyte=False, scratch=scratch, peers=args.folder)
        versions = {peer.name: version(peer, args.folder, bench.home) for peer in peers}
        versions["ctxctl"] = ctxctl.__version__
        for question, name, home in _captures(bench, quick=args.quick):
            _add_ours(bench, question, home, name)
            for peer in peers:
                if question in peer.asks and peer.name not in missing:
                    add_peer(bench, peer, question, home, name)
        progress(bench, args.minutes * 60)
        text = report.page(bench, versions, missing, load)
    if args.only or args.quick:
        print(text)
    else:
        report.write(args.out, text)
        print(f"{args.out} written")
    return 0


def _captures(bench: Bench, *, quick: bool) -> list[tuple[str, str, ClaudeHome]]:
    """Each question with the captures that it is asked about; if `quick`, the first of them alone."""
    homes = {}
    for name, made in [*FLEETS.items()][: 1 if quick else None]:
        homes[name] = claude_home(bench.scratch / f"captures {name}", generate.transcripts(*made))
    if not quick:
        homes[SESSION] = claude_home(bench.scratch / "captures 50 MB", generate.transcript_50mb())
    for name, home in homes.items():
        bench.add_input(name, home.path)
    asked = [
        (question, name) for question in QUESTIONS for name in (FLEETS if question == COSTS else (SESSION,))
    ]
    return [(question, name, homes[name]) for question, name in asked if name in homes]


def _add_ours(bench: Bench, question: str, captures: ClaudeHome, name: str) -> None:
    words = filled(OURS[question], captures, bench.scratch / "page.html")
    first, again = (case_name("ctxctl", question, name, state) for state in ("first", "again"))
    bench.prime(*words, cache="peers")
    if question != COSTS:
        bench.add_command(first, *words, runs=min(3, bench.runs), cache="cold")
        bench.add_command(again, *words, cache="peers")
        return

    def ask(cache: str) -> Sample:
        done = run(command(*words), bench.env(bench.cache(cache)), bench.scratch, keep=True)
        return checked(done, bench.scratch / "stdout", captures)

    bench.add_case(first, lambda: ask(bench.fresh_cache()), min(3, bench.runs))
    bench.add_case(again, lambda: ask("peers"))


if __name__ == "__main__":
    sys.exit(main())
