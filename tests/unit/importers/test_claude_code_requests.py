"""What Claude Code writes of its requests: windows are what was sent, not what the lines add up to.

`data/claude_code_wire.json` holds what the client of `fixtures/claude_code/requests.jsonl` sent while it
wrote that file: of each request's body its texts in order, with what they are of.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.importers import registry
from ctxctl.importers.claude_code import FORMAT
from ctxctl.importers.claude_code.requests import RECORDED, is_since
from ctxctl.model.problem import Problem
from ctxctl.trace.source import Source, open_source
from ctxctl.trace.writer import TraceWriter
from tests.unit.importers.claude_code_help import (
    FIXTURES,
    call,
    events,
    of_type,
    result,
    said,
    spliced,
    text,
    user,
)

Json = dict[str, Any]
CAPTURE = FIXTURES / "claude_code" / "requests.jsonl"
WIRE = json.loads((Path(__file__).parent / "data" / "claude_code_wire.json").read_text())
UNRECORDED = {"008": "asks for the summary of a compaction"}
ADDED, UPDATED = "context.item.added", "context.item.updated"
ASSEMBLED, BILLED = "context.assembly.created", "ctxctl.usage.reported"
FAILED = "ctxctl.step.failed"


def lines(path: Path = CAPTURE) -> list[Json]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def read(path: Path) -> tuple[list[Json], list[Problem]]:
    problems: list[Problem] = []
    with open_source(path) as source:
        return list(FORMAT.events(source, problems.append)), problems


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sent() -> list[tuple[str, str]]:
    """The number of each request on the wire, and all that its body says, in order, less deferred tools."""
    found = []
    for request in WIRE["requests"]:
        parts = [WIRE["texts"][digest] for _, digest in request["parts"]]
        found.append((request["n"], "".join(one for one in parts if '"defer_loading":true' not in one)))
    return found


def windows(found: list[Json]) -> dict[str, list[tuple[Json, Json, str]]]:
    """Block, item and text of each placement, by step."""
    items: dict[str, Json] = {}
    made: dict[str, list[tuple[Json, Json, str]]] = {}
    last: dict[str, list[Json]] = {}
    for event in found:
        data = event["data"]
        if event["event_type"] in (ADDED, UPDATED):
            version = data.get("metadata", {}).get("version")
            if "content" in data:
                version = version or sha256(data["content"].encode()).hexdigest()[:16]
            items[f"{data['item_id']}@{version}"] = data
        elif event["event_type"] == ASSEMBLED:
            blocks, own = data["ordered_blocks"], data["metadata"]["ctxctl"]
            if "base" in own:
                # Spelt out by index: `spliced` puts lists of strings together.
                base = last[event["thread_id"]]
                both = {str(at): block for at, block in enumerate([*base, *blocks])}
                names = list(both)
                order = spliced(names[: len(base)], names[len(base) :], own["splices"])
                blocks = [both[name] for name in order]
            last[event["thread_id"]] = blocks
            told = [(block, items[block["item_refs"][0]]) for block in blocks]
            made[event["step_id"]] = [(block, item, said_by(block, item)) for block, item in told]
    return made


def said_by(block: Json, item: Json) -> str:
    value: str = item.get("content", "")
    if item["context_kind"] == "tool_definition":
        value = canonical(json.loads(value))
    before: str = block.get("wrapper", {}).get("before", "")
    return before + value


def whole(found: list[Json]) -> dict[str, str]:
    """All that each step's window says."""
    return {step: "".join(said for *_, said in placed) for step, placed in windows(found).items()}


def held(found: list[Json], problems: list[Problem], *slugs: str) -> None:
    """Each request of the capture has the window that was sent, and no other step is there."""
    assert [problem.slug for problem in problems] == list(slugs)
    wanted = [said for number, said in sent() if number not in UNRECORDED]
    assert sorted(whole(found).values()) == sorted(wanted)


def test_each_window_is_what_was_sent() -> None:
    held(*read(CAPTURE))


