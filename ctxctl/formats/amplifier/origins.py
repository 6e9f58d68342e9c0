"""Where the files of the system prompt come from: what `mentions:resolved` tells of them."""

from __future__ import annotations

import re
from typing import Any, Final

from ctxctl.formats.amplifier.injected import Piece
from ctxctl.formats.build import Json
from ctxctl.formats.kit.parts import Part, string

_MASK: Final = re.compile(r"\[REDACTED(?::[A-Z_]+)?\]")
_MAX_MASKS: Final = 4


class Origins:
    """Files by path and by mention, with the digest of their content."""

    def __init__(self) -> None:
        self._files: dict[str, Json] = {}
        self._mentions: dict[str, Json] = {}
        self.failed: list[Json] = []
        """Mentions that no file was found for, since they were last told."""

    def resolved(self, data: Json) -> None:
        """A `mentions:resolved` event."""
        for row in _rows(data.get("resolutions")):
            path, mention = string(row.get("resolved_path")), string(row.get("mention"))
            if path is None:
                continue
            self._files[path] = row
            if mention is not None:
                self._mentions[mention.removeprefix("@")] = row
        self.failed += _rows(data.get("failed"))

    def of(self, piece: Piece) -> Json | None:
        """The source ref of a file in the system prompt; None where the piece names none."""
        path = piece.source
        if path is None:
            return None
        row = self._files.get(path) or self._mentions.get(piece.mention or "") or self._masked(path)
        return _ref(path, piece.mention, row)

    def parts(self, line: int) -> list[Part]:
        """The files as parts of a system prompt whose text is not recorded."""
        made: list[Part] = []
        for path, row in self._files.items():
            digest = string(row.get("content_hash"))
            mention = string(row.get("mention"))
            made.append(
                Part(
                    "external_resource",
                    None,
                    "system",
                    key=path,
                    title=mention or path,
                    line=line,
                    version=digest[:16] if digest is not None else None,
                    segment="system",
                    source_refs=[_ref(path, mention, row)],
                )  # fmt: skip
            )
        return made

    def _masked(self, path: str) -> Json | None:
        """The file that a path stands for whose digits were masked, if it can be only one."""
        pieces = _MASK.split(path)
        if not 1 < len(pieces) <= _MAX_MASKS + 1:
            return None
        pattern = re.compile("[^/]*".join(re.escape(piece) for piece in pieces) + r"\Z")
        found = [row for name, row in self._files.items() if pattern.match(name)]
        return found[0] if len(found) == 1 else None


def _ref(path: str, mention: str | None, row: Json | None) -> Json:
    made: Json = {"schema_version": "0.1.1", "source_id": path, "uri": path, "source_kind": "file"}
    digest = string(row.get("content_hash")) if row is not None else None
    if digest is not None:
        made["digest"] = f"sha256:{digest}"
    if mention is not None:
        made["metadata"] = {"mention": mention}
    return made


def _rows(value: Any) -> list[Json]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
