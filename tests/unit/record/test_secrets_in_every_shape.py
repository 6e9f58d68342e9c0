# ruff: noqa: E501 - a body, or a command, a line
"""Secrets of over a hundred kinds, in every shape and place: none is on disk, on a surface, or in a message."""

from __future__ import annotations

import base64
import gzip
import json
import os
import quopri
import random
import re
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from exchange_help import CHAT, GEMINI, JSON, MESSAGES, RESPONSES, SSE, TOOLS, answer, chat
from secret_kinds import KINDS, SHAPES, Planted, grams, heads, jpeg, leaked, planted, png

from ctxctl import Recorder, capture
from ctxctl.cli.main import run
from ctxctl.record.event_cleaner import EventCleaner
from ctxctl.record.exchange import Exchanges
from ctxctl.record.mcp.messages import MessageRecorder, TokenCounts
from ctxctl.record.redact import FoundSecrets, SecretRedactor
from ctxctl.record.seams import Follower
from ctxctl.session import Inspector
from tests.tui.helpers import made, running

MANY = int(os.environ.get("CTXCTL_SECRETS", "1000"))
"""Secrets of the longest test; `make secrets` has ten thousand."""
Json = dict[str, Any]


def cut(text: str, chance: random.Random, most: int = 6) -> list[str]:
    """A text in pieces, cut anywhere."""
    at = sorted(
        {0, len(text), *(chance.randrange(1, max(2, len(text))) for _ in range(chance.randrange(1, most)))}
    )
    return [text[a:b] for a, b in pairwise(at)]


