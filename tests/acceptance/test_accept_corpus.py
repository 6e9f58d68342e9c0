"""Real captures and published suites kept outside the repository (CTXCTL_CORPUS)."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxctl.cli.main import run
from tests.acceptance.runs import Done, Json, assert_mannered, ctxctl
from tests.acceptance.tracing import compact, event

MAPPED = ("amplifier", "luminarys", "sanqian", "sibyl")


def in_process(*arguments: str) -> Done:
    """Run a command in this process: hundreds of starts would take longer than the work."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    out.flush()
    err.flush()
    seen = [stream.buffer.getvalue() for stream in (out, err)]  # type: ignore[attr-defined]
    done = Done(arguments, code, *seen)
    assert_mannered(done)
    return done


def balanced(done: Done) -> Iterator[Json]:
    """The steps of a replay, each held to the law of the ledger."""
    after: dict[tuple[str | None, str], int] = {}
    for step in done.of_type("step"):
        ledger, thread = step["ledger"], (step["session"], step["thread"])
        assert ledger["window_before"] == after.get(thread, 0), done.arguments
        assert ledger["window_after"] == ledger["window_before"] + ledger["new"] - ledger["freed"], (
            done.arguments
        )
        assert ledger["window_after"] == step["window"]["recorded"], done.arguments
        assert sum(step["segments"].values()) == step["window"]["used"], done.arguments
        assert sum(c["new"] for c in step["changes"]) <= ledger["new"], done.arguments
        after[thread] = ledger["window_after"]
        yield step


def test_every_claude_code_capture_replays(corpus: Path) -> None:
    files = sorted(p for p in (corpus / "data" / "claude-code").rglob("*.json*") if p.is_file())
    assert len(files) > 300
    steps = billed = 0
    for path in files:
        done = in_process("replay", "--json", str(path))
        assert done.code == 0, (path, done.err)
        assert done.err == ""
        assert done.lines[0]["format"] == "claude-code", path
        for step in balanced(done):
            steps += 1
            usage = step["usage"]
            if usage is None or usage["reported_input"] is None:
                continue
            billed += 1
            assert usage["counted_input"] == step["window"]["recorded"], path
            assert usage["difference"] == usage["counted_input"] - usage["reported_input"], path
    assert billed > 0.95 * steps > 4000


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_largest_captures_in_a_process_of_their_own(number: int, corpus: Path) -> None:
    files = (corpus / "data" / "claude-code").rglob("*.jsonl")
    path = sorted(files, key=lambda p: (-p.stat().st_size, p))[number]
    plain = ctxctl("replay", "--steps", path)
    assert plain.code == 0
    lines = ctxctl("replay", "--json", path)
    billed = [s for s in lines.of_type("step") if s["usage"] and s["usage"]["reported_input"] is not None]
    assert plain.out.count("    usage    billed ") == len(billed) > 0
    assert plain.out.count("; billed;") == len(billed), "what is in front is the bill"


def mapped(corpus: Path, name: str) -> Path:
    return corpus / "samples" / "mapped-context-events" / f"{name}.jsonl"


@pytest.mark.parametrize("name", MAPPED)
def test_mapped_samples_validate_and_balance(name: str, corpus: Path) -> None:
    checked = ctxctl("validate", mapped(corpus, name))
    assert checked.code == 0, checked.out
    done = ctxctl("replay", "--json", "--strict", mapped(corpus, name))
    assert done.code == 0
    assert list(balanced(done))


def test_sanqian_repeats_the_frame_where_all_is_unchanged(corpus: Path) -> None:
    steps = {s["turn_id"]: s for s in ctxctl("replay", "--json", mapped(corpus, "sanqian")).of_type("step")}
    assert {s["mode"] for s in steps.values()} == {"append"}
    for turn in ("t2", "t5"):
        counts, ledger = steps[turn]["counts"], steps[turn]["ledger"]
        assert counts == {"added": 0, "updated": 0, "removed": 0, "skipped": 2, "omitted": 0}
        assert (ledger["new"], ledger["freed"]) == (0, 0)
        assert ledger["saved"] > 0
        assert "injection_not_recorded" in steps[turn]["flags"]
    assert (
        ctxctl("replay", "--json", "--turn", "2", "--all", mapped(corpus, "sanqian")).of_type("step")[0][
            "changes"
        ]
        != []
    )


def test_amplifier_resends_the_window(corpus: Path) -> None:
    path = mapped(corpus, "amplifier")
    events = [json.loads(line) for line in path.read_bytes().splitlines()]
    recorded = {
        e["step_id"]: e["data"]["actual_tokens"]
        for e in events
        if e["event_type"] == "context.budget.applied"
    }
    steps = ctxctl("replay", "--json", path).of_type("step")
    assert len(steps) == 10
    assert {s["mode"] for s in steps} == {"window"}
    assert {s["layer"] for s in steps} == {"injected"}
    for step in steps:
        assert abs(step["window"]["recorded"] - recorded[step["step_id"]]) <= 1, step["step_id"]
        assert step["ledger"]["saved"] is None


def test_luminarys_appends_as_declared(corpus: Path) -> None:
    steps = ctxctl("replay", "--json", mapped(corpus, "luminarys")).of_type("step")
    assert len(steps) == 3
    assert {s["mode"] for s in steps} == {"append"}
    assert all(s["mode_declared"] for s in steps)
    assert [s["counts"]["removed"] for s in steps] == [0, 0, 0]
    for number, step in enumerate(steps, 1):
        unknown = next(c for c in step["changes"] if c["item"] == f"res-req-{number}")
        assert (unknown["version"], unknown["tokens"]) == (None, None)
        assert step["window"]["uncounted"] == number


