"""The pictures in docs/screenshots are of the UI as it is; ``make goldens`` takes them anew."""

from __future__ import annotations

import html
import os
import re
from pathlib import Path

import pytest

from scripts.screenshots import SHOTS, Shot, take
from scripts.walkthrough import film, record

PICTURES = Path(__file__).parents[2] / "docs" / "screenshots"
WALK = "walkthrough"


def words(svg: str) -> list[str]:
    """What is read in a picture, line by line."""
    return [html.unescape(said) for said in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]


async def taken(name: str, shot: Shot | None, folder: Path) -> str:
    return film(await record()) if shot is None else (await take(shot, folder)).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*(shot.name for shot in SHOTS), WALK])
async def test_a_picture_is_of_the_ui_as_it_is(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    made = await taken(name, next((shot for shot in SHOTS if shot.name == name), None), tmp_path)
    picture = PICTURES / f"{name}.svg"
    if os.environ.get("CTXCTL_UPDATE_GOLDENS"):
        picture.write_text(made, encoding="utf-8")
    kept = picture.read_text(encoding="utf-8")
    assert words(made) == words(kept), "`make goldens` takes the pictures anew; look at them"
    assert made == kept, "the words are the same, colours or places are not: `make goldens`, and look"


def test_there_is_no_picture_that_nothing_takes() -> None:
    assert {path.stem for path in PICTURES.glob("*.svg")} == {*(shot.name for shot in SHOTS), WALK}
