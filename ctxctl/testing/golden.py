"""A context held against a committed one: what entered, left, changed or moved since somebody last agreed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from ctxctl.errors import UsageError
from ctxctl.labels import noun, plural
from ctxctl.testing.kept import Context, Kept, read, taken, write
from ctxctl.testing.matching import matched, moved
from ctxctl.text import visible

if TYPE_CHECKING:
    from ctxctl.model.results import Step

Asked = Callable[[Kept], bool]
"""A query, asked of one kept item."""
UPDATE: Final = "CTXCTL_UPDATE"
"""The environment variable that accepts what is there now; the pytest option sets it for a run."""
_SHOWN: Final = 30
_LINES: Final = 40
_LONGEST: Final = 200

What = Literal["added", "removed", "updated", "resized", "moved"]


class Difference(NamedTuple):
    """One item that is not as it was."""

    what: What
    before: Kept | None
    now: Kept | None

    @property
    def kept(self) -> Kept:
        """What it is called by."""
        found = self.now or self.before
        assert found is not None
        return found


def assert_context_diff(
    actual: str | PathLike[str],
    golden: str | PathLike[str],
    *,
    ignore: str | None = None,
    volatile: str | None = None,
    tolerance: float = 0.0,
    texts: bool = False,
) -> None:
    """Fail unless a context is what the committed file `golden` says.

    With ``pytest --ctxctl-update``, or with CTXCTL_UPDATE=1 in the environment, `golden` is written instead.

    Args:
        actual: A trace or capture with ``@ADDRESS`` of the frame; without one, its last frame.
        golden: The committed file; JSON, one item a line, made by this function.
        ignore: A query (docs/search.md) of items that may come and go, for example ``kind:reasoning``.
        volatile: A query of items that have to be there, with whatever text: ``item:clock``.
        tolerance: By what share the tokens of a volatile item may differ from the committed ones; 0 is any.
        texts: Keep texts too, so that a failure shows their lines.  What is kept is committed: leave it off
            where contexts hold what nobody should read.

    Raises:
        AssertionError: It differs, or there is no committed file yet.
        CtxctlError: The trace, the file or a query cannot be used.
    """
    __tracebackhide__ = True
    if not 0 <= tolerance <= 1:
        raise UsageError("bad-tolerance", f"a tolerance of {tolerance} is no share between 0 and 1")
    path, name = Path(golden), fspath(actual)
    now, step = _now(name, texts=texts)
    left_out, loose = _asked(ignore, step), _asked(volatile, step)
    shown = visible(str(golden))
    if os.environ.get(UPDATE):
        write(path, now)
        return
    was = read(path)
    if was is None:
        raise AssertionError(f"{shown} is not there yet; `pytest --ctxctl-update` or {UPDATE}=1 writes it")
    if was.encoding != now.encoding:
        raise AssertionError(
            f"{shown} was counted with {was.encoding}, {visible(name)} with {now.encoding}: "
            "tokens cannot be compared"
        )
    found = list(differences(was, now, left_out, loose, tolerance))
    if found:
        raise AssertionError("\n".join(_report(visible(name), shown, found)))


def _asked(query: str | None, step: Step) -> Asked:
    """A question to kept items; what a query says of steps is asked of the step that is looked at."""
    if query is None:
        return _never
    from ctxctl.engine.query import QueryError, contained, parse
    from ctxctl.model.results import Change

    try:
        parsed = parse(query)
    except QueryError as error:
        raise UsageError("bad-query", f"{visible(query[:_LONGEST])}: {error}") from None

    def fits(kept: Kept) -> bool:
        change = Change(
            status="skipped", item=kept.item, kind=kept.kind, title=kept.title, version=None,
            previous_version=None, tokens=kept.tokens, in_window=kept.tokens, new=0, freed=0, cause=None,
            reason=None, into=None, flags=("stale",) * kept.stale, source=kept.source, provenance="native",
        )  # fmt: skip
        return parsed.matches_change(step, change, contained(kept.text), kept.segment)

    return fits


def _never(_kept: Kept) -> bool:
    return False


def _now(name: str, *, texts: bool) -> tuple[Context, Step]:
    from ctxctl.testing.sessions import opened

    with opened(name) as (inspector, address):
        ordinal = inspector.resolve(address or "-1")
        return taken(inspector, ordinal, texts=texts), inspector.step(ordinal)


def differences(
    was: Context, now: Context, ignore: Asked = _never, volatile: Asked = _never, tolerance: float = 0.0
) -> Iterator[Difference]:
    """What differs, in the order of the window now, then what was removed in the order of the old one."""
    before = [kept for kept in was.items if not ignore(kept)]
    after = [kept for kept in now.items if not ignore(kept)]
    pairs = matched(before, after)
    out_of_order = moved(pairs)
    for place, kept in enumerate(after):
        if place not in pairs:
            yield Difference("added", None, kept)
            continue
        old = before[pairs[place]]
        what = _changed(old, kept, tolerance, volatile=volatile(kept))
        if what is not None:
            yield Difference(what, old, kept)
        elif place in out_of_order or old.segment != kept.segment:
            yield Difference("moved", old, kept)
    stayed = set(pairs.values())
    for place, old in enumerate(before):
        if place not in stayed:
            yield Difference("removed", old, None)


def _changed(old: Kept, kept: Kept, tolerance: float, *, volatile: bool) -> What | None:
    if volatile:
        off = abs(kept.tokens - old.tokens) > tolerance * old.tokens
        return "resized" if tolerance and off else None
    if old.digest != kept.digest:
        return "updated"
    return "resized" if (old.tokens, old.method) != (kept.tokens, kept.method) else None


def _report(name: str, golden: str, found: list[Difference]) -> Iterator[str]:
    new = sum(d.now.tokens for d in found if d.now is not None and d.what != "moved")
    freed = sum(d.before.tokens for d in found if d.before is not None and d.what != "moved")
    yield f"the context of {name} is not that of {golden}:"
    many = f"{plural(len(found), 'item')} {noun(len(found), 'differs', 'differ')}"
    yield f"{many}, +{new:,} -{freed:,} tokens"
    for difference in found[:_SHOWN]:
        yield f"  {_line(difference)}"
        yield from _texts(difference)
    if len(found) > _SHOWN:
        yield f"  and {len(found) - _SHOWN:,} more"
    yield "if that is meant: `pytest --ctxctl-update`, read the diff of the file, and commit it"


def _line(difference: Difference) -> str:
    kept = difference.kept
    was = 0 if difference.before is None else difference.before.tokens
    now = 0 if difference.now is None else difference.now.tokens
    if difference.what in ("updated", "resized"):
        tokens = f"{was:,} to {now:,} tokens" if was != now else f"{now:,} tokens as before"
    else:
        tokens = f"{now or was:,} tokens"
    place = visible(kept.segment)
    if (
        difference.what == "moved"
        and difference.before is not None
        and difference.before.segment != kept.segment
    ):
        place = f"{visible(difference.before.segment)} to {place}"
    name = visible((kept.title or kept.item)[:_LONGEST])
    return f"{difference.what:8} {visible(kept.kind)} {name}: {tokens}, {place}"


def _texts(difference: Difference) -> Iterator[str]:
    """The lines of an updated item that changed, where both texts are kept."""
    before, now = difference.before, difference.now
    if (
        difference.what != "updated"
        or before is None
        or now is None
        or before.text is None
        or now.text is None
    ):
        return
    from ctxctl.engine.textdiff import unified

    lines = unified(before.text, now.text).lines
    for line in lines[:_LINES]:
        text = visible(line.text[:_LONGEST])
        yield f"    @@ {text} @@" if line.kind == "@" else f"    {line.kind}{text}"
    if len(lines) > _LINES:
        yield f"    … {len(lines) - _LINES:,} more lines"
