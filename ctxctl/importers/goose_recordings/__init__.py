"""Provider recordings of goose's own tests: what it gave its provider, by the input's SHA-256."""

from __future__ import annotations

import re
from typing import Final

from ctxctl.ingest.about import About, absent, derived, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import text_of_head

_HEAD: Final = re.compile(
    rb'\A\{\s*"[0-9a-f]{64}"\s*:\s*\{\s*"input"\s*:\s*\{\s*"(?:system|messages|tools|model\w*)"\s*:'
)
_SURE: Final = 96


ABOUT: Final = About(
    reads="Recordings of goose's test provider: system prompt, messages and tools in goose's own shape.",
    places=("crates/goose-cli/src/scenario_tests/recordings/*.json of goose",),
    turns="One step is one recorded call; a turn is a prompt of the user.",
    claims={
        "item_ids": native("of tools and tool calls; messages are aligned by content"),
        "system_prompt": native(),
        "tool_definitions": native("as goose holds them; the provider's form is not recorded"),
        "messages": native(),
        "reasoning": native("where goose kept it"),
        "order": derived("tools, system prompt, messages: the body that was sent is not recorded"),
        "requests": native(),
        "turns": derived("from the prompts"),
        "threads": derived("by the first prompt"),
        "model": native(),
        "times": native("of the answers"),
        "input_tokens": native(),
        "cached_tokens": absent(),
        "output_tokens": native(),
    },
    limits=("calls are ordered by their answers' times: the file has no order",),
    origin="block/goose, crates/goose/src/providers/testprovider.rs",
)


def detect(head: bytes) -> int:
    """How sure the head looks like a recording's."""
    return _SURE if _HEAD.match(text_of_head(head)) else 0


FORMAT: Final = Format(
    name="goose-recordings",
    title="goose provider recording",
    detect=detect,
    reader="ctxctl.importers.goose_recordings.reader:read",
    about=ABOUT,
)
