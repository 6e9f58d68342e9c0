"""An independent walk of a trace's events, to hold `ctxctl why` against: plain loops over parsed lines.

Frames and causes come from the second engine of this package (`reference`); everything else is looked up in
the lines themselves.  Nothing is shared with `ctxctl`.
"""

from __future__ import annotations

from typing import Any

from tests.oracle import reference
from tests.oracle.build import Event
from tests.oracle.counting import count
from tests.oracle.ref_items import ref_of, said
from tests.oracle.rules import Rules

Json = dict[str, Any]
STAYS = {"added", "updated", "skipped"}
TAKEN = {"compacted": "compacted", "omitted": "omitted", "truncated": "dropped", "redacted": "redacted"}
OF_TYPE = {
    "available": ("context.item.added", "context.item.updated", "context.summary.created"),
    "later": ("context.item.added", "context.item.updated", "context.summary.created"),
    "hidden": ("context.item.added", "context.item.updated"),
    "listed": ("context.surface.created", "context.surface.updated"),
    "kept": ("context.selection.completed",),
    "omitted": ("context.selection.completed",),
    "ranked": ("context.selection.completed",),
    "unchanged": ("context.selection.completed",),
    "dropped": ("context.budget.applied",),
    "cut": ("context.budget.applied",),
    "limits": ("context.budget.applied",),
    "assembled": ("context.assembly.created",),
    "entered": ("context.assembly.created",),
    "carried": ("context.assembly.created",),
    "injected": ("context.injection.applied",),
    "removed": ("context.item.removed",),
    "compacted": ("context.compaction.completed",),
    "redacted": ("context.redaction.applied",),
}
"""Which events a verdict that is not derived may rest on."""


