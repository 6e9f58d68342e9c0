"""What each line of the what-if screen says, as parts.  Plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ctxctl.model.turnpairs import TurnPair, TurnSide
from ctxctl.model.vocab import MAIN_THREAD
from ctxctl.model.whatif import Pair
from ctxctl.report.tables import wrap
from ctxctl.text import cells, clip, pad, visible
from ctxctl.tui.layout import Column, Parts, Piece, laid_out, one_line, spread
from ctxctl.tui.screens.whatif.form import HELP, LABELS, Field, Form
from ctxctl.tui.screens.whatif.state import Bucket, Table, View
from ctxctl.tui.series import level_sign
from ctxctl.tui.thread_names import ThreadNames
from ctxctl.wording import NOT_KNOWN, cost_text, number, plural, progress, share, short

TWO: Final = 60
"""Cells from which fields stand two beside each other."""
SHORT: Final = 18
"""Lines below which the form and the table take turns."""
TALL: Final = 30
"""Lines from which every note is shown."""
_COSTLY: Final = 150
"""Cells from which each side has a column for the cost of its context."""
_LABEL: Final = 10
_UNKNOWN: Final = NOT_KNOWN
_NOTHING: Final = "·"


def head(view: View, name: str, width: int) -> Parts:
    """What this is, and that none of it happened."""
    left = [Piece("what-if", "name", 9), Piece(name.rpartition("/")[2] or name, "muted", 3)]
    if view.phase == "running":
        left.append(Piece(f"simulating… {progress(view.part)}", "warning", 8))
    elif view.phase == "stopped":
        left.append(Piece(f"stopped at {progress(view.part)}", "warning", 8))
    if view.reading:
        left.append(Piece("trace still being read", "warning", 6))
    right = [Piece("s simulated: no model was asked", "warning", 7)]
    if width < TWO:
        right = [Piece("s simulated", "warning", 7)]
    return spread(left, right, width)


# The form ---------------------------------------------------------------------------------------------------


def form_rows(width: int) -> int:
    """Lines of the form."""
    return len(LABELS) // 2 if width >= TWO else len(LABELS)


def field_at(x: int, y: int, width: int) -> int:
    """Which field a cell of the form belongs to."""
    if width < TWO:
        return min(y, len(LABELS) - 1)
    return min(y, form_rows(width) - 1) + form_rows(width) * (x >= width // 2)


def form_line(form: Form, y: int, width: int, *, focused: bool) -> Parts:
    """One line of the form: one field, or two."""
    if width < TWO:
        return _field(form, y, width, focused=focused)
    half = width // 2
    return [
        *_field(form, y, half, focused=focused),
        *_field(form, y + form_rows(width), width - half, focused=focused),
    ]


def _field(form: Form, n: int, width: int, *, focused: bool) -> Parts:
    if n >= len(form.fields):
        return [(" " * width, "")]  # before the form is laid out for another width
    field, here = form.fields[n], n == form.at
    if field.name == "encoding" and not field.value and form.of("model"):
        field = replace(field, recorded="the model's")
    mark = "!" if field.error else "▌" if here and focused else " "
    parts: Parts = [
        (mark, "warning" if field.error else "mark"),
        (pad(LABELS[field.name], _LABEL), "strong" if here and focused else "hint"),
    ]
    room = max(width - _LABEL - 2, 0)
    value = _choice(field, room) if field.choices else _typed(field, room, caret=here and focused)
    return [*parts, *value, (" ", "")]


def _typed(field: Field, room: int, *, caret: bool) -> Parts:
    """What is typed, or in its place what is recorded."""
    if field.line.text or caret:
        before, under, after = field.line.painted(room)
        parts: Parts = [(before, ""), (under, "caret" if caret else ""), (after, "")]
        left = room - sum(cells(text) for text, _ in parts)
        if not field.line.text:
            parts.append((pad(" " + _placeholder(field, left - 1), left), "hint"))
            return parts
        if field.error and left > 8:
            parts.append((pad(f"  ! {field.error}", left), "warning"))
            return parts
        return [*parts, (" " * max(left, 0), "")]
    return [(pad(_placeholder(field, room), room), "hint")]


def _choice(field: Field, room: int) -> Parts:
    text = one_line(field.value) if field.value else _placeholder(field, room - 4)
    style = "" if field.value else "hint"
    return [("← ", "key"), (pad(clip(text, max(room - 4, 0)), max(room - 4, 0)), style), (" →", "key")]


def _placeholder(field: Field, room: int) -> str:
    if field.name == "policy":
        return (
            "as recorded" if field.recorded in ("", "recorded") else f"{one_line(field.recorded)} (as opened)"
        )
    if not field.recorded:
        return "not recorded"
    text = one_line(field.recorded)
    full = text if field.name == "encoding" and text == "the model's" else f"{text} (recorded)"
    return full if cells(full) <= room else f"({clip(text, max(room - 2, 1))})"


def advice(view: View, width: int, *, editing: bool) -> Parts:
    """The error of the field in hand, else of another; else what the field takes."""
    fields = (view.form.field, *view.form.fields)
    wrong = next((field for field in fields if field.error), None)
    if wrong is not None:
        return laid_out([Column(f" ! {LABELS[wrong.name]}: {one_line(wrong.error)}", "warning")], width)
    if view.error:
        return laid_out([Column(f" ! {one_line(view.error)}", "warning")], width)
    if editing:
        return laid_out([Column(f"   {HELP[view.form.field.name]}", "hint")], width)
    return laid_out([Column(f" s supposed: {supposed(view)}", "hint")], width)


def supposed(view: View) -> str:
    """What the table is of, in words."""
    given = {} if view.supposition is None else view.supposition.given
    said = (
        f"{LABELS[name]} {number(value) if isinstance(value, int) else one_line(value)}"
        for name, value in given.items()
    )
    return ", ".join(said) or "nothing"


# What came of it --------------------------------------------------------------------------------------------


def summary(view: View, width: int, height: int) -> list[Parts]:
    """Notes, both totals and both charts in so many lines; what matters least goes first."""
    if view.phase in ("empty", "failed"):
        return [[("", "")]] if view.phase == "failed" else _invitation(width)[:height]
    totals = [_total(view, width, simulated=simulated) for simulated in (False, True)]
    charts = [_chart(view, width, simulated=simulated) for simulated in (False, True)]
    room = height - len(totals) - len(charts)
    return [*_notes(view.notes, width, room), *totals, *charts][:height]


def _invitation(width: int) -> list[Parts]:
    said = (
        "Suppose another window, reserve, limit on input, model, encoding or policy, and press ⏎: the session"
        " is replayed with it and shown next to the recorded one. Empty fields are as recorded."
    )
    return [laid_out([Column("   " + line, "hint")], width) for line in wrap(said, max(width - 6, 10))]


def _notes(notes: Sequence[str], width: int, room: int) -> list[Parts]:
    """As many notes as there is room for; the last line says how many there are besides."""
    lines: list[Parts] = []
    for note in notes:
        for n, line in enumerate(wrap(one_line(note), max(width - 5, 10))):
            sign = " s " if n == 0 else "   "
            lines.append(laid_out([Column(sign, "warning", 3), Column(line, "")], width))
    if len(lines) > room > 0:
        return [*lines[: room - 1], _cut(lines[room - 1], width)]
    return lines[: max(room, 0)]


def _cut(parts: Parts, width: int) -> Parts:
    """A line with a sign that there is more, which `e` and wider terminals show."""
    (sign, style), (text, _) = parts
    text = text.rstrip()
    shown = text if cells(text) < width - 5 else clip(text, width - 6).removesuffix("…")
    return laid_out([Column(sign, style, 3), Column(f"{shown} …")], width)


def _total(view: View, width: int, *, simulated: bool) -> Parts:
    totals = view.simulated if simulated else view.recorded
    brief, known = width < TWO, totals.is_known(simulated=simulated)
    label = "simulated" if simulated else _recorded_label(view)
    left = [
        Piece(("s " if simulated else "  ") + pad(label, 9), "warning" if simulated else "strong", 10),
        Piece(*_verdict(view, simulated=simulated, brief=brief), 9),
        Piece("" if simulated or view.policy != "recorded" else _more(totals.worst), "", 8),
        Piece(_peak(totals.peak, simulated=simulated) if known else "", "", 6),
    ]
    for name in ("omitted", "truncated"):
        if sum(getattr(side, name) for side in (view.recorded, view.simulated)):
            left.append(Piece(f"{number(getattr(totals, name))} {name}", "", 5))
    if view.recorded.compactions or view.simulated.compactions:
        left.append(Piece(plural(totals.compactions, "compaction"), "", 5))
    if totals.cost:
        left.append(
            Piece(f"context {cost_text(totals.cost, counted=False, least=bool(totals.unpriced))}", "", 5)
        )
    if known:
        left.append(Piece(f"cacheable {short(totals.prefix)}", "", 4))
    left.append(Piece(" + ".join(sorted(totals.by_method)), "hint", 3))
    return spread(left, [], width)


def _recorded_label(view: View) -> str:
    return "recorded" if view.policy == "recorded" else one_line(view.policy)[:9]


def _verdict(view: View, *, simulated: bool, brief: bool) -> tuple[str, str]:
    """Whether all fits, and if not since when and by how much."""
    totals = view.simulated if simulated else view.recorded
    if not totals.steps:
        return ("no step yet" if view.phase == "running" else "no step", "hint")
    first = totals.first_over
    if first is None:
        if not totals.is_known(simulated=simulated):
            said = "what was sent is not known"
            return said if brief else f"{said}, so ctxctl cannot tell what fits", "warning"
        if totals.unknown == totals.steps:
            return (
                "no limit known" if brief else "no limit is known, so ctxctl cannot tell what fits",
                "warning",
            )
        unknown = f", {number(totals.unknown)} unknown" if totals.unknown else ""
        if brief:
            return f"fits in {plural(totals.steps, 'step')}{unknown}", "strong"
        return f"fits in all of {plural(totals.steps, 'step')}{unknown}", "strong"
    side = first.simulated if simulated else first.recorded
    if brief:
        return f"{number(totals.over)}/{number(totals.steps)} over, from {first.turn}.{first.step}", "warning"
    said = f"over in {number(totals.over)} of {plural(totals.steps, 'step')}"
    return f"{said}, first at {_address(first, view.threads)} by {number(side.over or 0)}", "warning"


def _more(worst: Pair | None) -> str:
    """How much more room the fullest recorded request would have needed."""
    over = 0 if worst is None else worst.recorded.over or 0
    return f"≈ +{number(over)} holds all" if over else ""


def _peak(pair: Pair | None, *, simulated: bool) -> str:
    if pair is None:
        return ""
    side = pair.simulated if simulated else pair.recorded
    text = f"peak {number(side.used)}"
    if side.cap is None:
        return text
    return f"{text} of {number(side.cap)} ({share(side.used, side.cap)})"


def _address(pair: Pair, names: ThreadNames) -> str:
    return one_line(names.place(pair.session, pair.thread, pair.turn, pair.step))


def _chart(view: View, width: int, *, simulated: bool) -> Parts:
    buckets = view.chart.simulated if simulated else view.chart.recorded
    label = f"{'s' if simulated else ' '} sent by turn " if width >= TWO else ("s " if simulated else "  ")
    room = max(width - cells(label) - 2, 0)
    parts: Parts = [(" " + label, "warning" if simulated else "hint")]
    for n in range(min(room, len(buckets))):
        some = buckets[n * len(buckets) // min(room, len(buckets)) :][: max(1, -(-len(buckets) // room))]
        parts.append(_cell(some, view.chart.top))
    return parts


def _cell(some: Sequence[Bucket], top: int) -> tuple[str, str]:
    if any(bucket.over for bucket in some):
        return "!", "warning"
    return level_sign(max(bucket.used for bucket in some), top), "gauge"


# The table --------------------------------------------------------------------------------------------------


def _columns(table: Table, width: int) -> tuple[str, ...]:
    """Which numbers there is room for on each side; what no turn has gives its room to words."""
    if width < _TIGHT:
        return ("sent", "over")
    names = _MOST if width >= _WIDE else _MOST_TELLING
    names += ("cost",) * (width >= _COSTLY)
    found = tuple(name for name in names if name in _ALWAYS or name in table.held)
    if table.several and _left(table, found, width) < min(table.longest + 1, _NAMED):
        found = tuple(name for name in found if name != "cache")
    return found


_MOST_TELLING: Final[tuple[str, ...]] = ("sent", "free", "over", "omit", "cache")
_MOST: Final[tuple[str, ...]] = ("sent", "free", "over", "omit", "cut", "comp", "cache")
_TIGHT: Final = 62
"""Cells below which a table has the most telling numbers only."""
_WIDE: Final = 120
"""Cells from which numbers stand whole, and all of them."""
_ALWAYS: Final = frozenset({"sent", "free", "over"})
_NAMED: Final = 16
"""Cells of a thread's name that are worth more than what a cache could give."""
_LONGEST: Final = 32
"""Cells of a thread's name at most."""
_LEAST: Final = 8
_HEADED: Final = 16
"""Cells of the name of its column, where there is one session, or more."""
_PROMPT: Final = 12
"""Cells from which on there is a column of prompts."""
_MARKS: Final = 6
"""Cells between both sides, and behind them."""


