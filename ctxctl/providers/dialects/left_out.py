"""Find what a provider leaves out of a request, as the request or its answer says.

The client still sends its whole history.  The request's body says what of it the model does not read (what
precedes
a compaction, tools that load when they are found), and so does the answer (what was cleared).
"""

from __future__ import annotations

from typing import Any, Final

from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import listed, mapping, string
from ctxctl.model.numbers import count
from ctxctl.providers.dialects.units import COMPACTIONS, LeftOut, Piece, Unit

# -- Anthropic --------------------------------------------------------------------------------------------


def of_messages(units: list[Unit], body: Json, response: Json | None, known: LeftOut) -> list[Piece] | None:
    """As `Dialect.reached`, of Anthropic's Messages (platform.claude.com: *Compaction*, *Context editing*,
    *Tool search tool*)."""
    said = mapping(mapping(response).get("context_management")).get("applied_edits")
    applied = [mapping(one) for one in listed(said)]
    # An answer may name edits that the log of its request lacks.
    edits: dict[str, Json] = {_kind(edit): {} for edit in applied} | {
        _kind(edit): edit for edit in _edits(body)
    }
    last = max((at for at, unit in enumerate(units) if _compaction(unit) >= 0), default=-1)
    tools = [unit for unit in units if unit.section == "tools"]
    deferred = {
        str(unit.value.get("name")): unit
        for unit in tools
        if mapping(unit.value).get("defer_loading") is True
    }
    if last < 0 and not edits and not deferred:
        return None
    pieces: list[Piece] = [
        () if unit.section == "messages" and at < last else (unit,) for at, unit in enumerate(units)
    ]
    if last >= 0:
        pieces[last] = _with_blocks(units[last], _blocks(units[last])[_compaction(units[last]) :])
    _clear(pieces, edits, applied, known)
    if deferred:
        pieces = [() if piece and piece[0] in deferred.values() else piece for piece in pieces]
        for at, piece in enumerate(pieces):
            found = (deferred.pop(name, None) for unit in piece for name in _found_tools(unit))
            pieces[at] = (*piece, *(unit for unit in list(found) if unit is not None))
    return pieces


def may_edit(body: Json) -> bool:
    """Whether only the answer to a request says what of it was read."""
    return any(edit.get("keep") != "all" for edit in _edits(body))


def _edits(body: Json) -> list[Json]:
    edits = listed(mapping(body.get("context_management")).get("edits"))
    return [edit for edit in edits if isinstance(edit, dict)]


def _kind(edit: Json) -> str:
    """The type of an edit without its version."""
    return str(edit.get("type")).rpartition("_")[0]


def _blocks(unit: Unit) -> list[Any]:
    content = mapping(unit.value).get("content") if unit.section == "messages" else None
    return content if isinstance(content, list) else []


def _with_blocks(unit: Unit, blocks: list[Any]) -> Piece:
    if len(blocks) == len(_blocks(unit)):
        return (unit,)
    return (unit._replace(value={**unit.value, "content": blocks}),) if blocks else ()


def _compaction(unit: Unit) -> int:
    """The index of the last compaction among a message's blocks; -1: there is none, or it failed."""
    found = (
        at for at, block in enumerate(_blocks(unit))
        if isinstance(block, dict) and block.get("type") == "compaction"
        and isinstance(block.get("content"), str)
    )  # fmt: skip
    return max(found, default=-1)