class Walk:
    """One trace, walked."""

    def __init__(self, events: list[Event]) -> None:
        self.events = [_plain(event) for event in events]
        self.steps = reference.replay(self.events, count).steps
        self._inline = reference.inline_contents(list(enumerate(events, 1)))

    def thread_steps(self, why: Json) -> list[Json]:
        """The steps of an answer's thread up to its own."""
        mine = [s for s in self.steps if (s["session"], s["thread"]) == (why["session"], why["thread"])]
        return [s for s in mine if (s["turn"], s["step"]) <= (why["turn"], why["step"])]

    def item_of(self, line: int) -> str | None:
        """The item that an item event or a summary of a line is about."""
        event = self.events[line - 1]
        if not event["event_type"].startswith(("context.item.", "context.summary.")):
            return None
        return said(line, event, self._inline, Rules()).item

    def complaints(self, why: Json) -> list[str]:
        """All in which an answer contradicts the events; none: it agrees."""
        return [*self._state(why), *self._links(why), *self._omission(why)]

    def _state(self, why: Json) -> list[str]:
        item, steps = why["item"], self.thread_steps(why)
        changes = [(s, c) for s in steps for c in s["changes"] if c["item"] == item]
        now = next((c for s, c in changes if s is steps[-1] and c["status"] in STAYS), None)
        wrong = []
        if now is not None:
            expected = {"current"}
            if why["in_window"] != now["in_window"]:
                wrong.append(f"in_window {why['in_window']}, should be {now['in_window']}")
        elif any(c["status"] in {*STAYS, "removed"} for _, c in changes):
            left = [c for _, c in changes if c["status"] == "removed"][-1]
            expected = {"out"} if not left["in_window"] else {"out", "stale"}
            wrong += self._cause(why, left)
        elif any(c["status"] == "omitted" for _, c in changes):
            expected = {"omitted"}
        else:
            expected = {"available", "later"}
        if why["state"] not in expected:
            wrong.append(f"state {why['state']}, should be one of {sorted(expected)}")
        if why["present"] != (why["state"] in ("current", "stale")):
            wrong.append("present and state differ")
        return wrong

    def _cause(self, why: Json, left: Json) -> list[str]:
        """The chain says why it left."""
        verdicts = {link["verdict"] for link in why["chain"]}
        cause = left["cause"]
        wanted = {TAKEN.get(cause, cause)} if cause in TAKEN else {"removed", cause}
        if wanted & verdicts:
            return []
        return [f"left as {cause}, and the chain says only {sorted(verdicts)}"]

    def _links(self, why: Json) -> list[str]:
        wrong = []
        for link in why["chain"]:
            at = link["event"]
            if at is None:
                if link["provenance"] == "native":
                    wrong.append(f"{link['verdict']}: a recorded decision without its event")
                continue
            event = self.events[at["line"] - 1]
            if at["event_type"] != event["event_type"]:
                wrong.append(f"{link['verdict']}: line {at['line']} is a {event['event_type']}")
            if at["event_id"] != event.get("event_id", f"e{at['line']}"):
                wrong.append(f"{link['verdict']}: line {at['line']} is {event.get('event_id')}")
            if link["provenance"] == "native" and not self._bears(why["item"], link, event):
                wrong.append(
                    f"{link['verdict']}: line {at['line']} says nothing of the kind of {why['item']}"
                )
        return wrong

    def _bears(self, item: str, link: Json, event: Event) -> bool:
        """Whether an event says what a link says that it says."""
        verdict, data, line = link["verdict"], event["data"], link["event"]["line"]
        if link["stage"] == "missing" or verdict == "attached":
            return event["event_type"].startswith(("context.missing.", "context.surface."))
        if verdict == "updated":
            return self.item_of(line) == item
        if verdict not in OF_TYPE:
            return False
        if event["event_type"] not in OF_TYPE[verdict]:
            return False
        if verdict in ("available", "later"):
            return self.item_of(line) == item and not self._before(item, line, event)
        if verdict == "listed":
            return self._names(item, data["available_item_refs"])
        if verdict in ("kept", "ranked"):
            field = "selected_item_refs" if verdict == "kept" else "candidate_item_refs"
            found = [e for e in data[field] if self._names(item, [e])]
            return bool(found) and self._figures(link, found[0])
        if verdict in ("omitted", "unchanged"):
            found = [e for e in data["omitted_item_refs"] if self._names(item, [e])]
            same = bool(found) and link["numbers"].get("reason") == found[0].get("reason")
            return same and self._figures(link, found[0])
        if verdict in ("dropped", "cut"):
            found = [e for e in data["truncation_records"] if self._names(item, [e])]
            return bool(found) and (verdict == "dropped") == (found[0]["action"] == "dropped")
        if verdict in ("assembled", "entered"):
            return any(self._names(item, block["item_refs"]) for block in data["ordered_blocks"])
        if verdict == "carried":
            blocks = data["ordered_blocks"]
            return "base" in data["metadata"]["ctxctl"] and not any(
                self._names(item, block["item_refs"]) for block in blocks
            )
        if verdict == "compacted":
            into = link["numbers"].get("into")
            return self._names(item, data["source_item_refs"]) and data.get("summary_ref") == into
        return verdict in ("injected", "limits") or self._names(item, [data["item_id"]])

    def _figures(self, link: Json, entry: Any) -> bool:
        """Rank and score are those that the ref itself states, if it does."""
        stated = entry if isinstance(entry, dict) else {}
        return all(link["numbers"].get(name) == stated[name] for name in ("rank", "score") if name in stated)

    def _before(self, item: str, line: int, event: Event) -> bool:
        """Whether the item was described before, in the same thread."""
        where = [event.get("session_id", "s"), event.get("thread_id") or "main"]
        for number, other in enumerate(self.events[: line - 1], 1):
            if [other.get("session_id", "s"), other.get("thread_id") or "main"] != where:
                continue
            if other["event_type"] != "context.item.removed" and self.item_of(number) == item:
                return True
        return False

    def _names(self, item: str, refs: list[Any]) -> bool:
        return any(ref_of(ref) == item or ref_of(ref).rpartition("@")[0] == item for ref in refs)

    def _omission(self, why: Json) -> list[str]:
        """Where the step itself left the item out, the chain names that event."""
        last = self.thread_steps(why)[-1]
        change = next((c for c in last["changes"] if c["item"] == why["item"]), None)
        if change is None or change["status"] != "omitted" or not change.get("reason"):
            return []
        named = [
            link for link in why["chain"]
            if link["verdict"] in ("omitted", "dropped", "unchanged") and link["event"] is not None
            and (link["turn"], link["step"]) == (why["turn"], why["step"])
        ]  # fmt: skip
        if any(link["numbers"].get("reason") == change["reason"] for link in named):
            return []
        return [f"left out as {change['reason']}, and no link of the step says so"]


def _plain(event: Event) -> Event:
    """The event with wrappers and truncations spelt as the second engine reads them."""
    data = dict(event["data"])
    if "ordered_blocks" in data:
        data["ordered_blocks"] = [_block(block) for block in data["ordered_blocks"]]
    if "truncation_records" in data:
        data["truncation_records"] = [
            record if "action" in record or "tokens_after" in record else {**record, "action": "dropped"}
            for record in data["truncation_records"]
        ]
    return {**event, "data": data}


def _block(block: Json) -> Json:
    around = block.get("wrapper")
    if not isinstance(around, dict):
        return block
    return {**block, "wrapper": f"{around.get('before', '')}{{content}}{around.get('after', '')}"}
