"""What the lines of the search screen say, as parts.  Plain Python."""

from __future__ import annotations

import re
from typing import Final

from ctxctl.item_names import Named, both_ends, names, told
from ctxctl.model.addresses import prefix
from ctxctl.model.hits import Excerpt, Hit
from ctxctl.model.results import Counts
from ctxctl.model.vocab import MAIN_THREAD, Status
from ctxctl.report.tables import wrap
from ctxctl.text import ELLIPSIS, cells, clip, pad, visible
from ctxctl.tui.layout import Column, Parts, Piece, laid_out, one_line, spread
from ctxctl.tui.screens.search.state import Finds, Search
from ctxctl.tui.sizes import amount
from ctxctl.tui.thread_names import ThreadNames
from ctxctl.wording import NOT_KNOWN, SIGNS, brief_kind, flag_words, number, plural, progress, share, short

_BLANKS: Final = re.compile(r"\s+")
_MANY: Final = 1 << 16
"""Items without text up to which they are told apart."""
_ROOMY: Final = 36
"""Cells of an item's name from which on there is room for its session and thread, too."""
_LEAD: Final = 24
"""Cells of a text before the match, at most; a third of the column where that is less."""

HELP: Final = (
    ("words", "all of them in an item's text or title; a capital counts"),
    ('"a phrase"', 'as it stands; and for words that mean something here: "or"'),
    ("a or b   -a   ( )", "either; not; parentheses group"),
    ("status:added", "updated  removed  omitted  skipped; also cause:  reason:"),
    ("kind:tool", "item:  title:  source:  server:  segment:  provenance:"),
    ("kind:tool,image", "any of several, a part is enough; kind:=image is the whole"),
    ("turn:3..7", "turn:3..  turn:3,5; also step:  thread:  session:  model:"),
    ("tokens>500", "of an item; also new  freed  held; 12k  1.5M  >=  <  =  <="),
    ("window>120k", "of a step, also window>80%; free stale entered left cost …"),
    ("has:x   text:x", "of its whole window: an item called so, a text that says so"),
    ("compacted", "of a step: warning  cachebreak  over  missing  is:redacted …"),
)
EXAMPLES: Final = (
    ("status:omitted", "what did not fit, or was left out for another reason"),
    ("TODO kind:tool tokens>2k", "long tool calls and results that hold TODO"),
    ("window>80% -compacted", "nearly full steps without a compaction"),
)


def help_parts(width: int) -> list[Parts]:
    """The language in a few lines; shown while nothing is typed."""
    made: list[Parts] = []
    for table in (HELP, EXAMPLES):
        left = max(len(example) for example, _ in table) + 2
        made += [
            laid_out([Column("", "", 1), Column(example, "key", left), Column(text, "muted")], width)
            for example, text in table
        ]
        made.append([])
    return made[:-1]


def note_parts(state: Search, width: int, label: int) -> Parts:
    """The line under the query: what is wrong, with a caret under its place; else how it is understood.

    `label`: cells before the typed text.
    """
    fault = state.fault
    if fault is None:
        return [(clip(_reading(state), width), "muted")]
    said = visible(fault.message)
    at = label + cells(visible(state.typed[: fault.column]))
    if at + 2 + cells(said) <= width:
        return [(" " * at, ""), ("^ ", "warning"), (said, "warning")]
    if at < width and cells(said) + 1 <= at:
        return [(" " * (at - cells(said) - 1), ""), (f"{said} ^", "warning")]
    return [(clip(f" column {fault.column + 1}: {said}", width), "warning")]


def _reading(state: Search) -> str:
    """How the typed query is understood, where that may surprise."""
    query = state.query
    if query is None:
        return ""
    means = str(query)
    plain = " ".join(state.typed.split())
    return "" if means == plain else f" read as: {one_line(means)}"


# Hits -------------------------------------------------------------------------------------------------------


