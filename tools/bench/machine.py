"""Says on what a page was measured."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version

_PACKAGES = ("tiktoken", "orjson", "msgspec", "xxhash", "rapidfuzz", "textual", "typer")


def machine() -> str:
    """Processor, memory, system, and the packages whose speed is in the numbers."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return (
        f"**Machine.** {os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GB of memory, "
        f"{platform.system()}, Python {platform.python_version()}; {packages}."
    )


def load_line(load: float) -> str:
    """What else the machine had to do; a busy one is said to be."""
    busy = load > 0.5 * (os.cpu_count() or 1)
    more = " The machine had other work to do: the numbers are accurate to about a fifth." if busy else ""
    return f"Load average when the run began: {load:.1f}.{more}"
