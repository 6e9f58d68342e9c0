"""Compares a context with a committed one: what was added, removed, changed or moved since then."""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

from ctxctl.engine.replay.changes import longest_increasing
from ctxctl.errors import CtxctlError, UnreadableError, UsageError
from ctxctl.text import visible
from ctxctl.whole_file import replace_file
from ctxctl.wording import MINUS, noun, number, plural

if TYPE_CHECKING:
    from ctxctl.model.results import Placement, Step
    from ctxctl.session import Inspector


_VERSION: Final = 1
_MOST: Final = 64 << 20
_DIGITS: Final = 16
_HINT: Final = "write it anew with `pytest --ctxctl-update` or CTXCTL_UPDATE=1"


class GoldenItem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One copy of an item in a window."""

    segment: str
    kind: str
    item: str
    tokens: int
    method: str
    digest: str | None = None
    """The first 16 hex digits of the digest of its rendered text; None: the trace has no text."""
    title: str | None = None
    source: str | None = None
    role: str | None = None
    stale: bool = False
    text: str | None = None
    """Kept only where the test asks for texts, and never of a redacted item."""


class Context(msgspec.Struct, frozen=True):
    """All items of a window, in order."""

    encoding: str
    used: int
    """Tokens of its items, without what was sent beside them."""
    items: tuple[GoldenItem, ...]


def context_of_step(inspector: Inspector, ordinal: int, *, texts: bool) -> Context:
    """Return the context of a step, by its ordinal."""
    from ctxctl.session.assembly import text_of

    frame = inspector.frame(ordinal)
    withheld = frame.step.annotations.withheld
    kept = []
    for p in frame.placements:
        hidden = not texts or p.content is None or p.item in withheld or p.redaction is not None
        kept.append(_golden_item(p, None if hidden else text_of(inspector.text, p)))
    return Context(inspector.params.encoding, frame.step.window.recorded, tuple(kept))


def _golden_item(p: Placement, text: str | None) -> GoldenItem:
    return GoldenItem(
        segment=p.segment, kind=p.kind, item=p.item, tokens=p.tokens, method=p.method,
        digest=_short(p.digest), title=p.title, source=p.source, role=p.role, stale=p.stale, text=text,
    )  # fmt: skip


def _short(digest: str | None) -> str | None:
    """Return a shortened digest without the name of its algorithm, as reports show it."""
    return None if digest is None else digest.rpartition(":")[2][:_DIGITS]


def read(path: Path) -> Context | None:
    """Read the committed context; None where there is none yet.  Raises UnreadableError("bad-golden")."""
    shown = visible(str(path))
    try:
        with path.open("rb") as file:
            data = file.read(_MOST)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a usable name"
        raise UnreadableError("bad-golden", f"{shown}: {why}") from None
    try:
        table: Any = msgspec.json.decode(data)
        if table["version"] != _VERSION:
            raise ValueError
        return msgspec.convert(table, Context)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise UnreadableError(
            "bad-golden", f"{shown} is not a kept context of this version", hint=_HINT
        ) from None


def write(path: Path, context: Context) -> None:
    """Write a context, whole or not at all; raises CtxctlError("write-failed")."""
    head = {"version": _VERSION, "encoding": context.encoding, "used": context.used}
    opening = json.dumps(head, indent=1)[:-2] + ',\n "items": ['
    lines = [json.dumps(msgspec.to_builtins(kept), ensure_ascii=True) for kept in context.items]
    body = ",\n  ".join(lines)
    text = f"{opening}\n  {body}\n ]\n}}\n" if lines else f"{opening}]\n}}\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode("ascii"), mode=0o666)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a usable name"
        raise CtxctlError("write-failed", f"{visible(str(path))}: {why}") from None


_ROUNDS: Final[tuple[Callable[[GoldenItem], Hashable | None], ...]] = (
    lambda k: (k.kind, k.digest, k.item, k.stale) if k.digest else None,
    lambda k: (k.kind, k.digest, k.stale) if k.digest else None,
    lambda k: (k.kind, k.item, k.stale),
    lambda k: (k.kind, k.segment, k.source, k.title) if k.title else None,
)
"""Keys that two copies of one item have in common, the surest first; None: the copy has no such key."""


def match_items(before: Sequence[GoldenItem], after: Sequence[GoldenItem]) -> dict[int, int]:
    """Pair the items: return places in `before` by places in `after`, one to one.

    The same text goes before the same id, because runtimes that number their items number them anew in each
    run; the rest is paired by kind between the same neighbours.
    """
    pairs: dict[int, int] = {}
    for key in _ROUNDS:
        taken = set(pairs.values())
        waiting: dict[Hashable, list[int]] = {}
        for place in reversed([at for at in range(len(before)) if at not in taken]):
            found = key(before[place])
            if found is not None:
                waiting.setdefault(found, []).append(place)
        for place, kept in enumerate(after):
            found = key(kept) if place not in pairs else None
            if found is not None and waiting.get(found):
                pairs[place] = waiting[found].pop()
    return _match_by_neighbours(before, after, pairs)


def _match_by_neighbours(
    before: Sequence[GoldenItem], after: Sequence[GoldenItem], pairs: dict[int, int]
) -> dict[int, int]:
    """Add pairs of unmatched items that have the same kind and role and follow the same item."""
    anchors = sorted(pairs.values())
    taken = set(anchors)

    def follows(place: int) -> int:
        """Return the nearest matched place in `before` in front of this one."""
        at = bisect_right(anchors, place)
        return anchors[at - 1] if at else -1

    waiting: dict[Hashable, list[int]] = {}
    for place in reversed([at for at in range(len(before)) if at not in taken]):
        kept = before[place]
        waiting.setdefault((follows(place), kept.kind, kept.role, kept.stale), []).append(place)
    made, last = dict(pairs), -1
    for place, kept in enumerate(after):
        if place in pairs:
            last = pairs[place]
        elif found := waiting.get((last, kept.kind, kept.role, kept.stale)):
            made[place] = found.pop()
    return made


def moved_places(pairs: dict[int, int]) -> set[int]:
    """Return the places in `after` outside the longest run that keeps the order of `before`."""
    places = sorted(pairs)
    kept = longest_increasing([pairs[place] for place in places])
    return {place for at, place in enumerate(places) if at not in kept}


ItemTest = Callable[[GoldenItem], bool]
"""A query as a test of one item."""
UPDATE: Final = "CTXCTL_UPDATE"
"""The environment variable that accepts the present contexts; the pytest option sets it for a run."""
_SHOWN: Final = 30
_LINES: Final = 40
_LONGEST: Final = 200

What = Literal["added", "removed", "updated", "resized", "moved"]


class Difference(NamedTuple):
    """An item that differs from the committed context."""

    what: What
    before: GoldenItem | None
    now: GoldenItem | None

    @property
    def kept(self) -> GoldenItem:
        """The item as it is now, or as it was if it is gone."""
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
        golden: The committed file: JSON, one item a line, written by this function.
        ignore: A query (docs/search.md) of items that may come and go, for example ``kind:reasoning``.
        volatile: A query of items that have to be there, with any text: ``item:clock``.
        tolerance: The share by which the tokens of a volatile item may differ; 0: any.
        texts: Keep texts too, so that a failure shows their lines.  They are committed: leave
            it off where contexts hold what nobody should read.

    Raises:
        AssertionError: It differs, or there is no committed file yet.
        CtxctlError: The trace, the file or a query cannot be used.
    """
    __tracebackhide__ = True
    if not 0 <= tolerance <= 1:
        raise UsageError("bad-tolerance", f"a tolerance of {tolerance} is not a share between 0 and 1")
    path, name = Path(golden), fspath(actual)
    now, step = _actual_context(name, texts=texts)
    left_out, loose = _query_test(ignore, step), _query_test(volatile, step)
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


