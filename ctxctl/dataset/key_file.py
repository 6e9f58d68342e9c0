"""The key of a dataset, which is never in it: a file of the user's, or what a variable says."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ctxctl.dataset.keys import KEY_SIZE, KeyedDigests
from ctxctl.errors import UnavailableError, UnreadableError, UsageError
from ctxctl.text import visible
from ctxctl.user_folders import make_private, user_folder
from ctxctl.whole_file import create_file

if TYPE_CHECKING:
    from ctxctl.dataset.log import Head

VARIABLE: Final = "CTXCTL_FLEET_KEY"
_HEX: Final = re.compile(rf"[0-9a-fA-F]{{{2 * KEY_SIZE}}}")


def new_key() -> bytes:
    """A key for a new dataset: the variable's where it is set, else a random one."""
    said = os.environ.get(VARIABLE)
    return _decoded(said, VARIABLE) if said else os.urandom(KEY_SIZE)


def key_path(head: Head) -> Path:
    """Where the user keeps the key of a dataset."""
    return user_folder("config") / "fleet-keys" / head.id


def keep_key(head: Head, key: bytes) -> Path:
    """Keep a new dataset's key, readable by this user alone; where.  Raises OSError."""
    path = key_path(head)
    make_private(path.parent)
    create_file(str(path), key.hex().encode() + b"\n")
    return path


def key_of(head: Head, file: str | None = None) -> bytes:
    """The key of a dataset: of a file that was named, of the variable, else of the user's folder.

    Raises UnavailableError (`no-key`, `wrong-key`): without it a dataset can be read and not added to.  And
    UnreadableError (`not-readable`).
    """
    said, where = _said(head, file)
    if said is None:
        raise UnavailableError(
            "no-key", f"the key of the dataset is not here: {where} is missing",
            hint=f"{VARIABLE} or --key-file says it: 64 hex digits, which whoever made the dataset has",
        )  # fmt: skip
    key = _decoded(said, where)
    if KeyedDigests(key).check != head.key_check:
        raise UnavailableError("wrong-key", f"the key in {where} is that of another dataset")
    return key


def _said(head: Head, file: str | None) -> tuple[str | None, str]:
    said = os.environ.get(VARIABLE)
    if file is None and said:
        return said, VARIABLE
    path = Path(file) if file is not None else key_path(head)
    try:
        return path.read_text(encoding="ascii", errors="replace"), visible(str(path))
    except (FileNotFoundError, NotADirectoryError):
        return None, visible(str(path))
    except OSError as error:
        raise UnreadableError(
            "not-readable", f"cannot read the dataset's key, {visible(str(path))}: {error.strerror}"
        ) from None


def _decoded(said: str, where: str) -> bytes:
    if not _HEX.fullmatch(said.strip()):
        raise UsageError("bad-key", f"{where} holds no key: {2 * KEY_SIZE} hex digits")
    return bytes.fromhex(said.strip())
