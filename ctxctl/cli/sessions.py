"""``ctxctl diff --sessions``: two whole sessions of one task."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxctl.cli.session import Manner
    from ctxctl.model.sessions import SessionDiff
    from ctxctl.session import Inspector
    from ctxctl.session.naming import NamedPlace


def pointed_out(left: NamedPlace, right: NamedPlace | None) -> None:
    """Say what was compared, where two traces were named and no frame of them."""
    from ctxctl.cli.output import note

    if right is not None and left.address is None and right.address is None:
        note("ctxctl: these are the last frames; --sessions compares the whole sessions")


def whole(
    left: NamedPlace, right: NamedPlace | None, how: Manner, *, stat: bool, exit_code: bool, frames: bool
) -> int:
    """Compare two sessions and print it; the exit code.  `frames`: what was asked for is about frames."""
    from ctxctl.analysis.sessions import compare_sessions
    from ctxctl.cli.session import opened, tell_problems, verdict
    from ctxctl.errors import Exit, UsageError
    from ctxctl.tokens.catalogue.rates import RateBook

    if right is None or left.address is not None or right.address is not None or frames:
        raise UsageError(
            "not-sessions",
            "--sessions compares two whole traces",
            hint="write `ctxctl diff one.jsonl two.jsonl --sessions`, without @, --patch and --ui",
        )
    with opened(left.trace, how, "replaying") as one, opened(right.trace, how, "replaying") as two:
        found = compare_sessions(one, two, RateBook(how.settings.models), how.out.progressed)
        if how.json:
            _json(found, (one, two), how, items=not stat)
        else:
            _plain(found, (one, two), how, stat=stat)
        how.out.flush()
        for inspector in (one, two):
            tell_problems(inspector, how)
        how.out.flush()
        code = max(verdict(one, how), verdict(two, how))
    return int(Exit.FINDINGS if exit_code and found.differs else code)


def _plain(found: SessionDiff, sides: Sequence[Inspector], how: Manner, *, stat: bool) -> None:
    from ctxctl.cli.session import base_name, header
    from ctxctl.report.heading import one_line
    from ctxctl.report.sessions import head_lines, stat_lines, turn_lines

    out = how.out
    names = [base_name(inspector.name) for inspector in sides]
    under = "; ".join(dict.fromkeys(one_line(header(inspector)) for inspector in sides))
    out.lines(head_lines(found, names, under, out.width))
    out.lines(stat_lines(found, out.width, out.paint))
    if not stat:
        out.lines(turn_lines(found, out.width, out.paint, everything=how.everything))


def _json(found: SessionDiff, sides: Sequence[Inspector], how: Manner, *, items: bool) -> None:
    from ctxctl.cli.session import base_name, header
    from ctxctl.report import jsonout
    from ctxctl.report.sessions import pair_json, to_json

    out = how.out
    for inspector in sides:
        out.json(jsonout.trace(header(inspector)))
    for thread in found.threads:
        for pair in thread.turns:
            out.json(pair_json(pair, items=items))
    out.json(to_json(found, [base_name(inspector.name) for inspector in sides]))
