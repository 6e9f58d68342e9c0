"""``why`` looks into the capture before it says that nothing has a text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxctl.analysis.why.answer import SEARCHED_BYTES, explain_item
from ctxctl.cli.main import run
from ctxctl.model.why import Why
from ctxctl.session import Inspector

ROOT = Path(__file__).resolve().parents[3]
SESSION = ROOT / "fixtures" / "claude_code" / "session.jsonl"
HOOKS = ROOT / "fixtures" / "cursor" / "hooks.jsonl"
RULE = 'House "rule": näver sail at night.'


def asked(path: Path, name: str) -> Why:
    with Inspector.open(path) as inspector:
        return explain_item(inspector, 0, name)


def with_rule(folder: Path, *, ascii_only: bool = True) -> tuple[Path, int]:
    """A capture with a record that nobody knows; its path, and the record's line."""
    path = folder / "hooks.jsonl"
    held = json.dumps(
        {"evt": "acme", "payload": {"rules": [{"text": f"1. {RULE}"}]}}, ensure_ascii=ascii_only
    )
    data = HOOKS.read_text().rstrip("\n")
    path.write_text(f"{data}\n{held}\n", encoding="utf-8")
    return path, data.count("\n") + 2


@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_text_that_only_the_capture_has_is_not_denied(tmp_path: Path, ascii_only: bool) -> None:
    path, line = with_rule(tmp_path, ascii_only=ascii_only)
    why = asked(path, RULE)
    assert why.state == "unread"
    (link,) = why.links
    assert link.verdict == "not-understood"
    assert f"on line {line:,} (byte " in link.text
    assert "under payload.rules.text, which ctxctl does not read" in link.text


def test_capitals_make_no_difference_and_keys_count(tmp_path: Path) -> None:
    path, line = with_rule(tmp_path)
    assert asked(path, "HOUSE").state == "unread"
    assert asked(path, "rules").links[0].text.startswith(f"the capture holds it on line {line:,}")


def test_what_is_nowhere_is_said_of_the_record_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    why = asked(SESSION, "zebras of the north")
    assert why.state == "unknown"
    assert [link.verdict for link in why.links] == ["unknown", "not-recorded", "nothing"]
    assert "does not record the system prompt and the tool definitions" in why.links[1].text
    assert run(["why", f"{SESSION}@1", "zebras of the north", "--no-what-if"]) == 0
    assert "is in nothing that was recorded" in " ".join(capsys.readouterr().out.split())


def test_of_a_trace_of_ours_only_its_items_are_searched(tmp_path: Path) -> None:
    path, _ = with_rule(tmp_path)
    trace = tmp_path / "trace.jsonl"
    assert run(["import", str(path), "-o", str(trace)]) == 0
    why = asked(trace, RULE)
    assert (why.state, why.links[0].verdict) == ("unknown", "unknown")


def test_a_place_behind_many_lines_is_counted_exactly(tmp_path: Path) -> None:
    filler = json.dumps({"evt": "stop", "payload": {"pad": "x" * 4000}})
    path = tmp_path / "long.jsonl"
    lines = [*HOOKS.read_text().splitlines(), *[filler] * 700, json.dumps({"evt": "acme", "note": RULE})]
    path.write_text("\n".join(lines))
    assert path.stat().st_size < SEARCHED_BYTES
    assert f"on line {len(lines):,} (byte " in asked(path, RULE).links[0].text


def test_in_a_directory_the_file_is_named(tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "task"
    shutil.copytree(ROOT / "fixtures" / "roo" / "task", folder)
    (folder / "notes.json").write_text(json.dumps({"acme": RULE}))
    assert "of notes.json (byte " in asked(folder, RULE).links[0].text
