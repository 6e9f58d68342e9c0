"""Messages of a transcript by the digest that the client names them with (versions 2.1.300 on).

A request's record does not repeat what stands in the transcript: it names each message by the SHA-256 of its
canonical JSON (keys sorted, no spaces, no cache markers, a plain string as one text block).  Lines that
follow each other in the file make one message where they are the user's, or have one message id; every
beginning of such a run has a digest.  A compaction begins anew.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

import orjson

from ctxctl.formats.claude_code.blocks import Entry, blocks_of
from ctxctl.formats.lines import Json
from ctxctl.formats.wire.slots import without_cache

_SORTED: Final = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
_MARK: Final = b'"cache_control":'
_ENDS: Final = {"user": b'],"role":"user"}', "assistant": b'],"role":"assistant"}'}


class Run:
    """Lines of one message, as far as they were read."""

    __slots__ = ("blocks", "ends", "entries", "index", "is_bound", "message", "role", "sha")

    def __init__(self, role: str, message: str | None, index: int) -> None:
        self.role = role
        self.message = message
        """Id of the answer."""
        self.index = index
        """Among the runs of its thread, in the order of the file."""
        self.entries: list[Entry] = []
        self.ends: list[int] = []
        """Entries up to and with each content block."""
        self.blocks = 0
        self.is_bound = False
        """A request's record is known to name it."""
        self.sha: Any = sha256(b'{"content":[')
        """Over the blocks so far; None where one of them has no canonical form."""

    def goes_on(self, role: str, message: str | None) -> bool:
        """Whether a line belongs to the same message."""
        return self.role == role and (role == "user" or (message is not None and message == self.message))


class Runs:
    """The messages of one thread."""

    def __init__(self) -> None:
        self.all: list[Run] = []
        self.first = 0
        """The first one behind the last compaction."""
        self._by_digest: dict[bytes, tuple[Run, int]] = {}
        self._last: Run | None = None

    def note(self, message: Json, made: list[list[Entry]]) -> None:
        """Take a line's message into account; `made`: the items of each of its blocks."""
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant") or content is None:
            self._last = None
            return
        native = message.get("id")
        native = native if isinstance(native, str) else None
        run = self._last
        if run is None or not run.goes_on(role, native):
            run = self._last = Run(role, native, len(self.all))
            self.all.append(run)
        for entries in made:
            for entry in entries:
                entry.run = run
            run.entries += entries
            run.ends.append(len(run.entries))
        self._digest(run, blocks_of(content))

    def _digest(self, run: Run, blocks: list[Any]) -> None:
        if run.sha is None:
            return
        try:
            for block in blocks:
                data = orjson.dumps(block, option=_SORTED)
                if _MARK in data:
                    data = orjson.dumps(without_cache(block), option=_SORTED)
                run.sha.update(b"," + data if run.blocks else data)
                run.blocks += 1
        except (TypeError, ValueError, RecursionError):
            run.sha = None
            return
        sha = run.sha.copy()
        sha.update(_ENDS[run.role])
        self._by_digest[sha.digest()] = run, len(run.ends)

    def find(self, digest: str) -> tuple[Run, int] | None:
        """The run with a digest, and how many of its blocks make it; the digest in hex."""
        try:
            return self._by_digest.get(bytes.fromhex(digest))
        except ValueError:
            return None

    def begin(self) -> None:
        """A compaction: what comes is no part of a message in front of it, though requests may name such."""
        self._last = None
        self.first = len(self.all)
