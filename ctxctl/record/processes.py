"""What recorders do when the process forks or ends."""

from __future__ import annotations

import atexit
import os
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from ctxctl.record.recorder import Recorder

_recorders: WeakSet[Recorder] = WeakSet()


def remember(recorder: Recorder) -> None:
    """See to a recorder from now on."""
    _recorders.add(recorder)


def _forked() -> None:
    for recorder in list(_recorders):
        recorder._forked()


def _ended() -> None:
    for recorder in list(_recorders):
        recorder.close()


os.register_at_fork(after_in_child=_forked)
atexit.register(_ended)
