"""One item: its content, diff, life and record, on the main screen and in the reader."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from fake import FakeInspector, Request, Thing, notes_agent
from helpers import LARGE, SMALL, Session, check_golden, made, running, settle
from textual import events

from ctxctl.model.annotations import Annotations
from ctxctl.model.outline import Life
from ctxctl.model.results import Frame
from ctxctl.tui.answers import item as life
from ctxctl.tui.answers import item_text
from ctxctl.tui.document import Document
from ctxctl.tui.screens.reader import Reader
from ctxctl.tui.widgets.textview import TextView

SIZES = pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x50"])

SETTINGS = {
    "editor": {"line": 12, "selected": "Pull won", "modes": ["insert", "spell"]},
    "open": [{"note": "n1", "cursor": [3, 14]}, {"note": "n2", "cursor": [1, 1]}],
    "empty": {},
    "done": None,
}
CODE = '''import re

LIMIT = 12  # lines


class Note:
    """A note."""

    def first(self, text: str) -> str:
        return re.sub(r"\\s+", " ", text)[:LIMIT]
'''


def session_of_versions() -> list[Request]:
    """Six turns: an editor state with four versions that goes and comes back, JSON, code and an image."""
    ask = Thing("m1", "Rewrite **this** note.")
    editor = [
        Thing(
            "editor", f"Cursor: line {line}\nSelected: {what}\nMode: insert", "runtime_state", "editor state"
        )
        for line, what in ((12, '"Pull won"'), (40, '"Pull won"'), (40, "nothing"), (7, "nothing"))
    ]
    settings = Thing("settings", json.dumps(SETTINGS), "tool_result", "get_settings")
    code = Thing("code", CODE, "file_excerpt", "src/note.py")
    image = Thing("image", None, "image", "screenshot")
    return [
        Request(1, (editor[0], ask, settings), title="Rewrite"),
        Request(2, (editor[1], ask, settings, code), title="Again"),
        Request(3, (editor[1], ask, settings, code, image), title="With a picture"),
        Request(4, (editor[2], ask, settings, code, image), title="Shorter"),
        Request(5, (ask, settings, code), title="Without", causes={"editor": ("omitted", "budget_limit")}),
        Request(6, (editor[3], ask, settings, code), title="And back"),
    ]


def inspector() -> FakeInspector:
    made_up = FakeInspector(session_of_versions())
    made_up.natives[3] = {
        "event_type": "context.item.added",
        "data": {
            "item_id": "image",
            "context_kind": "image",
            "content_mode": "opaque",
            "mime_type": "image/png",
            "byte_size": 48_211,
            "metadata": {"native": {"width": 1280, "height": 720, "detail": "high"}},
        },
    }
    made_up.natives[2] = {
        "event_type": "context.item.updated",
        "time": "2026-01-02T03:04:05Z",
        "data": {
            "item_id": "editor",
            "context_kind": "runtime_state",
            "content": "x" * 5000,
            "source_refs": [{"source_id": "app:editor", "uri": "app://editor"}],
            "metadata": {f"field {n}": [n, {"deep": True}] for n in range(6)},
        },
    }
    return made_up


async def opened(session: Session, turn: int, name: str) -> TextView:
    """The item pane on an item, by its place in the turn's list."""
    await session.press("g", *["j"] * (turn - 1), "enter")
    return await chosen(session, name)


async def chosen(session: Session, name: str) -> TextView:
    """The item pane on an item of the turn one is in."""
    screen: Any = session.app.screen
    await session.press("g")
    for _ in range(30):
        change = screen.state.selected
        if change is not None and change.item == name:
            break
        await session.press("j")
    assert screen.state.selected.item == name
    await session.press("enter")
    return session.app.screen.query_one("#item", TextView)


def pane(session: Session) -> str:
    """What the item pane shows, without the rest of the screen."""
    region = session.app.screen.query_one("#pane-item").region
    lines = session.lines[region.y : region.bottom]
    return "\n".join(line[region.x :][: region.width].rstrip() for line in lines) + "\n"


