"""The history that a forked rollout begins with where it is not copied: the first lines of its parent's file.

From about 0.15 a fork's session record names them: `history_base` with the parent's thread, how many of its
lines count (`end_ordinal_exclusive`) and where they end (`end_byte_offset`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from ctxctl.errors import CtxctlError
from ctxctl.formats.build import Json
from ctxctl.formats.codex.parents import first_record, rollout_of
from ctxctl.formats.kit.parts import count, string
from ctxctl.formats.lines import Line, Report, values
from ctxctl.trace.source import open_source

_DEPTH: Final = 16
"""Forks of forks that are followed."""


class Base(NamedTuple):
    """Where a fork's history begins."""

    thread: str
    """Of the rollout that holds it."""
    ordinals: int | None
    """Lines of it that count; None: those before `end`."""
    end: int | None
    """Byte that they end before."""


def base_of(meta: Json) -> Base | None:
    """What the session's record names; None where the rollout holds its whole history itself."""
    told = meta.get("history_base")
    thread = string(told.get("thread_id")) if isinstance(told, dict) else None
    if not isinstance(told, dict) or thread is None:
        return None
    ordinals, end = count(told.get("end_ordinal_exclusive")), count(told.get("end_byte_offset"))
    return Base(thread, ordinals, end) if ordinals is not None or end is not None else None


class Inherited(NamedTuple):
    """One line of another thread's rollout that a fork's history begins with."""

    file: str
    """The rollout's name."""
    line: Line
    record: Json


def inherited(path: Path | None, base: Base, report: Report) -> Iterator[Inherited]:
    """The lines of a fork's first history, oldest first, those of the parent's own parent before them.

    Args:
        path: The fork's rollout; None where it has none.
        base: As its session's record names it.
        report: Takes what is wrong in the other files.

    Raises:
        LookupError: One of the rollouts is not to be found; what came before is part of the history only.
    """
    chain: list[tuple[Path, Base]] = []
    wanted: Base | None = base
    while wanted is not None and len(chain) < _DEPTH:
        found = rollout_of(path, wanted.thread) if path is not None else None
        if found is None or any(found == known for known, _ in chain):
            raise LookupError(wanted.thread)
        chain.append((found, wanted))
        path, wanted = found, base_of(first_record(found))
    for found, stretch in reversed(chain):
        yield from _stretch(found, stretch, report)


def _stretch(path: Path, base: Base, report: Report) -> Iterator[Inherited]:
    try:
        with open_source(path) as source:
            for line, record in values(source, report):
                if base.end is not None and line.offset >= base.end:
                    return
                if not isinstance(record, dict):
                    continue
                ordinal: Any = record.get("ordinal")
                if base.ordinals is not None and type(ordinal) is int and ordinal >= base.ordinals:
                    return
                if record.get("type") != "session_meta":
                    yield Inherited(path.name, line, record)
    except (CtxctlError, OSError) as error:
        raise LookupError(base.thread) from error
