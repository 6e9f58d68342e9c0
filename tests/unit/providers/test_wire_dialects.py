"""Bodies cut into items: kinds, keys, texts, and nothing lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxctl.ingest.build import digest_of
from ctxctl.ingest.parts import Part
from ctxctl.providers import dialects
from ctxctl.providers.dialects import slots
from tests.unit.providers.wire_rebuild import compare, rebuilt

Json = dict[str, Any]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
SEALED = "c2VhbGVk" * 40


def again(body: Json, name: str | None = None) -> list[Part]:
    """The body's parts, after holding what they rebuild against the body itself."""
    dialect = dialects.by_name(name) if name else dialects.of_body(body)
    assert dialect is not None
    parts = dialect.cut(body)
    made = rebuilt([(json.loads(p.wire), p.text) for p in parts])
    assert compare(made, dialect.name, body) is None
    return parts


def told(parts: list[Part]) -> list[tuple[str, str]]:
    return [(part.kind, part.item) for part in parts]


def claude(*messages: Json, **fields: Any) -> Json:
    return {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": list(messages), **fields}


def chat(*messages: Json, **fields: Any) -> Json:
    return {"model": "gpt-5", "messages": list(messages), **fields}


def responses(*items: Any, **fields: Any) -> Json:
    return {"model": "gpt-5", "store": False, "input": list(items), **fields}


def gemini(*contents: Json, **fields: Any) -> Json:
    return {"contents": list(contents), **fields}


# -- Google ------------------------------------------------------------------------------------------------


def test_the_shape_of_geminis_answer_weighs_nothing() -> None:
    """`promptTokenCount` is the same with a schema and without one; OpenAI's counts it."""
    shape = {"type": "object", "properties": {"age": {"type": "integer", "description": "in years"}}}
    asked = {"role": "user", "parts": [{"text": "How old is the kiln?"}]}
    schema, question = again(gemini(asked, generationConfig={"responseJsonSchema": shape}))
    assert (schema.title, schema.text, schema.estimate) == ("answer schema", None, 0)
    assert schema.native == {"responseJsonSchema": shape}
    assert question.text == "How old is the kiln?"
    counted = again(chat(response_format={"type": "json_schema", "json_schema": {"schema": shape}}))[0]
    assert counted.text is not None


# -- Anthropic --------------------------------------------------------------------------------------------


def test_a_messages_body_is_tools_then_system_then_messages() -> None:
    parts = again(
        claude(
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": SEALED},
                    {"type": "redacted_thinking", "data": SEALED},
                    {"type": "tool_use", "id": "t1", "name": "read", "input": {"b": 1, "a": [2]}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "no"},
                    {"type": "text", "text": "go on"},
                ],
            },
            system="be kind",
            tools=[{"name": "read", "input_schema": {}}],
        )
    )
    assert told(parts) == [
        ("tool_definition", "tool:read"),
        ("system_prompt", "system:0"),
        ("user_message", ""),
        ("reasoning", ""),
        ("reasoning", ""),
        ("tool_call", "t1"),
        ("tool_result", "t1/result"),
        ("user_message", ""),
    ]
    assert parts[5].text == 'read {"b":1,"a":[2]}'  # as it was sent
    assert parts[5].mark == digest_of('read {"a":[2],"b":1}')[:16]  # the version is that of the content
    assert parts[4].text is None
    assert parts[6].native == {"is_error": True}


def test_a_cache_marker_is_no_part_of_an_item() -> None:
    plain = claude({"role": "user", "content": [{"type": "text", "text": "hi"}]})
    marked = claude(
        {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}
    )
    (one,), (other,) = again(plain), again(marked)
    assert (one.digest, one.mark, one.wire) == (other.digest, other.mark, other.wire)
    assert other.native == {"cache_control": {"type": "ephemeral"}}


