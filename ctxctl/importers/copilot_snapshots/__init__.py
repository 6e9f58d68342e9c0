"""Snapshots of the Copilot SDK's tests: conversations with the model, normalised."""

from __future__ import annotations

import re
from typing import Final

from ctxctl.ingest.about import About, absent, derived, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import text_of_head

_YAML: Final = re.compile(
    rb"^conversations[ ]*:[ ]*(?:\r?\n(?:[ ]*+(?:#[^\n]*+|\r?+)\n)*+[ ]*+-[ ]*messages[ ]*:|\[\])", re.M
)
_SURE: Final = 94


ABOUT: Final = About(
    reads="YAML snapshots of the conversations that the SDK's replay proxy keeps (extra `yaml`).",
    places=("test/snapshots/**/*.yaml of github/copilot-sdk",),
    turns="Each stored answer is a step, given to the messages before it; a user message begins a turn.",
    claims={
        "item_ids": derived("call ids are numbered anew in each conversation"),
        "system_prompt": absent("replaced by ${system}", ("role",)),
        "tool_definitions": absent(),
        "messages": native("with placeholders for paths and the like"),
        "reminders": absent("taken out when the snapshot was made"),
        "compaction": absent("its prompt is a placeholder, its effect is a conversation of its own"),
        "order": derived(),
        "requests": derived("from the answers"),
        "turns": derived("from the user messages"),
        "threads": derived("by the first prompt; a sub-agent's is its task"),
        "model": derived("where the snapshot names one only"),
    },
    limits=(
        "no usage, no times, no images",
        "answers of other possible histories stand as branches",
        "answers that a later conversation repeats behind the same prompts are taken for its history",
    ),
    origin="github/copilot-sdk, test/harness",
)


def detect(head: bytes) -> int:
    """How sure the head looks like a snapshot's."""
    start = text_of_head(head)
    return _SURE if start[:1] not in (b"{", b"[") and _YAML.search(start) else 0


FORMAT: Final = Format(
    name="copilot-snapshots",
    title="Copilot SDK snapshot",
    detect=detect,
    reader="ctxctl.importers.copilot_snapshots.reader:read",
    about=ABOUT,
)