# On the screen ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@SIZES
async def test_tabs_look_as_they_did(size: tuple[int, int]) -> None:
    name = f"{size[0]}x{size[1]}"
    async with running(made(inspector()), size) as session:
        await opened(session, 1, "settings")
        await session.press("j", "space")
        check_golden(f"item-json-{name}", pane(session))
        await session.press("escape", "escape")
        await opened(session, 2, "code")
        check_golden(f"item-code-{name}", pane(session))
        await session.press("escape", "escape")
        await opened(session, 6, "editor")
        await session.press("comma", "comma")
        check_golden(f"item-diff-{name}", pane(session))
        await session.press("L")
        check_golden(f"item-life-{name}", pane(session))
        await session.press("escape", "escape")
        await opened(session, 2, "editor")
        await session.press("x")
        check_golden(f"item-record-{name}", pane(session))
        await session.press("x", "escape", "escape")
        await opened(session, 3, "image")
        check_golden(f"item-image-{name}", pane(session))


async def test_json_folds_at_the_cursor_and_all_at_once() -> None:
    async with running(made(inspector())) as session:
        view = await opened(session, 1, "settings")
        rows = view.rows
        await session.press("j", "space")
        assert "… 3 keys }," in session.text
        assert view.rows == rows - 7
        await session.press("space")
        assert view.rows == rows
        await session.press("z")
        assert "… 2 values ]," in session.text
        assert view.rows == 6
        await session.press("z")
        assert view.rows == rows


async def test_space_and_z_are_the_screens_where_nothing_folds() -> None:
    async with running(made(inspector())) as session:
        view = await opened(session, 2, "code")
        assert view.check_action("fold", ()) is False
        await session.press("space")
        assert "import re" in session.text


async def test_versions_go_back_to_the_first_and_forward_again() -> None:
    async with running(made(inspector())) as session:
        await opened(session, 4, "editor")
        assert "[diff]" in session.text
        assert '"Pull won"' in session.text
        await session.press("comma")
        assert "to " in session.text
        assert "of 1.1 (1 of 1)" in session.text
        assert "Cursor: line 12" in session.text
        await session.press("comma")
        assert "of 1.1 (1 of 1)" in session.text
        await session.press("full_stop")
        assert "(1 of 1)" not in session.text
        assert "Cursor: line 12" not in session.text


async def test_an_item_without_versions_says_so() -> None:
    async with running(made(inspector())) as session:
        await opened(session, 2, "code")
        await session.press("comma")
        assert "It is new in this frame" in session.text
        await session.press("full_stop", "comma", "comma")
        assert "It is new in this frame" in session.text


async def test_the_life_leads_to_its_steps() -> None:
    async with running(made(inspector())) as session:
        view = await opened(session, 6, "editor")
        await session.press("L")
        assert "omitted: budget_limit" in session.text
        assert "◂ here" in session.text
        assert view.document.links is not None
        line = next(n for n, text in enumerate(view.document.text.split("\n")) if "removed" in text)
        while view.cursor < line:
            await session.press("j")
        await session.press("enter")
        screen: Any = session.app.screen
        assert screen.state.target.ordinal == 4


async def test_a_tab_stays_for_the_next_item_and_its_key_leaves_it() -> None:
    async with running(made(inspector())) as session:
        await opened(session, 2, "code")
        await session.press("x")
        assert "[record]" in session.text
        await session.press("escape")
        await chosen(session, "editor")
        assert "[record]" in session.text
        await session.press("x")
        assert "[record]" not in session.text


@pytest.mark.parametrize(
    ("key", "tab"), [("d", "[diff]"), ("L", "[life]"), ("x", "[record]"), ("comma", "[diff]")]
)
async def test_the_keys_of_the_tabs_lead_to_the_item_where_it_is_out_of_view(key: str, tab: str) -> None:
    async with running(made(inspector())) as session:
        await session.press("j", "enter", key)
        assert tab in session.text
        await session.press("escape")
        assert "what changed" in session.text


async def test_a_record_that_cannot_be_read_is_told() -> None:
    from ctxctl.errors import UsageError

    failing = inspector()
    failing._failing["native"] = UsageError("no-such-line", "line 2 of the trace is not an event")
    async with running(made(failing)) as session:
        await opened(session, 2, "editor")
        await session.press("x")
        assert "No line of the trace is about it." in session.text


