# ruff: noqa: E501 - a record, or a command, a line
"""What a trace says was redacted stands on no surface: not once in ten thousand, in whatever place it is quoted."""

from __future__ import annotations

import json
import random
import re
import zlib
from base64 import b64decode
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ctxctl.cli.main import run
from tests.oracle.build import assembly, at, block, event, item, lines, update

FEW, MANY = 72, 10_000
WORDS = [a + b for a in ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove") for b in ("ly", "son", "ton", "wick")]  # fmt: skip
PER_STEP = 400


def secret(n: int) -> str:
    """A key, or six words that mean nothing."""
    chance = random.Random(n)
    if n % 2:
        return f"s3cret-{n:05d}-{chance.randrange(1 << 40):010x}"
    return " ".join([*chance.choices(WORDS, k=5), WORDS[n % 28] + WORDS[n // 28 % 28] + WORDS[n // 784 % 28]])


def private(n: int) -> list[dict[str, Any]]:
    """An item that says a secret in one of the ways in which items do."""
    said: list[Any] = [
        secret(n),
        f"Customer {n} wrote in:\nthe word is {secret(n)}, please keep it to yourselves.",
        {"login": {"user": "u", "password": secret(n)}, "tags": ["a", secret(n)]},
        f'Quoted: "{secret(n)}"\nand a tab\there',
    ]
    return [item(f"i{n}", said[n // 2 % 4], kind="tool_result")]


def redaction(n: int) -> list[dict[str, Any]]:
    """The ways in which a trace says that it was redacted; the last two leave a text."""
    way = n // 8 % 3
    told = {
        "item_id": f"i{n}",
        "redaction_state": "removed",
        "redaction_method": "rule",
        "policy_refs": ["p1"],
    }
    if way == 0:
        return [event("context.redaction.applied", told)]
    made = update(f"i{n}", "what stood here is gone", kind="tool_result")
    made["data"]["redaction_state"] = "masked"
    return (
        [made]
        if way == 1
        else [event("context.redaction.applied", {**told, "redaction_state": "masked"}), made]
    )


def quoting(n: int) -> list[dict[str, Any]]:
    """Every place of later records in which somebody may repeat it."""
    word = secret(n)
    one = item(f"q{n}", f"As I said: {word}. So be it.", kind="thread_summary")
    one["data"] |= {
        "title": f"about {word}",
        "metadata": {word: 1, "note": word, "deep": [{f"x {word}": [word]}]},
    }
    two = item(
        f"w{n}-{word}", {"found": word, word: True, "as": f'in "{word}" quotes', "n": n}, kind="tool_result"
    )
    source = {
        "schema_version": "0.1.1",
        "source_id": f"src {word}",
        "uri": f"file:///{word}",
        "source_kind": "file",
    }
    two["data"]["source_refs"] = [source]
    return [one, two]


def closing(n: int) -> list[dict[str, Any]]:
    """Records of all the other kinds."""
    word, version = secret(n), {"schema_version": "0.1.1"}
    return [
        event("context.selection.completed", {
            **version, "selection_id": f"s {word}", "query": word, "rationale": word, "selected_item_refs": [f"q{n}"],
            "omitted_item_refs": [{"item_ref": f"i{n}", "reason": f"says {word}"}],
        }),
        event("context.compaction.completed", {
            **version, "compaction_id": f"c {word}", "source_item_refs": [f"q{n + 1}"], "summary_ref": f"q{n}",
            "loss_notes": [word], "coverage": {word: word}, "trigger": word, "method": "summary",
        }),
        event("context.missing.detected", {
            **version, "missing_id": f"m {word}", "question": f"What is {word}?", "status": "open",
            "blocked_actions": [word], "candidate_sources": [{"hint": word}], "metadata": {"user_summary": word},
        }),
        event("context.exported", {**version, "context_id": f"ctx {word}", "scope": word, "metadata": {word: word}}),
        event("own.event", {"words": word}),
        event("context.budget.applied", {
            **version, "budget_id": word, "target": "model", "max_tokens": 10_000_000,
            "truncation_records": [{"item_ref": f"i{n}", "action": "truncate", "reason": word}],
        }),
        {**event("context.item.added", {**version, "item_id": 7, "context_kind": word}), "schema_version": word},
    ]  # fmt: skip


def story(count: int) -> bytes:
    """A session that says `count` secrets, redacts them all, and then repeats them wherever it can."""
    events: list[dict[str, Any]] = []
    for step, start in enumerate(range(0, count, PER_STEP), 1):
        mine = range(start, min(start + PER_STEP, count))
        made = [item(f"u{step}", f"{secret(start)} is what I ask", kind="user_message")]
        made += [one for n in mine for one in private(n)]
        made.append(assembly(f"a{step}", [f"u{step}", *(f"i{n}" for n in mine)]))
        events += at(f"t{step}", f"s{step}", *made)
    events += at(
        "t-r",
        "s-r",
        *(one for n in range(count) for one in redaction(n)),
        item("ok", "fine"),
        assembly("a-r", ["ok"]),
    )
    quoted = range(count) if count <= FEW else range(0, count, 10)
    events += at("t-q", "s-q", *(one for n in quoted for one in quoting(n)), *closing(3), *closing(4))
    wrapped = block("q5", wrapper={"before": f"<doc {secret(5)}>\n", "after": f"\n{secret(8)}"})
    own = block("q1", content=f"{secret(1)} as a block of its own")
    events += at(
        "t-q",
        "s-q",
        assembly("a-q", [wrapped, own, "q0", f"w0-{secret(0)}", *(f"q{n}" for n in quoted[2:40])]),
    )
    last = [
        update("q1", f"now it is {secret(7)}", kind="thread_summary"),
        item("u-z", f"and {secret(2)}?", kind="user_message"),
    ]
    events += at(f"t {secret(9)}", "s-z", *last, assembly("a-z", ["q1", "u-z", "ok", "q0"]))
    aside = [item("x1", f"aside {secret(11)}"), assembly("a-x", ["x1"])]
    events += at("t1", "s1", *aside, thread_id=f"thread {secret(11)}")
    return lines(events)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("few") / "t.jsonl"
    path.write_bytes(story(FEW))
    return path


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "t.jsonl"
    path.write_bytes(story(MANY))
    return path


SURFACES = [
    ["replay", "T", "--plain", "--all"],
    ["replay", "T", "--json", "--all"],
    ["replay", "T", "--json", "--all", "--policy", "sibyl", "--window", "3000"],
    ["replay", "T", "--compare", "--policy", "amplifier", "--window", "3000"],
    ["replay", "T", "--plain", "--where", "status:added"],
    *(["show", f"T@{turn}", *form] for turn in ("1", "-1", "-2", "-3")
      for form in (["--all"], ["--text", "--all"], ["--json", "--all"], ["--text", "--json"])),
    *(["diff", "T@1", turn, *form] for turn in ("@-1", "@-2", "@-3")
      for form in ([], ["--patch"], ["--json", "--all"], ["--stat"])),
    ["diff", "T@-2", "@-1", "--patch"],
    ["diff", "T", "T", "--sessions"],
    ["diff", "T", "T", "--sessions", "--json"],
    *(["why", f"T@{turn}", name, *form] for turn, name in (("1", "i3"), ("-1", "q1"), ("-1", "i3"), ("-2", "q0"))
      for form in (["--all"], ["--json", "--all"])),
    *(["blame", f"T@{turn}", *form] for turn in ("1", "-1", "-2") for form in (["--all"], ["--json"], ["--stat"])),
    *(["log", "T", name, *form] for name in ("i3", "q1", "q4") for form in ([], ["--json"])),
    ["find", "T", "user", "--all"],
    ["find", "T", "status:added", "--json", "--all"],
    ["bisect", "T", "user", "--json"],
    ["cost", "T", "--by", "item", "--top", "9000", "--steps"],
    ["cost", "T", "--by", "source", "--json", "--top", "9000"],
    *(["lint", "T", "--select", "all", "--all", "--format", form] for form in ("text", "json", "sarif", "junit", "github")),
    ["lint", "T", "--statistics"],
    ["validate", "T", "--all"],
    ["validate", "T", "--json", "--all"],
    ["watch", "T", "--plain", "--all", "--idle", "0"],
    ["watch", "T", "--json", "--all", "--idle", "0"],
    ["calibrate", "T"],
    *(["sql", "T", f"SELECT * FROM {name}", "--json"]
      for name in ("steps", "changes", "items", "stays", "texts", "bills")),
    ["sql", "T", "SELECT * FROM stays"],
]  # fmt: skip
ONE_OF_EACH = [*{command[0]: command for command in reversed(SURFACES)}.values()]
EXPORTS = [
    [form, *more]
    for form, more in (
        ("events", []), ("events", ["--strict"]), ("events", ["--target", "evidence_export"]), ("html", []),
        ("html", ["--max-content", "20K"]), ("markdown", []), ("csv", ["--table", "changes"]),
        ("csv", ["--table", "steps"]), ("sqlite", ["--texts"]), ("otlp", []), ("envelopes", []),
    )
]  # fmt: skip


@cache
def wanted(count: int) -> dict[tuple[str, ...], int]:
    return {tuple(secret(n).split()): n for n in range(count)}


def told(text: str, count: int) -> list[int]:
    """Which secrets a text says, in whatever lines a terminal breaks them into; one pass, however many there are."""
    words = re.findall(r"s3cret-\d{5}-[0-9a-f]{10}|[a-z]+", text)
    runs = zip(*(words[n:] for n in range(6)), strict=False)
    known = wanted(count)
    return sorted({known[one] for one in (*((word,) for word in words), *runs) if one in known})


def unpacked(data: bytes) -> str:
    """A page with what it holds compressed."""
    text = data.decode("utf-8", "replace")
    parts = [text]
    for piece in text.split('<script type="application/octet-stream"')[1:]:
        body = piece.partition(">")[2].partition("</script>")[0]
        parts.append(zlib.decompress(b64decode(body)).decode("utf-8", "replace"))
    return "".join(parts)


@pytest.mark.parametrize("command", SURFACES, ids=" ".join)
def test_no_command_says_it(command: list[str], few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run([part.replace("T", str(few), 1) if part[0] == "T" else part for part in command])
    out, err = capsys.readouterr()
    assert code in (0, 1), err
    assert told(out + err, FEW) == []
    assert "[redacted" in out + err or not {"--text", "--patch"} & {*command}


@pytest.mark.parametrize("form", EXPORTS, ids=" ".join)
def test_no_export_says_it(form: list[str], few: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(["export", str(few), "--format", *form, "-o", str(out)]) in (0, 1)
    assert told(unpacked(out.read_bytes()), FEW) == []


def test_the_trace_says_them_all(few: Path) -> None:
    """What the tests above look for is there to be found."""
    text = few.read_text()
    assert told(text, FEW) == list(range(FEW))
    assert json.loads(text.splitlines()[-1])["thread_id"] == f"thread {secret(11)}"


def test_sizes_and_changes_stay_what_they_were(
    few: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The words are gone, not the tokens: the same session without its redactions has the same frames."""
    open_trace = tmp_path / "open.jsonl"
    kept = [
        json.dumps({**value, "event_type": "own.redaction"})
        if "redaction.applied" in value["event_type"]
        else line
        for line in few.read_text().splitlines()
        if (value := json.loads(line))
    ]
    open_trace.write_text(
        "\n".join(kept).replace('"redaction_state": "masked"', '"redaction_state": "none"') + "\n"
    )
    found = []
    for path in (few, open_trace):
        run(["replay", str(path), "--json"])
        steps = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        found.append([(s["ledger"], s["counts"]) for s in steps if s["type"] == "step"][:1])
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("form", EXPORTS, ids="-".join)
def test_ten_thousand_exported(many: Path, tmp_path: Path, form: list[str]) -> None:
    out = tmp_path / "-".join(form)
    assert run(["export", str(many), "--format", *form, "-o", str(out)]) in (0, 1)
    assert told(unpacked(out.read_bytes()), MANY) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("command", ONE_OF_EACH, ids=lambda command: command[0])
def test_ten_thousand_shown(many: Path, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """One form of every command."""
    code = run([part.replace("T", str(many), 1) if part[0] == "T" else part for part in command])
    out_err = "".join(capsys.readouterr())
    assert code in (0, 1), out_err[-500:]
    assert told(out_err, MANY) == []


def test_a_session_that_is_written_is_veiled_as_soon_as_it_says_so(tmp_path: Path) -> None:
    from ctxctl.session import Inspector
    from ctxctl.session.live_inspector import LiveInspector
    from ctxctl.session.opening import Opened
    from ctxctl.trace.follow import OpenFile
    from ctxctl.trace.growing import GrowingSource, GrowingTrace

    path = tmp_path / "t.jsonl"
    raw = story(24).splitlines(keepends=True)
    cut = next(n for n, line in enumerate(raw) if b"redaction.applied" in line)
    path.write_bytes(b"".join(raw[:cut]))
    source = GrowingSource("t", path)
    trace = GrowingTrace(source)
    with Inspector.open(path) as fixed:
        params = fixed.params
    live = LiveInspector(Opened(trace, "native", "recorded", ()), params, None, None, rewinds=False)
    shown = []
    for data in (b"", b"".join(raw[cut:])):
        with path.open("ab") as file:
            file.write(data)
        with path.open("rb") as file:
            whole = path.stat().st_size
            source.add(OpenFile(file.fileno()), source.size, whole - source.size)
        while live.feed(lambda: False):
            pass
        live.publish()
        rows = range(len(live.rows))
        shown.append(told("".join(f"{live.assembled(n)} {live.frame(n)} {live.rows[n]}" for n in rows), 24))
    assert shown == [list(range(24)), []]
