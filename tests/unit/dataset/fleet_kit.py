"""A small fleet in a directory, and the dataset that is made of it, as `fleet add` makes it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ctxctl.dataset.add import Added, Comparison, Plan, Runner, add, in_processes, planned
from ctxctl.dataset.captures import captures_at
from ctxctl.dataset.keys import KeyedDigests
from ctxctl.dataset.known import KnownSources, read_file
from ctxctl.dataset.log import Head, Snapshot, create_head, fold
from ctxctl.dataset.rows.words import DatasetWords
from ctxctl.dataset.schema import TABLES
from ctxctl.dataset.store import DatasetStore
from tests.unit.dataset.kit import FIXTURES, KEY, WORDS

_LONG_AGO = time.time() - 1000
SHAPES = ("claude_code/session.jsonl", "codex_exec/exec.jsonl", "pi/openclaw.jsonl", "api/anthropic.jsonl")
LINE = (
    b'{"type":"user","uuid":"u-%d","parentUuid":null,"sessionId":"s-%d","timestamp":"2026-0%d-01T10:00:00.000Z",'
    b'"cwd":"/home/a/p","version":"2.1.%d","gitBranch":"main","message":{"role":"user","content":"%s"}}\n'
    b'{"type":"assistant","uuid":"a-%d","parentUuid":"u-%d","sessionId":"s-%d","timestamp":"2026-0%d-01T10:00:05.000Z",'
    b'"cwd":"/home/a/p","version":"2.1.%d","requestId":"req_%d","message":{"id":"msg_%d","role":"assistant",'
    b'"model":"claude-sonnet-4-5","content":[{"type":"text","text":"done %s"}],"usage":{"input_tokens":%d,'
    b'"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"output_tokens":5}}}\n'
)  # fmt: skip


def session(number: int, turns: int = 2, words: str = "count the boats") -> bytes:
    """A transcript of Claude Code with so many turns."""
    made = b""
    for turn in range(turns):
        uid, month, said = number * 1000 + turn, 1 + number % 3, f"{words} {turn}".encode()
        made += LINE % (
            uid,
            number,
            month,
            number % 5,
            said,
            uid,
            uid,
            number,
            month,
            number % 5,
            uid,
            uid,
            said,
            50 + turn,
        )
    return made


def write(path: Path, data: bytes) -> None:
    """Write a capture that was changed long enough ago for its times to tell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    settle(path)


def settle(path: Path) -> None:
    """Have a file be old."""
    os.utime(path, (_LONG_AGO, _LONG_AGO))


def fleet(folder: Path, count: int = 6) -> Path:
    """A directory of sessions, some of them in several formats."""
    for number in range(count):
        write(folder / "claude" / f"p{number % 2}" / f"s-{number}.jsonl", session(number, 2 + number % 3))
    for shape in SHAPES[1:]:
        to = folder / "other" / Path(shape).name
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(FIXTURES / shape, to)
        settle(to)
    return folder


def words(**changes: Any) -> DatasetWords:
    """What captures are read under."""
    import msgspec

    return msgspec.structs.replace(WORDS, **changes)


def opened(place: Path | str, *, texts: bool = False, paths: bool = True) -> Snapshot:
    """The dataset at a place, made where there is none."""
    store = DatasetStore(str(place))
    head = create_head(store, Head("00" * 16, KeyedDigests(KEY).check, texts, paths))
    return fold(store, head)


def run(
    snapshot: Snapshot,
    places: Sequence[Path],
    runner: Runner | None = None,
    asked: DatasetWords = WORDS,
    *,
    again: bool = False,
) -> tuple[Added, Plan]:
    """`fleet add`."""
    known = KnownSources()
    beside = Comparison(known.at(snapshot), asked)
    found = list(captures_at([str(one) for one in places], None, _fail, beside.of))
    plan = planned(found, beside, asked, snapshot.forgotten, again=again)
    return add(snapshot, plan, known, runner or in_processes(1), lambda _: None), plan


def _fail(place: str, error: Exception) -> None:
    raise AssertionError(f"{place}: {error}")


def added(place: Path | str, logs: Path, **changes: Any) -> Snapshot:
    """A dataset of a directory, as it is after `fleet add`."""
    before = opened(place)
    run(before, [logs], **changes)
    return fold(before.store, before.head)


def rows_in(snapshot: Snapshot) -> dict[str, list[tuple[Any, ...]]]:
    """By table, every row that counts, in order; of `sources` without what a file system tells."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for table in TABLES:
        rows: list[tuple[Any, ...]] = []
        names = [column.name for column in table.columns if column.name != "inputs"]
        for one in snapshot.of(table.name):
            columns = read_file(snapshot, one, names).to_pydict()
            rows += [tuple(map(repr, row)) for row in zip(*(columns[name] for name in names), strict=True)]
        found[table.name] = sorted(rows)
    return found


def files_in(place: Path) -> dict[str, bytes]:
    """Every file of a dataset's folder."""
    return {str(p.relative_to(place)): p.read_bytes() for p in sorted(place.rglob("*")) if p.is_file()}
