"""Learned sets on disk: one file per client and version, in the user's data directory, mode 0600.

They hold what clients send: texts, no code. Digests are checked on each read. A log's client version is read
from the head of the log (`version_of`).
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Final, NamedTuple

from ctxctl.errors import UnreadableError, UsageError
from ctxctl.ingest.folder import Folder
from ctxctl.session.learned.book import LearnedSet, decode_set
from ctxctl.session.learned.place import sets_folder
from ctxctl.text import visible
from ctxctl.tokens.calibrate.store import write
from ctxctl.trace.source import Source
from ctxctl.user_folders import make_private

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,79}", re.ASCII)
"""Valid names of a client and a version."""
_MOST: Final = 64 << 20
_NUMBER: Final = re.compile(r"\d+")


class Match(NamedTuple):
    """A set for a log, and how well its version fits."""

    learned: LearnedSet
    exact: bool
    """False if only the major and minor version match, or the user named the set."""


def path_of(client: str, version: str) -> Path:
    """Return the file of a set; raises UsageError("bad-client") for a name that cannot be one."""
    for name in (client, version):
        if not NAME.fullmatch(name):
            raise UsageError(
                "bad-client", f"{visible(name[:80])!r} is not a name of a client or a version",
                hint="letters, digits and . _ + - are: --client claude-code --version 2.1.330",
            )  # fmt: skip
    return sets_folder() / f"{client}@{version}.json"


def save_set(learned: LearnedSet) -> Path:
    """Save a set, replacing that of its client and version. Raises OSError."""
    path = path_of(learned.client, learned.version)
    make_private(path.parent)
    write(path, learned.encode() + b"\n")
    return path


def set_names() -> list[tuple[str, str]]:
    """Return client and version of every stored set, sorted, newer versions last."""
    try:
        found = [path.stem.partition("@") for path in sets_folder().glob("*@*.json")]
    except OSError:
        return []
    return sorted(((c, v) for c, _, v in found if v), key=lambda name: (name[0], _order(name[1])))


def read_set(client: str, version: str) -> LearnedSet:
    """Return a set. Raises UnreadableError("bad-learned") if it is damaged or was changed."""
    path = path_of(client, version)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise _bad(path, "it is no file")
        with path.open("rb") as file:
            raw = file.read(min(os.fstat(file.fileno()).st_size, _MOST + 1))
    except OSError as error:
        raise _bad(path, error.strerror or "cannot be read") from None
    if len(raw) > _MOST:
        raise _bad(path, "it is too large to be one")
    try:
        found = decode_set(raw)
    except ValueError as error:
        raise _bad(path, str(error)) from None
    if (found.client, found.version) != (client, version):
        raise _bad(path, "it is another client's or version's")
    return found


def forget_sets(name: str) -> list[str]:
    """Remove the sets of `CLIENT` or `CLIENT@VERSION`. Return their names.

    Raises UsageError("not-learned") if there is none, or OSError.
    """
    client, _, version = name.partition("@")
    gone = []
    for known, its in set_names():
        if known == client and version in ("", its):
            path_of(known, its).unlink()
            gone.append(f"{known} {its}")
    if not gone:
        raise UsageError("not-learned", f"nothing is known of {visible(name[:80])}", hint=_known())
    return gone


def named_set(name: str) -> Match:
    """Return the set that the user names as `CLIENT@VERSION`; raises UsageError("not-learned")."""
    client, _, version = name.partition("@")
    if (client, version) not in set_names():
        raise UsageError("not-learned", f"nothing is known of {visible(name[:80])}", hint=_known())
    return Match(read_set(client, version), exact=False)


def find_set(client: str, version: str | None) -> Match | None:
    """Return the set of a log's version, else the newest of its major and minor version; or None."""
    if version is None:
        return None
    of_client = [its for known, its in set_names() if known == client]
    if version in of_client:
        return Match(read_set(client, version), exact=True)
    line = _line(version)
    near = [its for its in of_client if line is not None and _line(its) == line]
    return Match(read_set(client, near[-1]), exact=False) if near else None


def _known() -> str:
    kept = ", ".join(f"{client}@{version}" for client, version in set_names()[:8])
    return f"known are: {kept}" if kept else "`ctxctl learn RECORDING` learns"


def _line(version: str) -> tuple[str, str] | None:
    parts = version.split(".")
    return (parts[0], parts[1]) if len(parts) > 1 else None


def _order(version: str) -> list[int]:
    return [int(number[:18]) for number in _NUMBER.findall(version)]


def _bad(path: Path, why: str) -> UnreadableError:
    return UnreadableError(
        "bad-learned", f"{visible(str(path))}: not a set of learned items: {visible(why)[:200]}",
        hint="`ctxctl learn --forget CLIENT@VERSION` removes it; --no-learned does without it",
    )  # fmt: skip


_HEAD: Final = 1 << 20
_SAID: Final[dict[str, tuple[re.Pattern[bytes], ...]]] = {
    "claude-code": (re.compile(rb'"version"\s*:\s*"(\d+\.\d+[0-9A-Za-z.+-]*)"'),),
    "codex": (re.compile(rb'"cli_version"\s*:\s*"(\d+\.\d+[0-9A-Za-z.+-]*)"'),),
    "copilot-cli": (re.compile(rb'"copilotVersion"\s*:\s*"(\d+\.\d+[0-9A-Za-z.+-]*)"'),),
    "opencode": (re.compile(rb'"version"\s*:\s*"(\d+\.\d+[0-9A-Za-z.+-]*)"'),),
    "gemini-cli": (re.compile(rb'"cliVersion"\s*:\s*"(\d+\.\d+[0-9A-Za-z.+-]*)"'),),
    "pi": (),
}
"""Where the logs of each client (by the log's format) state its version."""
CLIENTS: Final = tuple(_SAID)
"""Clients whose logs can be completed."""


def version_of(client: str, source: Source | Folder) -> str | None:
    """Return the version in the first megabyte of a log; None if there is none, or files differ."""
    if isinstance(source, Folder):
        versions = set()
        for name in source.files:
            versions.add(_in(client, source.head(name, _HEAD)))
        versions.discard(None)
        return versions.pop() if len(versions) == 1 else None
    head = source.read(0, _HEAD)
    if head.startswith(b"SQLite format 3\0"):
        return _of_database(source) if client == "opencode" else None
    return _in(client, head)


def _in(client: str, head: bytes) -> str | None:
    for pattern in _SAID[client]:
        found = pattern.search(head)
        if found is not None:
            return found[1].decode("ascii", "replace")
    return None


def _of_database(source: Source) -> str | None:
    """Return the version that a database of opencode names; None if it is none of opencode's."""
    from ctxctl.ingest import database  # slow to import

    found = database.first_rows(source, "SELECT DISTINCT version FROM session", 2)
    return found[0][0] if len(found) == 1 and isinstance(found[0][0], str) else None