@pytest.mark.slow
async def test_find_shows_matches_goes_around_and_is_left_with_escape() -> None:
    async with running(made(inspector())) as session:
        view = await opened(session, 2, "code")
        await session.press("slash", "t", "e", "x", "t")
        assert "match 1 of 2" in session.lines[-1]
        await session.press("enter")
        assert session.app.screen.focused is view
        await session.press("n")
        assert "match 2 of 2" in session.lines[-1]
        await session.press("n")
        assert "match 1 of 2, wrapped around" in session.lines[-1]
        await session.press("N")
        assert "match 2 of 2, wrapped around" in session.lines[-1]
        await session.press("escape")
        assert view.finder is None
        assert "match" not in session.lines[-1]
        assert session.app.screen.focused is view
        await session.press("slash", "up")
        assert session.lines[-1].startswith(" / text")
        await session.press("escape")
        assert view.finder is None


@pytest.mark.slow
async def test_find_looks_into_what_is_folded() -> None:
    async with running(made(inspector())) as session:
        await opened(session, 1, "settings")
        await session.press("z")
        assert "spell" not in session.text
        await session.press("slash", "s", "p", "e", "l", "l", "enter")
        assert '"spell"' in session.text
        assert "match 1 of 1" in session.lines[-1]


async def test_keys_that_come_in_one_go_reach_the_line_of_input() -> None:
    async with running(made(inspector())) as session:
        view = await opened(session, 2, "code")
        for key in ("slash", "t", "e", "x", "t", "enter", "n"):
            session.app.post_message(
                events.Key(key, "/" if key == "slash" else key if len(key) == 1 else None)
            )
        await settle(session.app, session.pilot)
        assert view.finder is not None
        assert view.finder.query == "text"
        assert view.match == 1


HOSTILE = "\x1b]0;owned\x07 [/] [@click=app.quit]x[/] "
HOSTILE += "\u202eevil\u202c \x00 \x9b31m 世界 👩\u200d👩\u200d👧 \ud800 \u2028"


@pytest.mark.slow
@pytest.mark.parametrize("tab", ["", "d", "comma", "L", "x"])
async def test_hostile_text_is_shown_in_every_tab(tab: str) -> None:
    one = Thing(HOSTILE, HOSTILE, "tool_result", HOSTILE)
    two = one._replace(text=HOSTILE + "!")
    evil = FakeInspector([Request(1, (one,)), Request(2, (two,)), Request(3, (one,))])
    for line in (1, 2, 3):
        evil.natives[line] = {
            "data": {"content": HOSTILE, HOSTILE: [HOSTILE, {HOSTILE: HOSTILE}]},
            "event_type": HOSTILE,
        }
    async with running(made(evil), (100, 30)) as session:
        await session.press("j", "j", "enter", "enter", *([tab] if tab else []))
        await session.press("slash", "e", "v", "i", "l", "enter", "n")
        for line in session.lines:
            assert not any(
                ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u202c\u2028\ud800" for c in line
            )
        assert session.app.return_code is None
        assert session.app.fault is False


async def test_a_pasted_escape_sequence_is_found_and_not_painted() -> None:
    one = Thing("m1", "plain \x1b[31mred\x1b[0m")
    async with running(made(FakeInspector([Request(1, (one,))]))) as session:
        await session.press("enter", "enter", "slash")
        prompt = session.app.screen.focused
        assert prompt is not None
        prompt.post_message(events.Paste("\x1b[31m"))
        await settle(session.app, session.pilot)
        assert "␛[31m" in session.lines[-1]
        assert "match 1 of 1" in session.lines[-1]


async def test_a_line_of_a_megabyte_scrolls_to_its_end_wrapped_and_not() -> None:
    async with running(made(FakeInspector(notes_agent()))) as session:
        reader = Reader("large", Document("start " + "word " * 200_000 + "end", numbered=True))
        await session.app.push_screen(reader)
        view = reader.query_one(TextView)
        view.focus()
        await session.press("G")
        while not view.done:
            await session.pilot.pause(0.01)
        await session.press()
        assert "end" in session.lines[-3]
        await session.press("w")
        assert view.rows == 1
        await session.press("l", "l")
        assert view.left == 16
        assert "start" not in session.text
        await session.press("slash", "e", "n", "d", "enter")
        assert "end" in session.text
        await session.press("escape", "w")
        assert view.rows > 1000
        seen = reader.seen()
        assert seen is not None
        assert seen.name == "large"
        assert seen.text.endswith("end")


# What was redacted ------------------------------------------------------------------------------------------