def _size(name: str, width: int) -> int:
    if width >= _WIDE:
        return 6 if name in ("omit", "cut", "comp") else 11 if name == "cost" else 9
    return 5 if name == "omit" else 6


def _turn(table: Table) -> int:
    """Cells of the turn's number."""
    return max(len(str(table.highest)), 4) + 1


def _left(table: Table, names: Sequence[str], width: int) -> int:
    """Cells that numbers leave for words."""
    return width - _turn(table) - 2 * sum(_size(name, width) for name in names) - _MARKS


def _whose(table: Table, width: int) -> int:
    """Cells of the names of threads, where there are several."""
    if not table.several or width < _TIGHT:
        return 0
    wanted = max(min(table.longest + 1, _LONGEST), _HEADED if table.sessions else _LEAST)
    return max(min(_left(table, _columns(table, width), width), wanted), 0)


def heading(table: Table, width: int) -> list[Parts]:
    """Two lines over the table."""
    names = _columns(table, width)
    side = sum(_size(name, width) for name in names)
    whose = _whose(table, width)
    place = _turn(table) + whose
    top = [
        Column("", "", place),
        Column(" recorded", "hint", side),
        Column(" │ ", "hint", 3),
        Column(" s simulated", "warning", side + 3),
        Column("", "hint"),
    ]
    several = "session, thread" if table.sessions else "thread"
    below = [Column("turn", "hint", _turn(table)), *([Column(several, "hint", whose)] if whose else [])]
    for n in range(2):
        below += [Column(name, "hint", _size(name, width), right=True) for name in names]
        below.append(Column(" │ " if n == 0 else "", "hint", 3))
    below.append(Column(" prompt" if _left(table, names, width) - whose >= _PROMPT else "", "hint"))
    return [laid_out(top, width), laid_out(below, width)]


