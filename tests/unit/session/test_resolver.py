"""One name means one item: at every door the same, whatever it is a name by."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxctl.cli.main import run
from ctxctl.errors import UsageError
from ctxctl.session import Inspector
from ctxctl.session.resolver import ItemFound, NoItem, SeveralItems, ambiguous_item, resolve_item
from ctxctl.session.store_rows import lives_of
from tests.unit.session.resolving import DOORS, NONE, answers, names

TRACES = Path(__file__).parents[3] / "traces"
NOTES = str(TRACES / "notes-assistant.jsonl")
RETRIEVAL = str(TRACES / "retrieval-agent.jsonl")


@pytest.mark.slow
@pytest.mark.parametrize("trace", ["coding-agent", "notes-assistant", "retrieval-agent"])
def test_every_door_finds_the_same(trace: str) -> None:
    with Inspector.open(TRACES / f"{trace}.jsonl") as inspector:
        main = {key for key in inspector.items().shelves if key.thread == "main"}
        asked = [name for name in dict.fromkeys(names(inspector, 12)) if _in(inspector, name, main)]
        different = {
            name: found for name in asked if len(set((found := answers(inspector, name)).values())) > 1
        }
    assert len(asked) > 30
    assert different == {}


def _in(inspector: Inspector, name: str, main: set) -> bool:  # type: ignore[type-arg]
    """Whether the main thread alone decides: other threads are beyond what `why` and `blame` look at."""
    if not name:
        return True
    inventory = inspector.items()
    return resolve_item(inventory, name, inspector.text, main) == resolve_item(
        inventory, name, inspector.text
    )


@pytest.mark.parametrize(
    ("name", "item", "how"),
    [
        ("quire:editor-state", "quire:editor-state", None),
        ("quire:editor-state@7a161a5e", "quire:editor-state", None),
        ("quire:editor", "quire:editor-state", "by the beginning of its id"),
    ],
)
def test_by_what_it_is_found(name: str, item: str, how: str | None) -> None:
    with Inspector.open(NOTES) as inspector:
        assert set(answers(inspector, name).values()) == {item}
        found = resolve_item(inspector.items(), name, inspector.text)
    assert isinstance(found, ItemFound)
    assert (found.candidate.item, found.how) == (item, how)


def test_a_name_of_several_items_lists_them_at_every_door() -> None:
    with Inspector.open(NOTES) as inspector:
        found = answers(inspector, "quire")
    assert set(found) == set(DOORS)
    assert len(set(found.values())) == 1
    assert "items match 'quire'" in found["log"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["log", NOTES, "quire"],
        ["why", f"{NOTES}@-1", "quire"],
        ["blame", f"{NOTES}@-1", "--item", "quire"],
        ["replay", NOTES, "--drop", "item:quire"],
        ["replay", NOTES, "--set", f"quire={NOTES}"],
    ],
    ids=["log", "why", "blame", "drop", "set"],
)
def test_the_error_numbers_what_fits(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "items match 'quire'" in said
    assert "choose one by its number, as in 'quire #2': 1. " in said
    assert "; 2. " in said


def test_an_item_that_was_only_a_candidate_has_a_name_too() -> None:
    with Inspector.open(RETRIEVAL) as inspector:
        assert set(answers(inspector, "booking:?").values()) - {NONE} == {"booking:?"}


@pytest.mark.parametrize("trace", ["coding-agent", "notes-assistant", "retrieval-agent"])
def test_the_inventory_has_the_items_that_a_replay_meets(trace: str) -> None:
    with Inspector.open(TRACES / f"{trace}.jsonl") as inspector:
        inventory = {(k, item) for k, shelf in inspector.items().shelves.items() for item in shelf.came}
        history = lives_of(inspector)
        met = {(history.threads[one.thread], one.item) for one in history.entries()}
    assert inventory == met


def test_a_version_that_never_was_is_no_item_to_drop() -> None:
    with Inspector.open(NOTES) as inspector, pytest.raises(UsageError) as error:
        DOORS["drop"](inspector, 0, "quire:editor-state@nope")
    assert error.value.slug == "no-such-item"
    assert "no version of 'quire:editor-state' is called 'nope'" in error.value.message
    assert "there are: " in (error.value.hint or "")


HERE = "/home/ada/cli"
_CALLS = (("a1x9", "Read", "cmd/main.go"), ("b2y8", "Read", "cmd/main.go"), ("c3z7", "Edit", "other/main.go"))


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inspector]:
    """A Claude Code session with three calls of files, each with its result, and a message."""
    said = [{"type": "text", "text": "Two  things\nto do here: tidy up, and test"}]
    lines = [_line("user", "u1", "please look"), _line("assistant", "m1", said)]
    for name, tool, path in _CALLS:
        call = {"type": "tool_use", "id": name, "name": tool, "input": {"file_path": f"{HERE}/{path}"}}
        answer = {"type": "tool_result", "tool_use_id": name, "content": f"what {name} gave"}
        lines += [_line("assistant", f"m-{name}", [call]), _line("user", f"r-{name}", [answer])]
    path = tmp_path_factory.mktemp("session") / "s.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with Inspector.open(path) as inspector:
        yield inspector


def _line(role: str, uuid: str, content: object) -> dict[str, object]:
    message = {"role": role, "content": content, "id": f"msg-{uuid}", "model": "claude-opus-4-6"}
    return {
        "type": role,
        "uuid": uuid,
        "sessionId": "s",
        "cwd": HERE,
        "version": "2.1.36",
        "message": message,
    }


@pytest.mark.parametrize(
    ("name", "item"),
    [
        ("Edit: other/main.go", "c3z7/result"),
        (f"Edit: {HERE}/other/main.go", "c3z7/result"),
        ("other/main.go", "c3z7/result"),
        (f"{HERE}/other/main.go", "c3z7/result"),
        ("./other/main.go", "c3z7/result"),
        ("Edit: …/main.go", "c3z7/result"),
        ("main.go edit", "c3z7/result"),
        ("Read: cmd/main.go #b2y8", "b2y8/result"),
        ("Read: …/main.go #b2y8", "b2y8/result"),
        ("#a1x9", "a1x9/result"),
        ("main.go #1", "c3z7/result"),
        ("main.go #2", "c3z7"),
        ("main.go #6", "a1x9"),
        ("Edit: other/main.go #2", "c3z7"),
        ("“Two things to do here: ti…”", "m1"),
        ("“Two things to do here: tidy up, and test”", "m1"),
        ("test tidy", "m1"),
        ("what b2y8 gave", "b2y8/result"),
    ],
)
def test_what_a_list_shows_is_a_name(session: Inspector, name: str, item: str) -> None:
    found = resolve_item(session.items(), name, session.text)
    assert isinstance(found, ItemFound)
    assert found.candidate.item == item


@pytest.mark.parametrize("name", ["main.go #7", "main.go #0", "main.go #zz99", "“things to do”", "#99"])
def test_what_no_list_shows_is_none(session: Inspector, name: str) -> None:
    assert isinstance(resolve_item(session.items(), name, session.text), NoItem)


def test_several_are_numbered_with_kind_turn_and_size(session: Inspector) -> None:
    found = resolve_item(session.items(), "cmd/main.go", session.text)
    assert isinstance(found, SeveralItems)
    assert ambiguous_item(found, "cmd/main.go").hint == (
        "choose one by its number, as in 'cmd/main.go #2': "
        "1. Read: cmd/main.go (tool result, turn 1.4, 14 B); "
        "2. Read: cmd/main.go (tool call, turn 1.3, 46 B); "
        "3. Read: cmd/main.go (tool result, turn 1.3, 14 B); "
        "4. Read: cmd/main.go (tool call, turn 1.2, 46 B)"
    )


def test_near_names_are_told_as_they_are_shown(session: Inspector) -> None:
    found = resolve_item(session.items(), "cmd/mian.go", session.text)
    assert isinstance(found, NoItem)
    assert "Read: cmd/main.go" in found.near
