"""The UI runs on a Textual that has none of the private names it uses, and shows the same."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ctxctl.tui
from tests.tui.fake import FakeInspector, notes_agent
from tests.tui.helpers import made, running

NAMES = (
    "ChopsUpdate", "NoActiveAppError", "_close_messages_no_wait", "_compositor", "_dirty_regions",
    "_exception", "_exception_event", "_fatal_error", "_handle_exception", "_pseudo_classes_cache_key",
    "_regions_to_spans", "_return_code", "_scroll_update", "_set_dirty", "_start_widget",
    "_vertical_scrollbar",
)  # fmt: skip
"""Private names of Textual's that are used; an `_on_screen_resume` and a `_compose` only add to Textual's."""
RENAMED = f"""
import importlib.machinery, re, sys
NAMES = re.compile(r"(?<!textual\\.)(?<!\\w)({"|".join(NAMES)})\\b")

class Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        if not fullname.startswith("textual"):
            return super().get_code(fullname)
        text = self.get_source(fullname)
        return compile(NAMES.sub(r"\\1_renamed", text), self.path, "exec", dont_inherit=True)

extensions = (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES)
sys.path_hooks.insert(0, importlib.machinery.FileFinder.path_hook(extensions, (Loader, [".py"])))
sys.path_importer_cache.clear()
"""
WALK = ("]", "enter", "enter", "escape", "w")
SCREENS = """
import asyncio
from tests.tui import helpers
from tests.tui.fake import FakeInspector, notes_agent

async def main():
    helpers.strips = lambda app: app.screen._compositor_renamed.render_strips()
    async with helpers.running(helpers.made(FakeInspector(notes_agent())), (80, 24)) as session:
        for key in {walk!r}:
            await session.press(key)
            print(session.text, end="")

asyncio.run(main())
"""
ERROR = """
from textual.app import App
from ctxctl.tui import textual_private

class Broken(App):
    def on_mount(self):
        secret = "SECRET"
        raise ValueError(secret)

with textual_private.without_tracebacks():
    app = Broken()
    app.run(headless=True)
switches = [name for name, value in vars(textual_private).items() if value is True]
print(switches, app.return_code)
"""


def renamed(code: str) -> subprocess.CompletedProcess[str]:
    """Run code on a Textual whose private names are others."""
    return subprocess.run(
        [sys.executable, "-c", RENAMED + code], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.slow
async def test_without_the_private_names_the_screens_are_the_same() -> None:
    expected = ""
    async with running(made(FakeInspector(notes_agent())), (80, 24)) as session:
        for key in WALK:
            await session.press(key)
            expected += session.text
    done = renamed(SCREENS.format(walk=WALK))
    assert (done.returncode, done.stdout) == (0, expected), done.stderr[-2000:]


@pytest.mark.slow
def test_errors_that_textual_keeps_to_itself_are_not_printed() -> None:
    done = renamed(ERROR)
    assert done.stdout.splitlines()[-1:] == ["[] 1"], done.stderr[-2000:]
    assert "SECRET" not in done.stdout + done.stderr


def test_private_modules_of_textual_are_imported_in_one_place() -> None:
    found = set()
    for path in Path(ctxctl.tui.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and re.match(r"textual\b.*\._", node.module or ""):
                found.add(path.name)
    assert found == {"textual_private.py"}
