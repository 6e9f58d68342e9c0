"""What works on every screen: commands, help, colours, and taking what is seen elsewhere."""

from __future__ import annotations

import asyncio
import os
import shlex
from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

from textual.actions import ActionParseResult
from textual.app import App, SuspendNotSupported
from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import ModalScreen, Screen
from textual.widget import Widget

from ctxctl.tui import export, keys, lifecycle, themes
from ctxctl.tui.commands import Command
from ctxctl.tui.export import ShowsText, VisibleText
from ctxctl.tui.lineedit import History
from ctxctl.tui.literal import shown
from ctxctl.tui.requests import Answered, Handlers, Placed, PlaceRequest, Unanswered, ask
from ctxctl.tui.screens.palette import Ask, Palette
from ctxctl.tui.screens.reader import Help
from ctxctl.tui.widgets.rows import Rows
from ctxctl.tui.widgets.textview import TextView
from ctxctl.wording import number, plural

_SECONDS = 4.0
_ROWS = 1000
"""Lines of a list that are taken; painting one costs some hundredths of a millisecond."""
_WIDE = 120


def in_force(screen: Screen[object]) -> dict[str, DOMNode]:
    """The actions that have an effect on a screen as it is, by id, with the node that each is for.

    Those of the screen come first, then those that work everywhere, then moving about.  An action is listed
    even where all its keys do something else, as in a text: it can be asked for by name.
    """
    found: dict[str, DOMNode] = {}
    nodes = [screen, screen.app] if screen.focused is None else screen.focused.ancestors_with_self
    for node in nodes:
        for kind in type(node).__mro__:
            for binding in kind.__dict__.get("BINDINGS", ()):
                ident = binding.id if isinstance(binding, Binding) else None
                if ident in keys.BY_ID and node.check_action(_called(ident), ()):
                    found.setdefault(ident, node)
    late = {"app": 1, "list": 2, "text": 2}
    ranked = sorted(found, key=lambda ident: late.get(keys.BY_ID[ident].scope, 0))
    return {ident: found[ident] for ident in ranked}


def _called(ident: str) -> str:
    """The name of an action's method."""
    return keys.BY_ID[ident].action.partition("(")[0]


def _focused(screen: Screen[object] | None) -> VisibleText | None:
    """The text or the list that has the focus, on a screen that does not say what is in front."""
    widget = None if screen is None else screen.focused
    if isinstance(widget, TextView) and widget.document.text:
        return None if widget.document.is_remark else VisibleText("text", widget.document.text)
    if isinstance(widget, Rows) and widget.count:
        count = min(widget.count, _ROWS)
        rows = ("".join(text for text, _ in widget.parts_of(n, _WIDE)).rstrip() for n in range(count))
        return VisibleText(widget.id or "list", "\n".join(rows))
    return None