def turn_line(table: Table, line: int, width: int) -> Parts:
    """One turn on both sides."""
    turn = table.turns[line]
    names, whose = _columns(table, width), _whose(table, width)
    first = line == table.first
    style = "" if turn.thread == MAIN_THREAD else "thread"
    columns = [Column(str(turn.turn), style, _turn(table))]
    if whose:
        columns.append(Column(table.name_of(turn, whose - 1), style, whose))
    for n, side in enumerate((turn.recorded, turn.simulated)):
        columns += [_number(side, name, width) for name in names]
        columns.append(Column(" │ ", "hint", 3) if n == 0 else _mark(turn, first))
    prompt = _left(table, names, width) - whose >= _PROMPT
    columns.append(Column(_tail(turn, first) if prompt else "", "hint"))
    return laid_out(columns, width)


def _mark(turn: TurnPair, first: bool) -> Column:
    sign = "◀!" if first else " !" if turn.simulated.over else ""
    return Column(f" {sign}", "warning", 3)


def _tail(turn: TurnPair, first: bool) -> str:
    title = one_line(turn.title or "")
    return f" {'first over  ' if first else ''}{title}".rstrip()


def _cost(side: TurnSide) -> str:
    """US dollars for the contexts of a turn, where a price is known."""
    if not side.cost and (side.unpriced or not side.is_known):
        return _UNKNOWN
    return cost_text(side.cost, counted=False, least=bool(side.unpriced))


