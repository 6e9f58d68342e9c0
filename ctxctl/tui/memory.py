"""What is remembered from one time to the next: colours, and where each trace was left.

A small file of the user's own.  It holds numbers and words of ours only: a trace is known by a digest of its
path and its first bytes, and nothing of what it says is kept.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from ctxctl.typed_decoding import from_json
from ctxctl.user_folders import make_private, user_folder
from ctxctl.whole_file import replace_file

MOST: Final = 200
"""Traces that are remembered; the one not opened for longest is forgotten first."""

_HEAD: Final = 4096
_MAX_FILE: Final = 1 << 20
_OFF: Final = frozenset({"off", "0", "no", "false"})


class Left(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a trace was left."""

    ordinal: int = 0
    """That of the step under the cursor; on a turn, that of the first step of the turn."""
    step: bool = False
    """Whether the cursor was on the step's own line, and not on its turn's."""
    pane: str = ""
    choices: dict[str, str] = {}
    """What else was chosen, in words of ours: how the changes are sorted, for example."""


class Memory(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything that is remembered from one run to the next."""

    theme: str = ""
    """The theme chosen last; empty: none was."""
    traces: dict[str, Left] = {}
    """By digest, the one left last at the end."""

    def left(self, key: str | None) -> Left | None:
        """How a trace was left; None where that is not known."""
        return self.traces.get(key) if key is not None else None

    def leaving(self, key: str | None, left: Left | None) -> Memory:
        """The memory after a trace was left."""
        if key is None or left is None:
            return self
        traces = {name: was for name, was in self.traces.items() if name != key}
        traces[key] = left
        return msgspec.structs.replace(self, traces=dict(list(traces.items())[-MOST:]))


def file(environment: Mapping[str, str]) -> Path | None:
    """Where it is kept: in CTXCTL_STATE_DIR, else in the user's state directory.

    None where CTXCTL_STATE is `off`: nothing is to be kept.
    """
    if environment.get("CTXCTL_STATE", "").strip().lower() in _OFF:
        return None
    named = environment.get("CTXCTL_STATE_DIR")
    if named:
        return Path(named) / "ui.json"
    return user_folder("state") / "ui.json"


def key_of(name: str) -> str | None:
    """What a trace is known by; None for what is not a file or a directory, such as standard input."""
    try:
        path = os.path.realpath(name)
        digest = hashlib.sha256(os.fsencode(path))
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode):
            with open(path, "rb") as source:
                digest.update(b"\0" + source.read(_HEAD))
        elif not stat.S_ISDIR(mode):
            return None
    except (OSError, ValueError):
        return None
    return digest.hexdigest()[:32]


def load(path: Path | None) -> Memory:
    """The memory of a file; an empty one where the file is missing or damaged."""
    if path is None:
        return Memory()
    try:
        with path.open("rb") as source:
            data = source.read(_MAX_FILE + 1)
        if len(data) > _MAX_FILE:
            return Memory()
        return from_json(data, Memory)
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
        return Memory()


def save(path: Path | None, memory: Memory) -> bool:
    """Keep it; False where that cannot be done, which is nothing to trouble the user with."""
    if path is None:
        return False
    try:
        make_private(path.parent)
        replace_file(path, msgspec.json.encode(memory) + b"\n")
    except (OSError, UnicodeEncodeError):  # a name in it may be no text
        return False
    return True
