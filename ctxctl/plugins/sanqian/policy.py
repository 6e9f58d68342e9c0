"""sanqian's context injection: a three-way diff of versions (the sanqian blog post on Context).

For each attached context, in order: never seen, inject ``[Context: TITLE]`` and the content; another version
than last time, inject ``[Context updated: TITLE]`` and the content; the same version, skip.  For each context
seen before and no longer attached, inject ``[Context removed: ID]`` and forget it.  All of it rides in one
``<system_reminder>`` at the end of the last human message.

Where the post is silent: versions are kept by item and not by provider, so that two items of one provider do
not take each other's place; a provider that returns null while attached injects nothing and keeps its last
version; an item that was taken back by itself counts as no longer attached; an untitled context shows its id.
"""

from __future__ import annotations

from ctxctl.model.policy import Act, Offered, Plan, Situation
from ctxctl.model.vocab import Mode

OPENING = "<system_reminder>\n"
CLOSING = "\n</system_reminder>"


class Sanqian:
    """Contexts are sent when they are new or changed, by version, and taken back when they are detached."""

    name = "sanqian"
    mode: Mode = "append"

    def plan(self, situation: Situation) -> Plan:
        """The version diff of one turn."""
        seen = dict(situation.seen)
        acts: list[Act] = []
        for context in _attached(situation):
            last = seen.get(context.item)
            title = context.title if context.title is not None else context.item
            if context.source in situation.silent:
                continue
            if last is None:
                acts.append(Act("added", context.item, f"[Context: {title}]\n"))
            elif last.version != context.version:
                acts.append(Act("updated", context.item, f"[Context updated: {title}]\n"))
            else:
                acts.append(Act("skipped", context.item))
            seen[context.item] = context
        offered = {context.item for context in situation.offered}
        for item, context in situation.seen.items():
            detached = situation.attached is not None and context.source not in situation.attached
            if detached or item not in offered:
                acts.append(Act("removed", item, f"[Context removed: {item}]"))
                del seen[item]
        return Plan(tuple(acts), seen, OPENING, CLOSING)


def _attached(situation: Situation) -> list[Offered]:
    """The offered items of attached sources, in the order of the sources."""
    if situation.attached is None:
        return [o for o in situation.offered if o.source is not None]
    by_source: dict[str, list[Offered]] = {}
    for offered in situation.offered:
        source = offered.source
        if source is not None and source in situation.attached:
            by_source.setdefault(source, []).append(offered)
    return [o for source in dict.fromkeys(situation.attached) for o in by_source.get(source, ())]
