"""A form of one-line fields, painted by lines: what is typed never steers the terminal."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.message import Message
from textual.strip import Strip

from ctxctl.tui import keys
from ctxctl.tui.lineedit import Line
from ctxctl.tui.screens.whatif import form as fields
from ctxctl.tui.screens.whatif.form import Form
from ctxctl.tui.screens.whatif.lines import field_at, form_line
from ctxctl.tui.widgets.paint import Painted


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
        """The user wants what the form says."""

    class Cancelled(Message):
        """The user wants to leave."""

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
        """One or two fields."""
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
        """Paste."""
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