def _clear(pieces: list[Piece], edits: dict[str, Json], applied: list[Json], known: LeftOut) -> None:
    """Take out as many of the oldest tool results and thinking as the answer says were cleared."""
    tools, thinking = edits.get("clear_tool_uses"), edits.get("clear_thinking")
    spared = listed(tools.get("exclude_tools")) if tools is not None else []
    uses = [
        str(block.get("id")) for piece in pieces for unit in piece for block in map(mapping, _blocks(unit))
        if str(block.get("type")).endswith("tool_use") and block.get("name") not in spared
    ]  # fmt: skip
    number = max((count(one.get("cleared_tool_uses")) or 0 for one in applied), default=0)
    known.cleared = (known.cleared & {*uses}) | {*uses[:number]} if tools is not None else set()
    turns = max((count(one.get("cleared_thinking_turns")) or 0 for one in applied), default=0)
    known.thinking = (turns or known.thinking) if thinking is not None else 0
    if not known.cleared and not known.thinking:
        return
    inputs = tools.get("clear_tool_inputs") if tools is not None else None
    turn, thought = 0, False
    for at, piece in enumerate(pieces):
        for unit in piece[:1]:
            blocks = _blocks(unit)
            if mapping(unit.value).get("role") == "user" and not all(map(_is_result, blocks or [None])):
                turn, thought = turn + thought, False
            thought = thought or any(map(_is_thinking, blocks))
            kept = [
                block for block in blocks
                if not (_is_thinking(block) and turn < known.thinking)
                and not _is_cleared(mapping(block), known.cleared, inputs)
            ]  # fmt: skip
            pieces[at] = (*_with_blocks(unit, kept), *piece[1:])


def _is_result(block: Any) -> bool:
    return str(mapping(block).get("type")).endswith("tool_result")


def _is_thinking(block: Any) -> bool:
    return mapping(block).get("type") in ("thinking", "redacted_thinking")


def _is_cleared(block: Json, cleared: set[str], inputs: Any) -> bool:
    """Whether a block is the result of a cleared tool use, or its call where the inputs go as well."""
    if string(block.get("tool_use_id")) in cleared:
        return True
    named = inputs is True or (isinstance(inputs, list) and block.get("name") in inputs)
    return named and string(block.get("id")) in cleared


def _found_tools(unit: Unit) -> list[str]:
    """Names of the tools that a message's search results load."""
    found = []
    for block in map(mapping, _blocks(unit)):
        content = block.get("content")
        inside = mapping(content).get("tool_references") if isinstance(content, dict) else content
        found += [string(mapping(one).get("tool_name")) for one in (block, *listed(inside))]
    return [name for name in found if name is not None]


# -- OpenAI -----------------------------------------------------------------------------------------------

_SAID: Final = ("system", "developer", "user")


def of_input(units: list[Unit], known: LeftOut) -> list[Piece] | None:
    """As `Dialect.reached`, of OpenAI's Responses (developers.openai.com: *Compaction*, *Tool search*)."""
    given = [at for at, unit in enumerate(units) if unit.section == "input"]
    last = max((at for at in given if mapping(units[at].value).get("type") in COMPACTIONS), default=-1)
    before = [at for at in given if at < last and not units[at].head]
    # A compaction that was asked for returns the users' messages beside its summary.  The provider's own
    # comes after
    # the rest of the history too.
    made = last >= 0 and string(mapping(units[last].value).get("id")) in known.summaries
    gone = {*before} if made or any(_is_answer(units[at]) for at in before) else set()
    pieces: list[Piece] = [() if at in gone else _loaded(unit) for at, unit in enumerate(units)]
    whole = all(len(piece) == 1 and piece[0] is unit for piece, unit in zip(pieces, units, strict=True))
    return None if whole else pieces


def _is_answer(unit: Unit) -> bool:
    item = mapping(unit.value)
    return item.get("type") not in COMPACTIONS and item.get("role") not in _SAID


def _loaded(unit: Unit) -> Piece:
    """A tool as the model reads it before a search finds it: its name and its description."""
    tool = unit.value
    if unit.section != "tools" or not isinstance(tool, dict):
        return (unit,)
    inner = [one for one in listed(tool.get("tools")) if mapping(one).get("defer_loading") is not True]
    if tool.get("defer_loading") is True:
        shown = {name: value for name, value in tool.items() if name != "parameters"}
    elif len(inner) < len(listed(tool.get("tools"))):
        shown = {**tool, "tools": inner}
    else:
        return (unit,)
    return (unit._replace(value=shown),)
