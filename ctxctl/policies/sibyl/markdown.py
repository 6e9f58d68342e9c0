"""A pack's markdown by Sibyl's rules (1.2.2): which items, in what order, each with how much of its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctxctl.model.recompute import Part

CHARS_PER_TOKEN: Final = 4
LEAST_CHARS: Final = 400
MOST_ITEMS: Final = 50
MOST_IN_SECTION: Final = 10
MOST_CONTENT: Final = 1200
CONTENT_SHARE: Final = 0.85
PLAIN: Final = (8, 3, 280)
"""Items, items of a section, characters of an item, where there is no budget."""
_ANCHORED: Final = frozenset({"build", "general"})
_VALUE: Final = 120


class Pack(NamedTuple):
    """What is rendered."""

    goal: str
    intent: str
    layer: str
    query: str
    domain: str | None
    project: str | None
    sections: tuple[tuple[str, tuple[Part, ...]], ...]
    """Facet and items, in the pack's order."""
    titles: Mapping[str, str]
    total: int


class Shown(NamedTuple):
    """The markdown in pieces; joined by line ends they are the whole."""

    pieces: tuple[tuple[str, str], ...]
    """Name and text: `pack/header`, `pack/section/FACET`, an item, `pack/trailer`."""
    cut: tuple[str, ...]
    trimmed: bool


class Sizes(NamedTuple):
    """How much may be shown."""

    chars: int | None
    items: int
    in_section: int
    content: int


def sizes(tokens: int | None, total: int, sections: int) -> Sizes:
    """What a budget allows for a pack of so many items and sections."""
    items, in_section, content = PLAIN
    if tokens is None:
        return Sizes(None, items, in_section, content)
    chars = max(LEAST_CHARS, tokens * CHARS_PER_TOKEN)
    renderable = max(1, total)
    items = min(MOST_ITEMS, max(items, renderable))
    in_section = max(in_section, -(-items // max(1, sections)))
    share = int(chars * CONTENT_SHARE) // min(items, renderable)
    return Sizes(chars, items, in_section, min(MOST_CONTENT, max(content, share)))


def rendered(pack: Pack, tokens: int | None) -> Shown:
    """The markdown; at least one item is always in it."""
    limit = sizes(tokens, pack.total, len(pack.sections))
    head = [f"# Sibyl Context Pack: {pack.goal}", f"Intent: {pack.intent}", f"Layer: {pack.layer}"]
    head.append(f"Query: {pack.query}")
    head += [f"Domain: {pack.domain}"] if pack.domain else []
    head += [f"Project: {pack.project}"] if pack.project else []
    pieces = [("pack/header", "\n".join(head))]
    cut: list[str] = []
    used = sum(len(line) + 1 for line in head)
    left = limit.items
    trimmed = False
    for facet, items in _in_order(pack):
        title = f"\n## {pack.titles.get(facet) or facet.replace('_', ' ').title()}"
        opened = False
        for item in items[: limit.in_section]:
            if left <= 0 or trimmed:
                break
            text, shortened = _item(item, pack.project, limit.content)
            size = len(text) + 1 + (0 if opened else len(title) + 1)
            if limit.chars is not None and left < limit.items and used + size > limit.chars:
                trimmed = True
                break
            pieces += [(item.item, text)] if opened else [(f"pack/section/{facet}", title), (item.item, text)]
            cut += [item.item] if shortened else []
            used += size
            opened = True
            left -= 1
    if trimmed:
        pieces.append(("pack/trailer", trailer(tokens or 0)))
    return Shown(tuple(pieces), tuple(cut), trimmed)


def trailer(tokens: int) -> str:
    """How a trimmed markdown ends."""
    return f"\n_Trimmed to ~{tokens} tokens; raise --budget for more._"


def compact(text: str, most: int) -> tuple[str, bool]:
    """Text on one line, cut at a word where it is too long; whether it was."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line, False
    at = line.rfind(" ", 0, most + 1)
    return line[: at if at >= most // 2 else most].rstrip() + "...", True


def _in_order(pack: Pack) -> Sequence[tuple[str, tuple[Part, ...]]]:
    """Sections as rendered: work in progress first where the intent is to build, the rest by score."""

    def rank(at: int) -> tuple[int, float, int]:
        facet, items = pack.sections[at]
        looked_up = facet == "active_work" and any(_meta(item).get("active_lookup") for item in items)
        if looked_up and pack.intent in _ANCHORED:
            return 0, 0.0, at
        score = max((_score(item) for item in items), default=0.0)
        if facet == "recent_memory":
            score += 0.25
        elif looked_up:
            score = max(score, 0.75)
        return 1, -score, at

    return [pack.sections[at] for at in sorted(range(len(pack.sections)), key=rank)]


def _score(item: Part) -> float:
    score = item.native.get("score")
    return float(score) if isinstance(score, int | float) else 0.0


def _meta(item: Part) -> Mapping[str, Any]:
    found = item.native.get("metadata")
    return found if isinstance(found, dict) else {}


def _item(item: Part, project: str | None, most: int) -> tuple[str, bool]:
    """An item's lines, and whether its content was cut."""
    native_id = item.item.partition("~")[0]
    label = " · ".join(v for v in (_value(item.native.get("type")), _value(_meta(item).get("status"))) if v)
    quality = _quality(item.native.get("quality"), native_id, project)
    lines = [
        f"- **{item.title or ''}**" + (f" ({label})" if label else "") + f" `{native_id}`"
        + (f" _{quality}_" if quality else "")
    ]  # fmt: skip
    content = item.read() or ""
    shortened = False
    if content.strip() and content.strip() != (item.title or "").strip():
        line, shortened = compact(content, most)
        lines.append(f"  - Memory: {line}")
    related = item.native.get("related")
    told = [
        f"{one.get('relationship')} {one.get('name')} ({one.get('type')})"
        for one in (related if isinstance(related, list) else ())
        if isinstance(one, dict)
        and not (one.get("relationship") == "BELONGS_TO" and one.get("type") == "project")
    ]
    if told:
        lines.append(f"  - Related: {'; '.join(told[:3])}")
    return "\n".join(lines), shortened


def _quality(given: Any, native_id: str, project: str | None) -> str:
    """Where an item comes from, as far as the pack does not say it anyway."""
    values = {name: _value(value) for name, value in given.items()} if isinstance(given, dict) else {}
    parts = [
        values.get("origin") if values.get("origin") != "graph" else None,
        _told("src", values.get("source"), native_id),
        _told("project", values.get("project_id"), project),
        _told("updated", _day(values.get("updated_at")), None)
        or _told("created", _day(values.get("created_at")), None),
        _told("valid", _day(values.get("valid_at")), None),
        _told("url", values.get("url"), None),
    ]
    return "; ".join(part for part in parts if part)


def _told(name: str, value: str | None, known: str | None) -> str | None:
    return f"{name}={value}" if value and value != known else None


def _day(value: str | None) -> str | None:
    return value[:10] if value and len(value) >= 10 and value[4] == "-" and value[7] == "-" else value


def _value(value: Any) -> str | None:
    if not isinstance(value, str | int | float):
        return None
    line = " ".join(str(value).split())
    return (line if len(line) <= _VALUE else line[: _VALUE - 3].rstrip() + "...") or None
