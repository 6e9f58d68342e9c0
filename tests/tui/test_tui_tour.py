"""Every screen on hostile traces, judged by the bytes that reach a pty."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminal import Terminal, child, harm, terminal
from test_tui_hostile import ATTACKS
from textual.screen import Screen

import ctxctl.tui.screens
from ctxctl.tui import keys

pytestmark = [pytest.mark.skipif(sys.platform == "win32", reason="needs a pty"), pytest.mark.slow]

MORE = (
    "\x1b[5m\x1b[31mblinking red\x1b[8m hidden",
    "\x1b]8;;http://evil/\x1b\\link\x1b]8;;\x1b\\",
    "\x1b]1337;File=inline=1:AAAA\x07\x1bPq#0~\x1b\\\x1b_Gf=100;AAAA\x1b\\",
    "\x1b[21t\x1b[c\x05\x1bP$qm\x1b\\\x1b[?1000h\x1b[?2004h\x1b[200~q\x1b[201~",
    "\x1b[@click=app.quit]\x1b[/] \x9b31m \x1b#8 \x1bc \x0e\x0f",
)
NOT_TOURED = {
    "quit", "interrupt", "suspend", "copy", "copy.address", "export", "pager", "editor", "palette", "theme",
}  # fmt: skip
"""Actions that leave, or lead out of the terminal; those have tests of their own."""
TYPED = {"search": "a\r", "text.find": "e\r"}
"""What is typed where an action asks for something."""


def trace_of(strings: tuple[str, ...], path: Path) -> Path:
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

    @property
    def said(self) -> list[dict[str, object]]:
        """The log."""
        return [json.loads(line) for line in self._log.read_text().splitlines()] if self._log.exists() else []

    @property
    def screens(self) -> set[str]:
        """Screens opened so far."""
        return {str(said["screen"]) for said in self.said if "screen" in said}

    @property
    def depth(self) -> int:
        """Screens over the main one."""
        depths = [said["depth"] for said in self.said if "depth" in said]
        return int(str(depths[-1])) if depths else 0

    def commands(self) -> list[str]:
        """Ids that the screen in front has."""
        found = self._palette()
        if not found:
            self.press("\r")  # a form: what it leads to has commands
            found = self._palette()
        if found:
            self.press("\x1b")
        return [ident for ident in found if ident not in NOT_TOURED]

    @property
    def _asking(self) -> bool:
        last = [said for said in self.said if "depth" in said][-1]
        return last.get("screen") == "Palette"

    def _palette(self) -> list[str]:
        """Open the line of commands; what it lists, nothing where the key is typed into a line instead."""
        before = sum("ids" in said for said in self.said)
        self.press(":")
        end = time.monotonic() + 3.0
        while True:
            found = [said["ids"] for said in self.said if "ids" in said]
            if len(found) > before:
                self.tty.rest()
                return found[-1]  # type: ignore[return-value]
            if time.monotonic() > end:
                return []
            self.tty.rest()

    def press(self, keys: str) -> None:
        """Press keys and wait until all is painted."""
        self.tty.type(keys)
        self.tty.rest(0.2)

    def do(self, ident: str) -> None:
        """Run a command by its id."""
        if not self._palette():
            self.press("\r")
            if not self._palette():
                return
        self.press(f"{ident}\r")
        if self._asking:
            self.press("\x1b")  # it has gone with its screen
        elif ident in TYPED:
            self.press(TYPED[ident])
        assert self.tty.process.poll() is None, f"{ident} ended it: {self.tty.seen[-1500:]}"

    def home(self) -> None:
        """Back to the main screen, with an item in front."""
        for _ in range(6):
            self.press("\x1b")
        self.press("\r")
        self.press("\r")

    def walk(self) -> None:
        """Every command of the main screen, and every command of each screen that one of them opens."""
        self.home()
        seen = set(self.screens)
        for ident in self.commands():
            before = self.depth
            self.do(ident)
            opened = self.screens - seen - {"Palette"}
            seen |= self.screens
            if opened or self.depth > before:
                if opened:
                    for inner in self.commands():
                        self.do(inner)
                        for _ in range(self.depth - before - 1):
                            self.press("\x1b")
                        if self.depth <= before:
                            self.do(ident)
                self.home()


def screens() -> set[str]:
    """Every screen that there is; those that only others are made from are none."""
    found: dict[str, type] = {}
    for module in pkgutil.iter_modules(ctxctl.tui.screens.__path__):
        loaded = importlib.import_module(f"ctxctl.tui.screens.{module.name}")
        for name, kind in inspect.getmembers(loaded, inspect.isclass):
            if issubclass(kind, Screen) and kind.__module__ == loaded.__name__:
                found[name] = kind
    bases = {base.__name__ for kind in found.values() for base in kind.__mro__[1:]}
    return set(found) - bases


def tour(path: Path, tmp_path: Path, what: str = "tour") -> Iterator[Tour]:
    log = tmp_path / "log"
    with terminal(child(what, str(path), str(log)), environment={"CTXCTL_STATE": "off"}) as tty:
        tty.wait_for("turns")
        tty.rest(0.5)
        yield Tour(tty, log)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    name = "trace [@click=app.quit] \x1b]0;pwned\x07\u202e.jsonl"
    return trace_of((*ATTACKS, *MORE), tmp_path / name)


def test_no_screen_sends_more_than_text(hostile: Path, tmp_path: Path) -> None:
    for going in tour(hostile, tmp_path):
        going.walk()
        going.home()
        for key in ("?", "e", "\x1b", "\x1b"):
            going.press(key)
        assert harm(going.tty.bytes.decode("utf-8")) == []
        assert [said for said in going.said if "action" in said] == []
        assert screens() - going.screens == set(), "screens that the tour does not reach"


def test_the_check_catches_a_leak(hostile: Path, tmp_path: Path) -> None:
    for going in tour(hostile, tmp_path, "leaky-tour"):
        going.home()
        going.do("assembled")
        going.tty.wait_for("tokens")
        going.tty.rest(0.5)
        for key in ("G", "\x15", "\x15", "g", "\x04", "\x04"):
            going.press(key)
            going.tty.rest(0.3)
        going.tty.process.kill()
        found = harm(going.tty.seen)
    assert any(fault.startswith("'\\x9b'") for fault in found)
    assert any("\\u202e" in fault for fault in found)


def test_published_attacks(corpus: Path, tmp_path: Path) -> None:
    suites = corpus / "suites"
    strings = json.loads((suites / "big-list-of-naughty-strings" / "blns.json").read_text(encoding="utf-8"))
    sequences = sorted(path for path in (suites / "xterm-escape-sequences").rglob("*") if path.is_file())
    raw = [path.read_bytes()[:2000].decode("latin-1") for path in sequences]
    parts = tuple(" ".join(strings[n : n + 60]) for n in range(0, len(strings), 60))
    for going in tour(trace_of((*parts, *raw[:12]), tmp_path / "t.jsonl"), tmp_path):
        going.walk()
        assert harm(going.tty.bytes.decode("utf-8")) == []
        assert [said for said in going.said if "action" in said] == []


def test_the_tour_knows_every_scope() -> None:
    assert {action.id for action in keys.ACTIONS} >= NOT_TOURED
    assert {*TYPED} <= {action.id for action in keys.ACTIONS}
