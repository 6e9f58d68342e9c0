"""The look for facts that an import lacks: what counts as one, where it stands, how far it goes."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ctxctl.ingest import second_look as looking
from ctxctl.ingest.fidelity import inventory
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.second_look import look_again
from ctxctl.trace.source import Source, open_source
from tests.unit.importers.seed_help import lines

ALL = (
    "system_prompt",
    "tool_definitions",
    "model",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "messages",
)
PROMPT = "You are a pilot of the harbour, and brief in all you say."
SCHEMA = {"type": "object", "properties": {"input_tokens": {"type": "integer", "default": 5}}}


def found(value: Any) -> dict[str, str]:
    """By fact, the keys under which one record seems to hold it: alone, and as one of several lines."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    seen = look_again(Source.from_bytes("x", data), ALL, {}).hits
    if not isinstance(value, bytes):
        several = look_again(Source.from_bytes("x", b'{"n":1}\n' + data + b"\n"), ALL, {}).hits
        assert {fact: hit.key for fact, hit in several.items()} == {f: hit.key for f, hit in seen.items()}
        assert all(hit.line == 2 for hit in several.values())
    return {fact: hit.key for fact, hit in seen.items()}


@pytest.mark.parametrize("fact", ["system_prompt", "tool_definitions"])
def test_a_line_is_parsed_for_one_fact_alone_too(fact: str) -> None:
    told = {
        "system_prompt": [
            {"SYSTEM_Prompt": PROMPT}, {"a": {"base_instructions": PROMPT}}, {"developerMessage": PROMPT},
            {"m": [{"role": "developer", "content": PROMPT}]}, {"m": {"role": "System", "content": PROMPT}},
            {"body": json.dumps({"system": PROMPT})},
            {"b": json.dumps({"x": json.dumps({"system": PROMPT})})},
            {"body": json.dumps({"m": [{"role": "system", "content": PROMPT}]}, indent=1)},
        ],
        "tool_definitions": [
            {"t": [{"name": "a", key: SCHEMA}]}
            for key in ("input_schema", "inputSchema", "parameters", "parametersJsonSchema", "json_schema")
        ] + [{"body": json.dumps({"t": [{"name": "a", "parameters": SCHEMA}]}, indent=2)}],
    }  # fmt: skip
    for value in told[fact]:
        data = b'{"n":1}\n' + json.dumps(value, indent=None).encode() + b"\n"
        assert [*look_again(Source.from_bytes("x", data), (fact,), {}).hits] == [fact], value
        spaced = json.dumps(value, separators=(" , ", " : ")).encode()
        assert [*look_again(Source.from_bytes("x", b'{"n":1}\n' + spaced), (fact,), {}).hits] == [fact], value


def test_a_line_that_only_speaks_of_a_fact_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []
    monkeypatch.setattr(looking._Search, "_line", lambda self, source, line, name: parsed.append(line.number))
    texts = ["the system's instructions", "a schema with parameters", 'read "system" and "parameters"']
    data = lines(*({"text": text} for text in texts), {"x": {"systemPrompt": PROMPT}})
    seen = look_again(Source.from_bytes("x", data), ("system_prompt", "tool_definitions"), {})
    assert parsed == [4]
    assert seen.looked == len(data)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"x": {"tokensIn": 5}}, {"input_tokens": "x.tokensIn"}),
        ({"USAGE": {"in": 5, "OUT": 6}}, {"input_tokens": "USAGE.in", "output_tokens": "USAGE.OUT"}),
        ({"tokens": {"cache": {"read": 0}}}, {"cached_tokens": "tokens.cache.read"}),
        ({"usage": {"input_tokens": 0}}, {}),
        ({"usage": {"input_tokens": True}}, {}),
        ({"max_input_tokens": 5, "inputTokenLimit": 9, "input_cost_per_token": 3}, {}),
        ({"cache_creation_input_tokens": 5}, {}),
        ({"body": '{"usage": {"prompt_tokens": 7}}'}, {"input_tokens": "body.usage.prompt_tokens"}),
        ({"sse": 'event: x\ndata: {"usage": {"output": 7}}\n\n'}, {"output_tokens": "sse.usage.output"}),
        ({"role": "assistant", "content": '{"usage": {"prompt_tokens": 7}}'}, {}),
        ({"type": "tool_use", "input": {"model": "x", "system": PROMPT, "input_tokens": 4}}, {}),
        ({"role": "tool", "content": [{"usage": {"input_tokens": 4}}]}, {}),
        ({"acme": {"systemPrompt": PROMPT}}, {"system_prompt": "acme.systemPrompt"}),
        ({"system": [{"type": "text", "text": PROMPT}]}, {"system_prompt": "system"}),
        ({"system": "linux"}, {}),
        ({"system_prompt_hash": "a" * 64, "operating_system": PROMPT}, {}),
        ({"x": [{"role": "System", "content": "Hi"}]}, {"system_prompt": "x.role", "messages": "x"}),
        ({"offers": [{"name": "read", "inputSchema": SCHEMA}]}, {"tool_definitions": "offers"}),
        ({"offers": [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}]},
         {"tool_definitions": "offers"}),
        ({"by": {"read": {"description": "Reads.", "inputSchema": SCHEMA}}}, {"tool_definitions": "by"}),
        ({"offers": ["read", "write"]}, {}),
        ({"modelId": "acme-1"}, {"model": "modelId"}),
        ({"model": "a sentence about models"}, {}),
        ([{"role": "user", "content": "Hi"}], {"messages": ""}),
        ({"deep": None}, {}),
    ],
)  # fmt: skip
def test_what_looks_like_a_fact(value: Any, told: dict[str, str]) -> None:
    assert found(value) == told


