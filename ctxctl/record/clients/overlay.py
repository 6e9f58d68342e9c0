"""A directory of settings in the place of a program's own: links to its files, but for some."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ctxctl.record.clients.settings import write_over

if TYPE_CHECKING:
    from ctxctl.record.clients.setup import Start


def overlaid(start: Start, name: str, real: Path, files: Mapping[str, bytes]) -> Path:
    """Make the directory; what the program adds to it, or writes anew, goes to its own one when it has ended.

    Args:
        start: Of the program.
        name: Of the directory, below the folder of this run.
        real: The program's own, which need not be there.
        files: What is changed, by name: the program's changes of these are not kept.
    """
    folder = start.file(f"{name}/.ctxctl", b"").parent
    (folder / ".ctxctl").unlink()
    for there in real.iterdir() if real.is_dir() else ():
        if there.name not in files:
            (folder / there.name).symlink_to(there.absolute())
    for file, data in files.items():
        start.file(f"{name}/{file}", data)
    start.at_end(partial(_bring_home, folder, real, frozenset(files)))
    return folder


def _bring_home(folder: Path, real: Path, ours: frozenset[str]) -> None:
    new = [one for one in folder.iterdir() if one.name not in ours and not one.is_symlink()]
    if new:
        real.mkdir(mode=0o700, parents=True, exist_ok=True)
    for one in new:
        own = real / one.name
        if not own.exists():
            shutil.move(one, own)
        elif one.is_file() and own.is_file():
            write_over(own, one.read_bytes())