class Places:
    """A program that passes secrets on, in every place that a recorder can see."""

    def __init__(self, recorder: Recorder, chance: random.Random) -> None:
        self.recorder = recorder
        self.exchanges = Exchanges(recorder)
        self.mcp = MessageRecorder(recorder, None, TokenCounts())
        self.chance = chance
        self.asked = 0
        self.shaped: tuple[Callable[[str, int], Any], ...] = (
            self.item, self.fields, self.api_body, self.openai_chat, self.anthropic, self.responses, self.gemini,
            self.stream, self.raw_stream, self.records, self.mcp_call, self.refused, self.tools,
        )  # fmt: skip
        """Ways to pass a text of any shape."""
        self.bare: tuple[Callable[[str, int], Any], ...] = (
            self.names, self.headers, self.url, self.command_line, self.two_blocks, self.two_messages,
            self.two_items, self.answer_blocks, self.pictures,
        )  # fmt: skip
        """Ways to pass a key alone."""

    def plant(self, one: Planted, shape: Callable[[str], str], number: int) -> None:
        """Pass a secret on, each time in another way."""
        if one.bare and number % 3 == 0:
            self.bare[number // 3 % len(self.bare)](one.text, number)
        else:
            self.shaped[number % len(self.shaped)](shape(one.text), number)

    def item(self, text: str, n: int) -> None:
        self.recorder.item(f"i{n}", text, kind="file", title=f"of {n}", metadata={"note": text})

    def fields(self, text: str, n: int) -> None:
        self.recorder.item(f"f{n}", {"deep": [{"a": text}, text], "stdout": json.dumps({"out": text})})

    def api_body(self, text: str, n: int) -> None:
        with self.recorder.turn() as turn, turn.step() as step:
            step.request(
                {
                    "model": "m",
                    "system": text,
                    "metadata": {"k": text},
                    "messages": [{"role": "user", "content": [{"type": "text", "text": text}]}],
                }
            )
            step.response(
                {"content": [{"type": "text", "text": f"ok, {text}"}], "usage": {"input_tokens": 1}}
            )

    def _ask(self, url: str, body: Json, response: Json | None, headers: Any = JSON) -> None:
        exchange = self.exchanges.begin("POST", url, headers, json.dumps(body).encode())
        assert exchange is not None
        if response is not None:
            answer(exchange, response)
        else:
            exchange.end("client_gone")

    def openai_chat(self, text: str, n: int) -> None:
        call = {
            "id": "c",
            "type": "function",
            "function": {"name": "look", "arguments": json.dumps({"command": f"echo {text}"})},
        }
        messages = [
            {"role": "user", "content": f"{n} {text}"}, {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": json.dumps({"stdout": text})},
        ]  # fmt: skip
        self._ask(
            CHAT,
            {"model": "m", "tools": TOOLS, "messages": messages},
            chat(f"as you said, {text}", tool_calls=[call]),
        )

    def anthropic(self, text: str, n: int) -> None:
        use = {"type": "tool_use", "id": "t", "name": "bash", "input": {"command": text, "env": [text]}}
        result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": text}]}
        messages = [
            {"role": "user", "content": f"{n}"},
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
        ]
        body = {
            "model": "claude",
            "max_tokens": 5,
            "system": [{"type": "text", "text": text}],
            "messages": messages,
        }
        self._ask(
            MESSAGES,
            body,
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "text", "text": text}, use],
                "usage": {"input_tokens": 1, "output_tokens": 1},
            },
        )

    def responses(self, text: str, n: int) -> None:
        items = [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"{n} {text}"}]},
            {"type": "function_call", "call_id": "c", "name": "sh", "arguments": json.dumps({"cmd": ["sh", "-c", text]})},
            {"type": "function_call_output", "call_id": "c", "output": text},
        ]  # fmt: skip
        said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        self._ask(
            RESPONSES,
            {"model": "m", "instructions": text, "input": items},
            {"id": f"r{n}", "object": "response", "output": [said]},
        )

    def gemini(self, text: str, n: int) -> None:
        parts = [{"text": f"{n} {text}"}, {"functionResponse": {"name": "f", "response": {"out": text}}}]
        body = {
            "systemInstruction": {"parts": [{"text": text}]},
            "contents": [{"role": "user", "parts": parts}],
        }
        self._ask(
            GEMINI.replace("stream", ""),
            body,
            {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}}]},
        )

    def stream(self, text: str, n: int) -> None:
        """In deltas, and the bytes of the stream in chunks."""
        exchange = self.exchanges.begin(
            "POST",
            CHAT,
            JSON,
            json.dumps({"model": "m", "messages": [{"role": "user", "content": f"q{n}"}]}).encode(),
        )
        assert exchange is not None
        exchange.head(200, SSE)
        sse = "".join(
            f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': one}}]})}\n\n"
            for one in cut(f"It is {text} !", self.chance)
        )
        for piece in cut(f"{sse}data: [DONE]\n\n", self.chance):
            exchange.data(piece.encode())
        exchange.end("complete")

    def raw_stream(self, text: str, n: int) -> None:
        with self.recorder.step(model="m") as step:
            step.request(messages=[{"role": "user", "content": f"s{n}"}])
            with step.stream() as stream:
                for piece in cut(text, self.chance):
                    stream.text(piece)

    def records(self, text: str, n: int) -> None:
        turn = self.recorder
        turn.selection([f"a{n}"], omitted=[(f"b{n}", text)], query=text, rationale=f"as {text}")
        turn.missing(f"Is it {text}?", reason=text)
        turn.compaction([f"a{n}"], summary=f"short {n}", loss_notes=[text])
        turn.event("own.event", {"said": text}, metadata={"m": text})
        turn.redaction(f"a{n}", reason=text, policies=[text])

    def mcp_call(self, text: str, n: int) -> None:
        asked = {
            "jsonrpc": "2.0",
            "id": n,
            "method": "tools/call",
            "params": {"name": "sh", "arguments": {"command": text}},
        }
        given = {"jsonrpc": "2.0", "id": n, "result": {"content": [{"type": "text", "text": text}]}}
        self.mcp.line("client", json.dumps(asked).encode())
        self.mcp.line("server", json.dumps(given).encode())
        failed = {"jsonrpc": "2.0", "id": f"e{n}", "error": {"code": 1, "message": text}}
        self.mcp.line("client", json.dumps({**asked, "id": f"e{n}"}).encode())
        self.mcp.line("server", json.dumps(failed).encode())

    def refused(self, text: str, n: int) -> None:
        exchange = self.exchanges.begin(
            "POST",
            CHAT,
            JSON,
            json.dumps({"model": "m", "messages": [{"role": "user", "content": f"r{n}"}]}).encode(),
        )
        assert exchange is not None
        answer(
            exchange,
            {"error": {"type": "invalid_request_error", "message": f"Incorrect API key provided: {text}"}},
            status=401,
        )
        with suppress(RuntimeError), self.recorder.step() as step:
            step.request(messages=[{"role": "user", "content": f"{n}"}])
            raise RuntimeError(f"401: {text} is not valid")

    def tools(self, text: str, n: int) -> None:
        schema = {"type": "object", "properties": {"x": {"type": "string", "default": text, "enum": [text]}}}
        tool = {"type": "function", "function": {"name": f"t{n}", "description": text, "parameters": schema}}
        self._ask(
            CHAT, {"model": "m", "tools": [tool], "messages": [{"role": "user", "content": "go"}]}, None
        )

    def names(self, key: str, n: int) -> None:
        ref = self.recorder.item(f"file:{key}", f"content {n}", title=f"{key}.txt", source=f"/tmp/{key}.env")
        with self.recorder.turn(f"turn {key}", session=f"s {key}", thread=f"th {key}") as turn:
            turn.surface(items=[ref], sources=[key])
            turn.remove(f"file:{key}")

    def headers(self, key: str, n: int) -> None:
        headers = [
            *JSON,
            ("Authorization", f"Bearer {key}"),
            ("Cookie", f"k={key}"),
            ("x-ctxctl-session", f"s-{key}"),
        ]
        self._ask(
            CHAT, {"model": "m", "messages": [{"role": "user", "content": f"h{n}"}]}, chat("ok"), headers
        )
        self.recorder.item(
            f"h{n}", {"headers": {"X-Api-Key": key}, "raw": f"GET / HTTP/1.1\r\nX-Api-Key: {key}\r\n"}
        )

    def url(self, key: str, n: int) -> None:
        self._ask(
            f"{CHAT}?key={key}",
            {
                "model": "m",
                "messages": [{"role": "user", "content": f"see https://u:{key}@h/a?token={key}#x"}],
            },
            chat("ok"),
        )

    def command_line(self, key: str, n: int) -> None:
        line = f"cd /srv && TOKEN={key} ./run --api-key={key} --password '{key}' -H 'Authorization: Bearer {key}' > out-{key}.log"
        self.recorder.item(f"c{n}", {"cmd": ["bash", "-lc", line]}, kind="tool_call", title=f"$ {line}")

    def halves(self, before: str, key: str) -> tuple[str, str]:
        at = self.chance.randrange(1, len(key))
        return before + key[:at], key[at:]

    def two_blocks(self, key: str, n: int) -> None:
        blocks = [{"type": "text", "text": one} for one in self.halves(f"{n}: ", key)]
        body = {"model": "claude", "max_tokens": 5, "messages": [{"role": "user", "content": blocks}]}
        self._ask(MESSAGES, body, None)
        with self.recorder.step() as step:
            step.request(body)

    def two_messages(self, key: str, n: int) -> None:
        first, rest = self.halves(f"{n}: ", key)
        messages = [{"role": "user", "content": first}, {"role": "assistant", "content": rest}]
        self._ask(CHAT, {"model": "m", "messages": messages}, chat("ok"))

    def two_items(self, key: str, n: int) -> None:
        at = self.chance.randrange(1, 9)  # the first is written before the second comes
        for part, piece in enumerate((f"{n}: {key[:at]}", key[at:])):
            self.recorder.item(f"p{n}-{part}", piece, kind="file")

    def answer_blocks(self, key: str, n: int) -> None:
        blocks = [{"type": "text", "text": one} for one in self.halves(f"{n}: ", key)]
        body = {"model": "claude", "max_tokens": 5, "messages": [{"role": "user", "content": f"b{n}"}]}
        self._ask(
            MESSAGES,
            body,
            {
                "type": "message",
                "role": "assistant",
                "content": blocks,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            },
        )

    def pictures(self, key: str, n: int) -> None:
        data = base64.b64encode((png, jpeg)[n % 2](key)).decode()
        source = {"type": "base64", "media_type": "image/png", "data": data}
        self._ask(
            MESSAGES,
            {
                "model": "claude",
                "max_tokens": 5,
                "messages": [{"role": "user", "content": [{"type": "image", "source": source}]}],
            },
            None,
        )
        url = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
        self._ask(CHAT, {"model": "m", "messages": [{"role": "user", "content": [url]}]}, None)