def test_each_bill_is_that_of_its_request() -> None:
    found, _ = read(CAPTURE)
    told = {body: WIRE["requests"][at] for at, (_, body) in enumerate(sent())}
    bills = {event["step_id"]: event["data"] for event in of_type(found, BILLED)}
    for step, body in whole(found).items():
        request = next(r for r, (_, b) in zip(WIRE["requests"], sent(), strict=True) if b == body)
        usage = request["usage"] if step in bills else None
        if usage is None:
            continue
        bill = bills[step]
        assert (bill["input_tokens"], bill.get("cached_tokens"), bill["output_tokens"]) == (
            usage["input"], usage["cached"], usage["output"],
        )  # fmt: skip
    assert len(bills) == sum(r["usage"] is not None for r in told.values()) - len(UNRECORDED)


def test_a_request_without_an_answer_is_a_step_that_failed() -> None:
    found, _ = read(CAPTURE)
    (failed,) = of_type(found, FAILED)
    assert "overloaded_error" in failed["data"]["error"]
    again = [event["step_id"] for event in of_type(found, ASSEMBLED) if event["thread_id"] == "main"]
    at = again.index(failed["step_id"])
    assert whole(found)[again[at]] == whole(found)[again[at + 1]]


def test_a_record_that_stands_there_again_is_no_request() -> None:
    plain, _ = events(*lines())
    twice = [one for line in lines() for one in ([line, line] if line["type"] == "api-request" else [line])]
    late = [*lines(), *(line for line in lines() if line["type"] == "api-request")]
    for told in (twice, late):
        found, problems = events(*told)
        assert not problems
        assert whole(found) == whole(plain)
    (first, *_) = (line for line in lines() if line["type"] == "api-request")
    other, _ = events(*lines(), {**first, "timestamp": "2026-11-22T20:00:00.000Z"})
    assert len(of_type(other, FAILED)) == len(of_type(plain, FAILED)) + 1, "of the same id, but not the same"


def test_what_the_client_put_in_is_the_item_of_its_line() -> None:
    found, _ = read(CAPTURE)
    native = {one["attachment"]["type"]: one["uuid"] for one in reversed(lines()) if "attachment" in one}
    first = next(iter(windows(found).values()))
    placed = {block["item_refs"][0].partition("@")[0]: (block, item) for block, item, _ in first}
    block, rules = placed[native["instructions"]]
    assert "House rule: bees first." in rules["content"]
    assert (block["role"], rules["context_kind"]) == ("user", "durable_memory")
    block, place = placed[native["environment"]]
    assert (block["role"], place["context_kind"]) == ("system", "runtime_state")
    assert place["content"].startswith("# Environment\n")
    assert native["prompt_snapshot"] not in placed


def test_each_content_is_written_once() -> None:
    found, _ = read(CAPTURE)
    out = io.BytesIO()
    writer = TraceWriter(out, source="claude-code")
    for event in found:
        writer.write(event)
    written = out.getvalue().decode()
    long = {e["data"].get("content", "") for e in found if e["event_type"] in (ADDED, UPDATED)}
    long = {one for one in long if len(one) > 500}
    assert len(long) > 5
    assert all(written.count(json.dumps(one, ensure_ascii=False)) == 1 for one in long)


def test_a_sub_agents_file_by_itself_tells_its_requests() -> None:
    (path,) = CAPTURE.with_suffix("").rglob("agent-*.jsonl")
    found, problems = read(path)
    assert not problems
    assert {event["thread_id"] for event in of_type(found, ASSEMBLED)} == {path.stem}
    told = whole(found)
    assert len(told) == 2
    assert set(told.values()) <= {body for _, body in sent()}


def test_parameters_and_cache_markers_are_the_requests() -> None:
    found, _ = read(CAPTURE)
    records = {one["id"]: one for one in lines() if one["type"] == "api-request"}
    (first,) = [one for one in records.values() if one["keep"] == 0][:1]
    assembly = next(e["data"] for e in of_type(found, ASSEMBLED) if e["thread_id"] == "main")
    own = assembly["metadata"]["ctxctl"]
    assert own["request"] == {
        "api": "anthropic", "thinking": first["params"]["thinking"],
        "effort": first["params"]["output_config"]["effort"],
    }  # fmt: skip
    kinds = [item["context_kind"] for _, item, _ in next(iter(windows(found).values()))]
    points = own["cache_points"]
    assert [kinds[at] for at in points[:-1]] == ["system_prompt"] * (len(points) - 1)
    assert points[-1] == len(kinds) - 1