def _query_test(query: str | None, step: Step) -> ItemTest:
    """Turn a query into a test of items; its words about steps are tested on this step."""
    if query is None:
        return _never
    from ctxctl.engine.query import QueryError, contained_text, parse_query
    from ctxctl.model.results import Change

    try:
        parsed = parse_query(query)
    except QueryError as error:
        raise UsageError("bad-query", f"{visible(query[:_LONGEST])}: {error}") from None

    def fits(kept: GoldenItem) -> bool:
        change = Change(
            status="skipped", item=kept.item, kind=kept.kind, title=kept.title, version=None,
            previous_version=None, tokens=kept.tokens, in_window=kept.tokens, new=0, freed=0, cause=None,
            reason=None, into=None, flags=("stale",) * kept.stale, source=kept.source, provenance="native",
        )  # fmt: skip
        return parsed.matches_change(step, change, contained_text(kept.text), kept.segment)

    return fits


def _never(_kept: GoldenItem) -> bool:
    return False


def _actual_context(name: str, *, texts: bool) -> tuple[Context, Step]:
    from ctxctl.testing.sessions import open_session

    with open_session(name) as (inspector, address):
        ordinal = inspector.resolve(address or "-1")
        return context_of_step(inspector, ordinal, texts=texts), inspector.step(ordinal)


def differences(
    was: Context, now: Context, ignore: ItemTest = _never, volatile: ItemTest = _never, tolerance: float = 0.0
) -> Iterator[Difference]:
    """Yield the differences in the order of the present window, then removed items in their old order."""
    before = [kept for kept in was.items if not ignore(kept)]
    after = [kept for kept in now.items if not ignore(kept)]
    pairs = match_items(before, after)
    out_of_order = moved_places(pairs)
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


def _changed(old: GoldenItem, kept: GoldenItem, tolerance: float, *, volatile: bool) -> What | None:
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
    yield f"{many}, +{number(new)} {MINUS}{number(freed)} tokens"
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
    """Yield the changed lines of an updated item, where both texts are kept."""
    before, now = difference.before, difference.now
    if (
        difference.what != "updated"
        or before is None
        or now is None
        or before.text is None
        or now.text is None
    ):
        return
    from ctxctl.engine.textdiff.unified import unified_diff

    lines = unified_diff(before.text, now.text).lines
    for line in lines[:_LINES]:
        text = visible(line.text[:_LONGEST])
        yield f"    @@ {text} @@" if line.kind == "@" else f"    {line.kind}{text}"
    if len(lines) > _LINES:
        yield f"    … {len(lines) - _LINES:,} more lines"