def test_lines_and_keys_are_those_of_the_file() -> None:
    data = lines({"type": "a"}, {"type": "b", "n": {"input_tokens": 4}})
    hit = look_again(Source.from_bytes("x", data), ("input_tokens",), {}).hits["input_tokens"]
    assert (hit.key, hit.line, hit.byte) == ("n.input_tokens", 2, len(b'{"type": "a"}\n'))


def test_in_a_document_a_key_is_told_from_others_of_its_name() -> None:
    value = {
        "a": [{"model": ""}, {"model": 4, "b": {"model": " "}}],
        "c": '"model": 1',
        "d": {"model": "acme-1"},
    }
    data = json.dumps(value, indent=1).encode()
    hit = look_again(Source.from_bytes("x", data), ("model",), {}).hits["model"]
    assert b'"acme-1"' in data.split(b"\n")[hit.line - 1]
    assert data[hit.byte :].startswith(b'"model": "acme-1"')


def test_keys_that_are_known_to_be_something_else_do_not_count() -> None:
    data = lines({"stats": {"usage": {"input_tokens": 9}}}, {"call": {"usage": {"input_tokens": 4}}})
    source = Source.from_bytes("x", data)
    assert look_again(source, ("input_tokens",), {"input_tokens": ("stats",)}).hits["input_tokens"].line == 2
    assert not look_again(source, ("input_tokens",), {"input_tokens": ("stats", "call.usage")}).hits
    assert look_again(source, ("input_tokens",), {"input_tokens": ("stat",)}).hits["input_tokens"].line == 1


def test_of_a_long_file_the_beginning_and_the_end_are_looked_through() -> None:
    filler = lines(*[{"type": "a", "text": "x" * 1000}] * 6000)
    late = filler + lines({"modelId": "acme-1"})
    seen = look_again(Source.from_bytes("x", late), ("model",), {})
    assert (seen.hits["model"].line, seen.of) == (6001, len(late))
    assert seen.looked <= looking.HEAD + looking.TAIL < len(late)
    assert late[seen.hits["model"].byte :] == b'{"modelId": "acme-1"}\n'
    middle = filler + lines({"modelId": "acme-1"}) + filler
    seen = look_again(Source.from_bytes("x", middle), ("model",), {})
    assert not seen.hits
    assert seen.looked < seen.of


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b'{"model": ', b"[" * 100_000, b'{"a":' * 5000, b"\xff\xfe\0",
     b"SQLite format 3\0" + b"x" * 200, b'{"usage": 1}\n' * 50_000, b'"model"\n' * 100,
     b'{"model": "' + b"x" * 5_000_000],
)  # fmt: skip
def test_nothing_in_a_file_raises(data: bytes) -> None:
    assert look_again(Source.from_bytes("x", data), ALL, {}).looked <= len(data)


def test_other_text_is_looked_through_by_its_keys() -> None:
    data = b"calls:\n- model: acme-1\n  usage:\n    prompt_tokens: 12\n  messages:\n  - role: system\n"
    hits = look_again(Source.from_bytes("x", data), ALL, {}).hits
    assert {fact: hit.line for fact, hit in hits.items()} == {
        "model": 2,
        "input_tokens": 4,
        "system_prompt": 6,
    }


def test_a_database_is_looked_through_by_its_tables(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE steps (id TEXT, data TEXT, tokens_in INTEGER)")
    database.execute("INSERT INTO steps VALUES ('1', '{}', 0), ('2', '{\"modelID\": \"acme-1\"}', 40)")
    database.commit()
    database.close()
    with open_source(path) as source:
        hits = look_again(source, ("model", "input_tokens"), {}).hits
    assert {fact: (hit.key, hit.line) for fact, hit in hits.items()} == {
        "input_tokens": ("steps.tokens_in", 2),
        "model": ("steps.data.modelID", 2),
    }


def test_in_a_directory_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines({"type": "a"}))
    (tmp_path / "b.jsonl").write_bytes(lines({"modelId": "acme-1"}))
    seen = look_again(Folder("x", tmp_path), ("model",), {})
    assert (seen.hits["model"].file, seen.hits["model"].line) == ("b.jsonl", 1)
    assert inventory(Folder("x", tmp_path)) == "2 files"


def test_what_was_looked_at_in_words() -> None:
    data = lines({"type": "a", "x": 1}, {"type": "b"}, {"type": "a"})
    assert inventory(Source.from_bytes("x", data)) == "3 records (a 2, b 1; keys type, x)"
    assert inventory(Source.from_bytes("x", b'{"log": {}}')) == "1 record (keys log)"
    assert inventory(Source.from_bytes("x", b"text")) == "4 bytes that are no JSON"
    assert inventory(Source.from_bytes("x", data * 1000)).startswith("the first 2,000 records (")
