"""``ctxctl cache``: what is kept of captures and traces between runs, and how it is dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Argument, Done, Option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxctl.session.cache_room import CacheEntry

Action = Annotated[
    str,
    Argument(
        metavar="[show|prune|clear]",
        help="show: list what is kept. prune: delete what was unused for longest. clear: delete everything.",
        show_default=False,
    ),
]
Most = Annotated[
    str | None,
    Option(
        "--max",
        metavar="SIZE",
        help="With prune: shrink it to this size, such as 500M. Default: the setting cache.max.",
    ),
]
_ACTIONS = ("show", "prune", "clear")


@opt.takes(opt.PRINTED)
def cache(
    options: opt.CommonOptions,
    action: Action = "show",
    most: Most = None,
) -> None:
    """Show or delete the results kept between runs; missing ones are made again when they are needed."""
    from ctxctl.cli.run import begin
    from ctxctl.config import size_of
    from ctxctl.errors import UsageError
    from ctxctl.session.cache_room import cache_entries, clear_cache, prune_cache, room
    from ctxctl.trace.cache_files import cache_directory

    if action not in _ACTIONS:
        raise UsageError(
            "unknown-action", f"no action is called {action!r}", hint=f"there are: {', '.join(_ACTIONS)}"
        )
    limit = room() if most is None else size_of(most)
    if limit is None:
        raise UsageError("bad-size", f"--max {most}: not a size", hint="for example 500M or 2G")
    run = begin(options)
    freed = 0
    if action == "prune":
        freed = prune_cache(limit)
    elif action == "clear":
        freed = clear_cache()
    entries, directory = cache_entries(), cache_directory()
    if options.json:
        for kind, number, size in _kinds(entries):
            run.out.json({"type": "kept", "kind": kind, "entries": number, "bytes": size})
        run.out.json(
            {
                "type": "cache",
                "directory": None if directory is None else str(directory),
                "bytes": sum(entry.size for entry in entries),
                "max": limit,
                "freed": freed,
            }
        )
    else:
        where = None if directory is None else str(directory)
        run.out.lines(_lines(where, entries, limit, None if action == "show" else freed))
    run.out.flush()
    raise Done(0)


_WHAT = {
    "imports": "captures as traces, with their indexes and session stores",
    "indexes": "indexes and session stores of traces",
    "answers": "answers about each capture of a directory",
    "counts": "token counts of texts, by digest",
}


def _kinds(entries: list[CacheEntry]) -> Iterator[tuple[str, int, int]]:
    """Kind, number and bytes of what is kept."""
    for kind in _WHAT:
        sizes = [entry.size for entry in entries if entry.kind == kind]
        yield kind, len(sizes), sum(sizes)


def _lines(directory: str | None, entries: list[CacheEntry], limit: int, freed: int | None) -> Iterator[str]:
    from ctxctl.text import visible
    from ctxctl.wording import file_size

    if directory is None:
        yield "nothing is kept: CTXCTL_CACHE is off"
        return
    if freed is not None:
        yield f"{file_size(freed)} dropped"
    yield visible(directory)
    for kind, number, size in _kinds(entries):
        yield f"  {kind:<8} {number:>6,}  {file_size(size):>9}  {_WHAT[kind]}"
    total = sum(entry.size for entry in entries)
    yield f"  {'total':<8} {len(entries):>6,}  {file_size(total):>9}  of at most {file_size(limit)}"
