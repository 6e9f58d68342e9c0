"""The line of commands, and questions that take one line; both lie over the screen in front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen

from ctxctl.text import cells, clip
from ctxctl.tui import commands, keys
from ctxctl.tui.commands import Command
from ctxctl.tui.layout import Parts, Piece, spread
from ctxctl.tui.lineedit import History
from ctxctl.tui.literal import Part
from ctxctl.tui.widgets.canvas import Board
from ctxctl.tui.widgets.paint import Banner
from ctxctl.tui.widgets.prompt import Prompt
from ctxctl.tui.widgets.rows import Rows


class Ask(Board[str | None], ModalScreen[str | None]):
    """Asks for one line; closes with what was typed, or with None."""

    def __init__(self, label: str, note: str, *, text: str = "", history: History | None = None) -> None:
        super().__init__()
        self._label = label
        self._note = note
        self._text = text
        self._history = history

    def compose(self) -> ComposeResult:
        """Lay out the question and the line."""
        with Vertical(id="palette"):
            yield Banner(self._head, ident="palette-head")
            yield Prompt(self._label, value=self._text, history=self._history, ident="answer")

    def _head(self, width: int) -> list[Parts]:
        """The question, and the keys that end it."""
        hints = (("line.erase_all", "clear", 3), ("line.accept", "accept", 8), ("line.cancel", "cancel", 7))
        right = [Piece(word, "hint", rank, keys.key_of(action)) for action, word, rank in hints]
        return [spread([Piece(self._note, "muted", 9)], right, width)]

    def on_mount(self) -> None:
        """Give the line the focus."""
        self.set_focus(self.query_one("#answer"), scroll_visible=False)

    @on(Prompt.Accepted)
    def accepted(self, message: Prompt.Accepted) -> None:
        """Close with what was typed."""
        self.dismiss(message.value)

    @on(Prompt.Cancelled)
    def cancelled(self) -> None:
        """Close without an answer."""
        self.dismiss(None)


MOST: Final = 12
"""Lines of the list at most."""
_KEY: Final = 8
"""Cells of the column of keys."""


class _Line(Prompt):
    """The line of input: up and down move in the list, and above its first line is the history."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(":", history=palette.history, ident="command")
        self._palette = palette

    def action_history(self, by: int) -> None:
        """Choose another line of the list, or an older one of those that were typed."""
        before = self.value
        if self._palette.choice.at == 0 and (by < 0 or self.history.browsing):
            super().action_history(by)
        if self.value == before:
            self._palette.action_choose(by)


class Palette(Board[Command | None], ModalScreen[Command | None]):
    """Takes a line and shows what it can mean; closes with the command that was chosen."""

    BINDINGS = keys.bindings("palette")

    def __init__(
        self, ids: Sequence[str], themes: Sequence[str], history: History, *, turns: bool = True
    ) -> None:
        """`turns`: a trace is open, to whose turns a command can lead."""
        super().__init__()
        self._turns = turns
        self._ids = ids
        self._themes = themes
        self.history = history
        self.choice = commands.choices_for("", ids, themes, turns=turns)

    def compose(self) -> ComposeResult:
        """Lay out the list above the line."""
        with Vertical(id="palette"):
            yield Banner(self._head, ident="palette-head")
            yield Rows(self._line, "choices")
            yield _Line(self)

    def on_mount(self) -> None:
        """List everything that can be done, until something is typed."""
        self._show()
        self.set_focus(self.query_one("#command"), scroll_visible=False)

    def on_resize(self, event: events.Resize) -> None:
        """Leave some of the screen below in view."""
        self._fit()

    @on(Prompt.Changed)
    def typed(self, message: Prompt.Changed) -> None:
        """List what the typed line can mean."""
        self.choice = commands.choices_for(message.value, self._ids, self._themes, turns=self._turns)
        self._show()

    @on(Rows.Moved)
    def pointed(self, message: Rows.Moved) -> None:
        """Choose the line that was clicked."""
        self.choice = commands.Choices(self.choice.commands, message.line)
        self.set_focus(self.query_one("#command"), scroll_visible=False)

    @on(Rows.Chosen)
    @on(Prompt.Accepted)
    def accepted(self) -> None:
        """Close with the chosen command, if there is one."""
        if self.choice.chosen is not None:
            self.dismiss(self.choice.chosen)

    @on(Prompt.Cancelled)
    def cancelled(self) -> None:
        """Close without a command."""
        self.dismiss(None)

    def action_choose(self, by: int) -> None:
        """Choose another line."""
        self._choose(self.choice.at + by)

    def _choose(self, line: int) -> None:
        self.choice = self.choice.moved(line - self.choice.at)
        self.query_one("#choices", Rows).place(self.choice.at)

    def _show(self) -> None:
        rows = self.query_one("#choices", Rows)
        self._fit()
        rows.show(len(self.choice.commands), self.choice.at)
        self.query_one("#palette-head", Banner).update()

    def _fit(self) -> None:
        rows = self.query_one("#choices", Rows)
        rows.styles.height = max(min(len(self.choice.commands), MOST, self.size.height - 6), 1)

    def _head(self, width: int) -> Sequence[Parts]:
        found = len(self.choice.commands)
        text = "commands" + ("; also a turn: 7, 7.2, -1, explorer:2" if self._turns else "")
        text = text if found else "no command has that name"
        return [[(" ", ""), (text, "muted" if found else "warning")]]

    def _line(self, line: int, width: int) -> Sequence[Part]:
        command = self.choice.commands[line]
        parts: list[Part] = [(f"{command.key:>{_KEY}}  ", "key")]
        room = max(width - _KEY - 2, 0)
        title, at = clip(command.title, room), 0
        for place in command.marked:
            if place >= len(title):
                break
            parts += [(title[at:place], ""), (title[place], "name")]
            at = place + 1
        parts.append((title[at:], ""))
        if command.kind == "action" and cells(title) + 2 + cells(command.argument) <= room:
            parts.append((f"  {command.argument}", "muted"))
        return parts
