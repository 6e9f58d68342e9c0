"""What a trace says was redacted is on no screen, before its redaction neither."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import LARGE, made, running

from ctxctl.session import Inspector
from ctxctl.tui.keymap import ACTIONS
from tests.unit.session.test_redacted_everywhere import secret, story, told

COUNT = 24
AWAY = {
    "quit", "interrupt", "suspend", "copy", "copy.address", "export", "pager", "editor", "theme", "palette",
}  # fmt: skip
"""Actions that leave, or lead out of the terminal."""


@pytest.mark.slow
@pytest.mark.asyncio
async def test_no_screen_says_it(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(story(COUNT))
    keys = [action.keys[0] for action in ACTIONS if action.scope == "turns" and action.id not in AWAY]
    seen = set()
    async with running(made(Inspector.open(path)), LARGE) as session:
        for start in ((), ("G",)):
            for key in dict.fromkeys(keys):
                await session.press(*start, key)
                for more in ((), ("down", "down", "enter")):
                    await session.press(*more)
                    assert told(session.text, COUNT) == [], (start, key, more, session.text)
                    seen.add(session.app.screen.__class__.__name__)
                await session.press("escape", "escape", "escape")
    assert len(seen) > 5, seen
    assert secret(0)
