"""Resolve the dependencies of pyproject.toml into the two requirements files (run by ``make lock``).

The files hold versions and hashes and never an address: where packages come from is the business of the
machine that installs them.  They are universal: one resolution for every supported Python and platform.
``requirements.txt`` runs a checkout; ``requirements-dev.txt`` is a superset with the same versions.

    lock.py             keep what still fits
    lock.py --upgrade   take the newest of everything that fits
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UV = Path(sys.executable).parent / "uv"
RUN, DEV = "requirements.txt", "requirements-dev.txt"

OPTIONS = (
    "--quiet",
    "--universal",
    "--python-version=3.11",
    "--all-extras",
    "--generate-hashes",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-annotate",
    "--custom-compile-command=make lock",
)


def resolve(output: str, *more: str) -> None:
    """Write one file; versions already in it are kept unless an option says otherwise."""
    command = [str(UV), "pip", "compile", "pyproject.toml", *OPTIONS, *more, "--output-file", output]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def main() -> int:
    """Write both files; the second is bound to the first one's versions."""
    options = sys.argv[1:]
    resolve(RUN, "--group=build", *options)
    resolve(DEV, "--group=dev", f"--constraints={RUN}", *options)
    for name in (RUN, DEV):
        text = (ROOT / name).read_text(encoding="utf-8")
        if "://" in text or "-url" in text:
            print(f"{name} holds an address: not fit to be committed", file=sys.stderr)
            return 1
        print(f"{name}: {sum(line[:1].isalnum() for line in text.splitlines())} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