def test_images_documents_and_what_nobody_knows() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    parts = again(
        claude(
            {
                "role": "user",
                "content": [
                    image,
                    {
                        "type": "document",
                        "title": "D",
                        "source": {"type": "text", "media_type": "text/plain", "data": "doc"},
                    },
                    {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
                    {
                        "type": "tool_result",
                        "tool_use_id": "t",
                        "content": [{"type": "text", "text": "a"}, image],
                    },
                    {"type": "tool_result", "tool_use_id": "u", "content": []},
                    {"type": "tool_result", "tool_use_id": "v"},
                    {"type": "from_the_future", "x": {"y": [1]}},
                ],
            }
        )
    )
    assert [(p.kind, p.text) for p in parts] == [
        ("image", None),
        ("external_resource", "doc"),
        ("image", None),
        ("tool_result", "a"),
        ("image", None),
        ("tool_result", ""),
        ("tool_result", ""),
        ("custom", '{"type":"from_the_future","x":{"y":[1]}}'),
    ]
    assert parts[0].data == {"byte_size": len(PNG) * 3 // 4, "mime_type": "image/png"}
    assert parts[0].mark == parts[4].mark != ""


def test_a_servers_tool_names_its_server() -> None:
    part = again(claude(tools=[{"name": "mcp__charts__find", "input_schema": {}}]))[0]
    assert (part.item, part.source) == ("tool:mcp__charts__find", "mcp:charts")


def test_a_billing_header_does_not_move_the_system_prompt() -> None:
    header = {"type": "text", "text": "x-anthropic-billing-header: a=1"}
    parts = again(claude(system=[header, {"type": "text", "text": "be kind"}]))
    assert [p.item for p in parts] == ["system:billing", "system:0"]


# -- reminders --------------------------------------------------------------------------------------------

NOTE = '<system-reminder source="status">\ntwo open\n</system-reminder>'


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (f"{NOTE}\nhello", ["policy_note", None]),
        (f"hello\n\n{NOTE}\n", [None, "policy_note"]),
        (f"a\n{NOTE}\n{NOTE}\nb", [None, "policy_note", "policy_note", None]),
        ('<context_file paths="a.md">\nsee <system-reminder>\n</context_file>', ["external_resource"]),
        ("what is a <system-reminder> tag?", [None]),
        ("open\n<system-reminder>\nnever closed", [None]),
        ("inline <system-reminder>x</system-reminder> stays", [None]),
        ("<system-reminder>\n<system-reminder>\nx\n</system-reminder>\n</system-reminder>", [None]),
        (f"</system-reminder>\n{NOTE}", [None]),
        ("", [None]),
    ],
)
def test_what_a_harness_put_in_is_cut_out_where_that_is_sure(text: str, kinds: list[str | None]) -> None:
    pieces = slots.split(text)
    assert [piece.kind for piece in pieces] == kinds
    assert "".join(piece.text for piece in pieces) == text


def test_a_reminder_changes_nothing_of_the_text_that_it_stands_beside() -> None:
    bare = again(claude({"role": "user", "content": "hello"}))[0]
    own, note = again(claude({"role": "user", "content": f"hello\n\n{NOTE}\n"}))
    assert own.digest == bare.digest
    assert (note.kind, note.source) == ("policy_note", "status")


# -- Chat Completions -------------------------------------------------------------------------------------


def test_a_chat_body() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}
    broken = {"id": "c2", "type": "function", "function": {"name": "read", "arguments": '{"path": '}}
    parts = again(
        chat(
            {"role": "system", "content": "be kind"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "look"},
                    {
                        "type": "image_url",
                        "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"},
                    },
                    {"type": "input_audio", "input_audio": {"data": PNG, "format": "wav"}},
                    {
                        "type": "file",
                        "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PNG}"},
                    },
                ],
            },
            {"role": "assistant", "content": "well", "reasoning_content": "hm", "tool_calls": [call, broken]},
            {"role": "tool", "tool_call_id": "c1", "content": "text"},
            {"role": "assistant", "content": None, "refusal": "no"},
            {"role": "assistant", "content": None, "function_call": {"name": "old", "arguments": "{}"}},
            {"role": "function", "name": "old", "content": "done"},
            {"role": "developer", "content": "late"},
            {"role": "user", "content": ""},
            tools=[{"type": "function", "function": {"name": "read", "parameters": {}}}],
        )
    )
    assert told(parts) == [
        ("tool_definition", "tool:read"),
        ("system_prompt", "system:0"),
        ("user_message", ""),
        ("image", ""),
        ("external_resource", ""),
        ("external_resource", ""),
        ("reasoning", ""),
        ("assistant_message", ""),
        ("tool_call", "c1"),
        ("tool_call", "c2"),
        ("tool_result", "c1/result"),
        ("assistant_message", ""),
        ("tool_call", ""),
        ("tool_result", ""),
        ("developer_instruction", ""),
        ("user_message", ""),
    ]
    assert parts[8].text == 'read {"path": "a"}'
    assert parts[8].mark == digest_of('read {"path":"a"}')[:16]
    assert parts[9].text == 'read {"path": '
    assert parts[10].title == parts[8].title == "read: a"
    assert all(PNG not in (part.text or "") for part in parts)


