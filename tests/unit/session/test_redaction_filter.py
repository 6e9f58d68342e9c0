# ruff: noqa: E501 - a step a line
"""What counts as redacted, and what does not."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from ctxctl.session import Inspector
from ctxctl.session.redaction.learning import Shingles, secrets_by_shape
from ctxctl.session.redaction.secrets import Secrets
from tests.oracle.build import assembly, at, event, item, lines, update

ADDRESS = "lives at 12 Elm Street in Springfield with two dogs"


def redaction(name: str, **more: Any) -> dict[str, Any]:
    return event("context.redaction.applied", {"item_id": name, "redaction_state": "removed", **more})


def shown(tmp_path: Path, *events: dict[str, Any]) -> dict[str, str]:
    """The texts of the last frame by item, as a view shows them; and of the first."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(lines(list(events)))
    with Inspector.open(path) as inspector:
        list(inspector.replay())
        last = len(inspector.places().spans) - 1
        return {
            f"{p.item}{'' if n else '@first'}": inspector.text(p.content)
            for n in sorted({0, last})
            for p in inspector.frame(n).placements
            if p.content is not None
        }


def test_what_was_left_tells_what_was_secret(tmp_path: Path) -> None:
    masked = update("a", "the word is *** today")
    masked["data"]["redaction_state"] = "masked"
    found = shown(
        tmp_path,
        *at("1", "1", item("a", "the word is moss-lantern today"), assembly("x", ["a"])),
        *at("2", "2", redaction("a"), masked, item("b", "moss-lantern and the word is"), assembly("y", ["a", "b"])),
    )  # fmt: skip
    assert found == {
        "a@first": "the word is [redacted] today", "a": "the word is *** today", "b": "[redacted] and the word is",
    }  # fmt: skip


def test_so_does_what_a_redaction_puts_in_its_place(tmp_path: Path) -> None:
    found = shown(
        tmp_path,
        *at("1", "1", item("a", f"Jane {ADDRESS}."), assembly("x", ["a"])),
        *at(
            "2",
            "2",
            item("r", "Jane is a customer."),
            redaction("a", replacement_ref="r"),
            assembly("y", ["a"]),
        ),
    )
    assert found == {"a@first": "Jane [redacted]", "a": "Jane is a customer."}


def test_words_in_a_row_are_found_with_other_spaces_and_not_what_others_said_before(tmp_path: Path) -> None:
    found = shown(
        tmp_path,
        *at("1", "1", item("s", "You are an assistant of the shipping department here.", kind="system_prompt"), assembly("w", ["s"])),
        *at("2", "2", item("a", f"You are an assistant of the shipping department here. Jane {ADDRESS}"), assembly("x", ["s", "a"])),
        *at("3", "3", redaction("a"), item("b", "She LIVES at\n12 Elm  Street, in Springfield"),
            item("c", "an assistant of the shipping department"), item("d", "Elm Street in June"), assembly("y", ["s", "b", "c", "d"])),
    )  # fmt: skip
    assert found["s"].startswith("You are an assistant")
    assert found["b"] == "She [redacted]"
    assert (found["c"], found["d"]) == ("an assistant of the shipping department", "Elm Street in June")


def test_a_short_text_is_hidden_in_its_own_item_only(tmp_path: Path) -> None:
    found = shown(
        tmp_path,
        *at("1", "1", item("a", "4711"), assembly("x", ["a"])),
        *at("2", "2", redaction("a"), item("b", "room 4711"), assembly("y", ["b"])),
    )
    assert found == {"a@first": "[redacted]", "b": "room 4711"}


def test_values_inside_a_structured_content_are_secret_and_its_words_and_ids_are_not(tmp_path: Path) -> None:
    said = {
        "type": "tool_result",
        "tool_use_id": "toolu_01XYZ99",
        "password": "Tr0ub4dor&3",
        "user": "jane-doe",
    }
    call = item("toolu_01XYZ99", "call", kind="tool_call")
    found = shown(
        tmp_path,
        *at("1", "1", call, item("a", said), assembly("x", ["toolu_01XYZ99", "a"])),
        *at("2", "2", redaction("a"), item("b", {"tool_use_id": "toolu_01XYZ99", "again": "Tr0ub4dor&3"}), item("c", "a tool_result of jane-doe"),
            assembly("y", ["toolu_01XYZ99", "b", "c"])),
    )  # fmt: skip
    assert found["a@first"] == "[redacted]"
    assert found["b"] == '{"again":"[redacted]","tool_use_id":"toolu_01XYZ99"}'
    assert found["c"] == "a tool_result of jane-doe"
    assert "toolu_01XYZ99" in found