class Widths:
    """Cells of the columns at one width; 0 leaves a column out.

    `found_in`: the last one quotes texts; `wordy`: it tells what a step sent.  Else it has a cause, if any.
    """

    def __init__(self, width: int, place: int, *, found_in: bool, wordy: bool) -> None:
        self.place = min(place, max(width // 3, 4))
        self.kind = 18 if width >= 140 else 7 if width >= 56 else 0
        self.tokens = 8 if width >= 100 else 6 if width >= 46 else 0
        rest = max(width - self.place - 3 - self.kind - self.tokens, 0)
        self.text = _last_column(rest, found_in=found_in, wordy=wordy)
        self.name = rest - self.text


def _last_column(rest: int, *, found_in: bool, wordy: bool) -> int:
    """Cells of the last column, of those that it shares with the item's name."""
    if rest < 30:
        return 0
    narrow = rest < 2 * _CAUSE
    if found_in or (wordy and narrow):
        return rest * 3 // 5
    return max(rest // 4, 16) if narrow else min(max(rest // 3, 32), _CAUSE)


def _quotes(finds: Finds | None) -> bool:
    """Whether the texts around what matched are shown: only words of a query are looked for in texts."""
    return finds is not None and bool(finds.query.shown)


def _widths(width: int, state: Search) -> Widths:
    finds = state.finds
    steps = finds is not None and bool(finds.count) and finds.hits[0].item is None
    return Widths(width, places(state), found_in=_quotes(finds), wordy=steps)


def places(state: Search) -> int:
    """Cells of the column of turns and steps: as the last hit needs them, which mostly has the highest."""
    finds = state.finds
    if finds is None or not finds.count:
        return 6
    return max(len(_place(finds.hits[finds.count - 1])) + 1, 5)


def _place(hit: Hit) -> str:
    return f"{hit.turn}.{hit.step}"


def heading(state: Search, width: int) -> Parts:
    """The names of the columns."""
    w = _widths(width - 1, state)
    columns = [
        Column("", "", 1), Column("step", "muted", w.place, right=True), Column("", "", 3),
        *([Column("kind", "muted", w.kind)] if w.kind else []),
        Column("item", "muted", w.name),
        *([Column("tokens", "muted", w.tokens, right=True)] if w.tokens else []),
        *([Column("  found in" if _quotes(state.finds) else "", "muted", w.text)] if w.text else []),
    ]  # fmt: skip
    return laid_out(columns, width)


def hit_parts(
    state: Search, line: int, width: int, *, sessions: bool = False, threads: ThreadNames | None = None
) -> Parts:
    """One hit; `sessions`, `threads`: the trace has several, so each says whose it is, by these names."""
    finds = state.finds
    assert finds is not None
    hit = finds.hits[line]
    w = _widths(width, state)
    sign = SIGNS[hit.status] if hit.status else "·"
    style = f"sign-{hit.status}" if hit.status else "muted"
    kind = "step" if hit.item is None else hit.kind if w.kind > 8 else brief_kind(hit.kind)
    parts = laid_out(
        [Column(_place(hit), "number", w.place, right=True), Column(f" {sign} ", style, 3)], w.place + 3
    )
    if w.kind:
        parts += laid_out([Column(kind, "muted", w.kind)], w.kind)
    whose = _whose(hit, sessions, threads, brief=w.name < _ROOMY)
    name = _name_among(finds, line, max(w.name - cells(one_line(whose)), 3))
    parts += _emphasised(whose + name, finds, w.name)
    if w.tokens:
        size = NOT_KNOWN if hit.tokens is None else short(hit.tokens) if w.tokens <= 6 else number(hit.tokens)
        parts += laid_out([Column(size, "muted", w.tokens, right=True)], w.tokens)
    if w.text:
        parts += [("  ", ""), *_text(hit, w.text - 2, finds)]
    return parts


def _whose(hit: Hit, sessions: bool, threads: ThreadNames | None, *, brief: bool) -> str:
    """Session and thread; `brief`: both ends of the thread's name alone."""
    named = sessions and hit.session and not brief and threads is not None
    session = f"{threads.session(hit.session, None, _NAMED)} " if named and threads is not None else ""
    if threads is None or hit.thread == MAIN_THREAD:
        return session
    name = one_line(threads.of(hit.session, hit.thread))
    return f"{session}↳{both_ends(name, _BRIEF) if brief else name} "


_NAMED: Final = 16
"""Cells of a session's name beside a hit."""
_CAUSE: Final = 40
"""Cells of the last column where it quotes no text."""
_BRIEF: Final = 7
"""Cells of a thread's name where there is little room: two of them are still told apart."""
_BESIDE: Final = 40
"""Hits of the same step, before one and behind it, from which its name is told apart."""


def _name_among(finds: Finds, line: int, width: int) -> str:
    """A hit's name in at most `width` cells; other hits of its step do not look like it."""
    hit = finds.hits[line]
    if hit.item is None:
        return clip(_name(hit), width)
    first, last = line, line + 1
    while first > 0 and line - first < _BESIDE and finds.hits[first - 1].ordinal == hit.ordinal:
        first -= 1
    while last < finds.count and last - line < _BESIDE and finds.hits[last].ordinal == hit.ordinal:
        last += 1
    beside = [one for one in finds.hits[first:last] if one.item is not None]
    rows = [Named(one.item or "", one.title, one.words, f"{one.kind} {one.status}") for one in beside]
    return names(rows, width)[beside.index(hit)]


def _name(hit: Hit) -> str:
    """The item's title, else its first words, else its id; of a step, what is special about it."""
    if hit.item is None:
        flags = ", ".join(flag_words(flag) for flag in hit.flags)
        return "  ".join(part for part in (_counts(hit.counts), flags) if part) or "nothing changed"
    return told(hit.title, hit.words, hit.item)


def _counts(counts: Counts | None) -> str:
    if counts is None:
        return ""
    by_status: dict[Status, int] = {
        "added": counts.added,
        "updated": counts.updated,
        "removed": counts.removed,
        "omitted": counts.omitted,
    }
    return " ".join(f"{SIGNS[status]}{count}" for status, count in by_status.items() if count)


def _emphasised(text: str, finds: Finds, width: int) -> Parts:
    """A text in so many cells, with the first place of a word that was searched for marked."""
    shown = clip(one_line(text), width)
    fill = " " * max(width - cells(shown), 0)
    found = _found(shown, finds)
    if found is None:
        return [(shown + fill, "")]
    at, end = found
    return [(shown[:at], ""), (shown[at:end], "match"), (shown[end:] + fill, "")]


def _found(text: str, finds: Finds) -> tuple[int, int] | None:
    """Where a text has the first of the words that were searched for."""
    found = [
        (at, at + len(word.text))
        for word in finds.query.shown
        if (at := (text.lower() if word.any_case else text).find(word.needle)) >= 0
    ]
    return min(found, default=None)


def _text(hit: Hit, width: int, finds: Finds) -> Parts:
    """What the text says around the match; without one, why the change came about, or what the name says."""
    if hit.excerpt is not None:
        return excerpt_parts(hit.excerpt, width)
    if hit.item is None:
        sent = hit.tokens or 0
        of = f" of {number(hit.cap)}, {share(sent, hit.cap)}" if hit.cap else ""
        how = "recorded" if hit.method == "recorded" else "sent"
        size = amount(sent, hit.method, content=False)
        return [(pad(f"{size} {how}{of}", width), "muted")]
    why = ": ".join(dict.fromkeys(word for word in (hit.cause, hit.reason) if word))
    title = one_line(hit.title or "")
    at = None if why else _found(title, finds)
    if at is not None:
        start, end = at
        return excerpt_parts(Excerpt(title[:start], title[start:end], title[end:], starts=True), width)
    return [(pad(one_line(why), width), "muted")]


def excerpt_parts(excerpt: Excerpt, width: int) -> Parts:
    """The match in its surroundings, in exactly `width` cells."""
    match = clip(_flat(excerpt.match[: width + 1]), width)
    room = max(width - cells(match), 0)
    before = _tail(_flat(excerpt.before).lstrip(), min(_LEAD, room // 2), whole=excerpt.starts)
    room -= cells(before)
    after = pad(_flat(excerpt.after[: room + 16]), room)
    return [(before, "muted"), (match, "match"), (after, "muted")]


def _flat(text: str) -> str:
    return visible(_BLANKS.sub(" ", text))


def _tail(text: str, width: int, *, whole: bool) -> str:
    """The end of a text in at most `width` cells, with an ellipsis where something is left out."""
    if whole and cells(text) <= width:
        return text
    room = width - 1
    if width <= 0:
        return ""
    keep = len(text)
    if text.isascii():
        keep = max(keep - room, 0)
    else:
        while keep > 0 and room >= cells(text[keep - 1]):
            keep -= 1
            room -= cells(text[keep])
    return ELLIPSIS + text[keep:]


# The foot ---------------------------------------------------------------------------------------------------


def foot(state: Search, width: int, known: int = 0) -> Parts:
    """How far the search has come, and what it could not look at.  `known`: steps of the trace by now."""
    finds = state.finds
    if state.fault is not None:
        return spread([Piece(state.fault.hint, "hint", 9)], [], width)
    if not state.typed.strip():
        return spread([], [], width)
    if finds is None:
        return spread([Piece("searching…" if state.running else "", "muted")], [], width)
    left = [*_state(finds, running=state.running)]
    if finds.total > finds.count and finds.phase != "running":
        left.append(Piece(f"the first {number(finds.count)} are listed", "muted", 8))
    right = []
    if finds.query.words and finds.textless:
        some = "more than " * (finds.textless >= _MANY) + plural(finds.textless, "item")
        have = "has" if finds.textless == 1 else "have"
        right.append(Piece(f"{some} {have} no text recorded: not searched", "warning", 7))
    if finds.withheld:
        right.append(Piece(f"{number(finds.withheld)} redacted", "warning", 6))
    if finds.phase == "done" and known > finds.steps:
        more = plural(known - finds.steps, "step")
        right.append(Piece(f"{more} more by now: search again", "muted", 5, "r"))
    return spread(left, right, width)


def _state(finds: Finds, *, running: bool) -> list[Piece]:
    hits = plural(finds.total, "hit") if finds.total else "nothing found"
    if finds.phase == "failed":  # without a hit, `nothing` says it in whole
        return [Piece(finds.why, "warning", 9), Piece(hits, "", 8)] if finds.total else []
    steps = Piece(f"in {plural(finds.steps, 'step')}", "muted", 6)
    if running or finds.phase == "running":
        so_far = plural(finds.total, "hit") if finds.total else "nothing yet"
        return [
            Piece(f"still searching… {progress(finds.part)}", "warning", 9),
            Piece(so_far, "", 10),
            steps,
        ]
    return [Piece(hits, "", 10), steps]


def nothing(state: Search, width: int) -> list[Parts]:
    """What to try where nothing was found."""
    finds = state.finds
    if finds is None or finds.total or finds.query != state.query:
        return []
    if finds.phase == "failed":
        return [[(f"  {line}", "warning")] for line in wrap(one_line(finds.why), max(width - 4, 1))]
    if finds.phase != "done":
        return []
    said = ["nothing in the trace fits", ""]
    if any(not word.any_case for word in finds.query.shown):
        said.append("a word with a capital is found only as it is written")
    if not finds.query.asks_skipped and not finds.query.about_steps:
        said.append("only changes are searched: add status:skipped for what stayed as it was")
    return [laid_out([Column(f"  {text}", "muted")], width) for text in said]


def plain(state: Search) -> str:
    """All hits as lines of a text, for taking them elsewhere."""
    finds = state.finds
    if finds is None:
        return ""
    return "".join(f"{_plain(hit)}\n" for hit in finds.hits[: finds.count])


def _plain(hit: Hit) -> str:
    where = f"{prefix(hit.thread, hit.session) or f'{hit.thread}:'}{_place(hit)}"
    said = hit.excerpt
    text = "" if said is None else _BLANKS.sub(" ", said.before + said.match + said.after)
    name = _BLANKS.sub(" ", _name(hit))
    return "\t".join(
        [
            where,
            hit.status or "step",
            hit.kind,
            hit.item or "",
            "" if hit.tokens is None else str(hit.tokens),
            name,
            text,
        ]
    )


def label_of(finds: Finds | None, cursor: int) -> str:
    """The hit that one is at: `hit 3 of 120`, with a sign where there are more than are listed."""
    if finds is None or not finds.count:
        return ""
    return f"hit {number(cursor + 1)} of {number(finds.total)}"
