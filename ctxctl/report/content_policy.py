"""What an export does with contents: inlined, cited by digest, or withheld because they were redacted."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import orjson

from ctxctl.model import vocab
from ctxctl.model.event import Event
from ctxctl.model.records import Item
from ctxctl.session.redaction import Redactor
from ctxctl.trace.contents import Contents, canonical

Json = dict[str, Any]
_SHA256: Final = re.compile(r"sha256:([0-9a-fA-F]{64})\Z")
_EVIDENCE: Final = "evidence_export"
_ITEMS: Final = frozenset({vocab.ITEM_ADDED, vocab.ITEM_UPDATED, vocab.SUMMARY_CREATED})


class ContentPolicy:
    """Decides about every content of an export.

    Args:
        contents: The trace's.
        redactor: What was redacted anywhere in the trace.
        cite: Contents are named by their digests, for an export as evidence.
    """

    def __init__(self, contents: Contents, redactor: Redactor, *, cite: bool) -> None:
        self._contents = contents
        self._redactor = redactor
        self._cite = cite

    def passes_on(self, event: Event) -> bool:
        """Whether an item's content is exported as it stands in the trace, and not looked at."""
        record = event.record
        if not isinstance(record, Item) or self._cite or self._redactor:
            return False
        return list(record.visibility) != [_EVIDENCE]

    def applied(self, event: Event, line: Json, *, whole: bool = False) -> Json:
        """The event with its contents settled; `whole`: refs to contents of the trace are written out."""
        data = line.get("data")
        if isinstance(data, dict):
            if event.event_type in _ITEMS:
                data = self._settled(data, whole, self._cite or data.get("visibility") == [_EVIDENCE])
            elif event.event_type == vocab.ASSEMBLY_CREATED and isinstance(data.get("ordered_blocks"), list):
                cite = self._cite or data.get("target") == _EVIDENCE
                blocks = [
                    self._settled(block, whole, cite) if isinstance(block, dict) else block
                    for block in data["ordered_blocks"]
                ]
                data = {**data, "ordered_blocks": blocks}
            line = {**line, "data": data}
        masked: Json = self._redactor.value(line)
        return masked

    def _settled(self, holder: Json, whole: bool, cite: bool) -> Json:
        """An item, a summary or a block with its content as the export may hold it."""
        name = next((key for key in ("content", "text") if holder.get(key) is not None), None)
        content = holder[name] if name is not None else None
        digest = None
        if content is None and (match := _digest_in(holder.get("content_ref"))):
            digest = match
            found = self._contents.by_digest(digest)
            if found is not None:
                text = self._contents.text(found)
                content = json.loads(text) if found.form == "json" else text
        if content is None or isinstance(content, orjson.Fragment):
            return holder
        text = content if isinstance(content, str) else canonical(content)
        if self._redactor.holds(text):
            return _withheld(holder)
        if cite:
            return _cited(holder, text, digest)
        if name is None and whole:
            made = {key: value for key, value in holder.items() if key != "content_ref"}
            made["content"] = content
            if made.get("content_mode") == "ref":
                made["content_mode"] = "inline"
            return made
        return holder


def _digest_in(ref: Any) -> str | None:
    match = _SHA256.match(ref) if isinstance(ref, str) else None
    return match[1].lower() if match else None


def _bare(holder: Json) -> Json:
    return {key: value for key, value in holder.items() if key not in ("content", "text", "content_ref")}


def _withheld(holder: Json) -> Json:
    made = _bare(holder)
    if "content_mode" in made:
        made["content_mode"] = "opaque"
    if made.get("redaction_state") in (None, "none"):
        made["redaction_state"] = "removed"
    metadata = made.get("metadata")
    made["metadata"] = {**(metadata if isinstance(metadata, dict) else {}), "withheld": "redacted"}
    return made


def _cited(holder: Json, text: str, digest: str | None) -> Json:
    """A content named by its digest and size; where it comes from stays."""
    import hashlib

    data = text.encode("utf-8", "replace")
    made = _bare(holder)
    made["content_ref"] = f"sha256:{digest or hashlib.sha256(data).hexdigest()}"
    if "content_mode" in made:
        made["content_mode"] = "ref"
        made.setdefault("byte_size", len(data))
    return made
