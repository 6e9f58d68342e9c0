"""The session's own transcript beside its bodies: which prompt set each request off."""

from __future__ import annotations

from pathlib import Path

from ctxctl.errors import CtxctlError
from ctxctl.formats.build import Json
from ctxctl.formats.claude_bodies import INDEX
from ctxctl.formats.claude_code import detect as is_transcript
from ctxctl.formats.kit.folder import Folder
from ctxctl.formats.kit.parts import string
from ctxctl.formats.lines import values
from ctxctl.trace.source import open_source

_HEAD = 1 << 16


def turns(folder: Folder) -> dict[str, str]:
    """By request id and by message id: the prompt id of the transcript's turn.

    Damage of a transcript is not reported here: it is read for its ids only.
    """
    found: dict[str, str] = {}
    for name in folder.files:
        if not name.endswith(".jsonl") or name.rpartition("/")[2] == INDEX:
            continue
        if is_transcript(folder.head(name, _HEAD)):
            found |= _of_file(folder.path / name)
    for path in folder.beside:
        found |= _of_file(path)
    return found


def _of_file(path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    prompts: dict[str, str] = {}
    """By the uuid of a line: the prompt that it follows."""
    try:
        source = open_source(path)
    except CtxctlError:
        return found
    with source:
        for _, value in values(source, lambda _: None):
            if isinstance(value, dict):
                _take(value, prompts, found)
    return found


def _take(record: Json, prompts: dict[str, str], found: dict[str, str]) -> None:
    own, parent = string(record.get("uuid")), string(record.get("parentUuid"))
    prompt = string(record.get("promptId")) or prompts.get(parent or "")
    if own is None or prompt is None:
        return
    prompts[own] = prompt
    message = record.get("message")
    name = string(message.get("id")) if isinstance(message, dict) else None
    for key in (string(record.get("requestId")), name):
        if key is not None:
            found.setdefault(key, prompt)