class Shell(App[None]):
    """An application with a line of commands, a help, and a way out for what it shows."""

    BINDINGS: ClassVar = keys.bindings("app")
    HAS_TURNS: ClassVar = True
    """A trace is open, and a command can lead to its turns."""

    def __init__(self, name: str) -> None:
        super().__init__()
        for theme in themes.THEMES:
            self.register_theme(theme)
        self.trace_name = name
        self.environment: Mapping[str, str] = os.environ
        self.terminal = 2
        """File descriptor that other programs write on."""
        self.theme_chosen = ""
        """The theme that the user went to, if they did."""
        self._commands = History()
        self._files = History()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Variables of ours that a theme may lack."""
        return dict(themes.DARK.variables)

    # What the application provides

    @abstractmethod
    def go_to(self, ordinal: int, *, step: bool) -> bool:
        """Show a step's frame on the main screen, or its turn's; False if the step is not known yet."""

    @abstractmethod
    def front_session(self) -> str | None:
        """The session of the turn in front."""

    @abstractmethod
    def front_address(self) -> str | None:
        """The address of the frame in front, with the trace's name; None while there is none."""

    def tell(self, text: str, *, bad: bool = False) -> None:
        """Say something that passes."""
        self.notify(shown(text), severity="warning" if bad else "information", timeout=_SECONDS, markup=False)

    def _own_screen(self) -> Screen[object] | None:
        """The screen in front, if nothing is being asked on it."""
        return None if isinstance(self.screen, ModalScreen) else self.screen

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run an action, unless it is for a screen that is not in front any more."""
        node = default_namespace
        if isinstance(node, Widget) and not (node.is_attached and node.screen is self.screen):
            return False
        return await super().run_action(action, default_namespace, namespaces)

    # Commands

    def action_palette(self) -> None:
        """Take a command."""
        screen = self._own_screen()
        if screen is None:
            return
        nodes = in_force(screen)
        ids = ["help", *(ident for ident in nodes if ident not in ("help", "palette"))]

        async def chosen(command: Command | None) -> None:
            if command is not None:
                await self._do(command, nodes)

        self.push_screen(Palette(ids, themes.NAMES, self._commands, turns=self.HAS_TURNS), chosen)

    async def _do(self, command: Command, nodes: Mapping[str, DOMNode]) -> None:
        if command.kind == "goto":
            ask(self, PlaceRequest(command.argument, self.front_session()))
        elif command.kind == "theme":
            self.choose_theme(command.argument)
        elif command.kind == "action":
            node = nodes.get(command.argument, self)
            await self.run_action(keys.BY_ID[command.argument].action, node)

    def handlers(self) -> Handlers:
        """By kind of value, what is done with an answer to what the application itself asked for."""
        return {Placed: self._placed, Unanswered: lambda found: self.tell(found.why, bad=True)}

    def on_answered(self, message: Answered) -> None:
        """Take an answer, or news of the trace."""
        message.handle(self.handlers())

    def _placed(self, found: Placed) -> None:
        if not self.go_to(found.ordinal, step="." in found.address.rpartition(":")[2]):
            self.tell(f"{found.address} has not been read yet", bad=True)

    # Help and colours

    def action_help(self) -> None:
        """Show all keys, those of the screen in front first; there, go back."""
        screen = self._own_screen()
        if isinstance(screen, Help):
            screen.dismiss(None)
        if screen is None or isinstance(screen, Help):
            return
        scopes = dict.fromkeys(keys.BY_ID[ident].scope for ident in in_force(screen))
        self.push_screen(Help([scope for scope in scopes if scope not in ("app", "list", "text")]))

    def action_theme(self) -> None:
        """The next theme."""
        self.choose_theme(themes.next_theme(self.theme))

    def choose_theme(self, name: str) -> None:
        """Show other colours, and say which."""
        self.theme = self.theme_chosen = name
        self.clear_notifications()
        self.tell(f"colours: {name}" + (" (NO_COLOR is set: none are shown)" if self.no_color else ""))

    # Taking things elsewhere

    def seen(self) -> VisibleText | None:
        """The text in front; where there is none, that is said."""
        screen = self._own_screen()
        seen = screen.seen() if isinstance(screen, ShowsText) else _focused(screen)
        if seen is None and screen is not None:
            self.tell("nothing to copy or open here", bad=True)
        return seen

    def action_copy(self) -> None:
        """Copy what is in front."""
        if (seen := self.seen()) is not None:
            self._copy(seen.text, f"{seen.name}: {plural(len(seen.text), 'character')}")

    def action_copy_address(self) -> None:
        """Copy the address of the frame in front."""
        address = self.front_address()
        if address is None:
            self.tell("nothing to copy or open here", bad=True)
        else:
            self._copy(shlex.quote(address), address)

    def _copy(self, text: str, what: str) -> None:
        try:
            text = export.for_clipboard(text)
        except export.ExportError as error:
            key = keys.key_of("export")
            self.tell(f"{error}{f'; {key} writes it to a file' if key else ''}", bad=True)
            return
        self.copy_to_clipboard(text)
        self.tell(f"sent to the clipboard: {what}")
        if not self.is_headless and self.environment.get("TMUX"):
            self.run_worker(asyncio.to_thread(export.tmux_copy, text, self.environment))

    def action_export(self) -> None:
        """Write what is in front to a file."""
        seen = self.seen()
        if seen is None:
            return
        suggested = export.free_name(Path(), export.file_name(self.trace_name, seen.name))

        def answered(path: str | None) -> None:
            if path is not None and path.strip():
                self.run_worker(self._export(path.strip(), seen))

        note = f"{seen.name}: {plural(len(seen.text), 'character')}, raw, to a file"
        self.push_screen(Ask("file:", note, text=suggested, history=self._files), answered)

    async def _export(self, path: str, seen: VisibleText, *, over: bool = False) -> None:
        try:
            done = await asyncio.to_thread(export.write_file, path, seen.text, over=over)
        except export.ExportError as error:
            self.tell(str(error), bad=True)
            return
        if done == "written":
            self.tell(f"written to {path}: {number(len(seen.text))} characters")
            return

        def answered(word: str | None) -> None:
            if word is not None and word.strip().lower() in ("y", "yes"):
                self.run_worker(self._export(path, seen, over=True))
            else:
                self.tell("nothing written")

        self.push_screen(Ask("overwrite it? y/n", f"{path} already exists"), answered)

    def action_pager(self) -> None:
        """Open what is in front in the pager."""
        self._lend("pager")

    def action_editor(self) -> None:
        """Open a copy of what is in front in the editor."""
        self._lend("editor")

    def _lend(self, program: export.Program) -> None:
        if (seen := self.seen()) is None:
            return
        try:
            words = export.program_words(program, self.environment)
        except export.ExportError as error:
            self.tell(str(error), bad=True)
            return
        self.run_worker(self._lent(words, seen, raw=program == "editor"))

    async def _lent(self, words: list[str], seen: VisibleText, *, raw: bool) -> None:
        lending = export.lent_file(seen.text, export.file_name(self.trace_name, seen.name), raw=raw)
        try:
            path = await asyncio.to_thread(lending.__enter__)
        except (export.ExportError, OSError) as error:
            self.tell(f"cannot be opened: {getattr(error, 'strerror', None) or error}", bad=True)
            return
        try:
            why = self._away(lambda: export.run_program(words, path, self.terminal))
        finally:
            await asyncio.to_thread(lending.__exit__, None, None, None)
        if why:
            self.tell(why, bad=True)

    def _away(self, run: Callable[[], str]) -> str:
        """Leave the terminal to another program while `run` runs it; what went wrong."""
        self.release_signals()
        try:
            with self.suspend(), lifecycle.without_interrupts():
                return run()
        except SuspendNotSupported:
            return "there is no terminal to leave to another program"
        finally:
            self.take_signals()

    def take_signals(self) -> None:
        """Be told of signals."""

    def release_signals(self) -> None:
        """Leave signals to others for a while."""
