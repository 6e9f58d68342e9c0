"""Going through the screens of a UI on a pty, and what one is told of where one is."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from terminal import PATIENCE, Terminal, child, harm, terminal
from textual.screen import Screen

import ctxctl.tui.screens

NOT_TOURED = {
    "quit", "interrupt", "suspend", "copy", "copy.address", "export", "pager", "editor", "palette", "theme",
}  # fmt: skip
"""Actions that leave, or lead out of the terminal; those have tests of their own."""
TYPED = {"search": "a\r", "text.find": "e\r"}
"""What is typed where an action asks for something."""
_AT_REST = "\x1b[24;2~"
"""Shift+F12: `child.py` answers it in the log once everything typed before it is done."""


def trace_of(strings: Sequence[str], path: Path) -> Path:
    """Requests in which every string is one of these, a turn for each; what they begin with changes."""
    everything = " ".join(strings)
    messages: list[dict[str, object]] = [{"role": "system", "content": f"be {everything}"}]
    tools = [
        {
            "type": "function",
            "function": {"name": f"t{n}{string}", "description": string, "parameters": {string: string}},
        }
        for n, string in enumerate(strings)
    ]
    lines = []
    for n, string in enumerate(strings):
        text = f"ask {string}\n{everything}\r\n\t{string}"
        messages.append({"role": "user", "content": text, "name": string})
        request = {"model": f"gpt-4o{strings[0]}", "messages": messages, "tools": tools}
        lines.append(json.dumps(request, ensure_ascii=n % 2 == 0))
        function = {"name": f"f{string}", "arguments": json.dumps({string: string})}
        call = {"id": f"c{string}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": f"answer {string}", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{string}", "content": json.dumps([string] * 3)})
        if n % 3 == 2:
            messages[0] = {"role": "system", "content": f"be {everything}\nand {string}"}
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogatepass")
    return path


class Tour:
    """A UI in a terminal, and its log of what was opened."""

    def __init__(self, tty: Terminal, log: Path) -> None:
        self.tty = tty
        self._log = log
        self._read = 0
        self._rests = 0
        self.said: list[dict[str, Any]] = []
        """The log."""

    def _listen(self) -> None:
        new = self._log.read_bytes()[self._read :] if self._log.exists() else b""
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        self.said += [json.loads(line) for line in whole.splitlines()]

    @property
    def screens(self) -> set[str]:
        """Screens opened so far."""
        return {str(said["screen"]) for said in self.said if "screen" in said}

    @property
    def depth(self) -> int:
        """Screens over the main one."""
        return next((int(said["depth"]) for said in reversed(self.said) if "depth" in said), 0)

    @property
    def turns(self) -> int:
        """Turns in the list."""
        return next((int(said["turns"]) for said in reversed(self.said) if "turns" in said), 0)

    @property
    def _asking(self) -> bool:
        last = [said for said in self.said if "depth" in said][-1]
        return last.get("screen") == "Palette"

    def _palette(self) -> list[str]:
        """Open the line of commands; what it lists, nothing where the key is typed into a line instead."""
        before = sum("ids" in said for said in self.said)
        self.press(":")
        found = [said["ids"] for said in self.said if "ids" in said]
        return [str(ident) for ident in found[-1]] if len(found) > before else []

    def _open_palette(self) -> list[str]:
        found = self._palette()
        if not found:
            self.press("\r")  # a form: what it leads to has commands
            found = self._palette()
        return found

    def commands(self) -> list[str]:
        """Ids that the screen in front has."""
        found = self._open_palette()
        if found:
            self.press("\x1b")
        return [ident for ident in found if ident not in NOT_TOURED]

    def press(self, keys: str) -> None:
        """Press keys and wait until all is painted."""
        self.tty.type(keys + _AT_REST)
        self._rests += 1
        end = time.monotonic() + PATIENCE
        while sum("rest" in said for said in self.said) < self._rests:
            assert self.tty.process.poll() is None, f"{keys!r} ended it: {self.tty.seen[-1500:]}"
            busy = [said["busy"] for said in self.said[-3:] if "busy" in said]
            assert time.monotonic() < end, f"it does not come to rest after {keys!r}: {busy}"
            self.tty.read(0.01)
            self._listen()
        while self.tty.read(0):
            pass

    def paste(self, text: str) -> None:
        """Paste into what asks for a line."""
        self.press(f"\x1b[200~{text}\x1b[201~")

    def until(self, met: Callable[[], bool]) -> None:
        """Wait for what does not come from a key."""
        end = time.monotonic() + PATIENCE
        while not met():
            assert time.monotonic() < end, f"waited in vain; {self.turns} turns"
            self.press("")

    def do(self, ident: str) -> None:
        """Run a command by its id."""
        found = self._open_palette()
        if ident not in found:  # another command would be taken for it
            if found:
                self.press("\x1b")
            return
        self.press(f"{ident}\r")
        if self._asking:
            self.press("\x1b")  # it has gone with its screen
        elif ident in TYPED:
            self.press(TYPED[ident])

    def home(self) -> None:
        """Back to the main screen, with an item in front."""
        for _ in range(6):
            self.press("\x1b")
        self.press("\r")
        self.press("\r")

    def walk(self, wanted: Callable[[str], bool] = lambda _: True) -> None:
        """Commands of the main screen, and every command of each screen that one of them opens."""
        self.home()
        seen = set(self.screens)
        for ident in filter(wanted, self.commands()):
            before = self.depth
            self.do(ident)
            opened = self.screens - seen - {"Palette"}
            seen |= self.screens
            if opened or self.depth > before:
                if opened:
                    self._inside(ident, before)
                self.home()

    def _inside(self, ident: str, before: int) -> None:
        """Every command of the screen in front, which `ident` opened."""
        for inner in self.commands():
            self.do(inner)
            for _ in range(self.depth - before - 1):
                self.press("\x1b")
            if self.depth <= before:
                self.do(ident)

    def check(self, reached: Collection[str] = ()) -> None:
        """Nothing but text and Textual's own sequences was sent, and nothing can be clicked on."""
        self.press("")
        self.tty.rest()
        assert harm(self.tty.bytes.decode("utf-8")) == []
        assert [said for said in self.said if "action" in said] == []
        lacking = set(reached) - self.screens
        assert not lacking, f"screens that the tour does not reach: {sorted(lacking)}"


def screens() -> set[str]:
    """Every screen that there is; those that only others are made from are none."""
    found: dict[str, type] = {}
    for module in pkgutil.walk_packages(ctxctl.tui.screens.__path__, "ctxctl.tui.screens."):
        loaded = importlib.import_module(module.name)
        for name, kind in inspect.getmembers(loaded, inspect.isclass):
            if issubclass(kind, Screen) and kind.__module__ == loaded.__name__:
                found[name] = kind
    bases = {base.__name__ for kind in found.values() for base in kind.__mro__[1:]}
    return set(found) - bases


@contextmanager
def tour(command: Sequence[str], folder: Path, what: str = "tour") -> Iterator[Tour]:
    """`ctxctl COMMAND` on a pty, once its list of turns is there."""
    log = folder / "log"
    with terminal(child(what, str(log), *command), environment={"CTXCTL_STATE": "off"}) as tty:
        tty.wait_for("turns")
        going = Tour(tty, log)
        going.press("")
        yield going
