"""The reference, part 2: identity, versions and refs of items."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from tests.oracle.build import Event
from tests.oracle.rules import Rules

ITEM_EVENTS = ("context.item.added", "context.item.updated", "context.summary.created")


@dataclass(frozen=True)
class Said:
    """One version of an item, as one line states it."""

    line: int
    item: str
    written: str
    version: str | None
    kind: str
    text: str | None
    digest: str | None
    estimate: int | None
    visibility: tuple[str, ...]


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digests(data: dict[str, Any], content_digest: str | None) -> list[str]:
    """Every digest of an item, without the name of its algorithm."""
    found = [content_digest] if content_digest else []
    found += [ref["digest"].split(":")[-1] for ref in data.get("source_refs", []) if "digest" in ref]
    return found


def said(line: int, event: Event, inline: dict[str, str], rules: Rules) -> Said:
    """What an item event (or a summary) says."""
    data = event["data"]
    summary = event["event_type"] == "context.summary.created"
    written = data["summary_id"] if summary else data["item_id"]
    ref = data.get("content_ref")
    text = text_of(data["content"]) if "content" in data else inline.get(ref) if ref else None
    digest = sha(text) if text is not None else ref.removeprefix("sha256:") if ref else None
    known = digests(data, digest)
    declared = data.get("metadata", {}).get("version")
    if rules.declared_version_ignored:
        declared = None
    version = declared or (digest[:16] if digest else known[0] if known else None)
    name, _, suffix = written.rpartition("@")
    strip = name and suffix and (suffix == version or any(d.startswith(suffix) for d in known))
    if (strip or (name and rules.suffix_always_stripped)) and not rules.suffix_never_stripped:
        item = name
    else:
        item = written
    return Said(
        line,
        item,
        written,
        version,
        "thread_summary" if summary else data["context_kind"],
        text,
        digest,
        data.get("token_estimate"),
        tuple(data.get("visibility", ["model"])),
    )


def resolve(ref: str, line: int, book: list[Said], rules: Rules) -> Said | None:
    """The version that a ref at this line means, or None if it is unknown."""
    before = [s for s in book if s.line < line or rules.latest_at_the_seal]
    latest = [s for s in before if s.item == ref]
    if latest:
        return latest[-1]
    name, _, version = ref.rpartition("@")
    exact = [s for s in before if s.written == ref or (s.item == name and s.version == version)]
    if rules.version_ref_ignored:
        exact = [s for s in before if s.item == name]
    return exact[-1] if exact else None


def name_of(ref: str, line: int, book: list[Said], rules: Rules) -> str:
    found = resolve(ref, line, book, rules)
    return found.item if found else ref


def ref_of(entry: Any) -> str:
    return entry if isinstance(entry, str) else entry["item_ref"]
