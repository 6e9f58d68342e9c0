"""What items are called in lists: cut where it says least, and never two alike."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.item_names import (
    ItemNames,
    Named,
    NameList,
    ends_with,
    fitted,
    head_ends_with,
    id_ends,
    is_cut_from,
    is_path,
    local,
    names,
    path_ends_with,
    shortened_path,
    told,
)
from ctxctl.text import cells

HERE = "/home/ada/work/cli"


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        (f"Read: {HERE}/cmd/main.go", "Read: cmd/main.go"),
        (f"{HERE}/README.md", "README.md"),
        (f"LS: {HERE}", "LS: ."),
        (f"LS: {HERE}/", "LS: ."),
        (f"Read: {HERE}2/main.go", f"Read: {HERE}2/main.go"),
        ("Read: /etc/hosts", "Read: /etc/hosts"),
        (f"Bash: cd {HERE} && go test ./...", "Bash: go test ./..."),
        (f'Bash: cd "{HERE}" ; ls', "Bash: ls"),
        (f"Bash: cd {HERE}/cmd && ls", "Bash: cd cmd && ls"),
        (f"Bash: cd {HERE}", f"Bash: cd {HERE}"),
        (f"Bash: cd {HERE}2 && ls", f"Bash: cd {HERE}2 && ls"),
        (f"Bash: git -C {HERE} log", f"Bash: git -C {HERE} log"),
    ],
)
def test_a_path_below_the_directory_is_shown_from_there(title: str, shown: str) -> None:
    assert local(title, HERE) == shown
    assert local(title, f"{HERE}/") == shown
    assert local(title, None) == title


def test_windows_paths_are_shown_from_their_directory_too() -> None:
    assert local(r"read: C:\dev\roo\src\a.ts", r"C:\dev\roo") == r"read: src\a.ts"


@pytest.mark.parametrize(
    ("name", "width", "shown"),
    [
        ("Read: cmd/strategy/manual_commit.go", 35, "Read: cmd/strategy/manual_commit.go"),
        ("Read: cmd/strategy/manual_commit.go", 34, "Read: …/strategy/manual_commit.go"),
        ("Read: cmd/strategy/manual_commit.go", 24, "Read: …/manual_commit.go"),
        ("Read: cmd/strategy/manual_commit.go", 20, "Read: manual_commit…"),
        (r"read: C:\dev\roo\a.ts", 16, r"read: …\roo\a.ts"),
        ("Bash: go test ./cmd/... -run x", 20, "Bash: go test ./cmd…"),
        ("Fetch: https://a.example/b/c/d.html", 20, "Fetch: https://a.ex…"),
        ("“The working tree is clean”", 16, "“The working t…”"),
        ("a title of some words", 10, "a title o…"),
    ],
)
def test_a_name_is_cut_where_it_says_least(name: str, width: int, shown: str) -> None:
    assert fitted(name, width) == shown


@given(st.text(max_size=60), st.integers(min_value=3, max_value=40))
def test_no_name_is_wider_than_its_room(text: str, width: int) -> None:
    assert cells(fitted(told(text, "", "id"), width)) <= width
    assert cells(fitted(told(None, text, "id"), width)) <= width
    assert cells(shortened_path(told(text.replace(" ", "/"), "", "id"), width)) <= width


def test_words_are_told_from_titles_and_blanks_from_both() -> None:
    assert told("Read: a", "text", "id") == "Read: a"
    assert told(None, "two\n\n lines\x1b", "id") == "“two lines␛”"
    assert told(" ", "words", "id") == "“words”"
    assert told(None, "\n\n", "id") == "(blank)"
    assert told(None, "", "id") == "id"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/a/b c/d.txt", True),
        ("src/a.py", True),
        (r"C:\a b\c.txt", True),
        ("two words/or so", False),
        ("a.py", False),
        ("/bin/ls | wc", False),
        ("/usr/bin/env -i", False),
        ("https://a.example/b", False),
        ("src/**/*.py", False),
    ],
)
def test_what_is_read_as_a_path(text: str, path: bool) -> None:
    assert is_path(text) is path


def test_items_that_would_look_the_same_get_the_end_of_their_id() -> None:
    rows = [
        Named("call_aaaa1/result", "Read: a/long/way/x.py", beside="result"),
        Named("call_aaaa1", "Read: a/long/way/x.py", beside="call"),
        Named("call_bbbb2", "Read: a/long/way/x.py", beside="call"),
        Named("call_cccc3", "Read: other/x.py", beside="call"),
    ]
    assert names(rows, 40) == [
        "Read: a/long/way/x.py", "Read: a/long/way/x.py #aaa1", "Read: a/long/way/x.py #bbb2",
        "Read: other/x.py",
    ]  # fmt: skip
    # In less room the third is the same as the first two, which it was not before.
    assert names(rows, 14) == ["Read: …/x.py", "…/x.py #aaa1", "…/x.py #bbb2", "other/x.py"]


@pytest.mark.parametrize(
    ("titles", "width", "shown"),
    [
        (
            ["Bash: sed -n '1,240p' src/trace.ts", "Bash: sed -n '1,240p' src/eval.ts"],
            20, ["Bash: sed -…trace.ts", "Bash: sed -n…eval.ts"],
        ),
        (
            ["exec_command: bun apps/cli/src/cli.ts grade one", "exec_command: bun apps/cli/src/cli.ts eval"],
            22, ["bun apps/cli…grade one", "bun apps/cli/src/…eval"],
        ),
        (["Read: src/very/long/a.py", "Edit: src/very/long/a.py"], 16, ["Read: …/a.py", "Edit: …/a.py"]),
        (["mcp__linear__get: ENT-1", "mcp__linear__get: ENT-2"], 14, ["get: ENT-1", "get: ENT-2"]),
        (["mcp__linear__get: ENT-1", "mcp__linear__get: ENT-2"], 9, ["ENT-1", "ENT-2"]),
    ],
)  # fmt: skip
def test_items_that_would_look_the_same_are_cut_where_they_differ(
    titles: list[str], width: int, shown: list[str]
) -> None:
    rows = [Named(f"call_{n}", title) for n, title in enumerate(titles)]
    assert names(rows, width) == shown


def test_first_words_that_begin_alike_keep_their_quotes() -> None:
    rows = [Named(str(n), None, f"have a look at {what}, and so on") for n, what in enumerate("AB")]
    assert names(rows, 16) == ["“have…A, and s…”", "“have…B, and s…”"]


_ITEMS = st.lists(
    st.tuples(st.text("ab/", min_size=1, max_size=6), st.none() | st.text("xy/: ", max_size=12)),
    max_size=12, unique_by=lambda one: one[0],
)  # fmt: skip


@given(_ITEMS, st.integers(min_value=20, max_value=40))
def test_two_items_of_a_list_never_look_the_same(items: list[tuple[str, str | None]], width: int) -> None:
    found = names([Named(item, title) for item, title in items], width)
    assert not [name for name, times in Counter(found).items() if times > 1]


def test_each_end_of_an_id_fits_its_own_id_only() -> None:
    items = ["toolu_1/result/1", "toolu_1/result", "x2", "9", "abc-toolu_2"]
    ends = id_ends(items)
    for item, end in ends.items():
        assert [one for one in items if ends_with(one, end)] == [item]


def test_what_ids_have_in_common_at_their_end_tells_nothing() -> None:
    ids = ["call_AygS/result/mcp__github._get_pr", "call_7ugC/result/mcp__github._get_pr"]
    assert id_ends(ids) == {ids[0]: "AygS", ids[1]: "7ugC"}
    assert all(head_ends_with(item, end) for item, end in id_ends(ids).items())
    assert not head_ends_with(ids[0], "7ugC")
    rows = [Named(item, "mcp__github._get_pr") for item in ids]
    assert names(rows, 16) == ["mcp__gith… #AygS", "mcp__gith… #7ugC"]
    assert id_ends(["b/x", "/x"]) == {"b/x": "b/x", "/x": "/x"}
    assert names(rows, 6) == ["#AygS", "#7ugC"]


@pytest.mark.parametrize(
    ("cut", "fits"),
    [
        ("Bash: sed -n…/trace.ts", True),
        ("sed -n…/trace.ts", True),
        ("sed…core…trace…", True),
        ("…/trace.ts", True),
        ("Bash: sed -n…/eval.ts", False),
        ("Read: sed…trace.ts", False),
        ("sed…trace.t", False),
    ],
)
def test_a_name_is_known_again_by_what_is_shown_of_it(cut: str, fits: bool) -> None:
    assert is_cut_from(cut, "Bash: sed -n 1,9p core/trace.ts") is fits


def test_a_list_knows_its_names_at_every_width() -> None:
    listed = NameList([Named("u1", None, "words of it"), Named("r1", f"Read: {HERE}/a/b.py")], HERE)
    assert (listed.at("r1"), listed.at("r1", 13), listed.at("u1", 8)) == (
        "Read: a/b.py",
        "Read: a/b.py",
        "“words…”",
    )
    assert listed.at("none") is None


def test_the_end_of_a_path_is_whole_parts_of_it() -> None:
    assert path_ends_with("Read: a/b/c.py", "b/c.py")
    assert path_ends_with("Read: c.py", "c.py")
    assert not path_ends_with("Read: a/bb/c.py", "b/c.py")
    assert not path_ends_with("Bash: cat a/b/c.py | wc", "c.py")


def test_names_of_a_trace_read_words_only_where_there_is_no_title() -> None:
    asked: list[str] = []

    def words(item: str) -> str:
        asked.append(item)
        return "said"

    called = ItemNames(None, words)
    assert [called.of("a", "Title"), called.of("b", None)] == ["Title", "“said”"]
    assert asked == ["b"]


def test_a_list_calls_what_records_name_by_its_version_too() -> None:
    listed = NameList([Named("sum@1", "All that was said"), Named("other", None, "Read this")])
    assert listed.at_ref("sum@1@v3") == listed.at_ref("sum@1") == "All that was said"
    assert listed.at_ref("other@v") == "“Read this”"
    assert listed.at_ref("unknown@v") == "unknown@v"
