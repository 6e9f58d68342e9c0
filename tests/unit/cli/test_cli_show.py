"""``ctxctl show``: text and JSON tell the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxctl.cli.main import run

FRAME = str(Path(__file__).parents[3] / "traces" / "coding-agent.jsonl") + "@2.1"
Out = pytest.CaptureFixture[str]


def shown(capfd: Out, *options: str) -> str:
    assert run(["show", FRAME, "--text", *options]) == 0
    return capfd.readouterr().out


def test_the_assembly_is_its_text_alone(capfd: Out) -> None:
    whole, alone = shown(capfd), shown(capfd, "--stage", "assembly")
    assert whole.startswith(alone)
    assert len(whole) > len(alone), "this frame has an updated item, or the test shows nothing"
    frame, stage = (
        json.loads(shown(capfd, "--json", *options).splitlines()[-1])
        for options in ((), ("--stage", "assembly"))
    )
    assert frame["patches"]
    assert (stage["text"], stage["patches"]) == (frame["text"], None)