def test_legacy_functions_and_an_answer_schema_reach_the_model() -> None:
    shape = {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}
    dialect = dialects.by_name("openai-chat")
    parts = dialect.cut(
        chat({"role": "user", "content": "x"}, functions=[{"name": "f"}], response_format=shape)
    )
    assert told(parts)[:2] == [("tool_definition", "tool:f"), ("custom", "body:response_format")]


# -- Responses --------------------------------------------------------------------------------------------


def test_a_responses_body() -> None:
    parts = again(
        responses(
            {"role": "developer", "content": "be kind"},
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "look"},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
                ],
            },
            {
                "type": "reasoning",
                "id": "rs",
                "summary": [{"type": "summary_text", "text": "hm"}],
                "encrypted_content": SEALED,
            },
            {"type": "reasoning", "id": "rt", "summary": [], "encrypted_content": SEALED},
            {"type": "function_call", "call_id": "c1", "id": "fc", "name": "read", "arguments": '{"a": 1}'},
            {"type": "function_call_output", "call_id": "c1", "output": "text"},
            {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "*** Begin"},
            {
                "type": "custom_tool_call_output",
                "call_id": "c2",
                "output": [{"type": "input_text", "text": "ok"}],
            },
            {
                "type": "mcp_list_tools",
                "id": "ml",
                "server_label": "sea",
                "tools": [{"name": "t", "input_schema": {}}],
            },
            {
                "type": "mcp_call",
                "id": "m1",
                "server_label": "sea",
                "name": "t",
                "arguments": "{}",
                "output": "wet",
            },
            {"type": "item_reference", "id": "msg_0"},
            {"type": "compaction", "id": "cmp", "encrypted_content": SEALED},
            {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"query": "tide"}},
            instructions="base",
            tools=[{"type": "function", "name": "read"}, {"type": "web_search"}],
        )
    )
    assert told(parts) == [
        ("tool_definition", "tool:read"),
        ("tool_definition", "tool:web_search"),
        ("system_prompt", "instructions"),
        ("developer_instruction", "system:0"),
        ("user_message", ""),
        ("image", ""),
        ("reasoning", "rs"),
        ("reasoning", "rs/sealed"),
        ("reasoning", "rt"),
        ("tool_call", "c1"),
        ("tool_result", "c1/result"),
        ("tool_call", "c2"),
        ("tool_result", "c2/result"),
        ("tool_definition", "tool:mcp__sea__t"),
        ("tool_call", "m1"),
        ("tool_result", "m1/result"),
        ("custom", "msg_0"),
        ("thread_summary", "cmp"),
        ("tool_call", "ws"),
    ]
    assert all(SEALED not in (part.text or "") for part in parts)
    assert parts[11].text == "patch *** Begin"


def test_a_history_that_the_provider_holds_is_not_recorded() -> None:
    parts = again(responses({"role": "user", "content": "on"}, previous_response_id="resp_1"))
    assert [(p.kind, p.item, p.text) for p in parts] == [
        ("custom", "previous_response_id:resp_1", None),
        ("user_message", "", "on"),
    ]


