"""Texts that come back after their redaction, and records that claim a status for themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import orjson

from ctxctl.lint.rule import Hit, Rule
from ctxctl.model.annotations import UNREDACTED
from ctxctl.model.records import Item, Redaction
from ctxctl.trace.governance import declarations

if TYPE_CHECKING:
    from ctxctl.engine.replay.item_table import ItemVersion
    from ctxctl.engine.replay.step_tracker import ThreadKey
    from ctxctl.lint.context import SeenRecord

_LONGEST: Final = 1 << 20


class DeclaresStatus(Rule):
    """A context record says that a turn is over, a tool succeeded or an action is approved.

    Agent Context, case ACTX-AR-GOV-001: context tells what was visible, and the runtime what happened.  A
    consumer that believes such a record takes a text for a permission.
    """

    code = "CTX022"
    name = "declares-status"
    severity = "error"
    needs = "nothing: every record is looked at once"
    fix = "Leave the outcome to the runtime's own events, and refer to them (runtime_refs)."

    def seen(self, seen: SeenRecord) -> Iterator[Hit]:
        """A record's own fields; texts are not looked into."""
        event = seen.event
        if event.length > _LONGEST:
            return
        try:
            value: Any = orjson.loads(seen.around.inspector.trace.line(event.offset, event.length))
        except ValueError:
            return  # repaired and reported by the reader
        if not isinstance(value, dict):
            return
        found = declarations(value)
        if found:
            found = [seen.around.inspector.redactor.words(one) for one in found]
            message = f"a {event.event_type} declares a runtime's outcome: {'; '.join(found)}"
            yield Hit(f"{event.event_type} {found[0]}", message, seen.place)


_MOST: Final = 1 << 14


class RedactedReturns(Rule):
    """Text that was redacted stands again in a later item, block or summary.

    One of Agent Context's failure cases.  Where the trace holds what was redacted, exact occurrences of it
    are found: of the whole, of a key, number or address inside it, and of five words of it in a row.  Where
    it holds only the digest of the text, the whole text is found by its digest.  A paraphrase is not found.
    """

    code = "CTX020"
    name = "redacted-returns"
    severity = "error"
    needs = "redactions, and texts or digests of what was redacted"
    fix = "Redact at the source, before summaries are made of it, and rotate what has leaked."

    def __init__(self) -> None:
        self._has_redactions = False
        """Whether the trace holds something that was redacted."""
        self._digests: dict[str, str] = {}
        """Digests of texts that were redacted, with their items."""
        self._upto: dict[tuple[ThreadKey, str], ItemVersion] = {}
        """By redacted item, the version learned last of which the digests are known."""

    @property
    def repeats(self) -> bool:
        """Something was redacted: what comes again in the very same words matters."""
        return bool(self._digests) or self._has_redactions

    def seen(self, seen: SeenRecord) -> Iterator[Hit]:
        """A record that may hold something redacted before."""
        redactor = seen.around.inspector.redactor
        self._has_redactions = bool(redactor)
        record = seen.record
        name = seen.thread.book.item_of(record.item_id) if isinstance(record, Item | Redaction) else ""
        found = False
        for problem in redactor.returns(seen.event):
            found = True
            yield Hit(problem.message, problem.message, seen.place, name or None)
        if not found and isinstance(record, Item) and record.redaction is None:
            secret = self._digests.get(record.content_digest or "")
            if secret is not None:
                message = f"item {name} has the digest of {secret}, which was redacted before"
                yield Hit(message, message, seen.place, name)
        self._learn(seen, name)

    def _learn(self, seen: SeenRecord, name: str) -> None:
        """Digests of what the redacted item said before."""
        record = seen.record
        redaction = record.redaction if isinstance(record, Item) else record
        if not isinstance(redaction, Redaction) or redaction.redaction_state in UNREDACTED:
            return
        book, key = seen.thread.book, (seen.thread.key, name)
        upto = self._upto.get(key)
        if (newest := book.newest.get(name)) is not None:
            self._upto[key] = newest
        for version in book.history(name):
            if version is upto:
                return
            stated = version.record
            if stated.redaction is None and stated.content_digest and len(self._digests) < _MOST:
                self._digests[stated.content_digest] = name
