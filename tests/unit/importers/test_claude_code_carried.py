"""Claude Code: an API call that stands in the transcripts of several sessions is billed once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from ctxctl.analysis.costs import Costs, step_costs
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.tokens.catalogue.rates import RateBook

Json = dict[str, Any]


def asked(uuid: str, parent: str | None, session: str, second: int, **more: Any) -> Json:
    return {
        "parentUuid": parent, "isSidechain": False, "userType": "external", "sessionId": session,
        "version": "2.1.30", "type": "user", "uuid": uuid,
        "message": {"role": "user", "content": f"prompt {uuid}"},
        "timestamp": f"2026-03-02T09:00:{second:02}.000Z", **more,
    }  # fmt: skip


def answered(uuid: str, parent: str, session: str, second: int, **more: Any) -> Json:
    number = int(uuid.removeprefix("a"))
    usage = {
        "input_tokens": number, "cache_read_input_tokens": 1000 * number, "cache_creation_input_tokens": 0,
        "output_tokens": 20,
    }  # fmt: skip
    message = {
        "id": f"msg_{uuid}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929",
        "content": [{"type": "text", "text": f"The answer {uuid} to it, in some words of its own."}],
        "usage": usage,
    }  # fmt: skip
    line = asked(uuid, parent, session, second, **more)
    return {**line, "type": "assistant", "message": message, "requestId": f"req_{uuid}"}


def exchange(number: int, session: str, second: int, **more: Any) -> list[Json]:
    above = f"a{number - 1}" if number > 1 else None
    return [
        asked(f"u{number}", above, session, second, **more),
        answered(f"a{number}", f"u{number}", session, second + 1, **more),
    ]


def write(folder: Path, name: str, *exchanges: list[Json]) -> Path:
    path = folder / f"{name}.jsonl"
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for lines in exchanges for line in lines))
    return path


def billed(path: Path) -> tuple[dict[str, list[int | None]], list[str]]:
    """By session, the cached input of each request; and what is said of history that was carried in."""
    found: dict[str, list[int | None]] = {}
    with Inspector.open(path) as inspector:
        for step in inspector.replay():
            if isinstance(step, Step):
                found.setdefault(str(step.session), []).append(step.usage and step.usage.reported_cached)
        return found, [p.message for p in inspector.problems if p.slug == "carried-history"]


def test_a_copy_with_the_childs_own_session_and_time_is_its_parents(tmp_path: Path) -> None:
    """As versions 1.0 resume: what is copied has the new session's id, and its answers the new time."""
    write(tmp_path, "z-parent", exchange(1, "parent", 1), exchange(2, "parent", 5), exchange(3, "parent", 50))
    again = [answered("a2", "u2", "child", 30)]
    child = write(tmp_path, "a-child", exchange(1, "child", 1)[:1], [answered("a1", "u1", "child", 30)],
                  exchange(2, "parent", 5)[:1], again, exchange(4, "child", 40))  # fmt: skip
    bills, told = billed(tmp_path)
    assert bills == {"child": [4000], "parent": [1000, 2000, 3000]}
    assert told == [
        "a-child.jsonl: 2 API calls stand in z-parent.jsonl too: billed there, here they are history"
    ]
    alone, said = billed(child)
    assert alone == {"child": [1000, 2000, 4000]}
    assert said == []


def test_what_was_copied_is_in_the_window_of_the_childs_first_request(tmp_path: Path) -> None:
    write(tmp_path, "parent", exchange(1, "parent", 1), exchange(2, "parent", 5))
    write(tmp_path, "child", exchange(1, "parent", 1), exchange(2, "parent", 5), exchange(3, "child", 9))
    with Inspector.open(tmp_path) as inspector:
        steps = [r for r in inspector.replay() if isinstance(r, Step)]
        (at,) = [n for n, step in enumerate(steps) if step.session == "child"]
        items = [p.item for p in inspector.frame(at).placements]
    assert items == ["u1", "a1", "u2", "a2", "u3"]
    assert steps[at].counts.added == 5