def test_names_that_hold_different_secrets_stay_different(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    names = ("mail-ann@example.org", "mail-bob@example.org")
    events = [item("a", "ann@example.org"), item("b", "bob@example.org"), redaction("a"), redaction("b")]
    path.write_bytes(lines([*events, *(item(name, "x") for name in names), assembly("y", list(names))]))
    with Inspector.open(path) as inspector:
        (step,) = [one for one in inspector.replay() if hasattr(one, "window")]
        shown = [change.item for change in step.changes if change.item.startswith("mail")]
        assert shown == ["mail-[redacted 1]", "mail-[redacted 2]"]
        assert len(inspector.life(shown[1])) == 1


def test_what_was_masked_before_it_was_written_makes_no_secret_of_older_versions(tmp_path: Path) -> None:
    later = update("a", "line one\nkey [redacted github-token, 40 chars, #3f9a1c20d4e5]")
    later["data"] |= {"redaction_state": "masked", "redaction_method": "ctxctl"}
    found = shown(
        tmp_path,
        *at("1", "1", item("a", "line one\nand another line"), assembly("x", ["a"])),
        *at("2", "2", later, assembly("y", ["a"])),
    )
    assert found["a@first"] == "line one\nand another line"


def test_nothing_is_veiled_where_nothing_was_redacted(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(
        lines([item("a", 'it says "redaction_state" and context.redaction'), assembly("y", ["a"])])
    )
    with Inspector.open(path) as inspector:
        assert not inspector.redactor
        assert inspector.trace.redactor is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("card 4929 1234 5678 9012.", ["4929 1234 5678 9012"]),
        ("call +49 (30) 1234-567 now", ["+49 (30) 1234-567"]),
        ("mail jane.roe@mail.example.org,", ["jane.roe@mail.example.org"]),
        ("DE89 3704 0044 0532 0130 00", ["DE89 3704 0044 0532 0130 00"]),
        ("sk_live_9x8y7z6w5v", ["sk_live_9x8y7z6w5v"]),
        ("password: correct-horse", ["correct-horse"]),
        ("on 2026-11-22 10:15 in src/main_file.py of version2, 1234567", []),
    ],
)
def test_shapes(text: str, found: list[str]) -> None:
    assert sorted(set(secrets_by_shape(text))) == found


@pytest.mark.parametrize(
    "spell",
    [
        lambda s: quote(s, safe=""),
        lambda s: "".join(f"%{octet:02x}" for octet in s.encode()),
        html.escape,
        lambda s: "".join(f"&#{ord(sign)};" for sign in s),
        lambda s: "".join(f"&#x{ord(sign):X};" for sign in s),
        lambda s: json.dumps({"page": html.escape(s)}),
        lambda s: json.dumps(json.dumps(s)),
    ],
)
def test_a_secret_is_found_as_urls_html_and_json_spell_it(spell: Callable[[str], str]) -> None:
    secrets, secret = Secrets(), 'café <b> "of words" & naïve 100%'
    secrets.add(secret, "a")
    made = secrets.masked(f"100% & before {spell(secret)} behind", lambda _: "*")
    assert made.startswith("100% & before ")
    assert made.endswith(" behind")
    assert "words" not in made
    assert "*" in made
    assert len(made) < 50


def test_runs_of_words_are_joined() -> None:
    shingles = Shingles()
    shingles.add("one quick brown fox jumps over seven lazy dogs", "a", 10)
    text = "so: One quick, brown fox jumps over seven... cats"
    (run,) = shingles.runs(text)
    assert (text[run.start : run.end], run.name) == ("One quick, brown fox jumps over seven", "a")
    shingles.spare("quick brown fox jumps over", 5)
    assert [text[r.start : r.end] for r in shingles.runs(text)] != []
    shingles.remove("one quick brown fox jumps over seven lazy dogs")
    assert not shingles


def test_a_large_file_is_looked_through_once_and_then_only_what_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ctxctl.session.redaction import noticing
    from ctxctl.trace.source import Source, open_source

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CTXCTL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(noticing, "_MIN_CACHED", 1000)
    path = tmp_path / "t.jsonl"
    path.write_bytes(lines([item(f"i{n}", "x" * 500) for n in range(400)]))
    size = path.stat().st_size

    def read() -> tuple[bool, int]:
        asked = 0
        plain = Source.read

        def counting(source: Source, offset: int, n: int) -> bytes:
            nonlocal asked
            data = plain(source, offset, n)
            asked += len(data)
            return data

        with open_source(path) as source, monkeypatch.context() as patched:
            patched.setattr(Source, "read", counting)
            return noticing.trace_redacts(source), asked

    first, again = read(), read()
    assert (first[0], again[0]) == (False, False)
    assert first[1] >= size > again[1]
    with path.open("ab") as file:
        file.write(lines([redaction("i1")]))
    assert read()[0]
    path.write_bytes(lines([redaction("i1"), item("a", "y" * 2 * size)]))
    assert read()[0]