# -- Gemini -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("system", "declared", "asked", "answered", "inline", "mime"),
    [
        (
            "systemInstruction",
            "functionDeclarations",
            "functionCall",
            "functionResponse",
            "inlineData",
            "mimeType",
        ),
        (
            "system_instruction",
            "function_declarations",
            "function_call",
            "function_response",
            "inline_data",
            "mime_type",
        ),
    ],
)
def test_a_gemini_body(system: str, declared: str, asked: str, answered: str, inline: str, mime: str) -> None:
    parts = again(
        gemini(
            {"role": "user", "parts": [{"text": "look"}, {inline: {mime: "image/png", "data": PNG}}]},
            {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True},
                    {asked: {"name": "read", "args": {"a": 1}}, "thoughtSignature": SEALED},
                ],
            },
            {"role": "user", "parts": [{answered: {"name": "read", "response": {"r": 2}}}]},
            {"role": "model", "parts": [{"text": "", "thoughtSignature": SEALED}]},
            **{
                system: {"parts": [{"text": "be kind"}]},
                "tools": [{declared: [{"name": "read"}]}, {"googleSearch": {}}],
            },
        )
    )
    assert [(p.kind, p.role) for p in parts] == [
        ("tool_definition", "system"),
        ("tool_definition", "system"),
        ("system_prompt", "system"),
        ("user_message", "user"),
        ("image", "user"),
        ("reasoning", "assistant"),
        ("tool_call", "assistant"),
        ("tool_result", "tool"),
        ("reasoning", "assistant"),
    ]
    assert parts[7].title == "read"


def test_a_cached_content_is_not_in_the_body() -> None:
    parts = dialects.by_name("gemini").cut(
        gemini({"parts": [{"text": "x"}]}, cachedContent="cachedContents/1")
    )
    assert [(p.kind, p.text) for p in parts] == [("custom", None), ("user_message", "x")]


# -- which dialect ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "url", "name"),
    [
        (claude({"role": "user", "content": "x"}), None, "anthropic"),
        (chat({"role": "user", "content": "x"}), None, "openai-chat"),
        (claude({"role": "user", "content": "x"}), "https://a/v1/chat/completions?key=1", "openai-chat"),
        (chat({"role": "user", "content": "x"}), "https://a/v1/messages", "anthropic"),
        ({"model": "gpt-5", "input": "x", "instructions": "y"}, None, "openai-responses"),
        (gemini({"parts": [{"text": "x"}]}), None, "gemini"),
        ({"model": "text-embedding-3", "input": "x", "encoding_format": "float"}, None, None),
        ({"messages": "no"}, None, None),
        ({}, None, None),
    ],
)
def test_a_body_tells_its_dialect_and_an_address_decides(
    body: Json, url: str | None, name: str | None
) -> None:
    found = dialects.of_body(body, url)
    assert (found.name if found else None) == name


@pytest.mark.parametrize("name", ["anthropic", "openai-chat", "openai-responses", "gemini"])
@pytest.mark.parametrize(
    "odd", [None, 1, "x", [], {}, [None, 1, "x", [], {}], {"parts": 1}, [{"content": {}}]]
)
def test_no_shape_of_a_body_is_an_error(name: str, odd: Any) -> None:
    dialect = dialects.by_name(name)
    fields = (
        "messages",
        "input",
        "contents",
        "tools",
        "system",
        "instructions",
        "systemInstruction",
        "functions",
    )
    for field in fields:
        dialect.cut({field: odd})
        dialect.detect({field: odd})
        dialect.answers({field: odd})
    for field in ("content", "choices", "output", "candidates", "usage", "usageMetadata"):
        dialect.reply({field: odd})
        dialect.usage({field: odd})
    for kind in ("tool_use", "tool_result", "image", "thinking", "reasoning", "function_call", "mcp_call"):
        block = dict.fromkeys(("text", "content", "input", "source", "summary", "arguments", "output"), odd)
        dialect.message(
            {"role": "user", "type": kind, "content": [{"type": kind, **block}], "parts": [block]}, 1
        )
        dialect.message({"type": kind, **block}, 0)


def test_tools_that_are_defined_in_the_input_are_definitions() -> None:
    """Codex gives models of GPT-5.6 and newer their tools as an item of the input."""
    space = {"type": "namespace", "name": "functions", "description": "", "tools": [{"name": "exec"}]}
    more = {
        "type": "additional_tools",
        "id": "at",
        "role": "developer",
        "tools": [space, {"type": "web_search"}],
    }
    empty = {"type": "additional_tools", "id": "none", "tools": []}
    user = {"type": "message", "role": "user", "content": "look"}
    parts = again({"model": "gpt-6", "input": [more, empty, user]})
    assert told(parts)[:2] == [("tool_definition", "tool:functions"), ("tool_definition", "tool:web_search")]
    assert [part.kind for part in parts].count("tool_definition") == 2
