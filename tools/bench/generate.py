"""Writes the large traces that the benchmark reads: streaming, and the same bytes every time.

`repeating` is a session log whose every request writes its whole context out again, as runtimes that log
requests do: 24 sessions, about 93 items a request, of which two are new, a compaction when 130 are reached.
Of a gigabyte two hundredths are content that was not there before.  `deep` is one session of many turns
over a window of a fixed number of items, written the way ctxctl itself writes (each content once, assemblies
as splices).  `working` is one session of an agent whose window only grows: several requests a turn, each
with the calls and results of the one before, written in the same way.  `transcript` is a session's log as
Claude Code writes it: a line for each prompt, answer, call and result, each text once.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

from tools.bench import words

GENERATION = 1
"""To be raised whenever the bytes change; files of another generation are written again."""
MB = 1_000_000

_KINDS = ("tool_result", "assistant_message", "tool_call", "tool_result", "file_excerpt")
_FIXED = 30
_GROW = 2
_FULL = 130
_AFTER = 50
_TURNS = 118
_START = datetime(2026, 5, 1, tzinfo=UTC)


@dataclass
class _Item:
    ref: str
    data: bytes
    """The `data` of its event as JSON, the same bytes whenever it is repeated."""


class _Log:
    """Formats events; one counter of ids and one clock for the file."""

    def __init__(self) -> None:
        self.number = 0

    def line(self, event_type: str, session: str, turn: str, data: bytes) -> bytes:
        self.number += 1
        time = (_START + timedelta(milliseconds=40 * self.number)).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        return (
            b'{"schema_version":"0.1.1","event_id":"e%d","event_type":"%s","source":"bench","time":"%sZ",'
            b'"session_id":"%s","turn_id":"%s","data":%s}\n'
        ) % (self.number, event_type.encode(), time.encode(), session.encode(), turn.encode(), data)


def _item(rng: random.Random, ref: str, kind: str, length: int) -> _Item:
    content = orjson.dumps(words.text(rng, length))
    data = (
        b'{"schema_version":"0.1.1","item_id":"%s","context_kind":"%s","content_mode":"inline","content":%s,'
        b'"visibility":["model"]}'
    ) % (ref.encode(), kind.encode(), content)
    return _Item(ref, data)


def _request(number: int, refs: list[str]) -> tuple[bytes, bytes, bytes]:
    blocks = b",".join(b'{"block_id":"b%d","item_refs":["%s"]}' % (n, r.encode()) for n, r in enumerate(refs))
    created = b'"created_at":"2026-05-01T00:00:00Z"'
    assembly = (
        b'{"schema_version":"0.1.1","assembly_id":"a%d","target":"model","ordered_blocks":[%s],%s}'
    ) % (number, blocks, created)
    injection = (
        b'{"schema_version":"0.1.1","injection_id":"i%d","assembly_id":"a%d","target":"model",'
        b'"injection_point":"message_history",%s}'
    ) % (number, number, created)
    usage = (
        b'{"schema_version":"0.1.1","model":"gpt-4.1","provider":"openai","input_tokens":%d,'
        b'"cached_tokens":%d,"output_tokens":%d}'
    ) % (len(refs) * 900, len(refs) * 800, 100 + number % 400)
    return assembly, injection, usage


def repeating(
    limit: int, seed: int = 20260501, size: Callable[[random.Random], int] = words.size
) -> Iterator[bytes]:
    """Lines of a log of about `limit` bytes whose requests repeat their history.

    `size` gives the characters of an item.
    """
    rng = random.Random(seed)
    log = _Log()
    written = requests = session_number = 0
    while written < limit:
        session_number += 1
        session = f"s{session_number:02d}"
        window = [_fixed(rng, n, size) for n in range(_FIXED)]
        for turn in range(1, _TURNS + 1):
            name = f"t{turn}"
            window.append(_item(rng, f"u{turn}", "user_message", rng.randint(40, 900)))
            for n in range(_GROW - 1):
                window.append(_item(rng, f"m{turn}-{n}", rng.choice(_KINDS), size(rng)))
            lines = []
            if len(window) > _FULL:
                lines += _compact(rng, log, session, name, window, turn)
            lines += [log.line("context.item.added", session, name, item.data) for item in window]
            requests += 1
            records = _request(requests, [item.ref for item in window])
            for event_type, data in zip(
                ("context.assembly.created", "context.injection.applied", "ctxctl.usage.reported"),
                records,
                strict=True,
            ):
                lines.append(log.line(event_type, session, name, data))
            for line in lines:
                yield line
                written += len(line)
            if written >= limit:
                return


def _fixed(rng: random.Random, number: int, size: Callable[[random.Random], int]) -> _Item:
    kind = "system_prompt" if number == 0 else "tool_definition" if number < 16 else "file_excerpt"
    return _item(rng, f"f{number}", kind, size(rng))


def _compact(
    rng: random.Random, log: _Log, session: str, turn: str, window: list[_Item], number: int
) -> list[bytes]:
    gone = window[_FIXED : len(window) - (_AFTER - _FIXED)]
    summary = _item(rng, f"summary-{number}", "thread_summary", 4000)
    window[_FIXED : len(window) - (_AFTER - _FIXED)] = [summary]
    refs = orjson.dumps([item.ref for item in gone])
    record = (
        b'{"schema_version":"0.1.1","compaction_id":"c%d","scope":"session","source_item_refs":%s,'
        b'"summary_ref":"%s","method":"abstractive_summary","trigger":"token_pressure",'
        b'"created_at":"2026-05-01T00:00:00Z"}'
    ) % (number, refs, summary.ref.encode())
    return [
        log.line("context.item.added", session, turn, summary.data),
        log.line("context.compaction.completed", session, turn, record),
    ]


def deep(turns: int, items: int, seed: int = 7) -> Iterator[bytes]:
    """Lines of one session of `turns` turns over a window that holds `items` items once it is full."""
    rng = random.Random(seed)
    log = _Log()
    window = 0
    for turn in range(1, turns + 1):
        name = f"t{turn}"
        fresh = items if turn == 1 else 2
        refs = [f"i{turn}-{n}" for n in range(fresh)]
        for n, ref in enumerate(refs):
            kind = "user_message" if n == fresh - 2 else "assistant_message"
            yield log.line("context.item.added", "s", name, _item(rng, ref, kind, rng.randint(80, 500)).data)
        removed = max(0, window + fresh - items)
        splices = [[16, removed, 0], [window, 0, fresh]] if removed else [[window, 0, fresh]]
        window += fresh - removed
        blocks = [{"block_id": f"b{turn}-{n}", "item_refs": [ref]} for n, ref in enumerate(refs)]
        base = {"mode": "window"} | ({"base": f"a{turn - 1}", "splices": splices} if turn > 1 else {})
        assembly = {
            "schema_version": "0.1.1",
            "assembly_id": f"a{turn}",
            "target": "model",
            "ordered_blocks": blocks,
            "created_at": "2026-05-01T00:00:00Z",
            "metadata": {"ctxctl": base},
        }
        yield log.line("context.assembly.created", "s", name, orjson.dumps(assembly))


def working(turns: int, seed: int = 11) -> Iterator[bytes]:
    """Lines of one session of an agent: one to seven requests a turn, and nothing ever leaves the window."""
    rng = random.Random(seed)
    log = _Log()
    window = requests = 0
    fresh = [
        _noted(_item(rng, f"head{n}", "tool_definition" if n < 16 else "system_prompt", 1_200))
        for n in range(17)
    ]
    for turn in range(1, turns + 1):
        name = f"t{turn}"
        prompt = _item(rng, f"u{turn}", "user_message", rng.randint(40, 900))
        fresh.append(_noted(prompt, priority=rng.choice((None, 0.5, 0.9))))
        if rng.random() < 0.3:
            found = _item(rng, f"r{turn}", "retrieval_result", words.size(rng) // 4)
            fresh.append(_noted(found, priority=0.2, score=round(rng.random(), 3)))
        last = rng.randint(1, 7)
        for step in range(1, last + 1):
            requests += 1
            for item in fresh:
                yield log.line("context.item.added", "s", name, item.data)
            for event_type, data in _grown(requests, window, [item.ref for item in fresh]):
                yield log.line(event_type, "s", name, data)
            window += len(fresh)
            fresh = _answer(rng, f"{turn}-{step}", done=step == last)


def _noted(item: _Item, *, priority: float | None = None, score: float | None = None) -> _Item:
    """The item with what a runtime may say of it besides."""
    told = b"".join(
        b'"%s":%s,' % (name, orjson.dumps(value))
        for name, value in ((b"priority", priority), (b"score", score))
        if value is not None
    )
    return _Item(item.ref, b"{" + told + item.data[1:])


def _answer(rng: random.Random, name: str, *, done: bool) -> list[_Item]:
    """What a model answered, with the results of its calls."""
    if done:
        return [_item(rng, f"m{name}", "assistant_message", words.size(rng) // 6)]
    made = [_item(rng, f"m{name}", "assistant_message", rng.randint(40, 400))] if rng.random() < 0.5 else []
    calls = [f"c{name}-{n}" for n in range(1 + (rng.random() < 0.2))]
    made += [_item(rng, call, "tool_call", rng.randint(60, 600)) for call in calls]
    return made + [_item(rng, f"{call}/result", "tool_result", words.size(rng) // 3) for call in calls]


def _grown(number: int, window: int, refs: list[str]) -> Iterator[tuple[str, bytes]]:
    """The records of a request that adds items behind a window of so many."""
    assembly, injection, _ = _request(number, refs)
    usage = (
        b'{"schema_version":"0.1.1","model":"gpt-4.1","provider":"openai","input_tokens":%d,'
        b'"cached_tokens":%d,"output_tokens":%d}'
    ) % ((window + len(refs)) * 300, window * 300, 100 + number % 400)
    if number > 1:
        spliced = b',"metadata":{"ctxctl":{"mode":"window","base":"a%d","splices":[[%d,0,%d]]}}}'
        assembly = assembly[:-1] + spliced % (number - 1, window, len(refs))
    yield "context.assembly.created", assembly
    yield "context.injection.applied", injection
    yield "ctxctl.usage.reported", usage


def transcript(limit: int, seed: int, scale: float = 1.0) -> Iterator[bytes]:
    """Lines of a Claude Code session of about `limit` bytes; the window is compacted whenever it is full.

    `scale`: of the length of its texts.
    """

    def size() -> int:
        return int(words.size(rng) * scale)

    rng = random.Random(seed)
    log = _Transcript(f"{rng.getrandbits(128):032x}")
    written, window = 0, 0
    while written < limit:
        lines = [log.prompt(words.text(rng, int(rng.randint(40, 900) * scale)))]
        for _ in range(rng.randint(1, 7)):
            window += 3_000
            lines += log.call(words.text(rng, rng.randint(20, 300)), words.text(rng, size()), window)
        lines.append(log.answer(words.text(rng, size() // 6), window))
        if window > 180_000:
            lines += log.compaction(words.text(rng, 6_000), window)
            window = 10_000
        for line in lines:
            yield line
            written += len(line)


class _Transcript:
    """Formats a session's lines, each the child of the one before."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._number = 0
        self._parent: str | None = None

    def prompt(self, text: str) -> bytes:
        return self._line("user", message={"role": "user", "content": text})

    def answer(self, text: str, window: int) -> bytes:
        return self._said([{"type": "text", "text": text}], window)

    def call(self, command: str, output: str, window: int) -> list[bytes]:
        name = f"toolu_{self._session[:8]}{self._number:08d}"
        use = {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": command}}
        result = {"type": "tool_result", "tool_use_id": name, "content": output}
        said = self._said([use], window)
        return [said, self._line("user", message={"role": "user", "content": [result]})]

    def compaction(self, summary: str, window: int) -> list[bytes]:
        before, self._parent = self._parent, None
        line = self._line(
            "system", subtype="compact_boundary", content="Conversation compacted", logicalParentUuid=before,
            compactMetadata={"trigger": "auto", "preTokens": window},
        )  # fmt: skip
        told = {"role": "user", "content": summary}
        return [line, self._line("user", message=told, isCompactSummary=True)]

    def _said(self, content: list[dict[str, object]], window: int) -> bytes:
        usage = {
            "input_tokens": 4, "cache_creation_input_tokens": 3_000, "cache_read_input_tokens": window,
            "output_tokens": 100 + self._number % 400,
        }  # fmt: skip
        message = {
            "id": f"msg_{self._session[:8]}{self._number:08d}", "type": "message", "role": "assistant",
            "model": "claude-sonnet-4-5-20250929", "content": content, "stop_reason": None, "usage": usage,
        }  # fmt: skip
        return self._line(
            "assistant", message=message, requestId=f"req_{self._session[:8]}{self._number:08d}"
        )

    def _line(self, kind: str, **fields: object) -> bytes:
        self._number += 1
        time = (_START + timedelta(seconds=self._number)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        name = f"{self._session[:8]}-{self._number:08d}"
        record = {
            "parentUuid": self._parent, "isSidechain": False, "userType": "external", "cwd": "/home/dev/shop",
            "sessionId": self._session, "version": "2.1.62", "gitBranch": "main", "type": kind, **fields,
            "uuid": name, "timestamp": time,
        }  # fmt: skip
        self._parent = name
        return orjson.dumps(record) + b"\n"


FOLDER = "CTXCTL_BENCH_DIR"
"""The variable that names the folder where the files go."""


def directory() -> Path:
    """Where the files go: the folder that `FOLDER` names, else `.bench` below the current directory."""
    path = Path(os.environ.get(FOLDER) or ".bench")
    path.mkdir(parents=True, exist_ok=True)
    return path


def ensure(name: str, lines: Iterator[bytes]) -> Path:
    """The file of that name, written from `lines` unless a whole one of this generation is there."""
    path = directory() / f"{name}-g{GENERATION}.jsonl"
    if not path.exists():
        partial = path.with_suffix(".partial")
        with partial.open("wb", buffering=1 << 20) as file:
            file.writelines(lines)
        partial.replace(path)
    return path


def megabytes_100() -> Path:
    """The 100 MB log."""
    return ensure("repeating-100mb", repeating(100 * MB))


def gigabyte() -> Path:
    """The 1 GB log."""
    return ensure("repeating-1gb", repeating(1000 * MB))


def turns_10k() -> Path:
    """10 000 turns over 200 items."""
    return ensure("deep-10k", deep(10_000, 200))


def turns_1k() -> Path:
    """1 000 turns of an agent whose window only grows."""
    return ensure("working-1k", working(1_000))


def transcript_50mb() -> Path:
    """A Claude Code session of 50 MB."""
    return ensure("transcript-50mb", transcript(50 * MB, 20260601))


def transcripts(count: int, size: int, scale: float = 1.0) -> Path:
    """A directory of so many Claude Code sessions of about so many bytes; `scale` as for `transcript`."""
    path = directory() / f"transcripts-{count}-{size}-g{GENERATION}"
    if not path.is_dir():
        partial = path.with_suffix(".partial")
        partial.mkdir(exist_ok=True)
        for number in range(count):
            (partial / f"{number:05d}.jsonl").write_bytes(b"".join(transcript(size, number, scale)))
        partial.replace(path)
    return path
