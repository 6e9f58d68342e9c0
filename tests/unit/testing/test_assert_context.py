"""assert_context_diff: a context is what the committed file says, or the test says what is not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.errors import UnreadableError, UsageError
from ctxctl.testing import assert_context_diff
from ctxctl.testing.golden import UPDATE, Context, GoldenItem, differences, match_items, moved_places
from tests.unit.testing.sessions_help import Json, events, item, written_trace

TRACE = Path(__file__).parents[3] / "traces" / "coding-agent.jsonl"
ITEMS = [
    item("sys", "be brief", kind="system"),
    item("doc", "the moon\nis far\n"),
    item("q", "why?", kind="user_message"),
]


@pytest.fixture
def golden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A committed context of `ITEMS`."""
    path = tmp_path / "kept" / "context.json"
    monkeypatch.setenv(UPDATE, "1")
    assert_context_diff(written_trace(tmp_path, events(ITEMS), "first.jsonl"), path, texts=True)
    monkeypatch.delenv(UPDATE)
    return path


def failure(folder: Path, golden: Path, items: list[Json], **how: object) -> str:
    """Return the message of the failed assertion on a context of these items."""
    with pytest.raises(AssertionError) as caught:
        assert_context_diff(written_trace(folder, events(items)), golden, **how)  # type: ignore[arg-type]
    return str(caught.value)


def test_the_same_context_passes(tmp_path: Path, golden: Path) -> None:
    assert_context_diff(written_trace(tmp_path, events(ITEMS)), golden)


def test_other_ids_are_no_difference(tmp_path: Path, golden: Path) -> None:
    renamed = [one | {"item_id": f"run-2-{n}"} for n, one in enumerate(ITEMS)]
    assert_context_diff(written_trace(tmp_path, events(renamed)), golden)


def test_added_removed_updated_moved(tmp_path: Path, golden: Path) -> None:
    found = failure(tmp_path, golden, [*ITEMS, item("new", "one two three")])
    assert "1 item differs, +3 \u22120 tokens" in found
    assert "  added    file new: 3 tokens, " in found
    assert "  removed  file doc: " in failure(tmp_path, golden, [ITEMS[0], ITEMS[2]])
    changed = failure(tmp_path, golden, [ITEMS[0], item("doc", "the moon\nis near\n"), ITEMS[2]], texts=True)
    assert "  updated  file doc: " in changed
    assert "    -is far\n    +is near\n" in changed
    swapped = failure(tmp_path, golden, [ITEMS[1], ITEMS[0], ITEMS[2]])
    assert swapped.count("  moved  ") == 1
    assert "+0 \u22120 tokens" in swapped


def test_texts_are_kept_only_if_they_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(UPDATE, "1")
    path = tmp_path / "context.json"
    assert_context_diff(written_trace(tmp_path, events(ITEMS)), path)
    assert "the moon" not in path.read_text()
    monkeypatch.delenv(UPDATE)
    changed = failure(tmp_path, path, [ITEMS[0], item("doc", "the moon\nis near\n"), ITEMS[2]], texts=True)
    assert "is near" not in changed


def test_ignored_and_volatile_items(tmp_path: Path, golden: Path) -> None:
    clock = [ITEMS[0], item("doc", "another text of quite another size than the one before it"), ITEMS[2]]
    assert_context_diff(written_trace(tmp_path, events(clock)), golden, volatile="item:doc")
    assert_context_diff(written_trace(tmp_path, events(clock)), golden, ignore="kind:file")
    assert_context_diff(written_trace(tmp_path, events([ITEMS[0], ITEMS[2]])), golden, ignore="kind:file")
    assert "removed" in failure(tmp_path, golden, [ITEMS[0], ITEMS[2]], volatile="item:doc")
    assert "resized" in failure(tmp_path, golden, clock, volatile="item:doc", tolerance=0.05)
    with pytest.raises(UsageError, match="column"):
        assert_context_diff(TRACE, golden, ignore="kind:")


def test_nothing_is_accepted_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "gone.json"
    with pytest.raises(AssertionError, match="not there yet"):
        assert_context_diff(TRACE, path)
    assert not path.exists()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 2, "encoding": "x", "used": 0, "items": []}', "\xff"]
)
def test_a_file_that_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(UnreadableError, match="not a kept context"):
        assert_context_diff(TRACE, path)


def test_the_file_is_json_and_has_an_item_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(UPDATE, "1")
    path = tmp_path / "context.json"
    assert_context_diff(f"{TRACE}@2", path)
    first = path.read_bytes()
    assert_context_diff(f"{TRACE}@2", path)
    assert path.read_bytes() == first
    data = json.loads(first)
    lines = first.decode().splitlines()
    assert sum('"kind": ' in line for line in lines) == len(data["items"])
    assert data["used"] == sum(one["tokens"] for one in data["items"])


def test_hostile_names_are_shown_as_text(tmp_path: Path, golden: Path) -> None:
    found = failure(tmp_path, golden, [*ITEMS, item("x\x1b[2J", "a", title="\x1b]0;t\x07\u202e\nFAKE")])
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", found)
    assert "\nFAKE" not in found


def kept(name: str, text: str) -> GoldenItem:
    """Return a kept item; the text is its digest too."""
    return GoldenItem(
        segment="history", kind="file", item=name, tokens=len(text), method="counted", digest=text
    )


WINDOWS = st.lists(
    st.builds(kept, st.sampled_from("abcde"), st.sampled_from(["", "x", "yy", "zzz"])), max_size=12
)


@given(WINDOWS, WINDOWS)
def test_every_item_is_spoken_of_once(before: list[GoldenItem], after: list[GoldenItem]) -> None:
    pairs = match_items(before, after)
    assert len(set(pairs.values())) == len(pairs)
    assert set(pairs) <= set(range(len(after)))
    assert set(pairs.values()) <= set(range(len(before)))
    assert moved_places(pairs) <= set(pairs)
    found = list(differences(Context("e", 0, tuple(before)), Context("e", 0, tuple(after))))
    entered = sum(d.now.tokens for d in found if d.now is not None and d.what != "moved")
    left = sum(d.before.tokens for d in found if d.before is not None and d.what != "moved")
    assert sum(k.tokens for k in after) == sum(k.tokens for k in before) + entered - left


@given(WINDOWS)
def test_a_window_does_not_differ_from_itself(window: list[GoldenItem]) -> None:
    context = Context("e", 0, tuple(window))
    assert list(differences(context, context)) == []


@given(WINDOWS, st.integers(0, 12), st.text("pq", min_size=4, max_size=6))
def test_one_more_is_one_added(window: list[GoldenItem], place: int, text: str) -> None:
    more = [*window[:place], kept("new", text), *window[place:]]
    found = list(differences(Context("e", 0, tuple(window)), Context("e", 0, tuple(more))))
    assert [(d.what, d.kept.digest) for d in found] == [("added", text)]
