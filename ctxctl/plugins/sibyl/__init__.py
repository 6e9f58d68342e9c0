"""Sibyl context packs: answers of its MCP tool `context`, as results of the tool and as files (1.2 to 1.4).

One pack is one turn; packs of one goal are consecutive turns of one thread.  What the pack holds was
selected; what its markdown renders of that is a second selection, which the pack does not tell of.  Whether
anything of it reached a model shows only where a capture of the request is given beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.folder import Folder
from ctxctl.plugins.sibyl import records
from ctxctl.plugins.sibyl.records import Answer, Audit, Call, SentRequest

_LINES: Final = 20
_LINE: Final = 1 << 20
_BASELINE: Final = frozenset({"auth_login", "rest", "mcp_list_tools", "mcp_tool", "mcp_resource"})
_KEYS: Final = re.compile(rb'(?<!\\)"(goal|sections|facet|usage_hint|total_items|layer|intent)"\s*:')
_ANY_KEYS: Final = re.compile(rb'"(goal|sections|facet|usage_hint|total_items|layer|intent)\\*"\s*:')
"""Also in a text that holds the JSON of a pack."""
_GOLDEN: Final = re.compile(rb'"schema_version"\s*:\s*"sibyl-golden|"fixture_id"\s*:\s*"[^"]*dogfood')
_FOREIGN: Final = re.compile(rb'"(?:parentUuid|tool_use_id|resourceSpans|toolUseResult)"\s*:')
_MAX_FILES: Final = 2000

ABOUT: Final = About(
    reads=(
        "Context packs of the MCP tool `context` (Sibyl 1.2 to 1.4): results of tools/call with or without"
        " their JSON-RPC messages, request/response pairs, pack files, their markdown alone, the memory"
        " audit; lines or directories of these."
    ),
    places=(
        "the result of `context` in an MCP client's or proxy's log",
        "POST /api/context/pack (its answer, saved)",
        "a directory of packs, with the request body or transcript in which they were used",
    ),
    turns=(
        "One pack is one turn of one step. Packs of one goal are one thread, in the order of the file, or of"
        " the names in a directory; calls that failed are a thread of their own."
    ),
    claims={
        "candidates": absent("what retrieval dropped is never returned"),
        "sources": native("entity ids, urls"),
        "item_ids": native(),
        "selected": native("facet, score and reason of each item"),
        "omitted": absent("what the markdown leaves out of the pack stands under truncation"),
        "limit": derived(
            "limit of the call, cut to the layer's; the markdown's budget, in characters; the tool's defaults"
            " where a call names none"
        ),
        "truncation": derived("items that the markdown does not hold, or shortens; native with a receipt"),
        "reminders": native("the pack's items"),
        "order": derived("the markdown taken apart; without one, none"),
        "wrapper": derived("headings and notices of the markdown"),
        "requests": derived("only where a request or transcript beside the pack holds its text"),
        "turns": derived("one for each pack"),
        "threads": derived("one for each goal"),
        "model": native("only of a request beside the pack"),
        "times": native("where the log around the pack has them"),
    },
    limits=(
        "Of a request beside a pack only what it holds of the pack is shown; open it by itself for the rest.",
        "Where a request holds a pack as JSON, items are counted by their contents, without the JSON around.",
        "An audit row whose pack is not there is a turn of its own, with ids and without texts.",
        "Baselines, golden sets and other results of Sibyl's tools are no packs: nothing to replay.",
        "The layers' limits (8, 24, 50) and the tool's defaults (recall, 24 items, 4,000 of its tokens for"
        " the markdown) are those of versions 1.2.2 to 1.4.10; before 1.2 a markdown had none.",
        "What the tool calls a token is four characters: its budget is told in characters, and is no window.",
    ),
    held_against=HeldAgainst("Sibyl", "1.4.10", "1.2.2"),
    origin="hyperb1iss/sibyl 1.2.2; sibyl-core 1.2.2 and 1.4.10",
)


def detect(head: bytes) -> int:
    """How sure the first bytes look like packs, calls of the tool, or Sibyl's own baselines."""
    return sure(head)


