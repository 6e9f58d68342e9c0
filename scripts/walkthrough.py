"""Records the walkthrough of the README from the real UI: ``python -m scripts.walkthrough [FILE]``.

One SVG that plays by itself: each frame is a screen after some keys, with a line that says what is being
done.  It holds no script and asks nothing of the network.
"""

from __future__ import annotations

import asyncio
import html
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from ctxctl.config import Settings
from ctxctl.session import Inspector
from ctxctl.tui.app import CtxApp
from scripts.screenshots import ROOT, plain, settle

TRACE = "traces/retrieval-agent.jsonl"
SIZE = (100, 28)


@dataclass(frozen=True)
class Scene:
    """Some keys, and the screen after them."""

    keys: tuple[str, ...]
    says: str
    seconds: float = 4.0


SCENES = (
    Scene((), "ctxctl replay traces/retrieval-agent.jsonl: every turn, and what changed in it"),
    Scene(("v",), "v: the window over the whole session, with its limit"),
    Scene(("escape", *("right_square_bracket",) * 5), "]: the next turns; here something had to be left out"),
    Scene(("enter", "G"), "⏎: its changes, down to what was omitted, and why"),
    Scene(("t",), "t: the text that went over the wire, block by block"),
    Scene(("escape", "escape", "D"), "D: this request against the one before"),
    Scene(("escape", "question_mark"), "?: every key"),
)

_STYLE = re.compile(r"<style>(.*?)</style>", re.S)
_BODY = re.compile(r"<svg[^>]*>(.*)</svg>", re.S)
_VIEW = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


async def record() -> list[str]:
    """The screens, each as an SVG of its own."""
    app = CtxApp(
        lambda: Inspector.open(ROOT / TRACE, calibration="shipped"), TRACE, settings=Settings(remember=False)
    )
    found = []
    async with app.run_test(size=SIZE) as pilot:
        await settle(app, pilot)
        for n, scene in enumerate(SCENES):
            for key in scene.keys:
                await pilot.press(key)
                await settle(app, pilot)
            found.append(plain(app.export_screenshot(title=f"ctxctl {TRACE}", simplify=True), f"walk{n}"))
    app.loader.stop()
    return found


def film(screens: list[str]) -> str:
    """The screens one after the other, for ever."""
    view = _VIEW.search(screens[0])
    assert view is not None
    width, height = float(view[1]), float(view[2])
    whole = sum(scene.seconds for scene in SCENES)
    styles, frames, begun = [], [], 0.0
    for n, (screen, scene) in enumerate(zip(screens, SCENES, strict=True)):
        styles += _STYLE.findall(screen)
        start, end = begun / whole * 100, (begun + scene.seconds) / whole * 100
        begun += scene.seconds
        styles.append(
            f"@keyframes shot{n}{{0%,{start:.3f}%{{visibility:hidden}}{start + 0.001:.3f}%,"
            f"{end - 0.001:.3f}%{{visibility:visible}}{end:.3f}%,100%{{visibility:hidden}}}}"
            f".shot{n}{{animation:shot{n} {whole:g}s step-end infinite;visibility:hidden}}"
        )
        body = _BODY.search(_STYLE.sub("", screen))
        assert body is not None
        said = f'<text class="says" x="{width / 2:g}" y="{height + 30:g}">{html.escape(scene.says)}</text>'
        frames.append(f'<g class="shot{n}">{body[1]}{said}</g>')
    styles.append(
        ".says{font-family:ui-sans-serif,system-ui,sans-serif;font-size:22px;text-anchor:middle;fill:#888}"
        "@media (prefers-reduced-motion:reduce){[class^=shot]{animation:none}.shot0{visibility:visible}}"
    )
    return (
        f'<svg class="rich-terminal" viewBox="0 0 {width:g} {height + 46:g}" '
        f'xmlns="http://www.w3.org/2000/svg"><style>{"".join(styles)}</style>{"".join(frames)}</svg>\n'
    )


def main() -> None:
    """Record it."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "screenshots" / "walkthrough.svg"
    target.write_text(film(asyncio.run(record())), encoding="utf-8")
    print(target.name, target.stat().st_size)


if __name__ == "__main__":
    main()