def plant(path: Path, count: int, seed: int) -> tuple[set[str], Recorder]:
    """A trace into which `count` secrets were passed, each kind in each shape and place by turns."""
    chance = random.Random(seed)
    shapes, secrets = list(SHAPES.values()), []
    with Recorder(path, source="program") as recorder:
        places = Places(recorder, chance)
        for number in range(count):
            one = planted(KINDS[number % len(KINDS)], chance)
            secrets.append(one.secret)
            places.plant(one, shapes[number * 7 % len(shapes)], number)
    return grams(secrets) - heads(), recorder


def written(folder: Path) -> str:
    """All that stands in a folder, whatever it is packed in."""
    return "\n".join(unpacked(file.read_bytes()) for file in sorted(folder.rglob("*")) if file.is_file())


def unpacked(data: bytes) -> str:
    """A file's text, with what an HTML report has compressed in it."""
    text = data.decode("utf-8", "replace")
    parts = [text]
    for piece in text.split('<script type="application/octet-stream"')[1:]:
        body = piece.partition(">")[2].partition("</script>")[0]
        parts.append(zlib.decompress(base64.b64decode(body)).decode("utf-8", "replace"))
    return "\n".join(parts)


def shaped(every: int) -> Iterator[tuple[str, str, Planted]]:
    """Kinds in shapes: all, or one in so many."""
    chance = random.Random(5)
    pairs = [(kind, shape) for shape in SHAPES for kind in KINDS]
    for kind, shape in pairs[::every]:
        yield kind, shape, planted(kind, chance)


