"""``python -m ctxctl`` and the ``ctxctl`` script; the version is told before anything slow is imported."""

from __future__ import annotations

import gc
import os
import sys

SUPPORTED = "posix"
"""`os.name` of Linux and macOS, and of Linux under WSL: files are locked and replaced as POSIX has it."""


def main() -> int:
    """Run the command line and give its exit code (`errors.Exit`)."""
    if os.name != SUPPORTED:
        return _unsupported()
    if sys.argv[1:] in (["--version"], ["-V"]) and sys.stdout is not None:
        from ctxctl import __version__

        try:
            sys.stdout.write(f"ctxctl {__version__}\n")
            sys.stdout.flush()
        except OSError:
            pass  # the command line below says what is wrong with standard output
        else:
            return 0
    if sys.argv[1:2] != ["record"]:  # which may run for days
        gc.set_threshold(100_000, 20, 50)  # what is imported makes many objects and no garbage
    try:
        from ctxctl.cli.main import run

        code = run(sys.argv[1:])
        if "duckdb" not in sys.modules:  # it tells people of what is left behind
            gc.freeze()  # the process ends: nobody has to look for garbage in what it leaves behind
        return code
    except KeyboardInterrupt:  # before the command line was there to catch it
        return 130


def _unsupported() -> int:
    """Say so at once, in place of answers that are wrong and recordings that are not kept."""
    if sys.stderr is not None:
        sys.stderr.write("ctxctl: error: ctxctl runs on Linux and macOS; on Windows it works under WSL\n")
    return 2  # errors.Exit.USAGE, without the import


if __name__ == "__main__":
    sys.exit(main())
