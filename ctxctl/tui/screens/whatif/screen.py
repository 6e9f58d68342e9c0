"""What another window, model, encoding or policy would have meant, turn by turn beside what was recorded.

What is supposed is typed into a form of one-line fields, painted by lines: it never steers the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from textual import events, on
from textual.app import ComposeResult
from textual.message import Message
from textual.strip import Strip

from ctxctl.tui import keys
from ctxctl.tui.export import VisibleText
from ctxctl.tui.layout import Parts, Piece, spread
from ctxctl.tui.lineedit import Line
from ctxctl.tui.requests import Handlers, Unanswered, ask
from ctxctl.tui.screens.whatif import form as fields
from ctxctl.tui.screens.whatif import lines, requests, state
from ctxctl.tui.screens.whatif.form import Form
from ctxctl.tui.screens.whatif.lines import field_at, form_line
from ctxctl.tui.screens.whatif.state import Memory, Table, View
from ctxctl.tui.thread_names import ThreadNames
from ctxctl.tui.widgets.canvas import Board
from ctxctl.tui.widgets.keyline import KeyLine
from ctxctl.tui.widgets.paint import Banner, Painted
from ctxctl.tui.widgets.rows import Rows


class FormView(Painted, can_focus=True):
    """Shows a `Form` and turns keys into the next one; has the keys of a line of input, up and down go to
    another field.
    """

    BINDINGS = keys.bindings("line")

    class Changed(Message):
        """The form is another one."""

        def __init__(self, form: Form) -> None:
            super().__init__()
            self.form = form

    class Accepted(Message):
        """The form was accepted."""

    class Cancelled(Message):
        """The form was left."""

    class Passed(Message):
        """The user went down from the last field."""

    def __init__(self, *, ident: str) -> None:
        super().__init__(ident=ident)
        self.form = Form()

    def show(self, form: Form) -> None:
        """Show another form."""
        if form is not self.form:
            self.form = form
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Paint a line of one or two fields."""
        width = self.size.width
        return self.painted(form_line(self.form, y, width, focused=self.has_focus), width)

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Printable keys are typed, whatever else they do."""
        return character is not None and character.isprintable()

    def on_key(self, event: events.Key) -> None:
        """Type."""
        if event.is_printable and event.character is not None:
            event.stop()
            event.prevent_default()
            self._become(fields.typed(self.form, event.character))

    def on_paste(self, event: events.Paste) -> None:
        """Insert what was pasted."""
        event.stop()
        self._become(fields.typed(self.form, event.text))

    def on_click(self, event: events.Click) -> None:
        """Go to the field."""
        self._become(fields.to_field(self.form, field_at(event.x, event.y, self.size.width)))

    def on_focus(self) -> None:
        """The cursor is seen while the form has the keys."""
        self.refresh()

    def on_blur(self) -> None:
        """The cursor is seen while the form has the keys."""
        self.refresh()

    def action_accept(self) -> None:
        """Take the form as it is."""
        self.post_message(self.Accepted())

    def action_cancel(self) -> None:
        """Leave it."""
        self.post_message(self.Cancelled())

    def action_history(self, by: int) -> None:
        """Go to the field before or after."""
        if by > 0 and self.form.at == len(self.form.fields) - 1:
            self.post_message(self.Passed())
        self._become(fields.to_field(self.form, self.form.at + by))

    def action_move(self, by: int) -> None:
        """Move the cursor by characters, or take the next choice."""
        self._become(fields.sideways(self.form, by))

    def action_word(self, by: int) -> None:
        """Move the cursor over a word."""
        self._edit(lambda line: line.word(by))

    def action_edge(self, end: bool) -> None:
        """Move the cursor to an end."""
        self._edit(lambda line: line.edge(end))

    def action_delete(self, by: int) -> None:
        """Delete the character before or under the cursor."""
        self._edit(lambda line: line.delete(line.move(by)))

    def action_delete_word(self) -> None:
        """Delete the word before the cursor."""
        self._edit(lambda line: line.delete(line.word(-1)))

    def action_delete_to(self, end: bool) -> None:
        """Delete everything before or behind the cursor."""
        self._edit(lambda line: line.delete(line.edge(end)))

    def _edit(self, change: Callable[[Line], Line]) -> None:
        self._become(fields.edited(self.form, change))

    def _become(self, form: Form) -> None:
        if form != self.form:
            self.form = form
            self.refresh()
            self.post_message(self.Changed(form))


class WhatIf(Board[int | None]):
    """A form, and the table of what came of it; closes with the ordinal of the step to go to, if any."""

    BINDINGS = keys.bindings("whatif")

    def __init__(self, name: str, memory: Memory, ordinal: int | None, threads: ThreadNames) -> None:
        super().__init__(id="whatif-screen")
        memory.view = replace(memory.view, threads=threads)
        self._trace = name
        self._memory = memory
        self._ordinal = ordinal
        """The step that the main screen is at: what it records stands in the empty fields."""
        self._room = 0
        """Lines of the summary."""

    @property
    def view(self) -> View:
        """Everything but the table."""
        return self._memory.view

    @property
    def table(self) -> Table:
        """The turns of the last what-if."""
        return self._memory.table

    def compose(self) -> ComposeResult:
        """Lay out the form, the totals and the table."""
        yield Banner(lambda width: [lines.head(self.view, self._trace, width)], ident="whatif-head")
        yield FormView(ident="form")
        yield Banner(self._advice, ident="advice")
        yield Banner(self._summary, ident="summary")
        yield Banner(self._heading, ident="whatif-columns", classes="columns")
        yield Rows(lambda line, width: lines.turn_line(self.table, line, width), "compared")
        yield KeyLine(self._keys)

    def on_mount(self) -> None:
        """Show the last what-if, and ask what the trace records."""
        form, rows = self.query_one("#form", FormView), self.query_one("#compared", Rows)
        form.show(self.view.form)
        rows.show(len(self.table.turns), self._memory.cursor)
        self.set_focus(rows if self.table.turns and self.view.phase == "done" else form, scroll_visible=False)
        self._arrange(self.size.width, self.size.height)
        ask(self, requests.RecordedRequest(self._ordinal))

    # Painting

    def _advice(self, width: int) -> Sequence[Parts]:
        return [lines.advice(self.view, width, editing=self._editing)]

    def _summary(self, width: int) -> Sequence[Parts]:
        return lines.summary(self.view, width, self._room)

    def _heading(self, width: int) -> Sequence[Parts]:
        if not self.table.turns:
            return []
        return [[(" ", ""), *parts] for parts in lines.heading(self.table, width - 1)]

    def _keys(self, width: int) -> Sequence[Parts]:
        if self._editing:
            found = [("⏎", "simulate", 100), ("↑/↓", "field", 90), ("Esc", "back", 95)]
            if self.view.form.field.value:
                found.append((keys.key_of("line.erase_all"), "as recorded", 70))
            if self.view.form.field.choices:
                found.insert(1, ("←/→", "choose", 92))
            if self.table.turns:
                found.append(("Tab", "field, turns", 80))
        else:
            first = (keys.key_of("whatif.back"), keys.key_of("whatif.open"))
            hints = keys.hints(("whatif", "list"))
            found = [(key, word, 110 if key in first else rank) for key, word, rank in hints]
        return [spread([Piece(word, "hint", rank, key) for key, word, rank in found], [], width)]

    @property
    def _editing(self) -> bool:
        return isinstance(self.focused, FormView)

    def _show(self, view: View) -> None:
        """Show another view."""
        self._memory.view = view
        if not self.is_attached:
            return
        self.query_one("#form", FormView).show(view.form)
        self._fit()
        for banner in self.query(Banner):
            banner.update()

    def _fit(self) -> None:
        """As many lines for the summary as it needs and may have."""
        height = self.size.height
        most = 2 if height < lines.SHORT else 7 if height < lines.TALL else 12
        needed = len(lines.summary(self.view, self.size.width, most))
        if needed != self._room:
            self._room = needed
            self.query_one("#summary", Banner).styles.height = needed

    def on_resize(self, event: events.Resize) -> None:
        """Choose how many fields stand beside each other."""
        self._arrange(event.size.width, event.size.height)

    def _arrange(self, width: int, height: int) -> None:
        self.set_class(width < lines.TWO, "-narrow")
        self.set_class(height < lines.SHORT, "-short")
        self.set_class(self._editing, "-editing")
        self._fit()

    def on_descendant_focus(self) -> None:
        """Show the keys that are in force now."""
        self._arrange(self.size.width, self.size.height)
        self._show(self.view)

    # Answers

    def handlers(self) -> Handlers:
        """What the trace records, and what comes of the comparison that runs."""
        return {
            requests.RecordedFields: self._recorded,
            requests.Notes: self._of_this_run(self._noted),
            requests.TurnsCompared: self._of_this_run(self._compared),
            requests.FieldRefused: self._of_this_run(self._refused),
            Unanswered: self._failed,
        }

    def _of_this_run(self, handler: Callable[[Any], None]) -> Callable[[Any], None]:
        """Pass over an answer about another comparison than the one that runs."""
        return lambda answer: handler(answer) if answer.run == self.view.run else None

    def _recorded(self, found: requests.RecordedFields) -> None:
        form = fields.recorded(self.view.form, found.values, found.choices)
        self._show(replace(self.view, form=form, policy=found.policy))

    def _noted(self, found: requests.Notes) -> None:
        self._show(replace(self.view, notes=found.notes, reading=found.reading))

    def _compared(self, found: requests.TurnsCompared) -> None:
        self.table.grow(found.news)
        self.query_one("#compared", Rows).grow(len(self.table.turns), 0)
        self._show(state.answered(self.view, found.news, done=found.done))

    def _refused(self, found: requests.FieldRefused) -> None:
        form = fields.refused(self.view.form, found.field, found.why)
        self.set_focus(self.query_one("#form", FormView), scroll_visible=False)
        self._show(replace(self.view, form=form, phase="empty"))

    def _failed(self, found: Unanswered) -> None:
        request = found.request
        if isinstance(request, requests.SimulationRequest) and request.run == self.view.run:
            self._show(replace(self.view, phase="failed", error=found.why))

    # The form and the table

    @on(FormView.Changed)
    def changed(self, message: FormView.Changed) -> None:
        """Something was typed."""
        self._show(replace(self.view, form=message.form, error=""))

    @on(FormView.Accepted)
    def accepted(self) -> None:
        """Replay under what is supposed."""
        form, supposition = fields.read(self.query_one("#form", FormView).form)
        if supposition is None:
            self._show(replace(self.view, form=form))
            return
        self._memory.table, self._memory.cursor = Table(threads=self.view.threads), 0
        rows = self.query_one("#compared", Rows)
        rows.show(0, 0)
        self._show(state.begun(replace(self.view, form=form), supposition))
        self.set_focus(rows, scroll_visible=False)
        ask(self, requests.SimulationRequest(self.view.run, supposition))

    @on(FormView.Cancelled)
    def cancelled(self) -> None:
        """Leave the screen."""
        self._close(None)

    @on(FormView.Passed)
    def passed(self) -> None:
        """Go down from the last field to the turns."""
        self._to_table()

    @on(Rows.Moved)
    def moved(self, event: Rows.Moved) -> None:
        """Remember which turn the cursor is on."""
        self._memory.cursor = event.line

    @on(Rows.Chosen)
    def chosen(self) -> None:
        """A double click opens."""
        self.action_enter()

    def _to_table(self) -> None:
        if self.table.turns:
            self.set_focus(self.query_one("#compared", Rows), scroll_visible=False)

    def _close(self, ordinal: int | None) -> None:
        if self.view.phase == "running":
            self._memory.view = state.left(self.view)
            ask(self, requests.SimulationRequest(self.view.run, None))
        self.dismiss(ordinal)

    # Actions

    def action_enter(self) -> None:
        """Go to the turn on the main screen."""
        rows = self.query_one("#compared", Rows)
        if rows.cursor < len(self.table.turns):
            self._close(self.table.turns[rows.cursor].ordinal)

    def action_field(self, by: int) -> None:
        """Go to the next field; after the last come the turns, after these the first field."""
        form = self.query_one("#form", FormView)
        if not self._editing:
            self.set_focus(form, scroll_visible=False)
            at = 0 if by > 0 else len(form.form.fields) - 1
            self._show(replace(self.view, form=fields.to_field(form.form, at)))
            return
        at = form.form.at + by
        if 0 <= at < len(form.form.fields):
            self._show(replace(self.view, form=fields.to_field(form.form, at)))
        elif self.table.turns:
            self._to_table()
        else:
            self._show(replace(self.view, form=fields.to_field(form.form, at % len(form.form.fields))))

    def action_edit(self) -> None:
        """Suppose something else."""
        self.set_focus(self.query_one("#form", FormView), scroll_visible=False)

    def action_over(self, by: int) -> None:
        """Go to the next turn that does not fit, or to the one before."""
        rows = self.query_one("#compared", Rows)
        found = self.table.next_over(rows.cursor, by)
        if found is not None:
            rows.move_to(found)

    def action_back(self) -> None:
        """Leave the screen."""
        self._close(None)

    def seen(self) -> VisibleText | None:
        """The whole table."""
        if not self.table.turns:
            return None
        return VisibleText("what-if, simulated", lines.text(self.view, self.table))