def missed(every: int) -> list[tuple[str, str]]:
    """Kinds that are found in some shape after redaction, with the shape."""
    redactor, known = SecretRedactor(b"k" * 32), heads()
    return [
        (kind, shape)
        for kind, shape, one in shaped(every)
        if leaked(redactor.text(SHAPES[shape](one.text), FoundSecrets()), grams([one.secret]) - known)
    ]


def test_there_are_sixty_kinds_and_more_and_the_search_finds_each_in_each_shape() -> None:
    """What the tests below look for is there to be found."""
    known = heads()
    assert len(KINDS) >= 60
    blind = [
        (kind, shape)
        for kind, shape, one in shaped(17)
        if grams([one.secret]) - known and not leaked(SHAPES[shape](one.text), grams([one.secret]) - known)
    ]
    assert blind == []


def test_of_every_kind_in_every_shape_nothing_is_left() -> None:
    assert missed(7) == []


@pytest.mark.slow
def test_nor_in_each_shape_of_each_kind() -> None:
    assert missed(1) == []


def test_of_some_hundred_secrets_in_all_places_none_is_on_disk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secrets, recorder = plant(tmp_path / "run.jsonl", 300, seed=1)
    assert (recorder.dropped, recorder._core.journal.errors) == (0, {})
    assert leaked(written(tmp_path) + "".join(capsys.readouterr()), secrets) == []
    assert sum(recorder.redacted.values()) >= 300


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_nor_one_of_many_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secrets, recorder = plant(tmp_path / "run.jsonl", MANY, seed=2)
    assert (recorder.dropped, recorder._core.journal.errors) == (0, {})
    assert leaked(written(tmp_path) + "".join(capsys.readouterr()), secrets) == []
    assert sum(recorder.redacted.values()) >= MANY


COMMANDS = [
    ["replay", "T", "--json", "--all"], ["show", "T@-1", "--text", "--all"], ["diff", "T@1", "@-1", "--patch"],
    ["validate", "T", "--all"], ["cost", "T", "--by", "item", "--json"], ["show", "T@nowhere"], ["export", "T", "--format", "none"],
]  # fmt: skip
MORE_COMMANDS = [
    *COMMANDS, ["replay", "T", "--plain", "--all"], ["find", "T", "user", "--all"], ["blame", "T@-1", "--all"],
    ["lint", "T", "--select", "all", "--all", "--format", "junit"], ["log", "T", "i0"], ["watch", "T", "--plain", "--all", "--idle", "0"],
]  # fmt: skip
EXPORTS = [["events"], ["html"], ["csv", "--table", "changes"], ["otlp"], ["markdown"], ["envelopes"]]


