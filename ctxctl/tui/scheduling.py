"""Keeping the event loop's waits short while another thread computes.

Two things make it wait.  The interpreter lets a busy thread run for its switch interval each time the loop
wants to go on.  And a full pass of the garbage collector stops all threads while it walks through everything
that is alive: with a large trace, for a third of a second, and for nothing, as what a replay keeps is freed
by reference counts alone.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_INTERVAL: Final = 0.001
"""Seconds; the interpreter's own is 0.005, and one key press may wait for several of them."""

_THRESHOLDS: Final = (20_000, 20, 100)
"""Young objects are cheap to collect, and so is all in a full pass once `settle_objects` was called."""

_READ: Final = (5_000, 80, 100)
"""Once the trace is read, a pass over the young objects is to be a small part of a key's time."""


@contextmanager
def short_waits() -> Iterator[None]:
    """Let waiting threads go on sooner while a trace is being read; for good, collect garbage more rarely."""
    gc.set_threshold(*_THRESHOLDS)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_INTERVAL)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*_READ)


def settle_objects() -> None:
    """Put what is alive aside for good, out of the collector's sight.

    Garbage in cycles would then never be freed, so the young objects are collected first; the time this takes
    does not depend on how much there is besides.
    """
    gc.collect(1)
    gc.freeze()