def _number(side: TurnSide, name: str, width: int) -> Column:
    if name == "cost":
        return Column(_cost(side), "", _size(name, width), right=True)
    value = {
        "sent": side.used if side.is_known else None,
        "free": side.free if side.is_known else None,
        "over": side.over if side.is_known else None,
        "omit": side.omitted,
        "cut": side.truncated,
        "comp": side.compactions,
        "cache": side.prefix,
    }[name]
    show = number if width >= _WIDE else short
    unknown = _NOTHING if name == "cache" else _UNKNOWN
    text = unknown if value is None else show(value) if value or name in ("sent", "free") else _NOTHING
    style = "warning" if name == "over" and value else "hint" if text in (_NOTHING, _UNKNOWN) else ""
    return Column(text, style, _size(name, width), right=True)


def text(view: View, table: Table) -> str:
    """All of it, for the clipboard or a file; made without clipping, as there may be many turns."""
    lines = [f"what-if, simulated; supposed: {supposed(view)}", *map(visible, view.notes)]
    lines += [_joined(_total(view, 160, simulated=simulated)) for simulated in (False, True)]
    side = " ".join(f"{name:>9}" for name in _TEXT)
    lines += ["", f"{'turn':<8} {side} | s {side}  s"]
    for n, turn in enumerate(table.turns):
        sides = " | s ".join(_sides(side) for side in (turn.recorded, turn.simulated))
        thread = "" if turn.thread == "main" else f"  {one_line(turn.thread)}"
        mark = "first over" if n == table.first else "over" if turn.simulated.over else ""
        lines.append(f"{turn.turn:<8} {sides}  {mark}{thread}".rstrip())
    return "\n".join(lines) + "\n"


_TEXT: Final = ("sent", "free", "over", "omitted", "cut", "compacted", "cache", "cost")


def _sides(side: TurnSide) -> str:
    sizes = (side.used, side.free, side.over) if side.is_known else (None, None, None)
    numbers = (*sizes, side.omitted, side.truncated, side.compactions, side.prefix)
    texts = [*(_UNKNOWN if n is None else str(n) for n in numbers), _cost(side)]
    return " ".join(f"{text:>9}" for text in texts)


def _joined(parts: Parts) -> str:
    return "".join(text for text, _ in parts).rstrip()