def surfaces(folder: Path, commands: list[list[str]], capsys: pytest.CaptureFixture[str]) -> str:
    """All that commands and exports say of the trace in a folder, on both streams and in files."""
    said, path = "", str(folder / "run.jsonl")
    for command in commands:
        run([part.replace("T", path, 1) if part[0] == "T" else part for part in command])
        said += "".join(capsys.readouterr())
    for form in EXPORTS:
        assert run(["export", path, "--format", *form, "-o", str(folder / f"out-{form[0]}")]) in (0, 1)
        said += "".join(capsys.readouterr())
    return said + written(folder)


def test_nor_on_a_surface_in_a_cache_or_in_a_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXCTL_CACHE_DIR", str(tmp_path / "cache"))
    secrets, _ = plant(tmp_path / "run.jsonl", 100, seed=3)
    said = surfaces(tmp_path, COMMANDS, capsys)
    assert len(said) > 100_000
    assert leaked(said, secrets) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_nor_of_hundreds_on_more_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXCTL_CACHE_DIR", str(tmp_path / "cache"))
    secrets, _ = plant(tmp_path / "run.jsonl", 300, seed=4)
    assert leaked(surfaces(tmp_path, MORE_COMMANDS, capsys), secrets) == []


async def test_nor_on_a_screen_or_in_a_picture_of_it(tmp_path: Path) -> None:
    secrets, _ = plant(tmp_path / "run.jsonl", 60, seed=5)
    with Inspector.open(tmp_path / "run.jsonl") as inspector:
        async with running(made(inspector), (160, 48)) as session:
            pictures = ""
            for key in ("]", "enter", "enter", "escape", "escape", "]", "enter", "x", "escape", "w"):
                await session.press(key)
                pictures += session.app.export_screenshot() + session.text
    assert len(pictures) > 100_000
    assert leaked(pictures.replace("&#160;", " "), secrets) == []


