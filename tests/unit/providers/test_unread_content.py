"""What a provider leaves out of requests by its own word: the same for captures and for recorded traffic."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxctl import Recorder
from ctxctl.model.results import Step
from ctxctl.providers.dialects import by_name
from ctxctl.providers.dialects.stream import streamed_response
from ctxctl.providers.dialects.units import LeftOut
from ctxctl.session import Inspector
from tests.unit.record.exchange_help import MESSAGES, RESPONSES, Wire

Json = dict[str, Any]
Exchange = tuple[Json, Json]


def tool(name: str, **more: Any) -> Json:
    schema = {"type": "object", "properties": {"q": {"type": "string", "description": "What to look for."}}}
    return {"name": name, "description": f"Does {name}.", "input_schema": schema, **more}


def asks(messages: list[Json], tools: list[Json], *edits: Json) -> Json:
    body: Json = {"model": "claude-sonnet-4-6", "max_tokens": 9, "system": "Be brief.", "tools": tools}
    managed = {"context_management": {"edits": list(edits)}} if edits else {}
    return {**body, "messages": messages, **managed}


def says(content: list[Json], tokens: int, iterations: Any = None, applied: Any = None) -> Json:
    usage: Json = {"input_tokens": tokens, "output_tokens": 5}
    made: Json = {"id": f"msg_{tokens}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6"}
    made |= {"content": content, "usage": usage | ({"iterations": iterations} if iterations else {})}
    return made | ({"context_management": {"applied_edits": applied}} if applied is not None else {})


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def back(*content: Json) -> Json:
    return {"role": "assistant", "content": list(content)}


def call(number: int, name: str = "read", thought: bool = False) -> list[Json]:
    thinking = {"type": "thinking", "thinking": f"Let me think of {number}.", "signature": f"s{number}"}
    made = {"type": "tool_use", "id": f"tu{number}", "name": name, "input": {"q": str(number)}}
    return [thinking, made] if thought else [made]


def result(number: int) -> Json:
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": f"tu{number}", "content": f"file {number}"}],
    }


# -- what was cleared ---------------------------------------------------------------------------------------

TOOLS = {"type": "clear_tool_uses_20250919", "keep": {"type": "tool_uses", "value": 1}}
THINKING = {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}}


def reading(number: int, **more: Any) -> list[Json]:
    """A question, and so many calls with their results."""
    made = [user("Read them all.")]
    for at in range(number):
        made += [back(*call(at, **more)), result(at)]
    return made


def cleared(uses: int, tokens: int) -> Json:
    return {"type": "clear_tool_uses_20250919", "cleared_tool_uses": uses, "cleared_input_tokens": tokens}


def growing(edit: Json, applied: list[Any], number: int = 3) -> list[Exchange]:
    """One answer after `number` calls, then one after each further call; `applied` as each answer says."""
    return [
        (asks(reading(at), [tool("read")], edit), says(call(at), 100 + at, applied=said))
        for at, said in enumerate(applied, number)
    ]


MIXED = [user("a"), back(*call(0)), result(0), back(*call(1, "keep")), result(1), back(*call(2)), result(2)]
TURNS = [
    user("a"),
    back(*call(0, thought=True)),
    result(0),
    back({"type": "thinking", "thinking": "So.", "signature": "x"}, text("One.")),
    user("b"),
    back(*call(1, thought=True)),
    result(1),
]

# -- compactions --------------------------------------------------------------------------------------------

COMPACT = {"type": "compact_20260112"}
FIRST = {"type": "compaction", "content": "The first summary."}
LONG = {"type": "compaction", "content": "A summary of all that was said about the sea."}
SECOND = {"type": "compaction", "content": "The second summary."}
PASSES = [
    {"type": "compaction", "input_tokens": 900, "output_tokens": 40},
    {"type": "message", "input_tokens": 60, "output_tokens": 5},
]
PAUSED = [{"type": "compaction", "input_tokens": 900, "output_tokens": 40}]
HISTORY = [user("An old question."), back(text("An old answer.")), user("Go on.")]
ON = [*HISTORY, back(FIRST, text("Going on.")), user("And now?")]


def compacting(messages: list[Json], content: list[Json], tokens: int, passes: Any = None) -> Exchange:
    return asks(messages, [tool("read")], COMPACT), says(content, tokens, passes)


# -- tools that are found -----------------------------------------------------------------------------------

SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
DEFERRED = [SEARCH, tool("now"), tool("later", defer_loading=True), tool("never", defer_loading=True)]
FOUND = [
    {"type": "server_tool_use", "id": "srv1", "name": "tool_search_tool_bm25", "input": {"query": "x"}},
    {"type": "tool_search_tool_result", "tool_use_id": "srv1", "content": {
        "type": "tool_search_tool_search_result",
        "tool_references": [{"type": "tool_reference", "tool_name": "later"}]}},
]  # fmt: skip
BY_CLIENT = {
    "type": "tool_result",
    "tool_use_id": "tu0",
    "content": [{"type": "tool_reference", "tool_name": "never"}],
}

# -- OpenAI -------------------------------------------------------------------------------------------------


def item(role: str, words: str, ident: str | None = None) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    made: Json = {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}
    return made | ({"id": ident} if ident else {})


def function(name: str, **more: Any) -> Json:
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    return {"type": "function", "name": name, "description": f"Does {name}.", "parameters": schema, **more}


def responses(given: list[Json], output: list[Json], tokens: int, tools: Any = None, **more: Any) -> Exchange:
    body: Json = {"model": "gpt-5.4", "instructions": "Be brief.", "tools": tools or [function("now")]}
    body |= {"context_management": [{"type": "compaction", "compact_threshold": 2000}], "input": given}
    answer = {"id": f"resp_{tokens}", "object": "response", "model": "gpt-5.4", "output": output, **more}
    return body, answer | {"usage": {"input_tokens": tokens, "output_tokens": 5}}


SEALED = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAA" * 20}
ASKED = item("user", "A question about tides.")
REST = item("assistant", "An answer behind the compaction.", "m2")
NAMESPACE = {
    "type": "namespace",
    "name": "crm",
    "description": "Orders.",
    "tools": [function("orders", defer_loading=True)],
}
OPENAI_FOUND = [
    {"type": "tool_search_call", "id": "tsc_1", "execution": "server", "call_id": None, "arguments": {}},
    {
        "type": "tool_search_output",
        "id": "tso_1",
        "execution": "server",
        "call_id": None,
        "tools": [NAMESPACE],
    },
]

HEAD = ["tool:read", "Be brief."]
CASES: dict[str, tuple[list[Exchange], list[list[str]], list[int], dict[str, str], int]] = {
    # exchanges; what the last two requests carried; all sizes; causes of the last step; compactions
    "the oldest results are cleared, each time so many as the answer says": (
        growing(TOOLS, [[], [cleared(2, 40)], [cleared(3, 60)]]),
        [
            [*HEAD, "Read them all.", "tu0", "tu1", "tu2", "tu2/result", "tu3", "tu3/result"],
            [*HEAD, "Read them all.", "tu0", "tu1", "tu2", "tu3", "tu3/result", "tu4", "tu4/result"],
        ],
        [103, 104, 105],
        {"tu2/result": "cleared"},
        0,
    ),
    "what was cleared stays so where an answer repeats nothing of it": (
        growing(TOOLS, [[cleared(2, 40)], None]),
        [
            [*HEAD, "Read them all.", "tu0", "tu1", "tu2", "tu2/result"],
            [*HEAD, "Read them all.", "tu0", "tu1", "tu2", "tu2/result", "tu3", "tu3/result"],
        ],
        [103, 104],
        {},
        0,
    ),
    "the inputs go too, and not those of tools that are excluded": (
        [
            (
                asks(MIXED, [tool("read")], {**TOOLS, "exclude_tools": ["keep"], "clear_tool_inputs": True}),
                says(call(3), 90, applied=applied),
            )
            for applied in ([], [cleared(1, 9)])
        ],
        [
            [*HEAD, "a", "tu0", "tu0/result", "tu1", "tu1/result", "tu2", "tu2/result"],
            [*HEAD, "a", "tu1", "tu1/result", "tu2", "tu2/result"],
        ],
        [90, 90],
        {"tu0": "cleared", "tu0/result": "cleared"},
        0,
    ),
    "thinking of the first turns is cleared": (
        [
            (asks(TURNS, [tool("read")], THINKING), says([text("Two.")], 80, applied=applied))
            for applied in (
                [],
                [
                    {
                        "type": "clear_thinking_20251015",
                        "cleared_thinking_turns": 1,
                        "cleared_input_tokens": 30,
                    }
                ],
            )
        ],
        [
            [
                *HEAD,
                "a",
                "Let me think of 0.",
                "tu0",
                "tu0/result",
                "So.",
                "One.",
                "b",
                "Let me think of 1.",
                "tu1",
                "tu1/result",
            ],
            [*HEAD, "a", "tu0", "tu0/result", "One.", "b", "Let me think of 1.", "tu1", "tu1/result"],
        ],
        [80, 80],
        {"Let me think of 0.": "cleared", "So.": "cleared"},
        0,
    ),
    "an answer goes on from its own compaction, and so do later requests": (
        [compacting(HISTORY, [FIRST, text("Going on.")], 60, PASSES), compacting(ON, [text("Well.")], 75)],
        [[*HEAD, "The first summary."], [*HEAD, "The first summary.", "Going on.", "And now?"]],
        [60, 75],
        {},
        1,
    ),
    "a capture begins behind a compaction": (
        [
            compacting(ON, [text("Well.")], 75),
            compacting([*ON, back(text("Well.")), user("More.")], [SECOND, text("Fine.")], 60, PASSES),
        ],
        [[*HEAD, "The first summary.", "Going on.", "And now?"], [*HEAD, "The second summary."]],
        [75, 60],
        {"The first summary.": "compacted", "Going on.": "compacted", "And now?": "compacted"},
        2,
    ),
    "an answer ends with its compaction": (
        [
            compacting(HISTORY, [FIRST], 0, PAUSED),
            compacting([*HISTORY, back(FIRST), user("So?")], [text("Well.")], 50),
        ],
        [[*HEAD, "An old question.", "An old answer.", "Go on."], [*HEAD, "The first summary.", "So?"]],
        [900, 50],
        {"An old question.": "compacted", "An old answer.": "compacted", "Go on.": "compacted"},
        1,
    ),
    "a client sends no more what stands before a compaction": (
        [
            compacting(HISTORY, [LONG, text("On.")], 60, PASSES),
            compacting([back(LONG, text("On.")), user("So?")], [text("Well.")], 75),
        ],
        [[*HEAD, LONG["content"]], [*HEAD, LONG["content"], "On.", "So?"]],
        [60, 75],
        {},
        1,
    ),
    "two compactions in one answer": (
        [
            compacting(HISTORY, [text("Hm.")], 100),
            compacting(
                [*HISTORY, back(text("Hm.")), user("More.")],
                [FIRST, *call(7), SECOND, text("Fine.")],
                60,
                [*PASSES, *PASSES],
            ),
        ],
        [[*HEAD, "An old question.", "An old answer.", "Go on."], [*HEAD, "The second summary."]],
        [100, 60],
        {"An old question.": "compacted", "An old answer.": "compacted", "Go on.": "compacted"},
        2,
    ),
    "a compaction that failed changes nothing": (
        [
            compacting(
                [*HISTORY, back({"type": "compaction", "content": None}, text("On.")), user("So?")],
                [text("Well.")],
                70,
            )
        ]
        * 2,
        [
            [
                *HEAD,
                "An old question.",
                "An old answer.",
                "Go on.",
                '{"type":"compaction","content":null}',
                "On.",
                "So?",
            ]
        ]
        * 2,
        [70, 70],
        {},
        0,
    ),
    "a deferred tool is there once it is found": (
        [
            (asks([user("Orders?")], DEFERRED), says([*FOUND, *call(0, "later")], 500)),
            (
                asks([user("Orders?"), back(*FOUND, *call(0, "later")), result(0)], DEFERRED),
                says([text("Three.")], 700),
            ),
            (
                asks(
                    [
                        user("Orders?"),
                        back(*FOUND, *call(0, "later")),
                        {"role": "user", "content": [BY_CLIENT]},
                    ],
                    DEFERRED,
                ),
                says([text("?")], 750),
            ),
        ],
        [
            [
                "tool:tool_search_tool_bm25",
                "tool:now",
                "Be brief.",
                "Orders?",
                "srv1",
                "srv1/result",
                "tu0",
                "tool:later",
                "tu0/result",
            ],
            [
                "tool:tool_search_tool_bm25",
                "tool:now",
                "Be brief.",
                "Orders?",
                "srv1",
                "srv1/result",
                "tu0",
                "tool:later",
                "tu0/result",
                "tool:never",
            ],
        ],
        [500, 700, 750],
        {},
        0,
    ),
    "OpenAI's own compaction on the way to an answer": (
        [
            responses([ASKED], [SEALED, REST], 90),
            responses([ASKED, SEALED, REST, item("user", "So?")], [], 60),
        ],
        [
            ["tool:now", "Be brief.", "A question about tides."],
            ["tool:now", "Be brief.", "cmp_1", "An answer behind the compaction.", "So?"],
        ],
        [90, 60],
        {"A question about tides.": "compacted"},
        1,
    ),
    "a history in front of a compaction that nobody saw": (
        [
            responses([ASKED, item("assistant", "Old.", "m1"), SEALED, REST, item("user", words)], [], 60)
            for words in ("So?", "Well?")
        ],
        [
            ["tool:now", "Be brief.", "cmp_1", "An answer behind the compaction.", words]
            for words in ("So?", "Well?")
        ],
        [60, 60],
        {"So?": "unrecorded"},
        1,
    ),
    "what a compaction that was asked for gives out stays": (
        [responses([ASKED, SEALED, item("user", "So?")], [], 60)] * 2,
        [["tool:now", "Be brief.", "A question about tides.", "cmp_1", "So?"]] * 2,
        [60, 60],
        {},
        0,
    ),
    "OpenAI's deferred tools": (
        [
            responses(
                given, OPENAI_FOUND, 70, [function("now"), function("later", defer_loading=True), NAMESPACE]
            )
            for given in ([ASKED], [ASKED, *OPENAI_FOUND, item("user", "So?")])
        ],
        [
            ["tool:now", "tool:later", "tool:crm", "Be brief.", "A question about tides."],
            [
                "tool:now",
                "tool:later",
                "tool:crm",
                "Be brief.",
                "A question about tides.",
                "tsc_1",
                "tso_1/tool:crm",
                "So?",
            ],
        ],
        [70, 70],
        {},
        0,
    ),
}


def captured(path: Path, exchanges: list[Exchange]) -> Path:
    rows = [json.dumps({"request": body, "response": answer}) for body, answer in exchanges]
    path.write_text("\n".join(rows))
    return path


def relayed(path: Path, exchanges: list[Exchange]) -> Path:
    wire = Wire(path)
    for body, answer in exchanges:
        wire.ask(body, answer, RESPONSES if "input" in body else MESSAGES)
    wire.recorder.close()
    assert (wire.recorder.dropped, wire.recorder._core.journal.errors) == (0, {})
    return path


def told(path: Path, exchanges: list[Exchange]) -> Path:
    with Recorder(path, strict=True) as recorder:
        for body, answer in exchanges:
            with recorder.turn() as turn:
                turn.step().request(body).response(answer)
    return path


@pytest.mark.parametrize("way", [captured, relayed, told])
@pytest.mark.parametrize("name", CASES)
def test_frames_hold_what_was_read(
    tmp_path: Path, name: str, way: Callable[[Path, list[Exchange]], Path]
) -> None:
    exchanges, frames, sizes, causes, compactions = CASES[name]
    with Inspector.open(way(tmp_path / "t.jsonl", exchanges)) as inspector:
        steps = [found for found in inspector.replay() if isinstance(found, Step)]
        names: dict[str, str] = {}

        def shown(ordinal: int) -> list[str]:
            made = []
            for placement in inspector.frame(ordinal).placements:
                words = inspector.text(placement.content) if placement.content else None
                own = any(mark in placement.item for mark in ("tu", "tool:", "srv", "cmp_", "tsc_"))
                names[placement.item] = placement.item if own or not words else words
                made.append(names[placement.item])
            return made

        assert [shown(at) for at in range(len(steps))][-2:] == frames
        assert [step.window.used for step in steps] == sizes
        removed = {c.item: c.cause for c in steps[-1].changes if c.status == "removed"}
        assert {names[item]: cause for item, cause in removed.items()} == causes
        assert sum(len(step.annotations.compactions) for step in steps) == compactions
        assert not [problem for problem in inspector.problems if problem.slug != "lost-contents"]


def test_an_answer_may_tell_of_edits_that_a_log_leaves_out_of_the_request(tmp_path: Path) -> None:
    body = asks(reading(2), [tool("read")])
    path = captured(tmp_path / "t.jsonl", [(body, says(call(2), 103, applied=[cleared(1, 20)]))])
    with Inspector.open(path) as inspector:
        list(inspector.replay())
        results = [p.item for p in inspector.frame(0).placements if p.kind == "tool_result"]
    assert results == ["tu1/result"]


def test_parameters_of_a_tool_are_read_where_a_search_found_them(tmp_path: Path) -> None:
    exchanges = CASES["OpenAI's deferred tools"][0]
    with Inspector.open(captured(tmp_path / "t.jsonl", exchanges)) as inspector:
        list(inspector.replay())
        frame = {p.item: inspector.text(p.content) for p in inspector.frame(1).placements if p.content}
    assert [(name, "parameters" in (words or "")) for name, words in frame.items() if "tool:" in name] == [
        ("tool:now", True), ("tool:later", False), ("tool:crm", False), ("tso_1/tool:crm", True),
    ]  # fmt: skip


def test_deferred_tools_are_omitted_with_the_reason_and_clearing_with_its_tokens(tmp_path: Path) -> None:
    exchanges = CASES["a deferred tool is there once it is found"][0]
    with Inspector.open(captured(tmp_path / "t.jsonl", exchanges)) as inspector:
        first = next(found for found in inspector.replay() if isinstance(found, Step))
    omitted = {c.item: c.reason for c in first.changes if c.status == "omitted"}
    assert omitted == {"tool:later": "deferred", "tool:never": "deferred"}
    path = captured(tmp_path / "c.jsonl", growing(TOOLS, [[cleared(2, 40)]]))
    with Inspector.open(path) as inspector:
        step = next(found for found in inspector.replay() if isinstance(found, Step))
    assert step.usage is not None
    assert step.usage.terms.cleared_tokens == 40


@pytest.mark.parametrize("odd", [None, 7, [1], {"a": 1}])
def test_ids_and_names_of_other_types_are_passed_over(odd: Any) -> None:
    edited = [user("a"), back({"type": "tool_use", "id": odd, "name": odd}), back(*call(0)), result(0)]
    edited.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": odd, "content": odd}]})
    body = asks(edited, [tool("read"), tool(odd, defer_loading=True)], {**TOOLS, "exclude_tools": [odd]})
    claude, openai, known = by_name("anthropic"), by_name("openai-responses"), LeftOut()
    read = claude.reached(claude.units(body), body, says([], 1, applied=[cleared(1, 9)]), known)
    assert (known.cleared, read is not None and sum(map(len, read))) == ({"tu0"}, 6)
    units = openai.units({"input": [item("assistant", "a"), {"type": "compaction", "id": odd}]})
    assert openai.reached(units, {}, None, known) == [(), (units[1],)]


def test_a_stream_ends_with_its_passes_and_edits() -> None:
    events = [
        {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "c",
         "content": [], "usage": {"input_tokens": 900, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "compaction", "content": None}},
        {"type": "content_block_delta", "index": 0,
         "delta": {"type": "compaction_delta", "content": "The first summary."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"},
         "usage": {"input_tokens": 60, "output_tokens": 5, "iterations": PASSES},
         "context_management": {"applied_edits": [cleared(2, 40)]}},
    ]  # fmt: skip
    stream = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
    body = streamed_response(stream, "anthropic")
    assert body is not None
    assert body["content"] == [FIRST]
    assert (body["usage"]["iterations"], body["context_management"]["applied_edits"]) == (
        PASSES, [cleared(2, 40)],
    )  # fmt: skip