def test_a_file_that_was_changed_since_is_read_by_its_order(tmp_path: Path) -> None:
    """Paths blanked, say: the digests that requests name are those of the lines as they were."""
    changed = tmp_path / "requests.jsonl"
    changed.write_text(CAPTURE.read_text().replace("look around", "l00k ar0und").replace("Three", "Thr33"))
    found, problems = read(changed)
    assert [problem.slug for problem in problems] == ["changed-messages"]
    wanted = [body.replace("look around", "l00k ar0und").replace("Three", "Thr33") for _, body in sent()]
    threads = {event["step_id"]: event["thread_id"] for event in of_type(found, ASSEMBLED)}
    main = [body for step, body in whole(found).items() if threads[step] == "main"]
    assert len(main) == 6
    assert set(main) <= set(wanted)


def test_a_window_that_cannot_be_told_by_records_is_told_by_the_lines() -> None:
    without = [one for one in lines() if one["type"] != "api-request-blob"]
    found, problems = events(*without)
    assert {problem.slug for problem in problems} == {"request-not-read"}
    first = next(iter(windows(found).values()))
    kinds = [item["context_kind"] for _, item, _ in first]
    assert kinds[:4] == ["tool_definition"] * 2 + ["system_prompt"] * 2 or "tool_definition" in kinds
    assert any("House rule" in said for *_, said in first)


def test_without_records_the_head_is_that_of_the_snapshot() -> None:
    without = [one for one in lines() if not one["type"].startswith("api-request")]
    found, problems = events(*without)
    assert not problems
    told, by_lines = whole(read(CAPTURE)[0]), windows(found)
    step = [step for step in by_lines if step in told][1]
    head = [item for _, item, _ in by_lines[step] if item["context_kind"] == "system_prompt"]
    assert [item["metadata"]["ctxctl"]["derived"] for item in head] == [True, True]
    for item in head:
        assert item["content"] in told[step]


@pytest.mark.parametrize(
    ("version", "wanted"),
    [("2.1.330", True), ("2.1.300", True), ("2.1.219", False), ("10.0.0", True), ("x", False), (None, False)],
)
def test_versions_that_write_of_their_requests(version: str | None, wanted: bool) -> None:
    assert is_since(version, RECORDED) is wanted


# -- any request ----------------------------------------------------------------------------------------


def digest(message: Json) -> str:
    content = message["content"]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return sha256(canonical({**message, "content": content}).encode()).hexdigest()


def bare(message: Json) -> Json:
    return {"role": message["role"], "content": message["content"]}


class Client:
    """Writes lines and requests as the client does, and keeps what it sent."""

    def __init__(self) -> None:
        self.lines: list[Json] = []
        self.sent: dict[str, str] = {}
        self._claimed: set[str] = set()
        self._run: tuple[Any, list[Json]] | None = None
        self._last: tuple[str, list[str]] | None = None

    def write(self, line: Json) -> Json:
        self.lines.append({**line, "version": "2.1.330"})
        message = line["message"]
        key = message["role"], message.get("id")
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if self._run is None or self._run[0] != key:
            self._run = key, []
        self._run[1].extend(blocks)
        self._claimed.add(digest({"role": message["role"], "content": self._run[1]}))
        return line

    def ask(self, number: int, messages: list[Json], answer: Callable[[str], Json]) -> Json:
        names = [digest(message) for message in messages]
        for name, message in zip(names, messages, strict=True):
            if name not in self._claimed:
                self._claimed.add(name)
                self.lines.append(
                    {"type": "api-request-blob", "sessionId": "s", "hash": name, "message": message}
                )
        keep = 0
        while (
            self._last and keep < min(len(names), len(self._last[1])) and names[keep] == self._last[1][keep]
        ):
            keep += 1
        record: Json = {
            "type": "api-request", "sessionId": "s", "id": f"q{number}", "keep": keep, "tail": names[keep:],
            "version": "2.1.330",
        }  # fmt: skip
        if keep and self._last:
            record["base"] = self._last[0]
        self._last = f"q{number}", names
        self.lines.append(record)
        self.sent[f"m{number}"] = "".join(texts(messages))
        return answer(f"q{number}")


