"""Importers and detection against captures made to cost time, to reach a terminal, or to leak a secret."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sqlite3
import sys
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from typer.testing import CliRunner

from ctxctl.cli.app import app
from ctxctl.errors import CtxctlError
from ctxctl.importers import registry
from ctxctl.importers.pi.parts import _BEGIN, _internal
from ctxctl.ingest.build import Maker
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.fidelity import KEPT
from ctxctl.ingest.lines import Line, salvage
from ctxctl.ingest.parts import Part
from ctxctl.model.problem import Problem
from ctxctl.plugins.amplifier.transcript import _stands_for
from ctxctl.providers.dialects import slots
from ctxctl.trace import salvage as native
from ctxctl.trace.source import Source
from tests.formats.damage import FIXTURES, captures, imported

FORMATS = [pytest.param(one, id=one.name) for one in registry.built_in()]
HEAD = registry.HEAD


# -- detection ------------------------------------------------------------------------------------------

UNITS = (
    "{", "[", '"', "\\", '\\"', '{"', '{"a":', '[{"a":"', " ", "\t", "\n", "\r", "\r\n", "<", "<a>", "#### ",
    "```json\n", "- ", "- \n", " #\r\n", ": \r\n", "event: \r\n", "data: {", '"body":"{ ', '"body": "{\\"a',
    '"request" : ', '{"context_id":', '"item_id":x', '"$id":"agentcontext', "[1 , ", '"traceSchema":', "é",
    '{"request":{"timestamp":1', '{"type":"', '"messages":[', '[{"name":"a","description":"', '"version" : ',
)  # fmt: skip
STARTS = (
    "", "{", "[", '{"a":"', '{"version":', "interactions:\n", "http_interactions: \n  #\r\n", "event: ",
    "conversations:\n #\r\n", '[{"name":"a","description":"',
)  # fmt: skip


@pytest.mark.timeout(60)
@pytest.mark.parametrize("start", STARTS)
def test_no_head_is_slow_to_tell_apart(start: str) -> None:
    for unit in UNITS:
        # A pattern that tries one way after another would not end before the test is stopped.
        registry.of_head((start.encode() + unit.encode() * HEAD)[:HEAD])


# -- what any importer may be given ---------------------------------------------------------------------


def _views() -> bytes:
    with sqlite3.connect(":memory:") as database:
        for name in ("sessions", "session", "messages", "message", "part"):
            database.execute(
                f"CREATE VIEW {name} AS WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r)"
                " SELECT i AS id, i AS session_id, i AS message_id, '{}' AS data FROM r"
            )
        database.commit()
        return database.serialize()


def _archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", '{"version":2,"status":"success","eval":{}}')
        archive.writestr("samples/a_epoch_1.json", b'{"messages":[' + b" " * (80 << 20) + b"]}")
        archive.writestr("samples/\x1b]0;x\x07_epoch_99999999999999999999.json", "[]")
    return file.getvalue()


BOMB = b"interactions:\n- &a [x, x, x, x, x, x, x, x, x]\n" + b"".join(
    b"- &%c [%s]\n" % (98 + i, b", ".join([b"*%c" % (97 + i)] * 9)) for i in range(20)
)
MADE_LATE: dict[str, Callable[[], bytes]] = {
    "views without end": cache(_views),
    "an archive that blows up": cache(_archive),
}
"""What takes too long to make for a process that only collects the tests."""
HOSTILE: dict[str, bytes] = {
    "nothing but NUL": bytes(100_000),
    "nothing but blanks": b" " * 100_000,
    "one line of letters": b"x" * 200_000,
    "open brackets": b"[" * 20_000,
    "open objects": b'{"a":' * 10_000,
    "20 000 deep": b"[" * 20_000 + b"]" * 20_000,
    "1000 deep in a message": b'{"model":"m","messages":[{"role":"user","content":'
    + b"[" * 1000 + b"]" * 1000 + b"}]}",
    "a torn string of escapes": b'{"a":"' + b'\\"' * 100_000,
    "objects on one line": b"{}" * 5_000,
    "numbers on one line": b"1 " * 20_000,
    "numbers on lines": b"1\n" * 5_000,
    "empty objects on lines": b"{}\n" * 2_000,
    "an array of empty objects": b"[" + b"{}," * 2_000 + b"{}]",
    "huge numbers": b'{"type":"user","id":' + b"9" * 5000 + b',"timestamp":1e999,"line":-1}\n' * 3,
    "lone surrogates": rb'{"type":"\ud800","id":"\udfff","messages":[{"role":"user"}],"content":"\ud800"}',
    "a YAML bomb": BOMB,
    "YAML in itself": b"interactions:\n- &a [*a]\n- request: &b {body: *b, headers: *b}\n  response: *b",
    "YAML in itself twice": b"conversations:\n- messages: &a\n  - *a\n  - &b {role: user, content: *b}\n",
    "YAML of odd types": b"interactions:\n- request: {method: POST, uri: 'https://x/v1/responses',"
    b" body: !!binary '@@', headers: 3}\n- !!python/name:os.system x\n- 2020-99-99\n- ? [1]\n  : 2\n",
    "msgpack of a billion": b"\xdd\xff\xff\xff\xff" + b"\x90" * 1000,
    "msgpack 50 000 deep": b"\x91" * 50_000,
    "a database of noise": b"SQLite format 3\0" + b"\xff" * 5000,
    "an archive of noise": b"PK\x03\x04" + b"\xff" * 5000,
    "event streams": b"data: {}\r" * 1000 + b'data: {"choices":[{"index":99999999999}]}\n\n' * 100,
    "backticks": b"# Sibyl Context\n" + (b"- **" + b" _`a`" * 2000 + b"\n") * 3,
}  # fmt: skip
SMALLEST = {
    name.split("/")[0]: path.read_bytes()
    for name, path in sorted(captures(), key=lambda row: -row[1].stat().st_size)
}
"""One fixture of each kind."""


@pytest.mark.parametrize("importer", FORMATS)
def test_no_importer_breaks_on_what_is_not_its_own(importer: Format) -> None:
    late = {what: make() for what, make in MADE_LATE.items()}
    for what, data in {**HOSTILE, **late, **SMALLEST}.items():
        try:
            found = imported(importer, data)
        except CtxctlError:
            continue
        except Exception as error:
            raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
        assert all("\n" not in problem.message for problem in found.problems), what
        assert len(found.problems) < 2 * KEPT


# -- time that grows with the input, and not faster -----------------------------------------------------


def _nothing(problem: Problem) -> None:
    pass


def _read(name: str, data: bytes) -> None:
    for _ in registry.capture_events(registry.by_name(name), Source.from_bytes("x", data), _nothing):
        pass


def _steps(count: int) -> None:
    conversation = Conversation(Maker("x", "x-"), [])
    for _ in range(count):
        conversation.request("same")


def _claude(count: int) -> None:
    """Requests that all go by one name."""
    row = {"id": "x", "type": "tool_use"}
    line = json.dumps({"request": {"method": "POST", "url": "https://api.anthropic.com/v1/messages", **row}})
    _read("claude-trace", f"{line}\n".encode() * count)


def _openai(count: int) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
    rows = [json.dumps({"id": "same", **body, "user": str(n)}) for n in range(count)]
    _read("api", "\n".join(rows).encode())


def _records(count: int) -> None:
    rows = [
        json.dumps({"schema_version": "0.1.1", "item_id": f"i{n}", "context_kind": "custom",
                    "session_id": str(n), "content_mode": "inline", "content": "x", "visibility": ["model"]})
        for n in range(count)
    ]  # fmt: skip
    _read("agent-context", "\n".join(rows).encode())


_MANY = 20
"""Times the size given below: the square of that would not end in time."""
GROWING: dict[str, tuple[Callable[[int], object], int]] = {
    "a torn string of escapes": (lambda n: native.repair_line(b'{"a":"' + b'\\"' * n), 50_000),
    "glued records": (lambda n: salvage(Line(1, 0, b"{}" * n), _nothing), 10_000),
    "glued records of a trace": (lambda n: native.split_records(b"{}" * n, 0, last=False), 10_000),
    "glued records that are looked into": (lambda n: _read("sanqian", b'{"a":[]}' * n), 2_000),
    "tags with blanks": (lambda n: slots.split("<system-reminder" + " " * n), 5_000),
    "openings of an internal context": (lambda n: _internal(Part("user_message", _BEGIN * n, "user")), 500),
    "masks of a path": (lambda n: _stands_for("[REDACTED]a" * 4, "a" * n + "/"), 500),
    "steps of one name": (_steps, 500),
    "requests of one name": (_claude, 500),
    "bodies of one id": (_openai, 300),
    "records of no context": (_records, 250),
}


def executed(work: Callable[[], object]) -> int:
    """Lines of Python that some work executes: a measure of it that no machine changes."""
    count = 0

    def local(_frame: FrameType, event: str, _argument: object) -> object:
        nonlocal count
        count += event == "line"
        return local

    before = sys.gettrace()
    sys.settrace(lambda *_: local)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.slow
@pytest.mark.parametrize("what", GROWING)
def test_work_grows_with_the_input_and_not_with_its_square(what: str) -> None:
    run, most = GROWING[what]
    count = max(most // 4, 50)
    run(count)  # what is imported and compiled at first is not counted
    small = executed(lambda: run(count))
    large = executed(lambda: run(4 * count))
    assert large < 6 * max(small, 1000), "four times the input"


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("what", GROWING)
def test_a_large_input_comes_to_its_end(what: str) -> None:
    run, count = GROWING[what]
    run(count * _MANY)  # patterns, whose work is no line of ours: the square would not end in time


def test_a_wrong_file_is_not_told_of_line_by_line_for_ever() -> None:
    problems: list[Problem] = []
    many = 2 * KEPT
    data = b"1\n" * many
    for _ in registry.capture_events(
        registry.by_name("goose"), Source.from_bytes("x", data), problems.append
    ):
        pass
    told = [problem for problem in problems if problem.slug == "not-a-record"]
    assert len(told) == KEPT + 1
    assert told[-1].line == many
    assert told[-1].message == f"{many - KEPT} more of this kind so far"


# -- terminals ------------------------------------------------------------------------------------------

EVIL = "\x1b]0;owned\x07\x1b[31m\x1b]8;;http://x\x07\r\x9b1m\u202e\u2066\u200b"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]")
LEFT = re.compile(r"[a-z_.-]{1,40}|\d{4}-.*|https?://.*|[\w.-]*/.*")
"""Values that decide what a record is."""
SHOWN = (
    "claude_code/session.jsonl", "codex/rollout.jsonl", "gemini_cli/session.json", "claude_tap/trace.jsonl",
    "opencode/export.json", "luminarys/calls.jsonl", "mcp_tools/server.json", "sibyl/wake.json",
)  # fmt: skip


FOLDERS = ("api/pairs", "claude_bodies/dump", "luminarys/pairs", "claude_code/agents", "agent_context/folder")


def _evil(value: Any) -> Any:
    if isinstance(value, str):
        return value if LEFT.fullmatch(value) else value + EVIL
    if isinstance(value, list):
        return [_evil(one) for one in value]
    return {name: _evil(one) for name, one in value.items()} if isinstance(value, dict) else value


def _poisoned(path: Path) -> str:
    text = path.read_text("utf-8")
    try:
        return json.dumps(_evil(json.loads(text)))
    except ValueError:
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        return "".join(json.dumps(_evil(row)) + "\n" for row in rows)


def _clean(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(one) for one in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    said = done.stdout + done.stderr
    raw = RAW.search(said)
    assert raw is None, said[max(0, raw.start() - 80) : raw.end() + 20]
    return said


@pytest.mark.parametrize("name", SHOWN)
def test_nothing_of_a_foreign_capture_reaches_the_terminal_raw(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{EVIL.replace('/', '')}.jsonl"
    path.write_text(_poisoned(FIXTURES / name))
    out = tmp_path / f"out{EVIL.replace('/', '')}.jsonl"
    _clean("replay", "--plain", "--all", path)
    _clean("show", path)
    _clean("import", path, "-o", out)
    _clean("validate", out)


@pytest.mark.parametrize("name", FOLDERS)
def test_odd_files_of_a_directory_are_passed_over(name: str, tmp_path: Path) -> None:
    evil = EVIL.replace("/", "")
    folder = tmp_path / f"dir{evil}"
    shutil.copytree(FIXTURES / name, folder)
    (folder / f"torn{evil}.jsonl").write_bytes(b'{"type":"user","uuid":\n\xff\0')
    (folder / f"cut{evil}.json.gz").write_bytes(b"\x1f\x8b\x08\0\0\0")
    os.mkfifo(folder / "fifo.jsonl")
    (folder / "loop").symlink_to(folder)
    (folder / "zero.jsonl").symlink_to("/dev/zero")
    (folder / "gone.json").symlink_to("nowhere")
    secret = folder / "secret.json"
    secret.write_text("{}")
    secret.chmod(0)
    _clean("replay", "--plain", "--all", folder)
    _clean("import", folder, "-o", tmp_path / "out.jsonl")


@pytest.mark.parametrize("name", FOLDERS)
def test_files_that_vanish_while_a_directory_is_read_are_told(name: str, tmp_path: Path) -> None:
    from ctxctl.importers.capture import open_capture

    folder = tmp_path / "dir"
    shutil.copytree(FIXTURES / name, folder)
    with open_capture(folder) as capture:
        assert capture.format is not None
        shutil.rmtree(folder)
        problems: list[Problem] = []
        list(registry.capture_events(capture.format, capture.source, problems.append))
    assert "no-such-file" in {problem.slug for problem in problems}


# -- secrets --------------------------------------------------------------------------------------------

SECRET = "sk-PLANTED-0123456789"
HEADERS = ("authorization", "Authorization", "x-api-key", "X-Goog-Api-Key", "api-key", "cookie", "set-cookie",
           "Proxy-Authorization", "x-amz-security-token", "openai-organization")  # fmt: skip


def _planted(value: Any) -> Any:
    """With credentials in every set of headers, in each of the shapes that headers have."""
    if isinstance(value, list):
        return [_planted(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {name: _planted(one) for name, one in value.items()}
    for name in made:
        if "headers" in name.lower() or name == "cookies":
            old = made[name]
            if isinstance(old, dict):
                many = any(isinstance(one, list) for one in old.values())
                said = f"Bearer {SECRET}"
                made[name] = {**old, **{header: [said] if many else said for header in HEADERS}}
            elif isinstance(old, list):
                made[name] = [*old, *({"name": h, "value": f"Bearer {SECRET}"} for h in HEADERS)]
    return made


def _wire() -> Iterator[Path]:
    for folder in ("har", "claude_trace", "claude_tap", "lhar", "http_requests", "vcr", "pi_recordings"):
        yield from sorted(path for path in (FIXTURES / folder).iterdir() if path.is_file())


@pytest.mark.parametrize("path", list(_wire()), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_headers_credentials_are_not_imported(path: Path) -> None:
    text = path.read_text("utf-8")
    importer = registry.of_head(text.encode()[:HEAD])
    assert importer is not None
    if path.suffix in (".yaml", ".yml"):
        import yaml

        plain = text.replace("!binary", "!!binary") if "!!binary" not in text else text
        planted = yaml.safe_dump(_planted(yaml.safe_load(plain)), sort_keys=False)
    else:
        try:
            planted = json.dumps(_planted(json.loads(text)))
        except ValueError:
            rows = [json.loads(line) for line in text.splitlines() if line]
            planted = "".join(json.dumps(_planted(row)) + "\n" for row in rows)
    url = planted.replace("/v1/messages", f"/v1/messages?key={SECRET}").replace(
        "/v1/chat/completions", f"/v1/chat/completions?api_key={SECRET}"
    )
    assert planted.count(SECRET) >= len(HEADERS)
    for data in (planted, url):
        found = imported(importer, data.encode())
        assert SECRET not in json.dumps(found.events)
        assert not [problem for problem in found.problems if SECRET in problem.message]


SPANS = [
    p for name, p in captures() if name.split("/")[0] in ("otel", "openinference", "langfuse", "langsmith")
]
SECRET = "sk-planted-0123456789"
_OPEN = ("metadata", "extra", "invocation_params", "modelParameters")
"""Fields of spans and runs that hold whatever an application put there."""


def planted(value: Any) -> Any:
    """A span with credentials among its attributes and settings."""
    if isinstance(value, list):
        return [planted(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {key: planted(one) for key, one in value.items()}
    header = "http.request.header.authorization"
    if isinstance(made.get("attributes"), list):
        made["attributes"].append({"key": header, "value": {"stringValue": SECRET}})
    elif isinstance(made.get("attributes"), dict):
        made["attributes"][header] = SECRET
    for name in _OPEN:
        if isinstance(made.get(name), dict):
            made[name] |= {"api_key": SECRET, "extra_headers": {"x-api-key": SECRET}}
    return made


@pytest.mark.parametrize("path", SPANS, ids=lambda path: path.name)
def test_credentials_of_spans_are_not_imported(path: Path) -> None:
    data = path.read_bytes()
    try:
        bad = json.dumps(planted(json.loads(data))).encode()
    except ValueError:
        bad = b"\n".join(json.dumps(planted(json.loads(line))).encode() for line in data.splitlines())
    assert SECRET.encode() in bad
    importer = registry.of_head(bad[: registry.HEAD])
    assert importer is not None
    found = imported(importer, bad)
    assert len(found.events) > 2
    assert SECRET not in json.dumps(found.events)