def test_a_key_in_two_parts_is_replaced_wherever_it_is_cut() -> None:
    chance, redactor = random.Random(1), SecretRedactor(b"k" * 32)
    known, missed = heads(), []
    for kind in KINDS:
        one = planted(kind, chance)
        for at in range(1, len(one.text), 1 + len(one.text) // 5) if one.bare else ():
            follower, found = Follower(redactor), FoundSecrets()
            parts = [f"It is {one.text[:at]}", f"{one.text[at:]} indeed"]
            cleaned = [redactor.text(str(follower.value(part, found)), found) for part in parts]
            told = any(rule.head and rule.begins(one.text.encode()) for rule in redactor._rules)
            if leaked("\n".join(cleaned if told else cleaned[1:]), grams([one.secret]) - known):
                missed.append((kind, at, cleaned))
    assert missed == []


def test_what_follows_a_whole_key_stays() -> None:
    redactor = SecretRedactor(b"k" * 32)
    for kind in ("github", "anthropic", "npm", "slack-bot", "hugging-face"):
        key = planted(kind, random.Random(7)).text
        for after in ("Done.", "I will use it", "42 files", f"{key} again", "\nnext", ""):
            follower, found = Follower(redactor), FoundSecrets()
            follower.value(f"my key: {key}", found)
            assert follower.value(after, found) == after


def test_events_of_others_that_cut_a_key_in_two(tmp_path: Path) -> None:
    chance, known = random.Random(4), heads()
    cleaner = EventCleaner(SecretRedactor(b"k" * 32), {})
    for kind in KINDS[:40]:
        one = planted(kind, chance)
        pieces = [f"It is {one.text[:9]}", one.text[9:]] if one.bare else [one.text]
        events = [
            {"event_type": "context.item.added", "data": {"item_id": f"i{n}", "content": piece}}
            for n, piece in enumerate(pieces)
        ]
        assert (
            leaked(json.dumps([cleaner.clean(event) for event in events]), grams([one.secret]) - known) == []
        )


def test_a_hook_in_the_program_records_none(tmp_path: Path) -> None:
    chance, path = random.Random(6), tmp_path / "run.jsonl"
    secrets = [planted(kind, chance) for kind in KINDS[::6]]

    def reply(request: httpx2.Request) -> httpx2.Response:
        asked = json.loads(request.content)["messages"][0]["content"]
        return httpx2.Response(200, json=chat(f"you said {asked}"))

    with capture(path), httpx2.Client(transport=httpx2.MockTransport(reply)) as client:
        for one in secrets:
            headers = {"authorization": f"Bearer {one.secret}"} if "\n" not in one.secret else {}
            client.post(
                CHAT,
                json={"model": "m", "messages": [{"role": "user", "content": one.text}]},
                headers=headers,
            )
    assert path.stat().st_size > 10_000
    assert leaked(written(tmp_path), grams(one.secret for one in secrets) - heads()) == []


def test_an_image_stays_an_image_and_base64_base64() -> None:
    redactor, key = SecretRedactor(b"k" * 32), planted("github", random.Random(1)).text
    found = FoundSecrets()
    image = png(f"made with {key} here")
    cleaned = redactor.text(f"data:image/png;base64,{base64.b64encode(image).decode()}", found)
    data = base64.b64decode(cleaned.partition(",")[2])
    assert len(data) == len(image)
    at = 8
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        assert zlib.crc32(data[at + 4 : at + 8 + size]) == int.from_bytes(
            data[at + 8 + size : at + 12 + size], "big"
        )
        at += 12 + size
    assert b"made with " + b"*" * len(key) + b" here" in data
    text = base64.b64encode(f"user: me\ntoken: {key}\n".encode()).decode()
    inner = base64.b64decode(redactor.text(f"x {text} y", found)[2:-2]).decode()
    assert inner.startswith("user: me\ntoken: [redacted github-token, 40 chars, #")
    assert found.kinds == {"github-token": 2}


@pytest.mark.parametrize("text", [
    "see https://h/a%20b?q=%7B%22token%22%3A%22xxxx%22%7D&n=1", "&lt;b&gt;password&lt;/b&gt; &amp; more", "\\\\\\\\server\\\\share\\\\file.txt",
    "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", "3f786850e387550fdab836ed7e6dc881de23001b", "550e8400-e29b-41d4-a716-446655440000",
    "toolu_01A09q90qw90lq917835lq9", "ends with npm_config_registry", "reads sk-learn-contrib", "xai-org/grok-1", "and AKIA", "a/long/path/to/SomeModule/thatIsNamed_Something-else",
    base64.b64encode(random.Random(1).randbytes(3000)).decode(), base64.b64encode(png("a plain comment")).decode(),
])  # fmt: skip
def test_what_is_no_secret_in_any_reading_stays(text: str) -> None:
    assert SecretRedactor(b"k" * 32).text(text, FoundSecrets()) == text


def test_what_was_packed_stays_packed() -> None:
    redactor, key = SecretRedactor(b"k" * 32), planted("github", random.Random(1)).text
    text = f"user: me\ntoken: {key}\n".encode()
    found = FoundSecrets()
    packed = base64.b64decode(redactor.text(base64.b64encode(gzip.compress(text)).decode(), found))
    assert gzip.decompress(packed).startswith(b"user: me\ntoken: [redacted github-token, 40 chars, #")
    spelled = redactor.text(text.hex().upper(), found)
    assert bytes.fromhex(spelled).startswith(b"user: me\ntoken: [redacted github-token, 40 chars, #")
    assert spelled == spelled.upper()
    wide = base64.b64decode(
        redactor.text(base64.b64encode(text.decode().encode("utf-16-le")).decode(), found)
    )
    assert "[redacted github-token, 40 chars, #" in wide.decode("utf-16-le")
    image = base64.b64decode(
        redactor.text(base64.b64encode(png(f"made with {key}", b"zTXt")).decode(), found)
    )
    at, chunks = 8, {}
    while at < len(image):
        size = int.from_bytes(image[at : at + 4], "big")
        chunks[image[at + 4 : at + 8]] = held = image[at + 8 : at + 8 + size]
        assert zlib.crc32(image[at + 4 : at + 8] + held) == int.from_bytes(image[at + 8 + size :][:4], "big")
        at += 12 + size
    assert list(chunks) == [b"IHDR", b"zTXt", b"IDAT", b"IEND"]
    assert zlib.decompress(chunks[b"zTXt"].removeprefix(b"Comment\0\0")) == b"made with " + b"*" * len(key)
    assert found.kinds == {"github-token": 4}


def test_of_a_bomb_with_a_secret_nothing_is_left_and_of_one_without_all() -> None:
    redactor, key = SecretRedactor(b"k" * 32), planted("github", random.Random(1)).text
    bomb, plain = (
        base64.b64encode(gzip.compress(head + b" a" * 5_000_000)).decode() for head in (key.encode(), b"a")
    )
    assert re.fullmatch(
        r"see \[redacted packed-data, \d+ chars, #[0-9a-f]{12}\]",
        redactor.text(f"see {bomb}", FoundSecrets()),
    )
    assert redactor.text(plain, FoundSecrets()) == plain


@pytest.mark.parametrize(
    "text",
    [
        " ".join([base64.b64encode(gzip.compress(b"ab " * 400_000)).decode()] * 500),
        base64.b64encode(png("a" * 20_000_000, b"zTXt")).decode(),
        " ".join(["6768705f" * 8] * 16_000),
        ("a" * 70 + "=\n") * 15_000,
        "a\0" * 500_000,
    ],
    ids=["packed", "an image", "hexadecimal", "quoted-printable", "UTF-16"],
)
def test_a_megabyte_that_asks_for_much_is_looked_through_within_two_seconds(text: str) -> None:
    begun = time.process_time()
    SecretRedactor(b"k" * 32).text(text, FoundSecrets())
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    "text",
    [
        "API_KEY=\nDB_HOST=localhost.example\n" * 9,
        "deadbeef" * 8,
        b"just a plain line of text, without anything in it".hex(),
        base64.b64encode(gzip.compress(b"an ordinary log line\n" * 40, mtime=0)).decode(),
        base64.b64encode("Get-ChildItem -Recurse | Select Name".encode("utf-16-le")).decode(),
        base64.b64encode(png("a plain comment", b"zTXt")).decode(),
        f"{'x' * 70}=\nand the next line",
    ],
)
def test_what_is_packed_or_spelled_and_no_secret_stays(text: str) -> None:
    assert SecretRedactor(b"k" * 32).text(text, FoundSecrets()) == text


