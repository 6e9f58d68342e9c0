"""Every request's window, held against a plain walk over the lines."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.unit.importers.claude_code_help import call, events, frames, line, result, said, text, user

Json = dict[str, Any]


@st.composite
def sessions(draw: st.DrawFn) -> list[Json]:
    """A session with parallel calls, forks, boundaries and microcompactions, in one file order."""
    lines: list[Json] = [user("u0", None, "start")]
    open_calls: list[tuple[str, str]] = []
    tools: list[str] = []
    message: tuple[str, str] | None = None
    for n in range(1, draw(st.integers(2, 30))):
        leaf = lines[-1]["uuid"]
        if draw(st.integers(0, 9)) == 0:
            leaf = draw(st.sampled_from(lines))["uuid"]
            message = None
        what = draw(
            st.sampled_from(["new", "new", "same", "same", "result", "result", "user", "micro", "compact"])
        )
        if what == "same" and message is not None:
            lines.append(said(f"a{n}", leaf, message[0], *_blocks(draw, n, tools, open_calls)))
        elif what in ("new", "same"):
            message = (f"m{n}", f"a{n}")
            lines.append(said(f"a{n}", leaf, message[0], *_blocks(draw, n, tools, open_calls)))
        elif what == "result" and open_calls:
            tool, owner = open_calls.pop(draw(st.integers(0, len(open_calls) - 1)))
            lines.append(result(f"r{n}", owner, tool, f"result {n}"))
        elif what == "micro" and tools:
            ids = draw(st.lists(st.sampled_from(tools), max_size=3, unique=True))
            meta = {"compactedToolIds": ids}
            lines.append(
                line("system", f"x{n}", leaf, subtype="microcompact_boundary", microcompactMetadata=meta)
            )
        elif what == "compact":
            lines.append(line("system", f"b{n}", None, subtype="compact_boundary", compactMetadata={}))
            lines.append(user(f"c{n}", f"b{n}", f"summary {n}", isCompactSummary=True))
            message = None
        else:
            lines.append(user(f"u{n}", leaf, f"prompt {n}"))
            message = None
    return lines


def _blocks(draw: st.DrawFn, n: int, tools: list[str], open_calls: list[tuple[str, str]]) -> list[Json]:
    if draw(st.booleans()):
        return [text(f"text {n}")]
    tools.append(f"t{n}")
    open_calls.append((f"t{n}", f"a{n}"))
    return [call(f"t{n}")]


def plain(lines: list[Json]) -> dict[str, list[tuple[str, bool]]]:
    """(item, blanked) of each request: the path's units whole, by definition, one request at a time."""
    by_uuid = {value["uuid"]: value for value in lines}
    owner = {
        block["id"]: value["message"]["id"]
        for value in lines
        if value["type"] == "assistant"
        for block in value["message"]["content"]
        if block["type"] == "tool_use"
    }
    found: dict[str, list[tuple[str, bool]]] = {}
    for at, value in enumerate(lines):
        if value["type"] != "assistant" or value["message"]["id"] in found:
            continue
        path: list[Json] = []
        uuid = value["parentUuid"]
        while uuid is not None:
            path.insert(0, by_uuid[uuid])
            uuid = by_uuid[uuid]["parentUuid"]
        blanked = {t for v in path for t in v.get("microcompactMetadata", {}).get("compactedToolIds", ())}
        units = dict.fromkeys(_unit(v, owner) for v in path if v["type"] != "system")
        window: list[tuple[str, bool]] = []
        for unit in units:
            members = [v for v in lines[:at] if v["type"] != "system" and _unit(v, owner) == unit]
            window += [(_item(v), False) for v in members if v["type"] == "assistant"]
            window += [(_item(v), _tool(v) in blanked) for v in members if v["type"] == "user"]
        found[value["message"]["id"]] = window
    return found


def _tool(value: Json) -> str | None:
    content = value["message"]["content"]
    return content[0].get("tool_use_id") if isinstance(content, list) else None


def _unit(value: Json, owner: dict[str, str]) -> str:
    if value["type"] == "assistant":
        return str(value["message"]["id"])
    tool = _tool(value)
    return owner[tool] if tool is not None else str(value["uuid"])


def _item(value: Json) -> str:
    content = value["message"]["content"]
    if isinstance(content, list) and content[0]["type"] == "tool_use":
        return str(content[0]["id"])
    tool = _tool(value) if value["type"] == "user" else None
    return f"{tool}/result" if tool is not None else str(value["uuid"])


@given(sessions())
def test_windows_are_those_of_a_plain_walk(lines: list[Json]) -> None:
    found, problems = events(*lines)
    # Prompts that were tried again behind a result, and nothing else, look the same as parents that are none.
    assume(all(problem.slug != "impossible-parents" for problem in problems))
    assert problems == []
    wanted = plain(lines)
    assert {step: window for (_, step), window in frames(found).items()} == {
        step: [item for item, _ in window] for step, window in wanted.items()
    }
    blanks = {e["data"]["item_id"] for e in found if e["event_type"] == "context.item.updated"}
    versions: dict[tuple[str, bool], set[str]] = {}
    for (_, step), refs in frames(found, refs=True).items():
        for ref, (item, blanked) in zip(refs, wanted[step], strict=True):
            assert item in blanks or not blanked
            versions.setdefault((item, blanked), set()).add(ref)
    assert all(len(refs) == 1 for refs in versions.values())
    assert all(versions[item, True] != versions.get((item, False)) for item, blanked in versions if blanked)
