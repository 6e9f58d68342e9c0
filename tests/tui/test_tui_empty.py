"""What the screens say where a capture has nothing to show."""

from __future__ import annotations

import json
from pathlib import Path

from fake import FakeInspector, Request, Thing
from helpers import LARGE, made, running

from ctxctl.session import Inspector
from ctxctl.tui.app import CtxApp

EMBEDDING = {
    "name": "embed",
    "attributes": {"gen_ai.operation.name": "embeddings", "gen_ai.provider.name": "x"},
}


async def test_a_file_without_a_request_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    path.write_text(json.dumps([EMBEDDING]))
    async with running(CtxApp(lambda: Inspector.open(path, format="otel"), path.name), LARGE) as session:
        assert "no request to a model was found in this file" in session.text
        assert ":about tells" in session.text
        assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in "".join(
            note.text for note in session.app.turns.state.table.notes
        )
        await session.press("tab", "enter")
        assert "such captures come from" in session.text, "all of it can be read"


async def test_a_trace_with_turns_says_nothing_of_that() -> None:
    requests = [Request(1, (Thing("a", "words " * 9),))]
    async with running(made(FakeInspector(requests)), LARGE) as session:
        assert "was found in this file" not in session.text
        assert "holds no text" not in session.text


async def test_items_without_any_text_are_told_and_cost_nothing_that_is_known() -> None:
    requests = [Request(n + 1, (Thing("a", None), Thing("b", None))) for n in range(2)]
    async with running(made(FakeInspector(requests)), LARGE) as session:
        assert "the capture holds no text of 2 items" in session.text
        assert "$" not in session.text, "what nobody billed and nobody recorded has no price"
