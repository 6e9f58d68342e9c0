"""Context records that declare what only a runtime may."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import orjson

from ctxctl.lint.rule import Hit, Rule
from ctxctl.trace.governance import declarations

if TYPE_CHECKING:
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
