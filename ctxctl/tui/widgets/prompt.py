"""One line of input, for whoever asks for a word: what is typed is painted as inertly as everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events
from textual.actions import parse
from textual.message import Message
from textual.strip import Strip

from ctxctl.text import cells, clip
from ctxctl.tui import keys
from ctxctl.tui.lineedit import History, Line
from ctxctl.tui.widgets.paint import Painted

if TYPE_CHECKING:
    from textual.message_pump import MessagePump
    from textual.screen import Screen
    from textual.widget import Widget

_NOTE = 28
"""Cells that the typed text keeps beside a note."""


class Prompt(Painted, can_focus=True):
    """Shows a label, the typed text, and at the right a note of its owner.

    Messages go to `asker`, or up from the prompt itself.  Nothing but `accept` and `cancel` ends it: its
    owner takes it away (`close`), or leaves it where it is.

    After `choose`, the first key that types replaces everything; any other key leaves it.
    """

    BINDINGS = keys.bindings("line")

    class _Said(Message):
        def __init__(self, prompt: Prompt, value: str) -> None:
            super().__init__()
            self.prompt = prompt
            self.value = value

        @property
        def control(self) -> Prompt:
            """The prompt it comes from."""
            return self.prompt

    class Changed(_Said):
        """The text is another one."""

    class Accepted(_Said):
        """The text was accepted."""

    class Cancelled(_Said):
        """The prompt was left without an answer."""

    def __init__(
        self,
        label: str,
        *,
        value: str = "",
        history: History | None = None,
        asker: MessagePump | None = None,
        ident: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(ident=ident, classes=classes)
        self.label = label
        self.typed = Line.of(value)
        self.history = history or History()
        self.history.leave()
        self._asker = asker
        self._note = ""
        self._chosen = False
        """Whether the whole text is chosen."""
        self._before: Widget | None = None
        """Who has the keys again once this one is done with."""
        self.over = False
        """Whether it is done with."""

    @property
    def value(self) -> str:
        """The typed text, raw."""
        return self.typed.text

    @value.setter
    def value(self, text: str) -> None:
        self._become(Line.of(text))

    @property
    def note(self) -> str:
        """A phrase at the right edge, such as ``match 3 of 17``."""
        return self._note

    @note.setter
    def note(self, text: str) -> None:
        if text != self._note:
            self._note = text
            self.refresh()

    def open_over(self, screen: Screen[object]) -> None:
        """Cover the last line of a screen, in place of another prompt there, and take the keys."""
        for other in screen.query(Prompt).filter(".-over"):
            other.close()
        before = screen.focused
        self._before = before._before or before if isinstance(before, Prompt) else before
        self.add_class("-over")
        screen.mount(self)
        screen.set_focus(self, scroll_visible=False)

    def choose(self) -> None:
        """Choose the whole text."""
        self._chosen = bool(self.value)
        self.refresh()

    def close(self) -> None:
        """Take the prompt off the screen."""
        self.remove()

    def render_line(self, y: int) -> Strip:
        """Paint the label, the text and the note."""
        width = self.size.width
        if y or width <= 0:
            return self.painted([], width)
        note = clip(self._note, max(width - _NOTE, 0))
        room = max(width - cells(self.label) - cells(note) - 4, 1)
        parts = [(f" {self.label} ", "key"), *self._text(room)]
        used = sum(cells(text) for text, _ in parts)
        parts += [(" " * max(width - used - cells(note) - 1, 0), ""), (note, "muted")]
        return self.painted(parts, width)

    def _text(self, room: int) -> list[tuple[str, str]]:
        before, under, after = self.typed.painted(room)
        if self._chosen:
            return [(text, "caret" if text else "") for text in (before, under, after)]
        return [(before, ""), (under, "caret" if self.has_focus else ""), (after, "")]

    # Keys

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Printable keys are typed, whatever else they do."""
        return character is not None and character.isprintable()

    def on_key(self, event: events.Key) -> None:
        """Type, or do what the key does: here and now, as bindings are looked up only after later keys that
        came in one go with this one have been handed out to whoever had the focus then.
        """
        self._replace_chosen(typing=event.is_printable and event.character is not None)
        if self.over and self._before is not None:
            event.stop()
            event.prevent_default()
            self._before.post_message(events.Key(event.key, event.character))
        elif self.take(event.key, event.character if event.is_printable else None):
            event.stop()
            event.prevent_default()

    def take(self, key: str, character: str | None) -> bool:
        """Do what a key does; whether it does anything."""
        if character is not None:
            self._become(self.typed.insert(character))
            return True
        action = next((a for a in keys.ACTIONS if a.scope == "line" and key in keys.keys_of(a)), None)
        if action is None:
            return False
        _, name, arguments = parse(action.action)
        getattr(self, f"action_{name}")(*arguments)
        return True

    def on_paste(self, event: events.Paste) -> None:
        """Insert what was pasted."""
        event.stop()
        self._replace_chosen(typing=True)
        self._become(self.typed.insert(event.text))

    def _replace_chosen(self, *, typing: bool) -> None:
        if self._chosen and typing:
            self.typed = Line()

    def on_focus(self) -> None:
        """The cursor is seen while the prompt has the keys."""
        self.refresh()

    def on_blur(self) -> None:
        """The cursor is seen while the prompt has the keys."""
        self.refresh()

    def action_accept(self) -> None:
        """Say that the text is accepted, and remember it."""
        self.history.add(self.value)
        self._give_back()
        self._say(self.Accepted(self, self.value))

    def action_cancel(self) -> None:
        """Say that the prompt was left."""
        self._give_back()
        self._say(self.Cancelled(self, self.value))

    def _give_back(self) -> None:
        """Give the keys back at once, and not when the message is heard: the next key may be there before."""
        self.over = self._before is not None
        if self._before is not None:
            self.screen.set_focus(self._before, scroll_visible=False)

    def action_history(self, by: int) -> None:
        """Show an older or a newer one of the texts that were accepted."""
        found = self.history.older(self.value) if by < 0 else self.history.newer()
        if found is not None:
            self._become(Line.of(found))

    def action_move(self, by: int) -> None:
        """Move the cursor by characters."""
        self._become(self.typed.move(by))

    def action_word(self, by: int) -> None:
        """Move the cursor over a word."""
        self._become(self.typed.word(by))

    def action_edge(self, end: bool) -> None:
        """Move the cursor to an end."""
        self._become(self.typed.edge(end))

    def action_delete(self, by: int) -> None:
        """Delete what is chosen, else the character before or under the cursor."""
        self._become(Line() if self._chosen else self.typed.delete(self.typed.move(by)))

    def action_delete_word(self) -> None:
        """Delete the word before the cursor."""
        self._become(self.typed.delete(self.typed.word(-1)))

    def action_delete_to(self, end: bool) -> None:
        """Delete everything before or behind the cursor."""
        self._become(self.typed.delete(self.typed.edge(end)))

    def _become(self, line: Line) -> None:
        before, self.typed = self.typed, line
        self.refresh()
        if line.text != before.text:
            self._say(self.Changed(self, line.text))
        self._chosen = False

    def _say(self, message: Message) -> None:
        (self._asker or self).post_message(message)
