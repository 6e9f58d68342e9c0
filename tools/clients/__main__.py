"""``make clients``: install what installs, run it, and write the table of ``docs/recording.md``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.clients import page
from tools.clients.install import InstallError, available, install, node
from tools.clients.running import alone, recorded
from tools.clients.specs import SPECS, Spec


def main() -> int:
    """Run all; exit code 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.clients", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=Path(".clients"), help="where the clients are installed"
    )
    parser.add_argument("--only", help="only clients whose name holds this text; writes no page")
    args = parser.parse_args()
    folder: Path = args.folder.resolve()
    why = available()
    if why is not None:
        print(f"no client was tried: {why}", file=sys.stderr)
        return 0
    rows: dict[str, page.Row] = {}
    failed: dict[str, str] = {}
    for spec in SPECS:
        if args.only and args.only.lower() not in spec.name.lower():
            continue
        try:
            node(folder)
            version = install(folder, spec)
        except InstallError as error:
            print(f"{spec.name}: does not install: {error}", file=sys.stderr)
            failed[spec.name] = "does not install here"
            continue
        rows[spec.name] = tried(folder, spec, version)
    if not args.only and rows:
        page.write(rows, failed)
        print(f"{page.PAGE.name} written", file=sys.stderr)
    return 0 if all(right(row) for row in rows.values()) else 1


def tried(folder: Path, spec: Spec, version: str) -> page.Row:
    """Run one client in its three ways, and say what came of it."""
    work = folder / "work" / spec.command
    row = page.Row(
        version, alone(folder, spec, work), recorded(folder, spec, work, own=True),
        recorded(folder, spec, work, own=False),
    )  # fmt: skip
    print(f"{spec.name} {version}: {'as it should be' if right(row) else 'DIFFERS'}", file=sys.stderr)
    for name, way in zip(("alone", "own address", "--upstream"), row[1:], strict=True):
        few = way.held._replace(problems=way.held.problems[:3]) if way.held is not None else ""
        print(
            f"  {name}: exit {way.codes}, {way.requests} requests {few} {way.strays[:3] or ''}",
            file=sys.stderr,
        )
    return row


def right(row: page.Row) -> bool:
    """Whether everything is recorded, and nothing changes for the user."""
    ways = [row.own] if row.given.requests == 0 and row.given.codes != [0, 0] else [row.own, row.given]
    same = row.own.codes == row.alone.codes and row.own.output == row.alone.output
    return same and all(way.held is not None and way.held.equal and not way.strays for way in ways)


if __name__ == "__main__":
    sys.exit(main())
