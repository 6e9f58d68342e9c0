"""Captures that are full of secrets, as `ctxctl fleet add` stores them: none is in the dataset's files.

The kinds, the shapes and the search are those of `test_secrets_in_every_shape.py`.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs the extra `fleet`")
pytest.importorskip("obstore", reason="needs the extra `fleet`")

from secret_kinds import KINDS, SHAPES, Planted, grams, heads, leaked, planted

from ctxctl.cli.main import run
from ctxctl.dataset.rows import capture
from ctxctl.trace import inputs
from tests.unit.dataset.fleet_kit import settle

MANY = int(os.environ.get("CTXCTL_SECRETS", "1000"))
"""Secrets of the longest test; `make secrets` has ten thousand."""
Json = dict[str, Any]
Out = pytest.CaptureFixture[str]


def transcript(number: int, one: Planted, shaped: str, tool: str) -> list[Json]:
    """A session of Claude Code with a secret wherever one can be; in names the secret stands alone."""
    name = one.text if one.bare else f"n{number}"
    place = {
        "sessionId": f"s{number}-{name}",
        "cwd": f"/home/{name}/p",
        "version": "2.1.9",
        "gitBranch": name,
        "timestamp": f"2026-01-01T10:00:{number % 60:02d}.000Z",
    }
    use = {"type": "tool_use", "id": f"t{number}", "name": tool.format(name)}
    use |= {"input": {"command": shaped, "file_path": f"/home/{name}/p/{name}.env", "env": [one.text]}}
    result = {
        "type": "tool_result",
        "tool_use_id": f"t{number}",
        "content": [{"type": "text", "text": shaped}],
    }
    return [
        {**place, **line}
        for line in (
            said("user", 1, shaped),
            said(
                "assistant",
                2,
                [{"type": "thinking", "thinking": f"It is {one.text}"}, text(f"ok, {shaped}"), use],
            ),
            {**said("user", 3, [result]), "toolUseResult": {"stdout": shaped}},
            said("assistant", 4, [text(f"{'Done, as asked. ' * (number % 9)}{one.text}")], f"claude-{name}"),
            said("user", 5, f"{'So it is. ' * (number % 12)}{shaped}"),
            said("assistant", 6, [text("Yes.")]),
        )
    ]


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def said(role: str, number: int, content: Any, model: str = "claude-sonnet-4-5") -> Json:
    """A line of a transcript, without what stands in every line."""
    message: Json = {"role": role, "content": content}
    if role == "assistant":
        message |= {"id": f"m{number}", "model": model, "usage": {"input_tokens": 50, "output_tokens": 5}}
    return {
        "type": role,
        "uuid": str(number),
        "parentUuid": str(number - 1) if number > 1 else None,
        "message": message,
    }


def captures(folder: Path, count: int, seed: int, tool: str = "{}") -> set[str]:
    """Write so many captures, each kind in each shape by turns; the parts of secrets that nobody may find."""
    chance, shapes, secrets = random.Random(seed), list(SHAPES.values()), []
    folder.mkdir()
    for number in range(count):
        one = planted(KINDS[number % len(KINDS)], chance)
        secrets.append(one.secret)
        lines = transcript(number, one, shapes[number * 7 % len(shapes)](one.text), tool)
        path = folder / f"{number}.jsonl"
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        settle(path)
    return grams(secrets) - heads()


def stored(place: Path) -> str:
    """What a dataset's files say: names and bytes, and of tables each value and what the footer says."""
    return "\n".join(said for path in sorted(place.rglob("*")) for said in spoken(path, place))


def spoken(path: Path, place: Path) -> Iterator[str]:
    import pyarrow.parquet as pq

    yield str(path.relative_to(place))
    if path.suffix == ".parquet":
        footer = pq.read_metadata(path)
        yield json.dumps(footer.to_dict(), default=str)
        yield str(footer.metadata)
        for name, values in pq.read_table(path).to_pydict().items():
            yield name
            yield from (str(value) for value in values if value is not None)
    elif path.is_file():
        yield path.read_bytes().decode("utf-8", "replace")


def add(folder: Path, place: Path, *more: str) -> None:
    assert run(["fleet", "add", str(folder), "--to", str(place), "--jobs", "1", *more]) == 0


QUESTIONS = [
    ["fleet"], ["fleet", "status"], ["fleet", "files", "sessions"], ["fleet", "ask", "tools-fill"],
    ["fleet", "ask", "servers"],
    ["fleet", "ask", "stale"], ["fleet", "diff", "client=Claude Code", "month=2026-01"], ["fleet", "report"],
]  # fmt: skip


@pytest.mark.parametrize("texts", [(), ("--texts",)], ids=["without texts", "with texts"])
def test_no_secret_of_a_capture_is_in_a_dataset_or_in_what_it_answers(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch, texts: tuple[str, ...]
) -> None:
    none_is_found(tmp_path, capsys, monkeypatch, 2 * len(KINDS), texts)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("texts", [(), ("--texts",)], ids=["without texts", "with texts"])
def test_nor_is_one_of_many_more(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch, texts: tuple[str, ...]
) -> None:
    none_is_found(tmp_path, capsys, monkeypatch, MANY, texts)


def none_is_found(
    folder: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch, count: int, texts: tuple[str, ...]
) -> None:
    """Search what is stored of so many captures, and what is said of it."""
    monkeypatch.setattr(inputs, "YOUNG", -60.0)
    secrets = captures(folder / "logs", count, seed=count)
    add(folder / "logs", folder / "data", *texts)
    said = stored(folder / "data")
    assert ("So it is. So it is." in said) == bool(texts)
    assert leaked(said, secrets) == []
    for question in QUESTIONS:
        run([*question, "--dataset", str(folder / "data")])
    assert leaked("".join(capsys.readouterr()), secrets) == []


def test_nor_does_a_tool_bring_one_in_that_is_named_after_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "YOUNG", -60.0)
    secrets = captures(tmp_path / "logs", len(KINDS), seed=3, tool="mcp__{}__look")
    add(tmp_path / "logs", tmp_path / "data")
    said = stored(tmp_path / "data")
    assert "mcp__n" in said  # a name that is none of a key
    assert leaked(said, secrets) == []


def test_the_search_finds_them_where_nothing_is_replaced(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the test above looks for would be there to be found, for each secret: in names and in texts."""
    monkeypatch.setattr(inputs, "YOUNG", -60.0)
    monkeypatch.setattr(capture, "loaded", lambda name: lambda key: lambda text: text)
    capture._tools.cache_clear()
    try:
        captures(tmp_path / "logs", len(KINDS), seed=2)
        add(tmp_path / "logs", tmp_path / "data", "--texts")
    finally:
        capture._tools.cache_clear()
    said, chance, known = stored(tmp_path / "data"), random.Random(2), heads()
    found = set(leaked(said, grams(said_of := [planted(kind, chance).secret for kind in KINDS]) - known))
    assert [one for one in said_of if (own := grams([one]) - known) and not own & found] == []
