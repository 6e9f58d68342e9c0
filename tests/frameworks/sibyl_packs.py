"""Random context packs made by Sibyl's own code, as its MCP tool returns them.

Retrieval is stood in for (it needs a database): what it would have found is random.  Selection, limits,
markdown and receipt are those of the package, called as the tool calls them.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import Any
from unittest.mock import patch

from sibyl_core.models.context import (
    ContextFacet,
    ContextItem,
    ContextItemQualityMetadata,
    ContextPack,
    ContextRelatedItem,
    ContextSection,
)
from sibyl_core.tools import context

Json = dict[str, Any]

VERSION = version("sibyl-core")
PROSE = (
    "tide table moon almanac press column width leap year row print station gauge ebb flood harbour "
    "`code` **bold** _mark_ naïve 潮汐 🌊 a… e\u0301 [x](y) <b> ## # - * 12:30"
)
WORDS = PROSE.split()
TYPES = ("decision", "task", "procedure", "error_pattern", "session", "rule", "artifact", "note", "")
BUDGETS = (0, 1, 99, 100, 150, 200, 300, 450, 700, 1000, 1500, 2500, 4000, 8000, 32_000, None, -5)


def prose(rng: random.Random, most: int) -> str:
    """Up to so many words, with all kinds of white space between."""
    return "".join(
        rng.choice(WORDS) + rng.choice((" ", " ", " ", " ", "  ", "\n", "\n\n", "\t"))
        for _ in range(rng.randrange(most + 1))
    )


def name(rng: random.Random) -> str:
    """An item's name; now and then of several lines, or none."""
    return (
        rng.choice(("", " ", "One\nand two", "- **x** `y`\nz"))
        if rng.random() < 0.04
        else prose(rng, 6).strip()
    )


def stamp(rng: random.Random) -> str | None:
    """A time, a date, something else, or nothing."""
    return rng.choice((None, "2026-03-02T10:00:00+00:00", "2026-03-02", "yesterday", ""))


def related(rng: random.Random) -> ContextRelatedItem:
    how, kind = rng.choice((("REFERENCES", "decision"), ("BELONGS_TO", "project"), ("BELONGS_TO", "epic")))
    return ContextRelatedItem(f"rel_{rng.randrange(99)}", kind, prose(rng, 4).strip(), how, "outgoing")


def metadata(rng: random.Random, kind: str) -> Json:
    made: Json = {}
    if rng.random() < 0.4:
        made["status"] = rng.choice(
            ("doing", "blocked", " review\nnow ", "x" * 130, True, 3, 1.5, None, ["a"])
        )
    if rng.random() < 0.1:
        made |= {"category": "operational_experience", "operational_schema_version": rng.choice((6, 7, 8))}
        present = rng.random() < 0.7
        value = rng.choice(("went well", "", 'a "quoted" end', "long " * 80)) if present else ""
        made["operational_outcome"] = {
            "version": rng.choice((1, 1, 1, 2)), "basis": "source_report", "scope": "trajectory",
            "present": present, "value": value,
        }  # fmt: skip
    if kind == "procedure" and rng.random() < 0.2:
        made["learnings"] = prose(rng, 5)
    return made


def content(rng: random.Random, kind: str, title: str) -> str:
    if rng.random() < 0.1:
        return rng.choice(("", " ", title, f" {title}\n", "x" * 2000, "ends in..."))
    text = prose(rng, rng.choice((8, 60, 400)))
    if kind == "procedure" and rng.random() < 0.5:
        text = f"1. First.\n    indented\n\n## Check\n- **Look** at `x`\n```sh\nrun\n```\n{text}"
    return text


def item(rng: random.Random, number: int, facet: ContextFacet) -> ContextItem:
    """One item of a facet; ids differ."""
    kind, title = rng.choice(TYPES), name(rng)
    native = rng.choice(("dec", "task", "a~2", "raw:x")) + f"_{number}"
    quality = ContextItemQualityMetadata(
        origin=rng.choice((None, "graph", "raw_memory")),
        source=rng.choice((None, native, "notes.md", "y" * 140)),
        url=rng.choice((None, None, "https://example.org/a?b=1")),
        created_at=stamp(rng), updated_at=stamp(rng), valid_at=stamp(rng),
        project_id=rng.choice((None, "proj_tide", "proj_other")),
    )  # fmt: skip
    return ContextItem(
        id=native, type=kind, name=title, content=content(rng, kind, title),
        score=rng.choice((0.0, 0.5, 0.5, round(rng.random() * 2, 3), rng.random())), facet=facet, reason="r",
        source=rng.choice((None, native)), quality=quality, metadata=metadata(rng, kind),
        related=[related(rng) for _ in range(rng.choice((0, 0, 1, 3, 5)))],
    )  # fmt: skip