def test_sibyl_s_digest_suffixes_are_versions_not_identity(corpus: Path) -> None:
    path = mapped(corpus, "sibyl")
    events = [json.loads(line) for line in path.read_bytes().splitlines()]
    ids = [e["data"]["item_id"] for e in events if e["event_type"] == "context.item.added"]
    assert len(ids) == 18
    assert all("@" in one for one in ids)
    steps = ctxctl("replay", "--json", path).of_type("step")
    changes = [c for step in steps for c in step["changes"]]
    assert {c["item"] for c in changes} <= {one.partition("@")[0] for one in ids}
    second = {c["item"]: c["status"] for step in steps if step["turn_id"] == "t2" for c in step["changes"]}
    assert second["task_rot"] == "updated", "sent in turn 1 under another suffix"


def hostile_trace(contents: list[bytes], path: Path) -> None:
    """Two turns; in the second every item has the content of the next.  `contents`: JSON, sound or not."""
    lines = []
    for turn in (1, 2):
        names = [f"item-{n}" for n in range(len(contents))]
        for n, name in enumerate(names):
            value = contents[(n + turn - 1) % len(contents)].replace(b"\n", b" ").replace(b"\r", b" ")
            item = event(1, f"context.item.{'added' if turn == 1 else 'updated'}", turn, {"item_id": name})
            item["event_id"] = f"{name}-{turn}"
            item["data"].update(context_kind="web_page", content_mode="inline", visibility=["model"])
            lines.append(compact(item)[:-2] + b',"content":' + value + b"}}")
        blocks = [{"block_id": f"b-{name}", "item_refs": [name]} for name in names]
        assembly = {"assembly_id": f"a{turn}", "target": "model", "ordered_blocks": blocks}
        lines.append(compact(event(1, "context.assembly.created", turn, assembly) | {"event_id": f"a{turn}"}))
    path.write_bytes(b"\n".join(lines) + b"\n")


def as_text(document: bytes) -> bytes:
    """Any bytes as a JSON string; what is no UTF-8 becomes lone surrogates."""
    return json.dumps(document.decode("utf-8", "surrogateescape")).encode()


SUITES = {
    "JSON documents as values": lambda suites: json_documents(suites),
    "JSON documents as texts": lambda suites: [as_text(document) for document in json_documents(suites)],
    "naughty strings": lambda suites: [
        json.dumps(string).encode()
        for string in json.loads((suites / "big-list-of-naughty-strings" / "blns.json").read_bytes())
    ],
    "terminal sequences": lambda suites: [
        as_text(path.read_bytes()[:20_000])
        for path in sorted((suites / "xterm-escape-sequences").rglob("*"))
        if path.is_file()
    ],
    "UTF-8 tests": lambda suites: [
        as_text(line) for line in (suites / "utf8tests" / "utf8tests.txt").read_bytes().split(b"\n")
    ],
}


def json_documents(suites: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted((suites / "JSONTestSuite" / "test_parsing").iterdir())]


@pytest.mark.parametrize("suite", SUITES)
def test_hostile_contents_never_drive_the_terminal(suite: str, corpus: Path, tmp_path: Path) -> None:
    contents = SUITES[suite](corpus / "suites")
    assert len(contents) > 20
    path = tmp_path / "run.jsonl"
    hostile_trace(contents, path)
    shown = 0
    for command in (
        ("replay", "--plain", "--all", path),
        ("replay", "--json", "--all", path),
        ("show", f"{path}@2", "--text"),
        ("show", f"{path}@2", "--text", "--json"),
        ("show", f"{path}@2"),
        ("diff", f"{path}@1", "@2"),
        ("diff", f"{path}@1", "@2", "--json"),
        ("validate", "--all", path),
    ):
        done = ctxctl(*command)  # each is held to printable output
        assert done.code == (1 if command[0] == "validate" and done.code else 0), (command, done.err[:500])
        shown += len(done.stdout)
    assert shown > 10_000
    steps = list(balanced(ctxctl("replay", "--json", path)))
    assert len(steps) == 2
    assert steps[0]["counts"]["added"] == len(contents)


def test_hostile_names_never_drive_the_terminal(corpus: Path, tmp_path: Path) -> None:
    """Naughty strings as ids, titles, kinds, turns, threads, models and event types."""
    path = corpus / "suites" / "big-list-of-naughty-strings" / "blns.json"
    lines = []
    for n, string in enumerate(json.loads(path.read_bytes())):
        record = {"item_id": string or "-", "title": string, "context_kind": string or "-", "content": string}
        one = event(1, "context.item.added", 1, record | {"content_mode": "inline", "visibility": ["model"]})
        one.update(event_id=f"e{n}", turn_id=string or "-", thread_id=string or "-", step_id=f"s{n}")
        lines.append(compact(one) if n % 2 else json.dumps(one).encode())
        usage = event(1, "ctxctl.usage.reported", 1, {"model": string, "input_tokens": n})
        usage.update(event_id=f"u{n}", turn_id=string or "-", thread_id=string or "-", step_id=f"s{n}")
        lines.append(compact(usage))
        lines.append(compact({**event(1, string or "-", 1, {}), "event_id": string or "-"}))
    trace = tmp_path / "run.jsonl"
    trace.write_bytes(b"\n".join(lines) + b"\n")
    for command in (
        ("replay", "--plain", trace),
        ("replay", "--json", trace),
        ("validate", trace),
        ("show", trace),
    ):
        done = ctxctl(*command)
        assert done.code in (0, 1), (command, done.err[:500])
