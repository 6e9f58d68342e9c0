"""Real clients' logs beside the wire of the same run: learned of the one, the other has all of its items."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from ctxctl.cli.main import run
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.session.assembly import text_of

VERSIONS = {
    "claude-code": ("claude-code", "2.1.330"),
    "codex-websocket": ("codex", "0.169.0"),
    "opencode": ("opencode", "1.18.33"),
    "pi": ("pi", "2026.11"),
    "copilot-cli": ("copilot-cli", "1.0.102"),
}
FURTHER = {"pi": 0.04}
"""Shares of the tokens by which a log's definitions may be smaller: it lacks fields that the API adds."""
LOST = {"copilot-cli": "already exists as a file. Use `view` to check contents then edit it."}
"""How lines end that a log has in other words: of a call that failed it keeps a shorter message."""
_LINE = 12


class Sent(NamedTuple):
    """A request of the main thread; its texts with JSON in canonical form, as `show --canonical` has them.

    A wire's texts are those that were sent; of a call's arguments a log keeps the value, not its bytes.
    """

    tokens: int
    texts: list[str]


def requests(path: Path, learned: str = "none", kind: str | None = None) -> list[Sent]:
    with Inspector.open(path, learned=learned, format=kind) as inspector:
        steps = [result for result in inspector.replay() if isinstance(result, Step)]
        found = []
        for ordinal, step in enumerate(steps):
            if step.thread == "main":
                placements = [p for p in inspector.frame(ordinal).placements if p.content]
                held = [text_of(inspector.text, p, canonical=True) for p in placements]
                found.append(Sent(step.window.recorded, [text for text in held if text]))
        return found


def native(folder: Path) -> Path:
    (log,) = [path for path in (folder / "native").iterdir() if path.is_file()]
    return log


def missing(sent: Sent, shown: Sent) -> list[str]:
    """Lines of what was sent that no text of the log's frame has; of JSON, its strings count."""
    held = "\n".join([*shown.texts, *(one for text in shown.texts for one in strings(text))])
    lines = [line.strip() for text in sent.texts for one in strings(text) for line in one.splitlines()]
    return [line for line in lines if len(line) >= _LINE and line not in held]


def strings(value: Any) -> list[str]:
    """A text, or the strings in it where it is JSON."""
    if isinstance(value, str):
        try:
            inner = orjson.loads(value) if value[:1] in ("{", "[") else None
        except orjson.JSONDecodeError:
            inner = None
        return [value] if inner is None else strings(inner)
    if isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return [text for one in inside for text in ([one] if isinstance(one, str) else strings(one))]
    return []


@pytest.mark.parametrize("client", VERSIONS)
def test_every_item_of_the_wire_is_in_the_logs_frame(
    client: str, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXCTL_DATA_DIR", str(tmp_path))
    folder = corpus / "data" / "clients" / client
    name, version = VERSIONS[client]
    assert run(["learn", str(folder / "wire"), "--client", name, "--version", version]) == 0
    # pi's logs do not name a version: the set has to be named.
    learned = "auto" if client != "pi" else f"{name}@{version}"
    wire = requests(folder / "wire")
    log = requests(native(folder), learned, name)
    bare = requests(native(folder), "none", name)
    assert len(log) == len(bare) == 8
    if client == "codex-websocket":
        # The first message only warms the cache; it has the head.  The four behind it are the first run's.
        assert not missing(wire[0], log[0])
        for sent, shown in zip(wire[1:5], log, strict=False):
            assert abs(shown.tokens - sent.tokens) <= 0.02 * sent.tokens
        return
    assert len(wire) == 8
    for sent, shown in zip(wire, log, strict=True):
        assert abs(shown.tokens - sent.tokens) <= FURTHER.get(client, 0.02) * sent.tokens
    gone = [line for sent, shown in zip(wire, log, strict=True) for line in missing(sent, shown)]
    other = LOST.get(client)
    gone = [line for line in gone if other is None or not line.endswith(other)]
    assert not gone, gone[:5]