class Redacting(FakeInspector):
    """From the third step on, the editor state counts as redacted."""

    def frame(self, ordinal: int) -> Frame:
        frame = super().frame(ordinal)
        if ordinal < 2:
            return frame
        step = msgspec.structs.replace(frame.step, annotations=Annotations(withheld=frozenset({"editor"})))
        return Frame(step, frame.placements)


@pytest.mark.parametrize("keys", [["d"], ["d", "d"], ["comma"], ["comma", "comma"], ["x"], ["L"]])
async def test_nothing_of_a_withheld_item_is_shown(keys: list[str]) -> None:
    secret = "the secret code is 8125"
    versions = [
        Thing("editor", text, "runtime_state") for text in (secret, secret + "!", "[masked]", "[masked]!")
    ]
    redacting = Redacting([Request(n + 1, (thing,)) for n, thing in enumerate(versions)])
    for line, thing in enumerate(versions, 1):
        redacting.natives[line] = {
            "event_type": "context.item.updated",
            "metadata": {"note": secret},
            "data": {
                "item_id": "editor",
                "content": thing.text if line > 2 else secret,
                "title": secret,
                "metadata": {"was": secret},
                "context_kind": "runtime_state",
            },
        }
    async with running(made(redacting), LARGE) as session:
        await session.press("j", "j", "j", "enter", "enter", *keys)
        assert secret not in session.text
        shown: Any = session.app.screen
        assert secret not in shown.query_one("#item", TextView).document.text
        if keys == ["x"]:
            assert "withheld" in session.text
            assert "runtime_state" in session.text


def test_a_record_that_is_itself_redacted_is_shown() -> None:
    event = {"data": {"item_id": "a", "content": "[masked]", "redaction_state": "masked"}}
    assert "[masked]" in item_text.record_document([], event, withheld=True).text
    raw = {"data": {"item_id": "a", "content": "secret", "redaction_state": "none"}}
    text = item_text.record_document([], raw, withheld=True).text
    assert "secret" not in text
    assert '"item_id": "a"' in text


# Lines ------------------------------------------------------------------------------------------------------


def moment(ordinal: int, status: str, version: str | None = "v1", tokens: int = 10, **more: Any) -> Life:
    known = {"cause": None, "reason": None, "into": None, **more}
    return Life(
        ordinal=ordinal, session="s", thread="main", turn=ordinal + 1, step=1, status=status, version=version,
        tokens=tokens, **known,
    )  # fmt: skip


LIFE = [
    moment(0, "added"),
    moment(1, "skipped"),
    moment(2, "skipped"),
    moment(3, "updated", "v2", 14),
    moment(4, "removed", "v2", 14, cause="compacted", into="summary-1"),
    moment(7, "added", "v1"),
]


def test_steps_without_a_change_are_one_line() -> None:
    document = life.life_document(LIFE, here=1)
    lines = document.text.split("\n")
    assert [line.split()[0] for line in lines] == ["1.1", "2.1…3.1", "4.1", "5.1", "8.1"]
    assert "unchanged in 2 steps" in lines[1]
    assert "◂ here" in lines[1]
    assert "(+4)" in lines[2]
    assert "compacted into summary-1" in lines[3]
    assert list(document.links or ()) == [0, 1, 3, 4, 7]


def test_the_changes_of_a_life_of_many_lines_are_named_first() -> None:
    moments = [moment(n, "updated", f"v{n}") for n in range(12)]
    lines = life.life_document(moments, here=1).text.split("\n")
    assert lines[0].startswith("12 changes: 1.1~  2.1~ ")
    assert lines[1] == ""


def test_a_life_says_how_far_it_was_read_and_when_there_is_none() -> None:
    assert "40%" in life.life_document(LIFE[:2], 0, part=0.4).text
    assert "No step" in life.life_document([], 0).text


def test_a_very_long_life_shows_both_ends() -> None:
    many = [moment(n, "updated", f"v{n}") for n in range(20_000)]
    document = life.life_document(many, 0)
    assert document.text.count("\n") < 6000
    assert "15,000 events in the middle are left out" in document.text
    assert "19999.1" in document.text or "20000.1" in document.text


def test_earlier_versions_come_latest_first_and_once() -> None:
    found = item_text.earlier_versions(LIFE, 7)
    assert [(held.version, held.at.ordinal) for held in found] == [("v2", 3)]
    found = item_text.earlier_versions(LIFE, 3)
    assert [(held.version, held.at.ordinal) for held in found] == [("v1", 2)]
    assert item_text.earlier_versions(LIFE, 0) == []
    assert item_text.earlier_versions([], 9) == []


