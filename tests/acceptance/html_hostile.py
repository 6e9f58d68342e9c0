"""Traces of which every text is an attack on the page that shows it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

_STRUCTURE = frozenset(
    {
        "schema_version", "event_type", "time", "created_at", "content_mode", "mode", "target", "visibility",
        "encoding", "redaction_state", "status", "provenance",
    }
)  # fmt: skip
"""Keys whose values decide how an event is read; what they say is not shown as it stands."""


def strings(there: str) -> list[str]:
    """Return our own attacks; `there` is an address that nobody may ask, `/ran` of those that ran."""
    ran = f"window.executed=1,new Image().src=`{there}/ran`"
    return [
        f"<script>{ran}</script>",
        f'<img src="{there}/img" onerror="{ran}">',
        f'"><svg onload="{ran}"><animate onbegin="{ran}" attributeName=x dur=1s>',
        f"</script><script>{ran}</script>",
        f"<!--<script>{ran}//",
        f"--></title></style></textarea></noscript><script>{ran}</script>",
        f'<iframe src="{there}/frame"></iframe><object data="{there}/object"></object>',
        f'<link rel="stylesheet" href="{there}/css"><style>@import "{there}/style";</style>',
        f'<meta http-equiv="refresh" content="0;url={there}/meta"><base href="{there}/base/">',
        f'<form action="{there}/form"><input autofocus onfocus="{ran}"></form>',
        f"javascript:{ran}",
        f"' onmouseover='{ran}' style='background:url({there}/url)' x='",
        f'<a href="javascript:{ran}" ping="{there}/ping">x</a><video src="{there}/video" autoplay></video>',
        f"{{{{constructor.constructor('{ran}')()}}}}${{{ran}}}",
        "__proto__", "constructor", "hasOwnProperty", "100%zz&lt;b&gt;&#60;", "#turn-1.1/item/0", "../../etc",
        "\u202eevil\u2066 \u200b\ufeff\x1b]8;;x\x07\x00", "\u2028\u2029", "\ud800 lone", "A" * 5000,
        "line\n<b>two</b>\r\n\ttab", f'<template><img src="{there}/template" onerror="{ran}"></template>',
    ]  # fmt: skip


def spoilt(trace: Path, attacks: Sequence[str], into: Path) -> Path:
    """Write a trace again with an attack behind every text, and some keys; equal texts stay equal."""
    lines = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]
    into.write_text("".join(json.dumps(_with(line, attacks)) + "\n" for line in lines), encoding="utf-8")
    return into


def _with(value: Any, attacks: Sequence[str], key: str = "") -> Any:
    if isinstance(value, str):
        return value if key in _STRUCTURE else value + attacks[crc32(value.encode()) % len(attacks)]
    if isinstance(value, list):
        return [_with(one, attacks, key) for one in value]
    if isinstance(value, dict):
        made = {name: _with(one, attacks, name) for name, one in value.items()}
        if key in ("metadata", "coverage", "data"):
            made |= {attack: attack for attack in attacks[:3]}
        return made
    return value


def listed(attacks: Sequence[str], into: Path) -> Path:
    """Write a trace of which each item is one attack: its id, title, kind, source and text."""
    lines: list[dict[str, Any]] = []
    for first in range(0, len(attacks), 100):
        turn = f"t{first}"
        refs = []
        for n, attack in enumerate(attacks[first : first + 100]):
            name = f"{first + n}{attack}"
            refs.append(name)
            data = {"item_id": name, "context_kind": attack or "empty", "title": attack, "content": attack,
                    "source_refs": [{"source_id": attack, "uri": attack}]}  # fmt: skip
            lines.append({"event_type": "context.item.added", "turn_id": turn, "data": data})
        blocks = [{"block_id": f"b{n}", "item_refs": [name]} for n, name in enumerate(refs)]
        made = {"assembly_id": turn, "target": "model", "ordered_blocks": blocks}
        lines.append({"event_type": "context.assembly.created", "turn_id": turn, "data": made})
    head = {"schema_version": "0.1.1", "source": "test", "session_id": "s", "time": "2026-01-01T00:00:00Z"}
    text = "".join(json.dumps({**head, "event_id": f"e{n}", **line}) + "\n" for n, line in enumerate(lines))
    into.write_text(text, encoding="utf-8")
    return into
