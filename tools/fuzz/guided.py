"""Coverage-guided fuzzing of the parsers with atheris: ``python -m tools.fuzz.guided PARSER [OPTION…]``.

Options are libFuzzer's.  ``make fuzz-parsers`` runs all five,
in an environment of its own.  A finding is kept
where ``-artifact_prefix`` says, and ``python -m tools.fuzz.guided PARSER FILE`` runs it again.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import atheris

with atheris.instrument_imports(include=["ctxctl"]):
    from tools.fuzz.parsers import PARSERS

from tools.fuzz.tally import Slowest, Tally

_AT_ONCE: Final = 256
"""Inputs between two looks at the tally."""


def main() -> None:
    """Fuzz one parser, from its own beginnings and words; does not return."""
    name, *options = sys.argv[1:]
    parser = PARSERS[name]
    # libFuzzer ends the process, so nobody would remove a temporary folder: it is the caller's.
    folder = Path(os.environ.get("CTXCTL_FUZZ_DIR") or tempfile.mkdtemp(prefix="ctxctl-fuzz-"))
    starts = folder / f"{name}-starts"
    starts.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(parser.starts()):
        (starts / f"{number:03}").write_bytes(start)
    words = folder / f"{name}-words"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in parser.words), encoding="ascii")
    again = any(not option.startswith("-") and Path(option).is_file() for option in options)
    given = [] if again else [str(starts), f"-dict={words}"]
    run = parser.run if again else _counted(name, parser.run)
    atheris.Setup([sys.argv[0], *given, *options], run)
    atheris.Fuzz()


def _counted(name: str, run: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """A parser whose inputs, failures and slowest input are added to the tally."""
    tally, clock = Tally(name), time.process_time
    count, slowest = 0, 0.0

    def counted(data: bytes) -> None:
        nonlocal count, slowest
        begun = clock()
        try:
            run(data)
        except BaseException as error:
            tally.failed(type(error).__name__)
            raise
        slowest = max(slowest, clock() - begun)
        count += 1
        if count == _AT_ONCE:
            tally.add(count, slowest=Slowest(round(slowest, 3), "one input"))
            count, slowest = 0, 0.0

    return counted


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02X}" for byte in word)


if __name__ == "__main__":
    main()
