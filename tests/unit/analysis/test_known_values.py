"""Values of a query that nobody knows: an error in every place that takes a query, never an empty result."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxctl.analysis.known_values import UnknownValue, unknown_error, unknown_to_both, unknown_values
from ctxctl.analysis.search import search_trace
from ctxctl.analysis.where import steps_where
from ctxctl.cli.main import run
from ctxctl.engine.query import parse_query
from ctxctl.engine.query.facts import ALIASES, CLOSED, VOCABULARIES
from ctxctl.engine.query.terms import Field
from ctxctl.errors import UsageError
from ctxctl.kinds import KINDS, WORDS
from ctxctl.session import Inspector
from tests.unit.engine.making import Json, add, assembly, inject, inspect, remove

ROOT = Path(__file__).parents[3]
CODING = str(ROOT / "traces" / "coding-agent.jsonl")
NOTES = str(ROOT / "traces" / "notes-assistant.jsonl")
Out = pytest.CaptureFixture[str]


def own_words() -> list[Json]:
    """A trace with a kind and a segment of its own, beside one item of every kind that ctxctl knows."""
    kinds = [kind.name for kind in KINDS]
    events = [add(f"item-{kind}", f"a text of {kind}", turn="1", step="s1", kind=kind) for kind in kinds]
    events += [add("board", "moody", turn="1", step="s1", kind="mood_board")]
    blocks = [{"block_id": "b", "item_refs": ["board"], "segment": "pinned"}]
    names = [f"item-{kind}" for kind in kinds]
    events += [assembly("a1", *names, *blocks, turn="1", step="s1"), inject("a1", turn="1", step="s1")]
    events += [remove("item-marker", "expired", turn="2", step="s2")]
    rest = [name for name in names if name != "item-marker"]
    return [
        *events, assembly("a2", *rest, *blocks, turn="2", step="s2"), inject("a2", turn="2", step="s2")
    ]  # fmt: skip


@pytest.fixture(scope="module")
def inspector() -> Inspector:
    return inspect(own_words())


def unknown(inspector: Inspector, query: str) -> list[tuple[str, str]]:
    return [(one.field, one.value) for one in unknown_values(inspector, parse_query(query))]


def found(inspector: Inspector, query: str) -> list[tuple[int, list[str]]]:
    return [
        (stop.ordinal, sorted(change.item for change in stop.held.changes))
        for stop in steps_where(inspector, parse_query(query))
        if stop.held.truth
    ]


@pytest.mark.parametrize("word", sorted(WORDS))
def test_every_word_finds_what_its_names_find(inspector: Inspector, word: str) -> None:
    names = ",".join(f"={name}" for name in WORDS[word])
    assert found(inspector, f"kind:{word}") == found(inspector, f"kind:{names}")
    assert found(inspector, f"kind:{word}"), "the trace has an item of every kind, or this shows nothing"


@pytest.mark.parametrize(
    ("field", "alias"), [(f, a) for f, aliases in ALIASES.items() if f != "kind" for a in aliases]
)
def test_every_alias_is_its_value(field: str, alias: str) -> None:
    names = ALIASES[field][alias]
    assert set(names) <= set(CLOSED[field])
    found, each = parse_query(f"{field}:{alias.upper()}").term, parse_query(f"{field}:{','.join(names)}").term
    assert isinstance(found, Field)
    assert isinstance(each, Field)
    assert {value.text for value in found.values} == {value.text for value in each.values}


@pytest.mark.parametrize("field", sorted(CLOSED))
def test_a_closed_field_has_no_other_value(field: str) -> None:
    with pytest.raises(UsageError, match="is no") as caught:
        parse_query(f"{field}:zzz")
    assert caught.value.exit_code == 2
    assert caught.value.hint == f"there are: {', '.join(CLOSED[field])}"
    near = CLOSED[field][0][:-1] + "x"
    with pytest.raises(UsageError, match=f"did you mean .*'{CLOSED[field][0]}'"):
        parse_query(f"{field}:{near}")


@pytest.mark.parametrize("field", sorted(VOCABULARIES))
def test_an_open_field_has_what_ctxctl_or_the_trace_knows(inspector: Inspector, field: str) -> None:
    assert unknown(inspector, f"{field}:zzz") == [(field, "zzz")]
    assert unknown(inspector, f"-{field}:zzz turn:1") == [(field, "zzz")]
    for name in VOCABULARIES[field]:
        assert unknown(inspector, f"{field}:{name} or {field}:={name} or {field}:{name[1:]}") == []


def test_what_the_trace_has_of_its_own_is_known(inspector: Inspector) -> None:
    assert unknown(inspector, "kind:mood_board segment:pinned kind:=mood_board kind:Mood,mood") == [
        ("kind", "Mood")
    ]
    assert found(inspector, "kind:mood") == [(0, ["board"])]


def test_the_whole_value_is_as_recorded(inspector: Inspector) -> None:
    assert unknown(inspector, "kind:=user") == [("kind", "user")]
    assert found(inspector, "kind:=user_message") == found(inspector, "kind:user")


def test_a_trace_is_gone_through_only_for_a_value_that_ctxctl_does_not_know() -> None:
    told: list[float] = []
    assert unknown_values(inspect(own_words()), parse_query("kind:user segment:tools"), told.append) == ()
    assert told == []


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (UnknownValue("kind", "tool_reslt"), "did you mean kind:tool_result"),
        (UnknownValue("kind", "repyl"), "did you mean kind:assistant_message"),
        (UnknownValue("kind", "mod_board", ("mood_board",)), "did you mean kind:mood_board"),
        (UnknownValue("segment", "qqq", ("pinned",)), "there are: pinned, unrecorded, tools, "),
        (UnknownValue("flag", "compcted"), "there are: moved, "),
    ],
)
def test_the_hint_names_what_is_near(value: UnknownValue, hint: str) -> None:
    error = unknown_error(value)
    assert (error.slug, error.exit_code) == ("unknown-value", 2)
    assert error.message == (
        f"no {value.field} is called {value.value!r}: ctxctl does not know it, and nothing that was searched"
        " has it"
    )
    assert (error.hint or "").startswith(hint)


def test_two_traces_know_what_either_knows() -> None:
    one = (UnknownValue("kind", "x", ("a",)), UnknownValue("kind", "y", ("a",)))
    two = (UnknownValue("kind", "y", ("b",)), UnknownValue("cause", "x"))
    assert unknown_to_both(one, two) == (UnknownValue("kind", "y", ("a", "b")),)


def test_a_search_of_the_ui_says_so(inspector: Inspector) -> None:
    with pytest.raises(UsageError, match="no kind is called 'zzz'"):
        list(search_trace(inspector, parse_query("kind:zzz"), lambda: None))


# On the command line ----------------------------------------------------------------------------------------

COMMANDS: dict[str, Callable[[str], list[str]]] = {
    "find": lambda query: ["find", CODING, query],
    "find, in two": lambda query: ["find", CODING, NOTES, query],
    "bisect": lambda query: ["bisect", CODING, query],
    "bisect, of two": lambda query: ["bisect", CODING, NOTES, query],
    "replay --where": lambda query: ["replay", CODING, "--plain", "--where", query],
}


@pytest.mark.parametrize("query", ["kind:zzz", "segment:zzz", "cause:zzz", "flag:zzz", "turn:1 or kind:zzz"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_value_that_nobody_knows_is_wrong_usage(command: str, query: str, capsys: Out) -> None:
    assert run(COMMANDS[command](query)) == 2
    said = capsys.readouterr().err
    assert "'zzz'" in said
    assert "hint: there are: " in said


@pytest.mark.parametrize("query", ["status:zzz", "mode:zzz", "basis:zzz", "method:zzz", "is:zzz", "limit:zz"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_value_of_a_closed_field_is_wrong_usage(command: str, query: str, capsys: Out) -> None:
    assert run(COMMANDS[command](query)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "hint: there are: " in printed.err


def own_file(folder: Path) -> str:
    made = folder / "own.jsonl"
    made.write_text("".join(json.dumps({"event_id": f"e{n}", **e}) + "\n" for n, e in enumerate(own_words())))
    return str(made)


def test_one_trace_that_knows_a_value_vouches_for_the_others(tmp_path: Path, capsys: Out) -> None:
    assert run(["find", CODING, own_file(tmp_path), "kind:mood", "--count"]) == 0
    assert run(["bisect", own_file(tmp_path), CODING, "kind:mood"]) == 0
    assert "is called" not in capsys.readouterr().err


def test_a_directory_is_asked_as_one(tmp_path: Path, capsys: Out) -> None:
    (tmp_path / "a.jsonl").write_bytes(Path(CODING).read_bytes())
    (tmp_path / "b.jsonl").write_bytes(Path(NOTES).read_bytes())
    for _ in range(2):  # what was answered is kept
        assert run(["find", str(tmp_path), "kind:mood"]) == 2
        assert "no kind is called 'mood'" in capsys.readouterr().err
    own_file(tmp_path)
    assert run(["find", str(tmp_path), "kind:mood", "--count"]) == 0
    assert "is called" not in capsys.readouterr().err


@pytest.mark.parametrize("alias", ["reply", "Assistant", "asst"])
def test_drop_takes_the_same_words(alias: str, capsys: Out) -> None:
    def header(selector: str) -> dict[str, object]:
        assert run(["replay", CODING, "--json", "--drop", selector]) == 0
        made: dict[str, object] = json.loads(capsys.readouterr().out.splitlines()[-1])
        return made

    assert header(f"kind:{alias}") == header("kind:assistant_message")
    assert header(alias) == header("kind:assistant_message")


def test_drop_of_an_unknown_kind_is_wrong_usage(capsys: Out) -> None:
    assert run(["replay", CODING, "--plain", "--drop", "kind:zzz"]) == 2
    assert "no item of this trace has the kind 'zzz'" in capsys.readouterr().err
