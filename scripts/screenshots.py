"""Takes the screenshots of the docs from the real UI: ``python -m scripts.screenshots [DIRECTORY]``.

Runs the application without a terminal, presses keys, and writes what is on the screen as SVG.
"""

from __future__ import annotations

import asyncio
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from textual.pilot import Pilot

from ctxctl.config import Settings
from ctxctl.session import Inspector
from ctxctl.tui.app import CtxApp
from ctxctl.tui.fleet_app import FleetApp, FleetPick
from scripts.fleet_sample import sample

ROOT = Path(__file__).resolve().parent.parent
_ID = re.compile(r"terminal-\d+")
_NAMES = {" ": "space", ":": "colon", "_": "underscore"}
_FONT = re.compile(r"@font-face\s*\{[^}]*\}\s*")


@dataclass(frozen=True)
class Shot:
    """One screenshot: the trace to open, the keys to press, the size of the terminal in cells."""

    name: str
    trace: str | None
    """None: what is taken is the overview of a dataset."""
    keys: tuple[str, ...]
    width: int = 124
    height: int = 36
    theme: str = "dark"


def typed(text: str) -> tuple[str, ...]:
    """The keys of a text."""
    return tuple(_NAMES.get(letter, letter) for letter in text)


SHOTS = (
    Shot("turns", "coding-agent.jsonl", ("j",) * 9),
    Shot("item-diff", "notes-assistant.jsonl", ("j", "j", "tab", "j", "j", "j", "enter")),
    Shot("over-budget", "retrieval-agent.jsonl", ("j",) * 5),
    Shot("overview", "coding-agent.jsonl", ("v",)),
    Shot("diff", "notes-assistant.jsonl", ("j", "j", "D", "j", "j", "enter"), width=150, theme="light"),
    Shot("assembled", "coding-agent.jsonl", ("j",) * 4 + ("t", "c"), width=150),
    Shot(
        "search",
        "retrieval-agent.jsonl",
        ("slash", *typed("kind:retrieval_result bicycles"), "enter"),
        theme="light",
    ),
    Shot("what-if", "retrieval-agent.jsonl", ("W", *typed("1500"), "enter")),
    Shot("fleet", None, ("S",) * 7, height=20),
)


async def take(shot: Shot, directory: Path) -> Path:
    """Open the UI, press the keys, and save the screen."""
    app, command = _app(shot)
    async with app.run_test(size=(shot.width, shot.height)) as pilot:
        await settle(app, pilot)
        for key in shot.keys:
            await pilot.press(key)
            await settle(app, pilot)
        svg = app.export_screenshot(title=command)
    target = directory / f"{shot.name}.svg"
    target.write_text(plain(svg, shot.name), encoding="utf-8")
    return target


def _app(shot: Shot) -> tuple[CtxApp | FleetApp, str]:
    """What is opened, and the command that opens it."""
    settings = Settings(theme=shot.theme, remember=False)
    if shot.trace is None:
        return FleetApp(sample, FleetPick(), settings), "ctxctl fleet"
    name = f"traces/{shot.trace}"
    return CtxApp(
        lambda: Inspector.open(ROOT / name, calibration="shipped"), name, settings=settings
    ), f"ctxctl replay {name}"


def plain(svg: str, name: str) -> str:
    """The picture without fonts from elsewhere, and with ids that are the same every time."""
    return _ID.sub(f"terminal-{name}", _FONT.sub("", svg))


async def settle(app: CtxApp | FleetApp, pilot: Pilot[None]) -> None:
    """Wait until what reads has nothing to do and all it said has been painted."""
    calm = 0
    while calm < 3:
        await pilot.pause()
        await asyncio.sleep(0.02)
        idle = app.feed.idle if isinstance(app, FleetApp) else app.loader.idle.is_set()
        calm = calm + 1 if idle else 0


def main() -> None:
    """Take all of them."""
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "screenshots"
    directory.mkdir(parents=True, exist_ok=True)
    for shot in SHOTS:
        print(asyncio.run(take(shot, directory)).name)


if __name__ == "__main__":
    main()
