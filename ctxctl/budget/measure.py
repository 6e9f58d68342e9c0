"""What the parts of a plan hold: files and tool definitions read and counted, nothing guessed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path, PurePath
from random import Random
from typing import Any, Final, NamedTuple

from ctxctl.budget.distribution import Distribution, constant, quantile
from ctxctl.budget.plan import Part, Plan
from ctxctl.errors import UnreadableError, UsageError
from ctxctl.text import visible
from ctxctl.tokens.counter import Counter
from ctxctl.tokens.overhead import written_size

MOST_FILE: Final = 16 << 20
"""Bytes of one file at the most."""
MOST_BYTES: Final = 64 << 20
"""Bytes of all files of a plan together at the most."""
MOST_FILES: Final = 5000
_LISTS: Final = ("tools", "functions", "functionDeclarations")
_TRIES: Final = 999
"""Draws that percentiles of a retrieval are taken from."""


class Piece(NamedTuple):
    """One file or tool of a part."""

    name: str
    tokens: int


class Measured(NamedTuple):
    """A part and its size."""

    part: Part
    method: str
    """`exact`, `calibrated` (tools, by what OpenAI bills for them), `estimate` (the model's encoding is not
    known) or `plan`: the plan says the size."""
    size: Distribution
    """Of the whole part where it is exact, of one item where the plan says it."""
    pieces: tuple[Piece, ...]
    p50: int
    p95: int
    p99: int


class Reader:
    """Reads the files of one plan and counts them.

    Args:
        folder: Where the plan is; nothing outside of it is read.
        exact: Whether the model is known to use the counter's encoding.
        listed: By part, what its MCP server answered to `tools/list`.
    """

    def __init__(
        self, folder: Path, counter: Counter, *, exact: bool, listed: Mapping[str, Any] | None = None
    ) -> None:
        self._folder = folder.resolve()
        self._counter = counter
        self._exact = exact
        self._left = MOST_BYTES
        self._listed = listed or {}

    def measure(self, plan: Plan) -> tuple[Measured, ...]:
        """All parts in the plan's order.

        Raises UnreadableError (`no-plan-file`, `no-tool-list`) and UsageError (`bad-plan`, `live-needed`).
        """
        return tuple(self._part(part) for part in plan.part)

    def _part(self, part: Part) -> Measured:
        if part.tokens is not None:
            return _drawn(part, part.tokens)
        if part.text is not None:
            pieces, method = self._counted([("text", part.text)])
        elif part.mcp is not None:
            pieces, method = self._written(self._live(part, part.mcp))
        elif part.tools is not None:
            texts = [one for path in self._found(part, part.tools) for one in self._tools(part, path)]
            pieces, method = self._written(texts)
        else:
            assert part.files is not None
            paths = self._found(part, part.files)
            pieces, method = self._counted([(self._name(p), self._text(p)) for p in paths])
        total = sum(piece.tokens for piece in pieces)
        return Measured(part, method, constant(total), pieces, total, total, total)

    def _live(self, part: Part, command: tuple[str, ...]) -> list[tuple[str, str]]:
        """Names and texts of what a server has listed; nothing is run here."""
        shown = visible(part.name)
        if part.name not in self._listed:
            raise UsageError(
                "live-needed",
                f"part {shown!r} is what an MCP server lists, and you did not ask to run it: "
                f"{visible(shlex.join(command)[:300])}",
                hint="if you trust the plan: --live runs the servers that it names",
            )
        found = list(definitions(self._listed[part.name]))
        if not found:
            raise UnreadableError("no-tool-list", f"part {shown!r}: the server lists no tools")
        return found

    def _written(self, texts: list[tuple[str, str]]) -> tuple[tuple[Piece, ...], str]:
        """Tool definitions as the provider writes them out, where the model's encoding is public: as replays
        of sessions count them."""
        if not self._exact:
            return self._counted(texts)
        encoding = self._counter.encoding
        sizes = [(name, text, written_size(text, self._counter, encoding)) for name, text in texts]
        pieces = (
            Piece(name, self._counter.count(text)[0] if size is None else size) for name, text, size in sizes
        )
        known = all(size is not None for _, _, size in sizes)
        return tuple(pieces), "calibrated" if known else "estimate"

    def _counted(self, texts: list[tuple[str, str]]) -> tuple[tuple[Piece, ...], str]:
        pieces, sure = [], True
        for name, text in texts:
            tokens, exact = self._counter.count(text)
            pieces.append(Piece(name, tokens))
            sure &= exact
        return tuple(pieces), "exact" if sure and self._exact else "estimate"

    def _name(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()

    def _found(self, part: Part, globs: str | tuple[str, ...]) -> list[Path]:
        """Files in the order of the globs, those of one by name; each once."""
        found: dict[Path, None] = {}
        for glob in (globs,) if isinstance(globs, str) else globs:
            matched = sorted(self._matched(part, glob))
            if not matched:
                raise UnreadableError(
                    "no-plan-file",
                    f"part {visible(part.name)!r}: no file is {visible(glob[:200])!r}",
                    hint="names are relative to the plan's folder",
                )
            found.update(dict.fromkeys(matched))
        if len(found) > MOST_FILES:
            raise _refused(part, f"more than {MOST_FILES:,} files")
        return list(found)

    def _matched(self, part: Part, glob: str) -> Iterator[Path]:
        pure = PurePath(glob)
        if not glob.strip() or "\0" in glob or pure.is_absolute() or ".." in pure.parts:
            raise _refused(part, f"{visible(glob[:200])!r} is not a name within the plan's folder")
        try:
            matched = list(islice(self._folder.glob(glob), 4 * MOST_FILES + 1))
        except (OSError, ValueError, NotImplementedError) as error:
            raise _refused(part, f"{visible(glob[:200])!r}: {visible(str(error))[:200]}") from None
        if len(matched) > 4 * MOST_FILES:
            raise _refused(part, f"{visible(glob[:200])!r} matches too much")
        for path in matched:
            if not path.is_file():
                continue
            if not path.resolve().is_relative_to(self._folder):
                raise _refused(part, f"{visible(self._name(path))!r} leads out of the plan's folder")
            yield path

    def _text(self, path: Path) -> str:
        shown = visible(self._name(path))
        try:
            with path.open("rb") as file:
                data = file.read(min(MOST_FILE, self._left) + 1)
        except OSError as error:
            raise UnreadableError("no-plan-file", f"{shown}: {error.strerror}") from None
        if len(data) > min(MOST_FILE, self._left):
            raise UsageError(
                "bad-plan",
                f"{shown}: a file has at most {MOST_FILE >> 20} MiB, all of a plan {MOST_BYTES >> 20} MiB",
            )
        self._left -= len(data)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UnreadableError("no-plan-file", f"{shown}: byte {error.start} is not UTF-8") from None

    def _tools(self, part: Part, path: Path) -> list[tuple[str, str]]:
        """Names and texts of the definitions in a JSON file."""
        shown = visible(self._name(path))
        try:
            value = json.loads(self._text(path))
        except (ValueError, RecursionError):
            raise UnreadableError("no-plan-file", f"{shown} is not JSON") from None
        found = list(definitions(value))
        if not found:
            raise UnreadableError(
                "no-plan-file",
                f"{shown} holds no tool definitions",
                hint="a list of definitions as OpenAI, Anthropic or MCP have them, or what tools/list gives",
            )
        return found


def definitions(value: Any) -> Iterator[tuple[str, str]]:
    """Name and text of each tool definition, the text as replays of sessions count it."""
    from ctxctl.ingest import chat
    from ctxctl.providers.mcp import parts as mcp

    if isinstance(value, dict):
        inner = value.get("result", value)
        inner = inner if isinstance(inner, dict) else value
        lone = [inner] if "name" in inner or "function" in inner else []
        value = next((inner[key] for key in _LISTS if key in inner), lone)
    for one in value if isinstance(value, list) else []:
        if not isinstance(one, dict):
            continue
        if isinstance(one.get("name"), str) and isinstance(one.get("inputSchema"), dict):
            made = mcp.tool(one, None)
        elif isinstance(one.get("functionDeclarations"), list):
            yield from definitions(one["functionDeclarations"])
            continue
        elif isinstance(one.get("name"), str) or isinstance(one.get("function"), dict) or "type" in one:
            made = chat.tool(one)
        else:
            continue
        yield made.title or str(one.get("type") or "tool"), made.text or ""


def _drawn(part: Part, tokens: Distribution) -> Measured:
    if part.items is None:
        return Measured(part, "plan", tokens, (), tokens.at(0.5), tokens.at(0.95), tokens.at(0.99))
    chance = Random(0)
    sums = [sum(tokens.draw(chance) for _ in range(part.items.draw(chance))) for _ in range(_TRIES)]
    return Measured(part, "plan", tokens, (), *(quantile(sums, share) for share in (0.5, 0.95, 0.99)))


def _refused(part: Part, why: str) -> UsageError:
    return UsageError("bad-plan", f"part {visible(part.name)!r}: {why}")
