"""Hold ctxctl against raw captures: `python -m tools.independent [--ask] FILE…` prints each disagreement.

ctxctl is run as the command that it is; nothing of it is imported.  `--ask` runs `blame` and `why` of some
steps too.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tools.independent.held import held
from tools.independent.raw import Object


def ask(arguments: list[str]) -> list[Object]:
    """What ctxctl prints, an object a line."""
    done = subprocess.run([sys.executable, "-m", "ctxctl", *arguments], capture_output=True, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main(arguments: list[str]) -> int:
    """Check the files; 1 where something is said differently."""
    asking, found, read = "--ask" in arguments, 0, 0
    for name in arguments:
        if name.startswith("--"):
            continue
        answer = held(Path(name), ask, asking=asking)
        read += answer.requests
        found += len(answer.wrong)
        for wrong in answer.wrong:
            print(f"{name}: {wrong}")
    print(f"{read} requests, {found} disagreements")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
