"""A pack's markdown by Sibyl's rules (1.2.2 to 1.4.10): which items, in what order, how much of each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

from ctxctl.model.recompute import Part

CHARS_PER_TOKEN: Final = 4
LEAST_CHARS: Final = 400
MOST_ITEMS: Final = 50
MOST_CONTENT: Final = 1200
CONTENT_SHARE: Final = 0.85
PLAIN: Final = (8, 3, 280)
"""Items, items of a section, characters of an item, where there is no budget."""
_ANCHORED: Final = frozenset({"build", "general"})
_VALUE: Final = 120
_EVERYWHERE: Final = "Scope: all accessible projects"
_NO_BODIES: Final = "_Procedures omitted by content limit; set --budget for complete bodies._"

_OUTCOME: Final = "operational_outcome"
_OUTCOME_SINCE: Final = 7
"""The first version of the metadata that has such a record."""
_LONGEST_OUTCOME: Final = 256
"""Characters of a value, in quotes, that is written out."""
_OUTCOME_FIXED: Final = {"basis": "source_report", "scope": "trajectory"}


def outcome_lines(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """What a source reports of how a trajectory ended, as Sibyl 1.4 writes it under an item's name.

    None where the metadata holds no complete record of an outcome.
    """
    version = metadata.get("operational_schema_version")
    told = metadata.get(_OUTCOME)
    if (
        metadata.get("category") != "operational_experience"
        or type(version) is not int
        or version < _OUTCOME_SINCE
    ):
        return ()
    if not isinstance(told, dict) or set(told) != {"version", *_OUTCOME_FIXED, "present", "value"}:
        return ()
    present, value = told["present"], told["value"]
    fixed = type(told["version"]) is int and told["version"] == 1
    fixed = fixed and all(told[key] == wanted for key, wanted in _OUTCOME_FIXED.items())
    if not fixed or type(present) is not bool or not isinstance(value, str) or (value and not present):
        return ()
    return (
        f"  - Source-reported trajectory outcome: {_outcome(present, value)}",
        "    Actions and reasoning are agent reports; a trajectory outcome does not establish success of each"
        " action.",
    )


def _outcome(present: bool, value: str) -> str:
    if not present:
        return "not recorded"
    quoted = json.dumps(value, ensure_ascii=False)
    if len(quoted) <= _LONGEST_OUTCOME:
        return quoted
    digest = sha256(value.encode("utf-8", "replace")).hexdigest()
    return f"full value in {_OUTCOME} metadata (sha256 {digest})"


class Version(NamedTuple):
    """What the versions of the renderer do differently."""

    name: str
    procedures: bool = False
    """A procedure stands whole between fences, or not at all; else it is cut like all others."""
    outcomes: bool = False
    """What a source reports of a trajectory's outcome stands under the item's name."""
    scope: bool = False
    """A pack of no project says so, and keeps room for the line that ends it."""


FIRST: Final = Version("1.2")
RECEIPTS: Final = Version("1.4.0", procedures=True, outcomes=True)
SCOPES: Final = Version("1.4.2", procedures=True, outcomes=True, scope=True)


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
    hint: str | None = None
    """What ends a markdown from which nothing was left out."""


class Shown(NamedTuple):
    """The markdown in pieces; joined by line ends they are the whole."""

    pieces: tuple[tuple[str, str], ...]
    """Name and text: `pack/header`, `pack/section/FACET`, an item, `pack/trailer`."""
    cut: tuple[str, ...]
    trimmed: bool

    @property
    def text(self) -> str:
        """The whole."""
        return "\n".join(text for _, text in self.pieces)


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


def rendered(pack: Pack, tokens: int | None, version: Version = FIRST) -> Shown:
    """The markdown; of items that may be cut at least one is always in it."""
    return _Renderer(pack, tokens, version).shown()


class _Renderer:
    def __init__(self, pack: Pack, tokens: int | None, version: Version) -> None:
        self._pack = pack
        self._tokens = tokens
        self._version = version
        self._limit = sizes(tokens, pack.total, len(pack.sections))
        self._pieces = [("pack/header", self._header())]
        self._cut: list[str] = []
        self._used = len(self._pieces[0][1]) + 1
        self._left = self._limit.items
        self._room = self._limit.chars
        if version.scope and pack.project is None and self._room is not None:
            ends = (trailer(tokens or 0).strip(), _NO_BODIES, f"_Hint: {pack.hint}_" if pack.hint else "")
            self._room -= max(len(end) for end in ends) + 2
        self._trimmed = False
        """The budget ended it."""
        self._passed = False
        """A procedure was larger than the rest of the budget."""
        self._bodies = False
        """A procedure was larger than an item may be, without a budget."""

    def shown(self) -> Shown:
        for facet, items in _in_order(self._pack):
            if self._left <= 0 or self._trimmed:
                break
            self._section(facet, items[: self._limit.in_section])
        short = self._trimmed or self._passed
        end = f"\n_Hint: {self._pack.hint}_" if self._pack.hint else None
        if short:
            end = trailer(self._tokens or 0)
        elif self._bodies:
            end = f"\n{_NO_BODIES}"
        if end is not None:
            self._pieces.append(("pack/trailer", end))
        return Shown(tuple(self._pieces), tuple(self._cut), short)

    def _header(self) -> str:
        pack = self._pack
        lines = [f"# Sibyl Context Pack: {pack.goal}", f"Intent: {pack.intent}", f"Layer: {pack.layer}"]
        lines.append(f"Query: {pack.query}")
        lines += [f"Domain: {pack.domain}"] if pack.domain else []
        if pack.project:
            lines.append(f"Project: {pack.project}")
        elif self._version.scope:
            lines.append(_EVERYWHERE)
        return "\n".join(lines)

    def _section(self, facet: str, items: Sequence[Part]) -> None:
        title = f"\n## {self._pack.titles.get(facet) or facet.replace('_', ' ').title()}"
        opened = False
        for item in items:
            if self._left <= 0:
                return
            whole = self._version.procedures and _is_procedure(item)
            if whole and self._limit.chars is None and len(item.read() or "") > self._limit.content:
                self._bodies = True
                continue
            text, shortened = self._item(item, whole)
            size = len(text) + 1 + (0 if opened else len(title) + 1)
            if self._room is not None and self._used + size > self._room:
                if whole:
                    self._passed = True
                    continue
                if self._left < self._limit.items:
                    self._trimmed = True
                    return
            if not opened:
                self._pieces.append((f"pack/section/{facet}", title))
            self._pieces.append((item.item, text))
            self._cut += [item.item] if shortened else []
            self._used += size
            opened = True
            self._left -= 1

    def _item(self, item: Part, whole: bool) -> tuple[str, bool]:
        """An item's lines, and whether its content was cut."""
        native_id = item.native.get("id", item.item)
        kind, status = item.native.get("type"), _value(_meta(item).get("status"))
        label = (f" ({kind} · {status})" if status else f" ({kind})") if kind else ""
        quality = _quality(item.native.get("quality"), native_id, self._pack.project)
        lines = [f"- **{item.title or ''}**{label} `{native_id}`" + (f" _{quality}_" if quality else "")]
        lines += outcome_lines(_meta(item)) if self._version.outcomes else ()
        content = item.read() or ""
        shortened = False
        if whole:
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", content)), default=0))
            lines.append(f"  - Memory:\n\n{fence}markdown\n{content}\n{fence}")
        elif content and content.strip() != (item.title or "").strip():
            line, shortened = compact(content, self._limit.content)
            lines.append(f"  - Memory: {line}")
        told = list(_related(item))
        if told:
            lines.append(f"  - Related: {'; '.join(told[:3])}")
        return "\n".join(lines), shortened


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
    return float(score) if isinstance(score, int | float) and abs(score) < 2**53 else 0.0


def _meta(item: Part) -> Mapping[str, Any]:
    found = item.native.get("metadata")
    return found if isinstance(found, dict) else {}


def _is_procedure(item: Part) -> bool:
    return item.native.get("type") == "procedure" and bool((item.read() or "").strip())


def _related(item: Part) -> Iterator[str]:
    """What an item is related to, but for the project that it belongs to."""
    related = item.native.get("related")
    for one in related if isinstance(related, list) else ():
        if isinstance(one, dict):
            kind, how = one.get("type"), one.get("relationship")
            if (how, kind) != ("BELONGS_TO", "project"):
                yield f"{how} {one.get('name')} ({kind})"


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
