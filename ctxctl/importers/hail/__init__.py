"""HAIL session files, as opensession makes them of other agents' sessions."""

from __future__ import annotations

from typing import Final

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, native
from ctxctl.ingest.build import Json
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import objects_of_head

ABOUT: Final = About(
    reads="Session files of HAIL 1.0: a header, events, totals.",
    places=("opensession: *.hail.jsonl",),
    turns="A turn is a user's message; a request is told by the answer that follows messages or results.",
    claims={
        "item_ids": native("event ids"),
        "messages": native(),
        "reasoning": native(),
        "reminders": native("system messages"),
        "order": derived("the events as they come"),
        "requests": derived("answers in a row are one request's"),
        "turns": native(),
        "threads": native(),
        "model": native("one for the session"),
        "times": native(),
        "input_tokens": native("where a count was added to the session's total"),
        "output_tokens": native("so too"),
        "system_prompt": absent(),
        "tool_definitions": absent(),
        "cached_tokens": absent(),
        "compaction": derived("for Codex: that there was one; the prompts are assumed to stay"),
        "limit": absent(),
    },
    limits=("What an agent's own session held beside these events is not there.",),
    held_against=HeldAgainst("HAIL", "1.0.0", "1.0.0", frozenset({"header", "event", "stats"})),
    origin="hwisu/opensession: hail-1.0.0",
)


def detect(head: bytes) -> int:
    """How sure the first lines look like HAIL's."""
    return max(map(_score, objects_of_head(head)), default=0)


def _score(value: Json) -> int:
    if value.get("type") == "header":
        return 95 if str(value.get("version")).startswith("hail-") else 0
    told = value.get("event_type")
    return 90 if value.get("type") == "event" and "event_id" in value and isinstance(told, dict) else 0


FORMAT: Final = Format(
    name="hail",
    title="HAIL session",
    detect=detect,
    reader="ctxctl.importers.hail.reader:Hail",
    about=ABOUT,
)
