"""Claude Code's own dump of request and response bodies (`OTEL_LOG_RAW_API_BODIES=file:DIR`)."""

from __future__ import annotations

import re
from typing import Final

from ctxctl.importers.shared_claims import BODY_CLAIMS, BODY_LIMITS, BODY_TURNS
from ctxctl.ingest.about import About, HeldAgainst, derived, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.skim import objects_of_head

INDEX: Final = "index.jsonl"
REQUEST: Final = ".request.json"
RESPONSE: Final = ".response.json"
_ASKED: Final = re.compile(r"(?:\A|/)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.request\.json\Z")
_ANSWERED: Final = re.compile(r"(?:\A|/)req_[0-9A-Za-z]+\.response\.json\Z")
_CUT: Final = re.compile(rb'"request_file"\s*:\s*"[^"\n]*\.request\.json"')
_SURE: Final = 97
_LIKELY: Final = 92
_HEAD: Final = 1 << 12
_LOOKED: Final = 1 << 16
_MARK: Final = b"claude_code.api_request_body"
_EXPORT: Final = re.compile(rb'"resource_?[lL]ogs"|\A\n')


ABOUT: Final = About(
    reads=(
        "The directory that Claude Code writes with OTEL_LOG_RAW_API_BODIES=file:DIR: "
        "`<uuid>.request.json`, `<request id>.response.json` and, in later versions (2.1.330, not "
        "2.1.197), `index.jsonl`. Each session is one, sub-agents and side requests are threads of it. "
        "With the session's transcript in the same directory, turns are its prompts. Log records with "
        "such bodies (OTLP as JSON or protobuf) open too; their turns are the prompts that they name."
    ),
    places=(
        "the directory that OTEL_LOG_RAW_API_BODIES=file:DIR names",
        "DIR/index.jsonl",
        "log records `claude_code.api_request_body` in a collector's file (OTEL_LOGS_EXPORTER=otlp)",
    ),
    turns=f"{BODY_TURNS} With the transcript beside it, a turn is what one prompt id of it set off.",
    claims={
        **BODY_CLAIMS,
        "turns": derived("from the prompts in the bodies; native with the transcript beside them"),
        "times": native("of the answer, in the index"),
    },
    limits=(
        *BODY_LIMITS,
        "without an index, order and pairs are told by what later requests repeat; an answer that none"
        " repeats is paired only where one request of its model is left",
        "bodies that a log record holds only in part (the client cuts them at 60 KB) are left out",
    ),
    held_against=HeldAgainst("Claude Code", "2.1.330", "2.1.197"),
    origin="written by claude 2.1.197 and 2.1.330",
)


def detect(head: bytes) -> int:
    """How sure the lines look like the index of a dump, or an export of log records with bodies in it."""
    if is_export(head):
        return _SURE
    for value in objects_of_head(head):
        if isinstance(value.get("request_file"), str) and "response_file" in value:
            return _SURE
    return _LIKELY if _CUT.search(head) else 0


def is_export(head: bytes) -> bool:
    """Whether a file is an export of log records that hold bodies."""
    return _MARK in head and _EXPORT.search(head) is not None


def detect_folder(folder: Folder) -> int:
    """How sure the directory is such a dump: by its index, else by the names of its files."""
    asked = [name for name in folder.files if _ASKED.search(name)]
    answered = [name for name in folder.files if _ANSWERED.search(name)]
    # A dump somewhere below says nothing of a directory that holds far more.
    if not asked or 2 * len(asked + answered) < len(folder.files):
        return 0
    for name in folder.files:
        if name.rpartition("/")[2] == INDEX and detect(folder.head(name, _HEAD)):
            return _SURE
    return _SURE if answered else _LIKELY


FORMAT: Final = Format(
    name="claude-bodies",
    title="Claude Code body dump",
    detect=detect,
    reader="ctxctl.importers.claude_bodies.reader:read",
    about=ABOUT,
    detect_folder=detect_folder,
    folder_reader="ctxctl.importers.claude_bodies.reader:read_folder",
)
