"""Resolve the edits of a what-if: the items that `--drop` removes, the texts that `--set` replaces."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from ctxctl.engine.replay.edits import Edits, EditText
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.errors import UsageError
from ctxctl.kinds import kinds_called
from ctxctl.model.content import ContentStore
from ctxctl.model.whatif import UNEDITED, Dropped, Edited, Replaced, Replacement, Texts
from ctxctl.session.inventory import Inventory, ItemFacets, ThreadItems
from ctxctl.session.resolver import ItemFound, SeveralItems, TextOf, ambiguous_item, only_item, resolve_item
from ctxctl.wording import plural

_NEAR: Final = 3
_MAX_COMPARED: Final = 20_000
"""Most names among which a near one is searched."""
_MAX_NAME: Final = 80
_MAX_LISTED: Final = 8
"""Up to this many names, an error lists all of them."""
_HOW: Final = "write kind:KIND, source:SOURCE, server:SERVER or item:ID"

Items = set[tuple[ThreadKey, str]]

FACETS: Final[Mapping[str, Callable[[str, ItemFacets], str | None]]] = {
    "kind": lambda _item, facets: facets.kind,
    "source": lambda _item, facets: facets.source,
    "server": lambda _item, facets: facets.server,
    "item": lambda item, _facets: item,
}
"""The facets that a selector can name, in the order of likely use."""


class Resolved(NamedTuple):
    """Resolved edits, ready for a replay, and what to report about them."""

    edits: Edits | None
    told: Edited


NOTHING: Final = Resolved(None, UNEDITED)


def resolved_edits(
    inventory: Callable[[], Inventory], store: ContentStore, drop: Sequence[str], texts: Texts, text: TextOf
) -> Resolved:
    """Resolve `drop` and `texts` against a trace. `inventory` is only called if either is given.

    `text` returns a content's text, for items named by it. Raises what `resolve_edits` raises.
    """
    given = [Replacement(*one) for one in texts.items()] if isinstance(texts, Mapping) else texts
    if not drop and not given:
        return NOTHING
    return resolve_edits(inventory(), store, drop, given, text)


def resolve_edits(
    inventory: Inventory, store: ContentStore, drop: Sequence[str], replacements: Sequence[Replacement],
    text: TextOf,
) -> Resolved:  # fmt: skip
    """Resolve what is dropped and set; `text` returns a content's text, for items named by it.

    Raises UsageError: `bad-drop`, `nothing-dropped`, `unknown-item`, `ambiguous-item`, `bad-set`.
    """
    if not drop and not replacements:
        return NOTHING
    chosen = [_selected(inventory, selector, text) for selector in dict.fromkeys(drop)]
    matched: Items = set().union(*(items for _, items in chosen))
    gone, summaries = _with_what_belongs(inventory, matched)
    texts, replaced = _texts(inventory, store, [_meant(inventory, one, text) for one in replacements])
    _no_contradiction(gone, texts)
    dropped: dict[ThreadKey, set[str]] = {}
    for key, item in gone:
        dropped.setdefault(key, set()).add(item)
    edits = Edits({key: frozenset(items) for key, items in dropped.items()}, texts)
    drops = {name: Dropped(name, len(items)) for name, items in chosen}
    calls = len(gone) - len(matched) - summaries
    return Resolved(edits, Edited(tuple(drops.values()), calls, summaries, replaced))


# What is dropped --------------------------------------------------------------------------------------------


def _selected(inventory: Inventory, typed: str, text: TextOf) -> tuple[str, Items]:
    """Return a selector with its facet, and the items that it matches."""
    facet, colon, value = typed.partition(":")
    if colon and facet in FACETS:
        value = value.removeprefix("mcp:") if facet == "server" else value
        found = _matching(inventory, facet, value)
        if not found and facet == "kind":
            found = _of_kinds(inventory, kinds_called(value))
        if not found and facet == "item" and (named := _named(inventory, value, text)):
            return named
        if not found:
            raise _nothing(inventory, facet, value)
        return f"{facet}:{value}", found
    if not typed.strip():
        raise UsageError("bad-drop", "--drop is empty", hint=_HOW)
    if typed.startswith("mcp:") and (found := _matching(inventory, "server", typed[4:])):
        return f"server:{typed[4:]}", found
    fits = {name: items for name in FACETS if (items := _matching(inventory, name, typed))}
    if not fits and (named := _named(inventory, typed, text)):
        return named
    if not fits and (found := _of_kinds(inventory, kinds_called(typed))):
        return f"kind:{typed}", found
    if not fits:
        raise _nothing(inventory, None, typed)
    names = list(fits)
    if any(fits[name] != fits[names[0]] for name in names[1:]):
        listed = ", ".join(f"{name}:{typed} ({len(fits[name]):,})" for name in names)
        raise UsageError(
            "bad-drop", f"{_quoted(typed)} matches several of these", hint=f"write one of {listed}"
        )
    return f"{names[0]}:{typed}", fits[names[0]]


def _matching(inventory: Inventory, facet: str, value: str) -> Items:
    of = FACETS[facet]
    return {
        (key, item)
        for key, item, facets in inventory.items()
        if any(of(item, one) == value for one in facets)
    }


def _of_kinds(inventory: Inventory, kinds: Collection[str]) -> Items:
    return {
        (key, item) for key, item, facets in inventory.items() if any(one.kind in kinds for one in facets)
    }


def _named(inventory: Inventory, name: str, text: TextOf) -> tuple[str, Items] | None:
    """Return the selector of the one item that a name means, and the item in each thread that has it.

    Raises UsageError: `ambiguous-item`; `no-such-item` for a version that the item never had.
    """
    if not name.strip():
        return None
    answer = resolve_item(inventory, name, text)
    if not isinstance(answer, ItemFound | SeveralItems):
        return None
    one = only_item(answer, name).candidate
    return f"item:{one.item}", {(key, one.item) for key in one.threads}


def _nothing(inventory: Inventory, facet: str | None, value: str) -> UsageError:
    """Return the error for a selector that matches nothing, with the existing values."""
    names: dict[str, None] = {}
    for _, item, facets in inventory.items():
        for name in FACETS if facet is None else (facet,):
            values = (FACETS[name](item, one) for one in facets)
            names.update((f"{name}:{found}" if facet is None else found, None) for found in values if found)
    if facet is None:
        what = f"{_quoted(value)} is not a kind, source, server or item of this trace"
        return UsageError("nothing-dropped", what, hint=_near(value, names) or _HOW)
    has = "is called" if facet == "item" else f"has the {facet}"
    hint = _near(value, names) or ("" if facet == "item" else f"the trace has no {facet}")
    return UsageError("nothing-dropped", f"no item of this trace {has} {_quoted(value)}", hint=hint or None)


def _near(value: str, names: Iterable[str]) -> str | None:
    """Return all names if there are few, else similar ones."""
    from difflib import get_close_matches

    known = list(names)
    if 0 < len(known) <= _MAX_LISTED:
        return "there are: " + ", ".join(_short(name) for name in sorted(known))
    bare = {_bare(name): name for name in known[:_MAX_COMPARED]}
    like = get_close_matches(_bare(value)[:_MAX_NAME], bare, _NEAR)
    return "near: " + ", ".join(_short(bare[name]) for name in like) if like else None


def _bare(name: str) -> str:
    """Return a selector without its facet."""
    facet, colon, value = name.partition(":")
    return value if colon and facet in FACETS else name


def _with_what_belongs(inventory: Inventory, matched: Items) -> tuple[Items, int]:
    """Return the matched items with their calls, results and summaries; the number of the latter."""
    gone: dict[ThreadKey, set[str]] = {}
    calls = set()
    for key, item in matched:
        shelf, here = inventory.shelves[key], gone.setdefault(key, set())
        here.add(item)
        call = shelf.call_of.get(item)
        if call is not None and (key, call) not in calls:
            calls.add((key, call))
            here.update(shelf.members[call])
    summaries = sum(sum(1 for _ in _emptied(inventory.shelves[key], here)) for key, here in gone.items())
    return {(key, item) for key, here in gone.items() for item in here}, summaries


def _emptied(shelf: ThreadItems, gone: set[str]) -> Iterator[str]:
    """Yield summaries of dropped items only, also through other summaries; `gone` is extended by them."""
    waiting: dict[str, int] = {}
    """Number of remaining sources, by summary."""
    summed_in: dict[str, list[str]] = {}
    for name, sources in shelf.into.items():
        if sources and name not in gone:
            there = sources - gone
            waiting[name] = len(there)
            for source in there:
                summed_in.setdefault(source, []).append(name)
    ready = [name for name, number in waiting.items() if not number]
    while ready:
        name = ready.pop()
        gone.add(name)
        yield name
        for summary in summed_in.get(name, ()):
            waiting[summary] -= 1
            if not waiting[summary]:
                ready.append(summary)


# What is set ------------------------------------------------------------------------------------------------

_Texts = dict[ThreadKey, dict[str, dict[str | None, EditText]]]


def _texts(
    inventory: Inventory, store: ContentStore, replacements: Sequence[Replacement]
) -> tuple[_Texts, tuple[Replaced, ...]]:
    texts: _Texts = {}
    replaced: list[Replaced] = []
    seen: set[str] = set()
    # A replacement of one version takes precedence over one of all versions.
    for one in sorted(replacements, key=lambda r: _whole(inventory, r.item), reverse=True):
        if one.item in seen:
            raise UsageError("bad-set", f"{_quoted(one.item)} is set twice")
        seen.add(one.item)
        replaced.append(_replace(inventory, store, one, texts))
    order = [one.item for one in replacements]
    replaced.sort(key=lambda r: order.index(r.item if r.version is None else f"{r.item}@{r.version}"))
    return texts, tuple(replaced)


def _meant(inventory: Inventory, one: Replacement, text: TextOf) -> Replacement:
    """Return a replacement with the id of the item that its name means; unchanged if it means none."""
    if not one.item.strip() or any(shelf.book.find(one.item) for shelf in inventory.shelves.values()):
        return one
    answer = resolve_item(inventory, one.item, text)
    if isinstance(answer, SeveralItems):
        raise ambiguous_item(answer, one.item)
    if isinstance(answer, ItemFound) and answer.version is None:
        return msgspec.structs.replace(one, item=answer.candidate.item)
    return one


def _whole(inventory: Inventory, ref: str) -> bool:
    return any(ref in shelf.book.latest for shelf in inventory.shelves.values())


def _replace(inventory: Inventory, store: ContentStore, one: Replacement, texts: _Texts) -> Replaced:
    content = store.literal(one.text)
    found, changed, version = False, 0, None
    item = one.item
    for key, shelf in inventory.shelves.items():
        known = shelf.book.find(one.item)
        if known is None:
            continue
        found, item = True, known.item
        whole = one.item in shelf.book.latest
        versions = list(shelf.book.history(item)) if whole else [known]
        version = None if whole else one.item[len(item) + 1 :]
        other = [v for v in versions if v.content is None or v.content.digest != content.digest]
        changed += len(other)
        if other:
            name = versions[-1].version
            texts.setdefault(key, {}).setdefault(item, {}).update(
                (v.version, EditText(content, name)) for v in versions
            )
    if not found:
        raise _unknown(inventory, one.item)
    return Replaced(item, version, one.name, content.digest, content.size, changed)


def _unknown(inventory: Inventory, ref: str) -> UsageError:
    head, _, _ = ref.rpartition("@")
    for shelf in inventory.shelves.values():
        if head and head in shelf.book.latest:
            there = [v.version for v in shelf.book.history(head) if v.version is not None]
            listed = ", ".join(_short(name) for name in there[:8]) + (", …" if len(there) > 8 else "")
            return UsageError(
                "unknown-item", f"no version of {_quoted(head)} is called {_quoted(ref[len(head) + 1 :])}",
                hint=f"there are: {listed}" if there else "its versions have no names",
            )  # fmt: skip
    names = dict.fromkeys(item for shelf in inventory.shelves.values() for item in shelf.book.latest)
    return UsageError(
        "unknown-item", f"the trace describes no item called {_quoted(ref)}", hint=_near(ref, names)
    )


def _no_contradiction(gone: Items, texts: _Texts) -> None:
    for key, items in texts.items():
        for item in items:
            if (key, item) in gone:
                raise UsageError("bad-set", f"{_quoted(item)} is both set and dropped")


def _quoted(name: str) -> str:
    return repr(_short(name))


def _short(name: str) -> str:
    return name if len(name) <= _MAX_NAME else name[: _MAX_NAME - 1] + "…"


NOT_KNOWN: Final = (
    "what the model would have answered instead; its answers and the user's turns are as recorded"
)


# What to say of it ------------------------------------------------------------------------------------------


def edit_notes(edited: Edited) -> Iterator[str]:
    """Yield sentences on what is dropped and set. They may hold names of the trace."""
    if edited.drops:
        yield f"The replay leaves out {drops_text(edited)}."
    for one in edited.texts:
        yield f"The replay has another text for {replaced_text(one)}."
    if edited.given:
        yield f"It is not known {NOT_KNOWN}."


def drops_text(edited: Edited) -> str:
    """Return what the selectors matched, and what was dropped with it."""
    said = [f"{_short(one.selector)} ({plural(one.items, 'item')})" for one in edited.drops]
    if edited.calls:
        said.append(
            f"with the {plural(edited.calls, 'call or result', 'calls and results')} that belong to them"
        )
    if edited.summaries:
        said.append(f"with {plural(edited.summaries, 'summary', 'summaries')} of nothing else")
    return ", ".join(said)


def replaced_text(one: Replaced) -> str:
    """Return what replaces what, in words."""
    name = _short(one.item) if one.version is None else f"{_short(one.item)}@{_short(one.version)}"
    versions = plural(one.versions, "version") if one.versions else "its recorded text"
    source = f"{one.name}, " if one.name else ""
    return f"{name} ({versions}): {source}{one.size:,} bytes, sha256 {one.sha256[:12]}"