def detect_folder(folder: Folder) -> int:
    """Sure of a directory of packs, in which nothing but notes and requests stands beside them."""
    if not 0 < len(folder.files) <= _MAX_FILES:
        return 0
    packs = others = 0
    for name in folder.files:
        if name.count("/") > 1:
            return 0
        head = folder.head(name, 1 << 16)
        if sure(head) >= 50:
            packs += 1
        elif _sends(head):
            others += 1
        elif head.lstrip()[:1] in (b"{", b"["):
            return 0
        if others > packs + 3:
            return 0
    return 98 if packs else 0


def sure(head: bytes) -> int:
    """How sure a file is a Sibyl capture, by its first bytes."""
    body = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if body.startswith(records.TITLE.encode()):
        return 95
    if body[:1] not in (b"{", b"["):
        return 0
    if _GOLDEN.search(body[:2048]):
        return 75
    values = list(_values(body))
    if values and body.startswith(b"{") and b"\n" in body[:3]:
        # One document in lines: what parses is a part of it.
        values = []
    if not values:
        return _by_keys(_KEYS, body)
    found = max(_by_records(values), _baselines(values))
    # The first bytes may hold a call whole, and of the pack that answers it no more than its beginning.
    return 97 if found == 80 and _by_keys(_ANY_KEYS, body) else found


def _by_keys(pattern: re.Pattern[bytes], body: bytes) -> int:
    """A document of which the first bytes are not yet one value, or that is damaged."""
    keys = {match[1] for match in pattern.finditer(body)}
    whole = {b"goal", b"sections", b"facet"} <= keys and len(keys) >= 5
    return 90 if whole and not _FOREIGN.search(body) else 0


def _by_records(values: list[Any]) -> int:
    """Packs are certain; calls of a tool `context` and audit rows nearly; other messages speak against it."""
    packs = calls = 0
    for value in values:
        for record in records.records(value):
            packs += isinstance(record, Answer) and record.pack is not None
            calls += isinstance(record, Audit) or (
                isinstance(record, Call) and isinstance(record.arguments.get("goal"), str)
            )
            if isinstance(record, Answer) and record.call is not None:
                calls += isinstance(record.call.arguments.get("goal"), str)
    others = sum(isinstance(v, dict) and ("type" in v or _other_call(v)) for v in values)
    if others > packs + calls:
        return 40 if packs else 0
    return 97 if packs else 80 if calls else 0


def _other_call(value: dict[str, Any]) -> bool:
    """A message of JSON-RPC that is neither a call of the tool nor an answer."""
    method = value.get("method")
    if not isinstance(method, str):
        return False
    params = value.get("params")
    return method != "tools/call" or not (isinstance(params, dict) and records.is_tool(params.get("name")))


def _baselines(values: list[Any]) -> int:
    """Sibyl's own smoke tests: a request and what is expected of it."""
    rows = [v for v in values if isinstance(v, dict) and isinstance(v.get("kind"), str)]
    ours = all("expect" in row and "id" in row for row in rows) and len(rows) == len(values)
    return 70 if ours and any(row["kind"] in _BASELINE for row in rows) else 0


def _sends(head: bytes) -> bool:
    """Whether a file holds request bodies or a transcript."""
    body = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    values = list(_values(body))
    if not values:
        return re.search(rb'"(?:messages|contents|input)"\s*:\s*\[', body) is not None
    return any(isinstance(record, SentRequest) for value in values for record in records.records(value))


def _values(body: bytes) -> Iterator[Any]:
    """The JSON values of the first lines that hold one each."""
    lines = body.split(b"\n", _LINES)
    for line in lines[:_LINES]:
        if line.lstrip()[:1] not in (b"{", b"[") or len(line) > _LINE:
            continue
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if value:
            yield value


FORMAT: Final = Format(
    name="sibyl",
    title="Sibyl context packs",
    detect=detect,
    reader="ctxctl.plugins.sibyl.reader:Reader",
    about=ABOUT,
    detect_folder=detect_folder,
)
