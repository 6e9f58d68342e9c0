"""Describes an internal error without what it quotes."""

from __future__ import annotations

import sys
import traceback
from typing import Final

FAULT_EXIT: Final = 70
"""Exit code after something inside went wrong; EX_SOFTWARE of sysexits.h."""


def place_of(error: BaseException) -> str:
    """Kind and place in our code of an error, without its message, which may quote the trace."""
    frames = traceback.extract_tb(error.__traceback__ or sys.exc_info()[2])
    ours = [frame for frame in frames if "ctxctl" in frame.filename] or list(frames)
    if not ours:
        return type(error).__name__
    last = ours[-1]
    name = last.filename.replace("\\", "/").rpartition("ctxctl/")[2]
    return f"{type(error).__name__} at {name}:{last.lineno} in {last.name}"
