"""Typed records from lines, lenient where producers differ."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxctl.model import vocab
from ctxctl.model.problem import Problem
from ctxctl.model.records import (
    Assembly,
    Block,
    Budget,
    Compaction,
    Envelope,
    Injection,
    Item,
    Missing,
    Record,
    Redaction,
    Ref,
    Selection,
    Splice,
    Surface,
    Truncation,
    Usage,
)
from ctxctl.trace import decode, depth, utf8
from ctxctl.trace.contents import Contents
from ctxctl.trace.decode import Decoder, parse_line
from ctxctl.trace.items import form_of
from ctxctl.trace.source import Source

HEAD = {"schema_version": "0.1.1", "event_id": "e", "source": "s", "time": "2026-01-01T00:00:00Z"}


class Reading:
    """A decoder over lines given one by one, with their contents and problems."""

    def __init__(self, *events: dict[str, Any]) -> None:
        self.lines = [json.dumps({**HEAD, **event}).encode() for event in events]
        self.contents = Contents(Source.from_bytes("memory", b"\n".join(self.lines)))
        self.problems: list[Problem] = []
        decoder = Decoder(self.contents, self.problems.append)
        self.records: list[Record | None] = []
        offset = 0
        for number, line in enumerate(self.lines, 1):
            event = decoder.decode(line, number, offset)
            self.records.append(event.record if event is not None else None)
            offset += len(line) + 1

    @property
    def slugs(self) -> list[str]:
        return [problem.slug for problem in self.problems]


def record(event_type: str, data: Any) -> Any:
    reading = Reading({"event_type": event_type, "data": data})
    assert reading.problems == []
    return reading.records[0]


def faulty(event_type: str, data: Any) -> tuple[Any, list[str]]:
    reading = Reading({"event_type": event_type, "data": data})
    return reading.records[0], reading.slugs


@pytest.mark.parametrize("event_type", vocab.STANDARD_EVENTS)
def test_every_event_class_has_a_record(event_type: str) -> None:
    ids = {"item_id": "i", "summary_id": "i", "ordered_blocks": [], "content": "text"}
    assert record(event_type, ids) is not None


def test_unknown_event_types_are_kept_without_a_record() -> None:
    reading = Reading({"event_type": "acme.thing.happened", "data": {"x": 1}}, {"event_type": "acme.bare"})
    assert reading.records == [None, None]
    assert reading.problems == []


def test_item() -> None:
    item = record(
        vocab.ITEM_ADDED,
        {
            "item_id": "a@1",
            "context_kind": "tool_result",
            "content_mode": "inline",
            "title": "T",
            "content": "hello",
            "source_refs": [{"uri": "x://y", "digest": "sha256-16:00"}, "plain"],
            "token_estimate": 3,
            "visibility": ["model", "tool"],
            "priority": 0.5,
            "redaction_state": "none",
            "metadata": {"version": 7, "cause": "expired"},
            "unheard_of": {"x": []},
        },
    )
    assert isinstance(item, Item)
    assert item.content is not None
    assert item.content_digest == item.content.digest
    assert (item.item_id, item.version, item.cause) == ("a@1", "7", "expired")
    assert (item.source, item.source_digests) == ("x://y", ("sha256-16:00",))
    assert item.visibility == ("model", "tool")


@pytest.mark.parametrize("title", [None, 5])
@pytest.mark.parametrize("state", ["none", "raw", None])
def test_an_item_that_was_not_redacted_has_no_redaction(state: str | None, title: int | None) -> None:
    # A field of the wrong type has the record read field by field.
    data = {"item_id": "a", "redaction_state": state, "redaction_method": "mask", "title": title}
    item = faulty(vocab.ITEM_ADDED, {name: value for name, value in data.items() if value is not None})[0]
    assert item.redaction is None


@pytest.mark.parametrize("title", [None, 5])
def test_an_item_says_what_was_done_to_its_text(title: int | None) -> None:
    data = {
        "item_id": "a", "redaction_state": "masked", "redaction_method": "regex", "policy_refs": ["p"],
        "metadata": {"redaction_reason": "secret", "redacted_fields": ["content"], "redacted_by": "proxy"},
    }  # fmt: skip
    found = faulty(vocab.ITEM_ADDED, {**data, "title": title} if title else data)[0].redaction
    assert isinstance(found, Redaction)
    assert (found.item_id, found.redaction_state, found.redaction_method) == ("a", "masked", "regex")
    assert (found.reason, found.fields, found.actor) == ("secret", ("content",), "proxy")
    assert found.policy_refs == ("p",)


def test_item_with_a_lone_visibility_and_a_foreign_removal() -> None:
    assert record(vocab.ITEM_ADDED, {"item_id": "a", "visibility": "tool"}).visibility == ("tool",)
    assert record(vocab.ITEM_REMOVED, {"item_ref": "a"}).item_id == "a"
    assert record(vocab.ITEM_ADDED, {"item_id": 12}).item_id == "12"


@pytest.mark.parametrize("value", [-1, 1 << 54, 1 << 64, 1.5, True, "7", [1], {}])
def test_counts_that_are_none(value: Any) -> None:
    item, slugs = faulty(vocab.ITEM_ADDED, {"item_id": "a", "token_estimate": value})
    assert item.token_estimate is None
    assert slugs in (["bad-count"], ["bad-field"])
    budget, slugs = faulty(vocab.BUDGET_APPLIED, {"max_tokens": value, "max_items": 3})
    assert (budget.max_tokens, budget.max_items) == (None, 3)
    assert slugs in (["bad-count"], ["bad-field"])


def test_whole_floats_are_counts() -> None:
    assert record(vocab.BUDGET_APPLIED, {"max_tokens": 12.0}).max_tokens == 12


@pytest.mark.parametrize(
    "data",
    [
        {"item_id": "a", "title": ["x"]},
        {"item_id": "a", "metadata": [1]},
        {"item_id": "a", "visibility": [1]},
        {"item_id": "a", "source_refs": 3},
        {"item_id": "a", "priority": "high"},
        {"item_id": ["a"], "content": "x"},
    ],
)
def test_fields_of_the_wrong_type_are_reported_once(data: dict[str, Any]) -> None:
    _, slugs = faulty(vocab.ITEM_ADDED, data)
    assert set(slugs) == {"bad-field"}


def test_refs_as_strings_and_objects() -> None:
    selection = record(
        vocab.SELECTION_COMPLETED,
        {
            "selection_id": "s",
            "selected_item_refs": [
                "a",
                {"item_ref": "b", "version": "2"},
                {"item_id": "c", "rank": 1, "score": 0.5},
            ],
            "omitted_item_refs": [
                {"id": "d", "reason": "duplicate", "metadata": {"native_reason": "unchanged"}}
            ],
            "ranking_signals": {"a": {"relevance": 0.25}, "b": 2},
            "model_ref": {"model": "gpt-4o"},
        },
    )
    assert isinstance(selection, Selection)
    assert selection.selected == (Ref("a"), Ref("b@2"), Ref("c", score=0.5, rank=1))
    assert selection.omitted == (Ref("d", "duplicate", "unchanged"),)
    assert selection.scores == {"a": 0.25, "b": 2.0}
    assert selection.model == "gpt-4o"


def test_budget_with_truncations_and_segments() -> None:
    budget = record(
        vocab.BUDGET_APPLIED,
        {
            "max_tokens": 100,
            "truncation_records": [
                {"item_ref": "a", "reason": "budget_limit"},
                {"item_ref": "b", "action": "truncate_middle", "kept_tokens": 5},
                {"item_ref": "c", "action": "dropped"},
                {"item_ref": "d", "retained_tokens": 9},
                {"item_ref": "e", "retained_tokens": 0},
                {"item_ref": "f", "action": "blanked"},
                {"item_ref": "g", "dropped": False},
                "h",
            ],
            "window_segments": [
                {"segment_id": "system", "item_refs": ["a"]},
                {"segment_id": "seg-1", "role": "history", "item_refs": ["b", {"item_ref": "c"}]},
            ],
            "metadata": {"ctxctl": {"max_input": 80, "compacts_at": 70, "compacts_by": "its rule"}},
        },
    )
    assert isinstance(budget, Budget)
    assert [(t.ref, t.dropped) for t in budget.truncations] == [
        ("a", True),
        ("b", False),
        ("c", True),
        ("d", False),
        ("e", True),
        ("f", False),
        ("g", False),
        ("h", True),
    ]
    assert budget.truncations[1] == Truncation("b", False, None, 5)
    assert budget.segments == {"a": "system", "b": "history", "c": "history"}
    assert (budget.max_input, budget.target) == (80, "model")
    assert (budget.compacts_at, budget.compacts_by) == (70, "its rule")


def test_an_assembly_names_the_client_s_version() -> None:
    ours = {"model": "m", "client_version": "2.1.330"}
    made = record(vocab.ASSEMBLY_CREATED, {"assembly_id": "asm", "metadata": {"ctxctl": ours}})
    assert isinstance(made, Assembly)
    assert (made.client, made.model) == ("2.1.330", "m")


def test_assembly_with_blocks() -> None:
    assembly = record(
        vocab.ASSEMBLY_CREATED,
        {
            "assembly_id": "asm",
            "target": "tool",
            "separator_policy": {"separator": "\n"},
            "hash": "sha256:00",
            "ordered_blocks": [
                {
                    "block_id": "b0",
                    "item_refs": ["a", {"item_ref": "b", "version": "2"}],
                    "position": 3,
                    "content": "own text",
                    "wrapper": "<x>{content}</x>",
                    "token_estimate": 9,
                    "hash": "h",
                    "metadata": {"segment": "tools", "ctxctl": {"role": "user", "truncated": True}},
                },
                {"item_refs": ["c"], "wrapper": {"prefix": "(", "suffix": ")"}, "segment": "history"},
                {"item_refs": ["d"], "wrapper": "> "},
                "e",
            ],
            "metadata": {"ctxctl": {"mode": "append", "root": "r", "cause": "branched"}, "model": "m"},
        },
    )
    assert isinstance(assembly, Assembly)
    first, second, third, fourth = assembly.blocks
    assert (first.refs, first.position, first.before, first.after) == (("a", "b@2"), 3.0, "<x>", "</x>")
    assert (first.segment, first.role, first.truncated, first.digest) == ("tools", "user", True, "h")
    assert first.content is not None
    assert (second.before, second.after, second.segment) == ("(", ")", "history")
    assert (third.before, third.after) == ("> ", "")
    assert fourth == Block(refs=("e",))
    assert (assembly.mode, assembly.root, assembly.cause, assembly.model) == ("append", "r", "branched", "m")
    assert (assembly.separator, assembly.digest, assembly.target) == ("\n", "sha256:00", "tool")


def test_equal_blocks_are_one_object() -> None:
    event = {
        "event_type": vocab.ASSEMBLY_CREATED,
        "data": {"ordered_blocks": [{"item_refs": ["a"], "content": "x"}]},
    }
    first, second = Reading(event, event).records
    assert isinstance(first, Assembly)
    assert isinstance(second, Assembly)
    assert first.blocks[0] is second.blocks[0]


def spliced(splices: Any, blocks: int = 1) -> tuple[Any, list[str]]:
    metadata = {"ctxctl": {"base": "asm-1", "splices": splices}}
    return faulty(
        vocab.ASSEMBLY_CREATED, {"ordered_blocks": [{"item_refs": ["a"]}] * blocks, "metadata": metadata}
    )


def test_splices() -> None:
    assembly, slugs = spliced([[0, 2, 1], [5, 0, 0]])
    assert slugs == []
    assert assembly.base == "asm-1"
    assert assembly.splices == (Splice(0, 2, 1), Splice(5, 0, 0))


@pytest.mark.parametrize(
    "splices", [[[3, 1, 1], [2, 0, 0]], [[0, 0, 2]], [[0, 1]], [[-1, 0, 1]], [["a", 0, 1]], [7]]
)
def test_splices_that_do_not_fit_make_no_assembly(splices: Any) -> None:
    assert spliced(splices) == (None, ["bad-splice"])


def test_other_records() -> None:
    surface = record(vocab.SURFACE_CREATED, {"surface_id": "s", "available_source_refs": ["a", {"uri": "u"}]})
    assert isinstance(surface, Surface)
    assert surface.available_source_refs == ("a", "u")
    injection = record(vocab.INJECTION_APPLIED, {"injection_id": "i", "assembly_id": "a", "native_id": 5})
    assert isinstance(injection, Injection)
    assert (injection.native_id, injection.target) == ("5", "model")
    compaction = record(
        vocab.COMPACTION_COMPLETED,
        {
            "source_item_refs": ["a"],
            "summary_ref": {"item_ref": "s"},
            "loss_notes": "some",
            "coverage": {"n": 1},
        },
    )
    assert isinstance(compaction, Compaction)
    assert (compaction.sources, compaction.summary, compaction.loss_notes) == (("a",), "s", ("some",))
    missing = record(
        vocab.MISSING_DETECTED, {"missing_id": "m", "requested_from": {"id": "ann"}, "status": "open"}
    )
    assert isinstance(missing, Missing)
    assert missing.requested_from == "ann"
    redaction = record(vocab.REDACTION_APPLIED, {"item_id": "a", "policy_refs": ["p"]})
    assert isinstance(redaction, Redaction)
    assert redaction.policy_refs == ("p",)
    envelope = record(vocab.EXPORTED, {"context_id": "c", "scope": "turn"})
    assert isinstance(envelope, Envelope)
    assert envelope.scope == "turn"
    summary = record(vocab.SUMMARY_CREATED, {"summary_id": "s", "text": "short"})
    assert isinstance(summary, Item)
    assert (summary.item_id, summary.context_kind) == ("s", "thread_summary")
    assert summary.content is not None


def test_usage_under_its_names() -> None:
    usage = record(
        vocab.USAGE_REPORTED, {"model": "m", "input": 10, "cache_read_tokens": 4, "output_tokens": 2}
    )
    assert isinstance(usage, Usage)
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (10, 4, 2)
    assert usage.cache_write_tokens is None
    assert (usage.cache_write_1h_tokens, usage.cache_miss_cause) == (None, None)
    more = {"input_tokens": 9, "cache_write_tokens": 4, "cache_write_1h_tokens": 3, "cache_miss_cause": "x"}
    usage = record(vocab.USAGE_REPORTED, more)
    assert isinstance(usage, Usage)
    assert (usage.cache_write_1h_tokens, usage.cache_miss_cause) == (3, "x")


@pytest.mark.parametrize("data", [None, [], "x", 5])
def test_data_that_is_no_object(data: Any) -> None:
    assert faulty(vocab.BUDGET_APPLIED, data) == (None, ["bad-field"])
    assert faulty(vocab.ITEM_ADDED, data) == (None, ["bad-field"])


def test_a_content_ref_means_what_an_earlier_line_showed() -> None:
    text = "a text long enough"
    inline = {"event_type": vocab.ITEM_ADDED, "data": {"item_id": "a", "content": text}}
    digest = Reading(inline).records[0].content_digest  # type: ignore[union-attr]
    by_ref = {"event_type": vocab.ITEM_ADDED, "data": {"item_id": "b", "content_ref": f"sha256:{digest}"}}
    reading = Reading(by_ref, inline, by_ref, by_ref)
    early, first, later, again = reading.records
    assert isinstance(early, Item)
    assert isinstance(first, Item)
    assert isinstance(later, Item)
    assert (early.content, early.content_digest) == (None, digest)
    assert later.content is first.content
    assert again is later


def test_other_content_refs_are_never_followed() -> None:
    for ref in ("file:///etc/passwd", "sha256:../../x", "http://127.0.0.1/", {"ref": "sha256:zz"}):
        item = record(vocab.ITEM_ADDED, {"item_id": "a", "content_ref": ref})
        assert (item.content, item.content_digest) == (None, None)


def test_the_same_bytes_are_the_same_item() -> None:
    line = json.dumps(
        {**HEAD, "event_type": vocab.ITEM_ADDED, "data": {"item_id": "a", "content": "x" * 99}}
    ).encode()
    other = line.replace(b'"event_id": "e"', b'"event_id": "f"')
    contents = Contents(Source.from_bytes("memory", line))
    events, last = Decoder(contents, pytest.fail).scan(line + b"\n" + other + b"\r\n\n" + line + b"\n", 0, 0)
    assert last == 4
    assert [(event.event_id, event.line) for event in events] == [("e", 1), ("f", 2), ("e", 4)]
    assert events[0].record is events[1].record is events[2].record
    assert [event.length for event in events] == [len(line)] * 3
    assert [event.offset for event in events] == [0, len(line) + 1, 2 * len(line) + 4]


def test_the_fast_path_does_not_swallow_damage_in_front_of_a_known_tail() -> None:
    line = json.dumps({**HEAD, "event_type": vocab.ITEM_ADDED, "data": {"item_id": "a"}}).encode()
    for damaged in (
        line.replace(b'"event_id"', b'"event_id'),
        line.replace(b'"time": ', b'"time": {'),
        line.replace(b', "data"', b' "data"'),
        line.replace(b'"data"', b'x"data"'),
    ):
        problems: list[Problem] = []
        decoder = Decoder(Contents(Source.from_bytes("memory", line)), problems.append)
        events, _ = decoder.scan(line + b"\n" + damaged + b"\n" + line + b"\n", 0, 0)
        assert [event.line for event in events][:: len(events) - 1] == [1, 3]
        assert {problem.line for problem in problems} == {2}


def test_a_tail_of_another_kind_of_event_is_not_an_item() -> None:
    data = {"item_id": "a", "redaction_state": "masked"}
    item, redaction = Reading(
        {"event_type": vocab.ITEM_ADDED, "data": data}, {"event_type": vocab.REDACTION_APPLIED, "data": data}
    ).records
    assert isinstance(item, Item)
    assert isinstance(redaction, Redaction)


def test_parse_line() -> None:
    assert parse_line(b'{"event_type":"x","source":"a\\qb"}') == {
        "schema_version": "0.1.1",
        "event_type": "x",
        "source": "a\\qb",
    }
    assert parse_line(b"oops") is None
    assert parse_line(b"[1]") is None


def test_invalid_utf8_is_found_wherever_it_hides() -> None:
    item = {"event_type": vocab.ITEM_ADDED, "data": {"item_id": "é", "content": "é" * 99}}
    blocks = [{"item_refs": ["é"], "content": "é" * 99}, {"item_refs": ["b"], "odd": "?"}]
    assembly = {
        "event_type": vocab.ASSEMBLY_CREATED,
        "data": {"ordered_blocks": blocks, "metadata": {"odd": "?"}, "odd": "?"},
    }
    other = {"event_type": vocab.BUDGET_APPLIED, "data": {"max_tokens": 5, "odd": "?"}}
    foreign = {"event_type": "acme.x", "data": {"odd": "?"}, "title": "é"}
    for event in (item, {**item, "odd": "?"}, assembly, other, foreign):
        sound = json.dumps({**HEAD, **event}, ensure_ascii=False).encode()
        places = [at for at in range(len(sound)) if sound[at : at + 1] == b"?"] or [sound.index(b"\xc3")]
        for at in places:
            for bad in (b"\xff", b"\xe2\x82"):
                problems: list[Problem] = []
                line = sound[:at] + bad + sound[at + 1 :]
                if bad != b"\xff" and sound[at : at + 1] != b"?":
                    continue
                decoder = Decoder(Contents(Source.from_bytes("memory", line)), problems.append)
                events, _ = decoder.scan(sound + b"\n" + line + b"\n" + sound + b"\n", 0, 0)
                assert len(events) == 3
                assert {(problem.slug, problem.byte) for problem in problems} == {
                    ("bad-utf8", len(sound) + 1 + at)
                }


@pytest.mark.parametrize("spaces", [False, True])
@pytest.mark.parametrize(
    "data",
    [
        '{"odd":"?","ordered_blocks":[A,B]}',
        '{"ordered_blocks":[A,B],"odd":"?"}',
        '{"ordered_blocks":[A],"odd":"?"}',
        # Bytes of a block that stand elsewhere, too, must not hide what is between.
        '{"metadata":A,"odd":"?","ordered_blocks":[A,B]}',
        '{"ordered_blocks":[A,B],"odd":"?","metadata":B}',
        '{"ordered_blocks":[A,B],"odd":"?","metadata":A}',
        '{"metadata":A,"ordered_blocks":[A],"odd":"?","more":A}',
    ],
)
def test_invalid_utf8_is_found_around_blocks_wherever_their_bytes_stand(data: str, spaces: bool) -> None:
    a, b = '{"item_refs":["é"]}', '{"item_refs":["b"],"content":"éé"}'
    text = data.replace("A", a).replace("B", b)
    if spaces:
        text = text.replace(",", ", ")
    head = json.dumps({**HEAD, "event_type": vocab.ASSEMBLY_CREATED})[:-1]
    sound = f'{head}, "data": {text}}}'.encode()
    for line, slugs in ((sound, []), (sound.replace(b"?", b"\xff"), ["bad-utf8"])):
        problems: list[Problem] = []
        decoder = Decoder(Contents(Source.from_bytes("memory", line)), problems.append)
        events, _ = decoder.scan(line + b"\n", 0, 0)
        assert len(events) == 1
        assert [problem.slug for problem in problems] == slugs


@pytest.mark.parametrize("blocks", [1, 2, 9])
def test_blocks_that_their_decoder_checks_are_not_looked_at_twice(
    blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[bytes] = []
    monkeypatch.setattr(utf8, "check_utf8", lambda data: looked.append(bytes(data)))
    rows = [
        json.dumps({"content": f"é{number}" * 40}, ensure_ascii=False).encode() for number in range(blocks)
    ]
    raw = b'{"ordered_blocks":[' + b",".join(rows) + b'],"odd":"x"}'
    utf8.check_around_blocks(raw, [utf8.Raw(row) for row in rows])
    assert looked == [b'{"ordered_blocks":[],"odd":"x"}']
    spaced = raw.replace(b"},{", b"}, {")
    utf8.check_around_blocks(spaced, [utf8.Raw(row) for row in rows])
    assert looked[1:] == ([looked[0]] if blocks == 1 else [spaced])


def test_a_redaction_names_its_policies_or_else_its_event_does() -> None:
    beside = {
        "event_type": vocab.REDACTION_APPLIED,
        "policy_refs": ["of the event"],
        "data": {"item_id": "a"},
    }
    own = {**beside, "data": {"item_id": "a", "policy_refs": ["its own"]}}
    found = Reading(beside, own).records
    assert [one.policy_refs for one in found if isinstance(one, Redaction)] == [
        ("of the event",),
        ("its own",),
    ]


def test_counts_of_what_an_import_measured_are_whole_numbers_from_zero() -> None:
    facts = {"texts": {"native": 3, "derived": 0, "odd": True, "less": -1, "said": "5"}, "wrong": [1]}
    found = record(vocab.FIDELITY_MEASURED, {"format": "f", "facts": facts})
    assert found.facts == {"texts": {"native": 3, "derived": 0}}


@pytest.mark.parametrize(
    ("said", "milliseconds"),
    [
        ({"max_time_ms": 250}, 250), ({"max_time_seconds": 2}, 2000), ({"max_seconds": 0.5}, 500),
        ({"max_time_s": 0}, 0), ({"max_seconds": -1}, None), ({"max_seconds": 1e300}, None), ({}, None),
    ],
)  # fmt: skip
def test_budgets_of_time_in_their_spellings(said: dict[str, float], milliseconds: int | None) -> None:
    assert record(vocab.BUDGET_APPLIED, {"budget_id": "b", **said}).max_time_ms == milliseconds


def test_a_form_is_said_up_to_two_thousand_characters_and_then_by_its_digest() -> None:
    longest = {"leaf": {"detail": "x" * (2000 - len('{"detail":""}'))}}
    assert len(form_of(longest)) == 2000
    longer = {"leaf": {"detail": longest["leaf"]["detail"] + "x"}}
    other = {"leaf": {"detail": longest["leaf"]["detail"] + "y"}}
    assert form_of(longer).startswith('{"#":"')
    assert form_of(longer) != form_of(other)
    assert len(form_of(longer)) < 50


@pytest.mark.parametrize("stretch", [1, 2, 7, 1 << 20])
@pytest.mark.parametrize(
    ("raw", "deepest"),
    [
        (b'[{"a":[1,"[[[["]},[]]', 3),
        (b'["\\"[[[[", "\\\\",[[]]]', 3),
        (b'{"a":"]]]]","b":{"c":{}}}', 3),
        (b'["a[","b[","c["]', 1),
    ],
)
def test_depth_is_the_same_in_stretches_of_any_length(
    raw: bytes, deepest: int, stretch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(depth, "_STRETCH", stretch)
    assert depth.deeper_than(deepest - 1, raw)
    assert not depth.deeper_than(deepest, raw)


@pytest.mark.parametrize("data", [b'{"item_id": "a", "content": "x"}', b' {"item_id": "a"} ', b"{}"])
@pytest.mark.parametrize("rest", [b"}", b" }", b"  } ", b', "source": "x"}', b"", b"}}"])
def test_the_end_of_a_line_is_told_without_a_copy(data: bytes, rest: bytes) -> None:
    text = b'{"data":' + data + rest
    tail = text[8:].strip()
    plainly = tail.endswith(b"}") and tail[:-1].rstrip() == data.strip()
    assert decode._ends_with(text, 8, data.strip()) is plainly