def arguments(rng: random.Random, number: int) -> Json:
    """What the tool is called with; any of it may be absent."""
    offered: Mapping[str, tuple[Any, ...]] = {
        "intent": ("build", "plan", "ideate", "research", "debug", "decide", "learn", "general"),
        "layer": ("wake", "recall", "deep_search"),
        "domain": (None, "software"),
        "project": (None, "proj_tide"),
        "limit": (-3, 0, 1, 3, 8, 9, 24, 40, 50, 99),
        "markdown_token_budget": BUDGETS,
    }
    made: Json = {"goal": f"{prose(rng, 8).strip()} {number}"}
    if rng.random() < 0.03:
        made["goal"] = f"Two lines\n\n## of it {number}"
    for key, values in offered.items():
        if rng.random() < 0.6:
            made[key] = rng.choice(values)
    return made


class Found:
    """What retrieval would have found for one call: sections by facet, and work in progress."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._made = 0
        self._most = rng.choice((0, 1, 4, 12, 40))

    async def sections(self, *, facets: list[ContextFacet], **_: Any) -> list[ContextSection]:
        made = []
        for facet in facets:
            items = [self._item(facet) for _ in range(self._rng.randrange(self._most + 1))]
            if items:
                made.append(ContextSection(facet, context.FACET_TITLES[facet], items))
        return made

    async def active(self, *, limit: int, **_: Any) -> list[ContextItem]:
        rows = [self._item(ContextFacet.ACTIVE_WORK) for _ in range(self._rng.randrange(limit + 1))]
        return [replace(row, score=0.0, metadata={**row.metadata, "active_lookup": True}) for row in rows]

    def _item(self, facet: ContextFacet) -> ContextItem:
        self._made += 1
        return item(self._rng, self._made, facet)


async def none_gone(*_: Any, **__: Any) -> set[str]:
    """Nothing was retracted."""
    return set()


def called(number: int) -> tuple[Json, Json, ContextPack]:
    """The arguments of a call, what the tool returned, and the pack that it rendered."""
    rng = random.Random(number)
    given = arguments(rng, number)
    pack = asyncio.run(_compiled(rng, given))
    # Between the tool and its client there is JSON.
    return given, json.loads(json.dumps(returned(pack, **_budget_of(given)))), pack


def _budget_of(given: Json) -> Json:
    return {"token_budget": given.get("markdown_token_budget", context.DEFAULT_MARKDOWN_TOKEN_BUDGET)}


async def _compiled(rng: random.Random, given: Json) -> ContextPack:
    found = Found(rng)
    options = {key: value for key, value in given.items() if key not in ("goal", "markdown_token_budget")}
    with patch.object(context, "_compile_native_sections", found.sections):
        if not hasattr(context, "unavailable_publication_ids"):
            return await _compile(given["goal"], found, options)
        with patch.object(context, "unavailable_publication_ids", none_gone):
            return await _compile(given["goal"], found, options)


async def _compile(goal: str, found: Found, options: Json) -> ContextPack:
    # Those of the tool that are absent are absent here: the function has the same defaults.
    pack: ContextPack = await context.compile_context(
        goal, organization_id="org", active_work_fn=found.active, record_exposure=False, **options
    )
    return pack


def returned(pack: ContextPack, **options: Any) -> Json:
    """What the tool makes of a pack (`sibyld`, `mcp_tools/retrieval.py`)."""
    payload: Json = context.context_pack_to_dict(pack)
    if not hasattr(context, "render_context_pack"):
        return {**payload, "markdown": context.context_pack_to_markdown(pack, **options)}
    rendered = context.render_context_pack(pack, **options)
    return {**payload, "markdown": rendered.markdown, "render_receipt": asdict(rendered.receipt)}


def lines(number: int, given: dict[str, Any], payload: dict[str, Any]) -> list[str]:
    """The call and its answer as a client's log has them."""
    asked = {"method": "tools/call", "params": {"name": "context", "arguments": given}}
    answer = {"result": {"content": [], "structuredContent": payload, "isError": False}}
    return [json.dumps({"jsonrpc": "2.0", "id": number, **one}) + "\n" for one in (asked, answer)]
