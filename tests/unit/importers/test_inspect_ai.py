"""Inspect AI logs: archives and documents, attachments and pools, threads, compactions, bombs."""

from __future__ import annotations

import io
import json
import zipfile
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ctxctl.errors import UnreadableError
from ctxctl.importers.inspect_ai.reader import Archive
from ctxctl.importers.inspect_ai.sample import bill
from ctxctl.ingest import build
from ctxctl.model import known_text
from ctxctl.trace import writer
from tests.unit.importers.trajectories import FIXTURES, Import, detected, read

Json = dict[str, Any]
LOG = json.loads((FIXTURES / "inspect_ai/log.json").read_text())
STORED = zipfile.ZIP_STORED


def zipped(entries: dict[str, Any], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as file:
        for name, value in entries.items():
            file.writestr(name, value if isinstance(value, bytes | str) else json.dumps(value))
    return made.getvalue()


def log(*samples: Json) -> Import:
    return read({"version": 2, "eval": LOG["eval"], "samples": list(samples)})


def model(at: int, messages: list[Json], **more: Any) -> Json:
    output = {"choices": [{"message": {"id": f"a{at}", "role": "assistant", "content": f"answer {at}"}}]}
    return {
        "event": "model",
        "uuid": f"e{at}",
        "model": "m",
        "input": messages,
        "tools": [],
        "output": output,
        **more,
    }


def user(text: str, ident: str = "u1") -> Json:
    return {"id": ident, "role": "user", "content": text}


def test_bodies_that_only_some_requests_have_are_not_mixed_with_inspects_messages() -> None:
    """By default Inspect keeps the calls that failed."""
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    failed = model(1, [user("Hi")], call={"request": body, "response": {}}, error="overloaded")
    found = log({"id": 1, "epoch": 1, "events": [failed, model(2, [user("Hi")])]})
    assert [r.items for r in found.requests()] == [["u1"], ["u1"]]


@pytest.mark.parametrize("name", ["log.eval", "log.json"])
def test_archive_and_document_say_the_same(name: str) -> None:
    found = read(Path("inspect_ai") / name)
    assert found.format == "inspect-ai"
    assert [(r.session, r.thread, r.turn, r.step) for r in found.requests()] == [
        ("1.epoch-1", "main", "m2", "ev-1"),
        ("1.epoch-1", "main", "m2", "ev-2"),
        ("1.epoch-1", "scorer-model_graded", "g1", "ev-3"),
        ("1.epoch-2", "main", "p2", "ev-4"),
        ("1.epoch-2", "helper-helper", "q1", "ev-5"),
        ("1.epoch-2", "main", "p2", "ev-6"),
    ]


def test_wire_body_is_the_window_with_its_attachments_in_place() -> None:
    found = read(Path("inspect_ai/log.eval"))
    assert found.kinds(0) == ["tool_definition", "system_prompt", "user_message"]
    assert found.kinds(1)[3:] == ["assistant_message", "tool_call", "tool_result"]
    texts = [item.get("content", "") for item in found.items().values()]
    assert not [text for text in texts if "attachment://" in text]
    assert [text for text in texts if text.startswith("Riddle: what has keys")]
    assert not found.requests()[1].derived


def test_answer_keeps_its_identity_when_it_is_sent_back() -> None:
    found = read(Path("inspect_ai/log.json"))
    added = [e["data"]["item_id"] for e in found.events if ".item." in e["event_type"]]
    assert added.count("call_1") == 1


def test_pooled_messages_are_put_back_and_keep_their_ids() -> None:
    found = read(Path("inspect_ai/log.eval"))
    fourth = found.requests()[3]
    assert fourth.items == ["tool:look_up", "p1", "p2", "p2/1"]
    assert found.kinds(3) == ["tool_definition", "system_prompt", "user_message", "image"]


def test_compaction_event_names_its_summary() -> None:
    found = read(Path("inspect_ai/log.eval"))
    (record,) = found.of("context.compaction.completed")
    assert record["compaction_id"] == "co-1"
    assert record["summary_ref"].startswith("p5@")
    assert found.requests()[5].items[-1] == "p5"


def test_answer_from_inspect_s_own_cache_is_not_billed() -> None:
    assert read(Path("inspect_ai/log.eval")).usage() == [
        (90, 0, 12),
        (130, 64, 2),
        (20, 0, 4),
        (80, 30, 9),
        (10, 0, 2),
    ]


def test_total_tells_whether_input_holds_the_cached_tokens() -> None:
    usage = {
        "input_tokens": 10,
        "output_tokens": 5,
        "input_tokens_cache_read": 100,
        "input_tokens_cache_write": 20,
    }
    inside, outside = bill({**usage, "total_tokens": 15}, None), bill({**usage, "total_tokens": 135}, None)
    assert inside is not None
    assert outside is not None
    assert (inside["input_tokens"], outside["input_tokens"]) == (10, 130)
    assert bill(None, None) is None


def test_log_without_events_is_read_from_its_messages() -> None:
    found = read(Path("inspect_ai/old.json"))
    assert [(r.session, r.derived, r.turn) for r in found.requests()] == [("a.epoch-1", True, "turn-1")]
    assert found.usage() == [(21, 0, 1)]


def test_request_that_begins_otherwise_is_a_conversation_of_its_own() -> None:
    events = [
        model(1, [user("a")]),
        model(2, [user("critique", "u2")]),
        model(3, [user("a"), user("b", "u3")]),
    ]
    found = log({"id": 1, "epoch": 1, "events": events})
    assert [r.thread for r in found.requests()] == ["main", "side-2", "main"]


def test_older_steps_and_nested_events_give_the_threads() -> None:
    nested = {"event": "tool", "id": "t1", "function": "ask", "events": [model(2, [user("x", "u9")])]}
    grader = [
        {"event": "step", "action": "begin", "type": "scorer", "name": "graded"},
        model(3, [user("ok?", "g")]),
    ]
    found = log({"id": 1, "epoch": 1, "events": [model(1, [user("a")]), nested, *grader]})
    assert [r.thread for r in found.requests()] == ["main", "ask-t1", "scorer-graded"]


def test_chunked_sample_is_put_together() -> None:
    shell = "samples/7_epoch_1/"
    event = model(1, [], input_refs=[[0, 2]])
    found = read(
        zipped(
            {
                "header.json": {"version": 3, "eval": LOG["eval"]},
                shell + "sample.json": {"id": 7, "epoch": 1},
                shell + "messages/0.json": [{"id": "s", "role": "system", "content": "S"}],
                shell + "messages/1.json": [user("attachment://0")],
                shell + "events/0.json": [event],
                shell + "events/stats.json": {},
                shell + "attachments/0.json": ["long text"],
            }
        )
    )
    assert found.requests()[0].items == ["s", "u1"]
    assert found.items()["u1"]["content"] == "long text"


HASH = "85a2bba601b01f3e17840bb22ea762db"


@pytest.mark.parametrize("place", ["shell", "chunk", "pool"])
def test_attachments_of_an_archive_are_resolved_as_in_a_document(place: str) -> None:
    """By their hash, wherever a chunked sample keeps them; in messages, answers, bodies and tools."""
    address = f"attachment://{HASH}"
    event = model(1, [user(address)])
    event["tools"] = [
        {"name": "look", "description": address, "parameters": {"type": "object", "properties": {}}}
    ]
    event["output"]["choices"] = [{"message": {"id": "a", "role": "assistant", "content": address}}]
    sample = {"id": 1, "epoch": 1, "events": [event, model(2, [user(address), user("more", "u2")])]}
    document = log({**sample, "attachments": {HASH: "long text"}})
    shell = "samples/1_epoch_1/"
    entries: dict[str, Any] = {"header.json": {"version": 3, "eval": LOG["eval"]}}
    if place == "pool":
        entries["samples/1_epoch_1.json"] = {**sample, "attachments": {HASH: "long text"}}
    else:
        held = {"attachments": {HASH: "long text"}} if place == "shell" else {}
        entries[shell + "sample.json"] = {"id": 1, "epoch": 1, **held}
        entries[shell + "events/0.json"] = sample["events"]
        if place == "chunk":
            entries[shell + "attachments/0.json"] = {HASH: "long text"}
    archive = read(zipped(entries))
    assert [r.items for r in archive.requests()] == [r.items for r in document.requests()]
    assert archive.items() == document.items()
    texts = json.dumps(archive.items())
    assert "attachment://" not in texts
    assert texts.count("long text") >= 3


def test_the_addresses_and_transcripts_of_2024() -> None:
    """A log as version 0.3.40 wrote it, and the same as a later version rewrote it to an archive."""
    events = [model(1, [user(f"tc://{HASH}")])]
    old = {"id": 1, "epoch": 1, "transcript": {"events": events, "content": {HASH: "long text"}}}
    rewritten = {"id": 1, "epoch": 1, "events": events, "attachments": {HASH: "long text"}}
    for found in (log(old), read(zipped({"samples/1_epoch_1.json": rewritten}))):
        assert [r.derived for r in found.requests()] == [False]
        assert found.items()["u1"]["content"] == "long text"


def test_chunked_sample_without_model_events_has_its_conversation_in_the_pool() -> None:
    shell = "samples/1_epoch_1/"
    answer = {"id": "a", "role": "assistant", "content": "attachment://0", "source": "generate"}
    found = read(
        zipped(
            {
                "header.json": {"version": 3, "eval": LOG["eval"]},
                shell + "sample.json": {"id": 1, "epoch": 1, "message_refs": [[0, 2]]},
                shell + "messages/0.json": [user("attachment://1"), answer],
                shell + "attachments/0.json": ["answered at length", "asked at length"],
            }
        )
    )
    assert [found.items()[item]["content"] for item in ("u1", "a")] == [
        "asked at length",
        "answered at length",
    ]


def test_zstd_entries_are_read() -> None:
    zstandard = pytest.importorskip("zstandard")
    sample = {"id": 1, "epoch": 1, "events": [model(1, [user("packed")])]}
    packed = zstandard.ZstdCompressor().compress(json.dumps(sample).encode())
    data = bytearray(zipped({"samples/1_epoch_1.json": packed}, STORED))
    for magic, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        at = data.index(magic) + offset
        data[at : at + 2] = (93).to_bytes(2, "little")
    assert read(bytes(data)).items()["u1"]["content"] == "packed"


def test_cut_archive_gives_the_samples_before_the_cut() -> None:
    data = (FIXTURES / "inspect_ai/log.eval").read_bytes()
    found = read(data[: data.index(b"samples/1_epoch_1.json") - 30])
    assert {r.session for r in found.requests()} == {"1.epoch-2"}
    assert "damaged-compression" in {p.slug for p in found.problems}


def test_bomb_ends_in_bounded_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxctl.importers.inspect_ai.reader.RATIO_FLOOR", 1 << 16)
    monkeypatch.setattr("ctxctl.importers.inspect_ai.reader.RATIO_LIMIT", 10)
    data = zipped({"header.json": {}, "samples/1_epoch_1.json": b" " * (1 << 22)})
    with pytest.raises(UnreadableError, match="decompresses to more than"):
        read(data)


def test_detection_of_archives_by_their_entries() -> None:
    assert detected(zipped({"_journal/start.json": {}})) == "inspect-ai"
    assert detected(zipped({"word/document.xml": "x", "[Content_Types].xml": "y"})) is None
    assert detected({"version": 2, "eval": {"model": "m"}}) is None
    assert detected("version https://git-lfs.github.com/spec/v1\noid sha256:aa\n") is None


def test_wrong_types_everywhere_do_no_harm() -> None:
    events: list[Any] = [
        3,
        {"event": "model"},
        {"event": "model", "input": 4, "output": 5, "call": {"request": [], "call_refs": 3}},
        {
            "event": "model",
            "input": [3, {"role": "tool", "error": {}}, {"role": "user", "content": {"a": 1}}],
        },
        {"event": "span_begin", "id": "a", "parent_id": "a"},
        {"event": "model", "span_id": "a", "input": []},
        {
            "event": "model",
            "call": {"request": {"messages": [3, None]}, "response": {"choices": 3}},
            "input_refs": [1],
        },
        {"event": "step", "action": "end"},
        {"event": "compaction"},
    ]
    found = log({"id": [], "epoch": "x", "events": events}, {"id": 2, "messages": [4, {"role": "assistant"}]})
    assert len(found.requests()) == 6


class CountedName(str):
    """An entry's name that counts how often it is looked into."""

    __slots__ = ()
    looked = 0

    def startswith(self, *given: Any) -> bool:
        CountedName.looked += 1
        return super().startswith(*given)

    def rsplit(self, *given: Any) -> Any:
        CountedName.looked += 1
        return super().rsplit(*given)


def test_chunks_are_not_looked_for_among_all_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Archive, "names", property(lambda self: [CountedName(name) for name in self._entries])
    )

    def work(n: int) -> int:
        CountedName.looked = 0
        shell = {"messages": [user("Hi")]}
        found = read(zipped({f"samples/{i}_epoch_1/sample.json": shell for i in range(n)}))
        assert len(found.events) >= n
        return CountedName.looked

    assert 0 < work(80) <= 5 * work(20)


def test_an_attachment_that_stands_in_many_places_is_digested_once(monkeypatch: pytest.MonkeyPatch) -> None:
    digested = 0

    def counted(data: bytes) -> Any:
        nonlocal digested
        digested += len(data) >= 5000
        return sha256(data)

    for module in (build, known_text):
        monkeypatch.setattr(module, "sha256", counted)
    monkeypatch.setattr(writer, "hashlib", SimpleNamespace(sha256=counted))

    def work(n: int, text: str) -> int:
        nonlocal digested
        digested = 0
        messages = [user("attachment://a", f"u{i}") for i in range(n)]
        messages.append({"id": "z", "role": "assistant", "content": "ok", "source": "generate"})
        found = log({"id": 1, "epoch": 1, "attachments": {"a": text}, "messages": messages})
        out = io.BytesIO()
        with writer.TraceWriter(out) as written:
            assert all(written.write(event) for event in found.events)
        assert out.getvalue().count(b'"content":"xxx') == 1
        assert len([one for one in found.items().values() if one.get("content") == text]) == n
        return digested

    assert 0 < work(40, "x" * 5000) == work(10, "x" * 5000) < 8
