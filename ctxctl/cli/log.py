"""``ctxctl log``: the life of one item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ctxctl.cli import options as opt

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxctl.inspector import Inspector

Item = Annotated[
    str, typer.Argument(metavar="ITEM", help="An item's id, or the beginning of one, or its title.")
]
_SHOWN = 8


def log(
    trace: opt.TraceArg,
    item: Item,
    plain: opt.Plain = False,
    json: opt.Json = False,
    thread: opt.Thread = None,
    target: opt.Target = None,
    model: opt.Model = None,
    encoding: opt.Encoding = None,
    policy: opt.Policy = None,
    no_learned: opt.NoLearned = False,
    format: opt.Format = None,  # noqa: A002 - the option's name
    strict: opt.Strict = None,
    color: opt.Color = None,
) -> None:
    """Tell an item's life: when it was added, updated, skipped, compacted, removed."""
    from ctxctl.cli.session import header, manner, opened, tell_problems, verdict
    from ctxctl.report import jsonout
    from ctxctl.report.heading import header_lines
    from ctxctl.report.life import life_lines, spans, to_json

    how = manner(
        json=json, target=target, model=model, encoding=encoding,
        policy=policy, learned=opt.learned(no_learned), format=format, strict=strict, color=color,
    )  # fmt: skip
    out = how.out
    with opened(trace, how, "replaying") as inspector:
        name = item
        lives = inspector.life(name, thread=thread)
        if not lives:
            name = _nearest(inspector, item, thread)
            lives = inspector.life(name, thread=thread)
        if json:
            out.json(jsonout.trace(header(inspector, thread=thread)))
            for span in spans(lives):
                out.json(to_json(name, span))
            tell_problems(inspector, how)
        else:
            out.lines(header_lines(header(inspector, thread=thread), out.width))
            out.lines(["", *life_lines(name, lives, out.width, out.paint)])
            out.flush()
            tell_problems(inspector, how)
        out.flush()
        code = verdict(inspector, how)
    raise typer.Exit(code)


def _nearest(inspector: Inspector, wanted: str, thread: str | None) -> str:
    """The one item whose id begins with what was typed, or whose title it is.

    Raises UsageError: `no-such-item`, `ambiguous-item`.
    """
    from ctxctl.errors import UsageError
    from ctxctl.model.results import Step

    known: dict[str, str | None] = {}
    elsewhere: dict[str, None] = {}
    for result in inspector.replay():
        if not isinstance(result, Step):
            continue
        for change in result.changes:
            if thread in (None, result.thread):
                known.setdefault(change.item, change.title)
            elif change.item == wanted:
                elsewhere[result.thread] = None
    found = [name for name in known if name.startswith(wanted)] or [
        n for n, title in known.items() if title == wanted
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            "ambiguous-item", f"{len(found)} items fit {wanted!r}", hint=f"there are: {_some(found)}"
        )
    if elsewhere:
        hint = f"it is in the thread {_some(elsewhere)}"
    elif near := _similar(wanted, known):
        hint = f"did you mean {_some(near)}?"
    else:
        hint = f"items are, for example: {_some(known)}" if known else "there is no item at all"
    raise UsageError("no-such-item", f"no item is called {wanted!r}", hint=hint)


def alike(wanted: str, known: Iterable[str]) -> str:
    """Names that resemble one, as an error's hint has them; empty if none does."""
    return _some(_similar(wanted, dict.fromkeys(known)))


def _similar(wanted: str, known: Iterable[str]) -> list[str]:
    from rapidfuzz import fuzz, process

    found = process.extract(wanted, list(known), scorer=fuzz.WRatio, score_cutoff=75, limit=3)
    return [name for name, _, _ in found]


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:_SHOWN]) + (", ..." if len(listed) > _SHOWN else "")
