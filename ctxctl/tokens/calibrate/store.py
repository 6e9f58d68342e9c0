"""Calibrations that are kept for later sessions: one file each, named by its digest.

Numbers and names of models, nothing else.  They are in the user's data directory, not in the cache: without
the sessions they cannot be made again.
"""

from __future__ import annotations

import os
import re
import stat
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ctxctl.errors import UnreadableError, UsageError
from ctxctl.text import visible
from ctxctl.user_folders import make_private, user_folder
from ctxctl.whole_file import replace_file

if TYPE_CHECKING:
    from ctxctl.tokens.calibrate.calibration import Calibration

CURRENT: Final = "current"
"""Holds the digest of the one that is used where none is named."""
_DIGEST: Final = re.compile(r"[0-9a-f]{4,16}", re.ASCII)
_MOST: Final = 4 << 20


def folder() -> Path:
    """Where calibrations are kept: in `CTXCTL_DATA_DIR`, else the user's data directory."""
    named = os.environ.get("CTXCTL_DATA_DIR")
    if named:
        return Path(named) / "calibration"
    return user_folder("data") / "calibration"


def save(calibration: Calibration) -> Path:
    """Keep a calibration and use it from now on where none is named; raises OSError."""
    where = folder()
    make_private(where)
    path = where / f"{calibration.digest}.json"
    write(path, calibration.encode() + b"\n")
    write(where / CURRENT, calibration.digest.encode() + b"\n")
    return path


def write(path: Path, data: bytes) -> None:
    """Replace a file by another one, mode 0600, whole or not at all; raises OSError."""
    replace_file(path, data)


def saved() -> Calibration | None:
    """The one to use where none is named; None if none was kept.

    Raises UnreadableError("bad-calibration") if there is one that is damaged: a replay must not silently be
    made without it.
    """
    pointer = folder() / CURRENT
    try:
        with pointer.open("rb") as file:
            digest = file.read(64).decode("ascii", "replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _bad(str(pointer), error.strerror or "cannot be read") from None
    if not _DIGEST.fullmatch(digest):
        raise _bad(str(pointer), "it holds no digest")
    return read(folder() / f"{digest}.json")


def all_saved() -> list[tuple[str, Path]]:
    """Digests of all that are kept, with their files."""
    try:
        found = sorted(folder().glob("*.json"))
    except OSError:
        return []
    return [(path.stem, path) for path in found if _DIGEST.fullmatch(path.stem)]


def is_digest(name: str) -> bool:
    """Whether a name may be a digest, or the beginning of one."""
    return _DIGEST.fullmatch(name) is not None


def named(name: str) -> Calibration:
    """The calibration that a digest (or the first four digits or more of one) or a file names.

    Raises UsageError("no-calibration") or UnreadableError("bad-calibration").
    """
    if _DIGEST.fullmatch(name):
        fits = [path for digest, path in all_saved() if digest.startswith(name)]
        if len(fits) == 1:
            return read(fits[0])
        if len(fits) > 1:
            raise UsageError(
                "no-calibration",
                f"{len(fits)} saved calibrations begin with {name}",
                hint=f"there are: {', '.join(path.stem for path in fits[:5])}",
            )
    path = Path(name)
    if not path.exists():
        kept = ", ".join(digest for digest, _ in all_saved()[:5])
        hint = f"saved are: {kept}" if kept else "`ctxctl calibrate TRACE… --save` makes one"
        raise UsageError("no-calibration", f"no calibration is called {visible(name[:80])!r}", hint=hint)
    return read(path)


def read(path: Path) -> Calibration:
    """A calibration from a file; raises UnreadableError("bad-calibration")."""
    from ctxctl.tokens.calibrate.calibration import decode

    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise _bad(str(path), "it is no file")
        with path.open("rb") as file:
            raw = file.read(_MOST + 1)
    except OSError as error:
        raise _bad(str(path), error.strerror or "cannot be read") from None
    if len(raw) > _MOST:
        raise _bad(str(path), "it is too large to be one")
    try:
        found = decode(raw)
    except ValueError as error:
        raise _bad(str(path), f"it is none of ours: {error}") from None
    # Of the bytes: what an earlier version wrote has fewer fields than it is read into.
    digest = sha256(raw.strip()).hexdigest()[:16]
    if is_digest(path.stem) and path.parent == folder() and digest != path.stem:
        raise _bad(str(path), "it was changed: its numbers are not those of its digest")
    return found


def _bad(name: str, why: str) -> UnreadableError:
    return UnreadableError(
        "bad-calibration", f"{visible(name)}: not a calibration: {visible(why)[:200]}",
        hint="--calibration none turns calibration off; `ctxctl calibrate TRACE… --save` makes a new one",
    )  # fmt: skip