def texts(messages: list[Json]) -> Iterator[str]:
    for message in messages:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "tool_use":
                yield f"{block['name']} {canonical(block['input'])}"
            else:
                yield block["text"] if block["type"] == "text" else block["content"]


@st.composite
def clients(draw: st.DrawFn) -> Client:
    """A session of some requests: each sends what was before, now and then changed."""
    client = Client()
    history: list[Json] = []
    last: str | None = None
    for number in range(draw(st.integers(1, 8))):
        words = f"prompt {number}" if draw(st.integers(0, 4)) else "again"
        last = client.write(user(f"u{number}", last, words))["uuid"]
        if history and history[-1]["role"] == "user":
            # A prompt behind a result is of the same message.
            history[-1] = {"role": "user", "content": [*history[-1]["content"], text(words)]}
        else:
            history.append({"role": "user", "content": words})
        change = draw(st.sampled_from(["none", "none", "none", "reminded", "cut", "reworded", "resumed"]))
        if change == "reminded":
            history[-1] = {
                "role": "user",
                "content": [text("<system-reminder>\nx\n</system-reminder>"), text(words)],
            }
        elif change == "cut":
            history = history[-1:]
        elif change == "reworded":
            at = draw(st.integers(0, len(history) - 1))
            history[at] = {"role": history[at]["role"], "content": [text(f"other words {number}")]}
        elif change == "resumed":
            client._last = None
        blocks = [text(f"answer {number}"), call(f"t{number}")][: draw(st.integers(1, 2))]

        def answered(ref: str, number: int = number, last: str = last, blocks: list[Json] = blocks) -> Json:
            return said(f"a{number}", last, f"m{number}", *blocks, requestRef=ref)

        answer = client.ask(number, history, answered)
        last = client.write(answer)["uuid"]
        history = [*history, bare(answer["message"])]
        if len(blocks) > 1:
            told = result(f"r{number}", last, f"t{number}", f"result {number}")
            last = client.write(told)["uuid"]
            history.append(bare(told["message"]))
            client.lines.append({"type": "mode", "mode": "normal", "sessionId": "s"})
    return client


@given(clients())
def test_any_request_has_the_window_that_was_sent(client: Client) -> None:
    found, problems = events(*client.lines)
    assert not problems
    assert whole(found) == client.sent


def test_a_base_that_is_not_there_is_said() -> None:
    record = {"type": "api-request", "sessionId": "s", "id": "q", "base": "gone", "keep": 3, "tail": ["ab"]}
    found, problems = events(
        user("u", None, "hi", version="2.1.330"), record, said("a", "u", "m", text("ho"), requestRef="q")
    )
    assert [problem.slug for problem in problems] == ["request-not-read"]
    assert whole(found) == {"m": "hi"}


def test_nonsense_in_records_raises_nothing() -> None:
    for kind in ("api-request", "api-request-shape", "api-request-blob"):
        (sound,) = [one for one in lines() if one["type"] == kind][:1]
        for field in sound:
            for wrong in (None, 0, -5, 2**70, "", "zz", [], [None], {}, {"a": [1]}, True):
                broken = [{**one, field: wrong} if one["type"] == kind else one for one in lines()[:40]]
                data = b"".join(json.dumps(one).encode() + b"\n" for one in broken)
                list(FORMAT.events(Source.from_bytes("s.jsonl", data), lambda _: None))


def test_a_type_of_the_future_and_a_newer_version_are_told() -> None:
    future = {"type": "a-type-of-the-future", "uuid": "f", "parentUuid": "u", "sessionId": "s"}
    later = said("a", "f", "m", text("ho"), version="2.1.999")
    data = b"".join(json.dumps(one).encode() + b"\n" for one in (user("u", None, "hi"), future, later))
    problems: list[Problem] = []
    importer = registry.by_name("claude-code")
    found = list(registry.capture_events(importer, Source.from_bytes("s.jsonl", data), problems.append))
    assert [problem.slug for problem in problems] == ["unknown-type", "newer-version"]
    assert whole(found) == {"m": "hi"}
    assert found[-1]["data"]["understood"]["unknown_records"] == {"a-type-of-the-future": 1}