def test_lines_that_keep_their_session_are_that_sessions(tmp_path: Path) -> None:
    copied = [*exchange(1, "one", 1), *exchange(2, "one", 5)]
    write(tmp_path, "b", exchange(1, "one", 1), exchange(2, "one", 5))
    child = write(tmp_path, "a", copied, exchange(3, "two", 9))
    assert billed(tmp_path)[0] == {"two": [3000], "one": [1000, 2000]}
    alone, told = billed(child)
    assert alone == {"one": [1000, 2000, 3000]}
    assert told == ["API calls from here on name session one, later ones two: they were carried over"]


def test_a_line_that_says_it_was_forked_is_not_its_files(tmp_path: Path) -> None:
    mark = {"forkedFrom": {"sessionId": "parent", "messageUuid": "a1"}}
    write(tmp_path, "a-child", exchange(1, "child", 1, **mark), exchange(2, "child", 5))
    write(tmp_path, "z-parent", exchange(1, "parent", 1))
    assert billed(tmp_path)[0] == {"child": [2000], "parent": [1000]}


def test_two_states_of_one_session_are_billed_as_the_later_one(tmp_path: Path) -> None:
    early = [*exchange(1, "one", 1), *exchange(2, "one", 5)]
    write(tmp_path, "2", early)
    write(tmp_path, "1", early, exchange(3, "one", 9))
    write(tmp_path, "3", early)
    bills, told = billed(tmp_path)
    assert sorted(n for found in bills.values() for n in found if n is not None) == [1000, 2000, 3000]
    assert len(told) == 2


def test_the_same_id_with_another_bill_is_another_call(tmp_path: Path) -> None:
    write(tmp_path, "one", exchange(1, "one", 1))
    other = exchange(1, "two", 1)
    other[1]["message"]["usage"]["input_tokens"] = 77
    write(tmp_path, "two", other)
    assert billed(tmp_path) == ({"one": [1000], "two": [1000]}, [])


def test_the_cost_of_a_directory_is_that_of_its_calls(tmp_path: Path) -> None:
    def cost(path: Path) -> tuple[int, Any]:
        with Inspector.open(path) as inspector:
            costs = Costs(RateBook())
            assert list(step_costs(inspector, costs))
            return costs.steps, costs.billed.total

    whole = write(tmp_path, "whole", *(exchange(n, "one", 2 * n) for n in range(1, 6)))
    expected = cost(whole)
    write(tmp_path, "part", *(exchange(n, "one", 2 * n) for n in range(1, 4)))
    assert cost(tmp_path) == expected


def test_a_sub_agent_of_a_copied_call_is_its_parents(tmp_path: Path) -> None:
    def session(name: str) -> list[Json]:
        call = answered("a1", "u1", name, 2)
        call["message"]["content"] = [
            {
                "type": "tool_use",
                "id": "toolu_1",
                "name": "Task",
                "input": {"prompt": "look", "description": "x"},
            }
        ]
        result = asked("r1", "a1", name, 8, toolUseResult={"agentId": "ab12"})
        block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "found"}
        result["message"] = {"role": "user", "content": [block]}
        return [*exchange(1, name, 1)[:1], call, result]

    sub = [
        {**asked("s1", None, "parent", 3), "isSidechain": True, "agentId": "ab12"},
        {**answered("a9", "s1", "parent", 4), "isSidechain": True, "agentId": "ab12"},
    ]
    write(tmp_path, "z-parent", session("parent"))
    write(tmp_path, "a-child", session("parent"), [asked("u2", "r1", "child", 30)],
          [answered("a2", "u2", "child", 31)])  # fmt: skip
    write(tmp_path, "agent-ab12", sub)
    assert billed(tmp_path)[0] == {"child": [2000], "parent": [1000, 9000]}