def test_what_stands_before_a_stub_in_one_match_is_replaced_too() -> None:
    """A rule that reaches over quotation marks as far as a stub does not give up what stands before it."""
    redactor, chance = SecretRedactor(b"k" * 32), random.Random(3)
    first, second = (planted("cookie", chance) for _ in range(2))
    held = {"q": f"a={quote(first.text, safe='')}&b=1", "said": [second.text, second.text]}
    body = json.dumps(held, separators=(",", ":"))
    cleaned = redactor.text(body, FoundSecrets())
    assert leaked(cleaned, grams([first.secret, second.secret])) == []
    assert redactor.text(cleaned, FoundSecrets()) == cleaned


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_a_soft_line_break_is_read_in_json_as_well(levels: int) -> None:
    redactor, key = SecretRedactor(b"k" * 32), "xoxb-1234567890-9876543210-K173rwMQqZ5WW1mJy8ylHWLh"
    text = quopri.encodestring(f"{'words ' * 9}says {key} and more".encode()).decode()
    settings = "API_KEY=\nDB_HOST=localhost.example\n" * 9
    for _ in range(levels):
        text, settings = json.dumps({"a": text}), json.dumps({"a": settings})
    assert leaked(redactor.text(text, FoundSecrets()), grams([key])) == []
    assert redactor.text(settings, FoundSecrets()) == settings


def test_of_a_call_as_it_is_shown_nothing_is_left() -> None:
    """A call with the text in its arguments, as JSON, and beside it as it is: what a dataset keeps of it."""
    redactor, known, chance = SecretRedactor(b"k" * 32), heads(), random.Random(9)
    missed = []
    for shape, shaped_as in SHAPES.items():
        for kind in KINDS:
            one = planted(kind, chance)
            name = one.text if one.bare else "n"
            call = {"command": shaped_as(one.text), "path": f"/home/{name}/{name}.env", "env": [one.text]}
            cleaned = redactor.text(f"{name} {json.dumps(call)}", FoundSecrets())
            if leaked(cleaned, grams([one.secret]) - known):
                missed.append((kind, shape))
    assert missed == []