def test_a_record_names_every_field_and_folds_what_is_deep() -> None:
    event = {
        "data": {"metadata": {f"k{n}": n for n in range(30)}, "content": "y" * 9000},
        "odd": ["\ud800", None],
    }
    document = item_text.record_document([("item", "a"), ("kind", "b")], event)
    for n in range(30):
        assert f'"k{n}": {n}' in document.text
    assert "(9,000 characters in all)" in document.text
    assert "y" * 1000 not in document.text
    assert document.fold_regions is not None
    assert len(document.folded) == 1
    assert document.text.startswith("item  a\nkind  b\n\n{")


# A real trace -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_item_of_a_recorded_session_has_its_tabs() -> None:
    from pathlib import Path

    from ctxctl.session import Inspector
    from ctxctl.tui.screens.turns.state import ItemKey, Target

    trace = Path(__file__).parents[2] / "traces" / "notes-assistant.jsonl"
    with Inspector.open(trace) as real:
        rows = real.outline().rows
        older = 0
        for row in rows:
            for change in real.step(row.ordinal).changes:
                key = ItemKey(Target(row.ordinal, whole_turn=False, first=row.ordinal), change)
                text = item_text.item(real, key, lambda: None)
                assert text.content is not None or text.note
                assert text.diff is not None or text.diff_note
                whole = item_text.whole_record(real, key, lambda: None)
                assert change.item in whole.text
                if change.line:
                    assert '"event_type"' in whole.text
                moments = list(real.moments(change.item, session=row.session, thread=row.thread))
                assert moments == real.life(change.item, session=row.session, thread=row.thread)
                assert any(one.ordinal == row.ordinal for one in moments)
                found = item_text.compare_versions(real, key, 1, moments, lambda: None)
                assert found.document is not None or found.note
                older += found.document is not None
        assert older > 0


def test_a_redaction_in_a_real_trace_keeps_the_record_closed(tmp_path: Any) -> None:
    from ctxctl.session import Inspector
    from ctxctl.tui.screens.turns.state import ItemKey, Target

    secret = "the door code is 8125"
    events = []

    def event(kind: str, step: str, data: dict[str, Any]) -> None:
        events.append(
            {
                "schema_version": "0.1.1", "event_id": f"e{len(events)}", "event_type": kind, "source": "t",
                "time": f"2026-01-01T00:00:{len(events):02}Z", "session_id": "s",
                "turn_id": step, "step_id": step,
                "data": {"schema_version": "0.1.1", **data},
            }
        )  # fmt: skip

    def assembly(step: str) -> None:
        blocks = [{"block_id": "b", "role": "user", "item_refs": ["note"]}]
        event(
            "context.assembly.created",
            step,
            {"assembly_id": f"a{step}", "target": "model", "ordered_blocks": blocks},
        )
        event(
            "context.injection.applied",
            step,
            {"injection_id": f"i{step}", "assembly_id": f"a{step}", "target": "model"},
        )

    added = {"item_id": "note", "context_kind": "manual_note", "content_mode": "inline", "content": secret}
    event("context.item.added", "1", {**added, "title": secret, "metadata": {"was": [secret]}})
    assembly("1")
    event("context.redaction.applied", "2", {"item_id": "note", "redaction_state": "removed"})
    assembly("2")
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in events))
    with Inspector.open(path) as real:
        rows = real.outline().rows
        last = rows[-1].ordinal
        assert "note" in real.step(last).annotations.withheld
        placement = real.frame(last).placements[0]
        change = real.step(rows[0].ordinal).changes[0]
        first = item_text.whole_record(
            real, ItemKey(Target(0, whole_turn=False, first=0), change), lambda: None
        )
        assert "note" in first.text
        assert secret not in first.text  # nor where it was not redacted yet
        later = msgspec.structs.replace(change, status="skipped", line=placement.line, title=None)
        key = ItemKey(Target(last, whole_turn=False, first=last), later)
        for document in (
            item_text.whole_record(real, key, lambda: None),
            item_text.item(real, key, lambda: None).content,
            item_text.compare_versions(real, key, 1, list(real.moments("note")), lambda: None).document,
        ):
            assert document is None or secret not in document.text
