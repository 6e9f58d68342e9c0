"""JSON over lines and what of it folds, languages and colours, changed words.  No event loop."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.tui import jsontext, syntax
from ctxctl.tui.answers import item_text
from ctxctl.tui.document import Document, Fold, FoldRegions, Wrap

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
CONTAINERS = st.lists(VALUES, max_size=4) | st.dictionaries(st.text(), VALUES, max_size=4)


def rows(document: Document, folded: frozenset[int] = frozenset(), width: int = 80) -> list[str]:
    wrap = Wrap(document, width, folded=folded)
    while not wrap.done:
        wrap.extend()
    return [wrap.row(n).text for n in range(wrap.count)]


@pytest.mark.slow
@given(CONTAINERS)
def test_laid_out_json_is_the_same_json(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), json.dumps(value, indent=3)):
        assert jsontext.is_json(text)
        laid = jsontext.laid_out(text)
        assert laid is not None
        assert json.loads(laid.text) == value
        if "\\" not in text:
            assert laid.text == json.dumps(value, indent=2, ensure_ascii=False)


@pytest.mark.slow
@given(CONTAINERS)
def test_every_fold_hides_what_it_says(value: Any) -> None:
    laid = jsontext.laid_out(json.dumps(value))
    assert laid is not None
    lines = laid.text.split("\n")
    document = Document(laid.text, fold_regions=laid.fold_regions)
    for line in range(len(lines)):
        fold = laid.fold_regions.at(line)
        if fold is None:
            continue
        shown = rows(document, frozenset({line}), 100_000)
        assert shown == lines[: line + 1] + lines[fold.last + 1 :]
        opening = lines[line].strip()[-1]
        held = json.loads(opening + "".join(lines[line + 1 : fold.last + 1]).rstrip(","))
        assert f" {len(held)} " in fold.hint


def test_numbers_keep_their_spelling_and_keys_may_repeat() -> None:
    laid = jsontext.laid_out('{"a":1.00,"a":1e3,"b":12345678901234567890,"c":"\\u001b[31m"}')
    assert laid is not None
    assert laid.text.split("\n")[1:5] == [
        '  "a": 1.00,',
        '  "a": 1e3,',
        '  "b": 12345678901234567890,',
        '  "c": "\\u001b[31m"',
    ]


def test_a_fold_counts_what_it_hides() -> None:
    laid = jsontext.laid_out('{"one":{"a":1,"b":[1,2,3],"c":{}},"two":[]}')
    assert laid is not None
    hints = [fold.hint for line in range(9) if (fold := laid.fold_regions.at(line))]
    assert hints == [" … 2 keys }", " … 3 keys },", " … 3 values ],"]


@pytest.mark.parametrize(
    "text", ["", "{", "[1", "nothing", '"text"', "12", "[" * 100_000, "{" + " " * 10, "\ud800"]
)
def test_what_is_no_json_is_not_taken_for_it(text: str) -> None:
    assert not jsontext.is_json(text)


def test_much_nesting_does_not_make_much_text() -> None:
    deep = "[" * 300 + "1," * 200_000 + "1" + "]" * 300
    laid = jsontext.laid_out(deep)
    assert laid is None or len(laid.text) < 16 << 20


def test_larger_json_is_left_as_it_is() -> None:
    large = json.dumps(["x" * 100] * 20_000)
    assert not jsontext.is_json(large)
    assert jsontext.laid_out(large) is None


def test_long_base64_is_shown_by_its_beginning() -> None:
    laid = jsontext.laid_out('{"data":"' + "QUJD" * 5000 + '","text":"' + "plain words " * 1000 + '"}')
    assert laid is not None
    assert laid.elided
    assert "(20,000 characters of base64)" in laid.text
    assert "plain words " * 1000 in laid.text


def test_the_innermost_fold_is_found_from_any_line() -> None:
    regions = FoldRegions(
        [Fold(0, 9, 0, 0, ""), Fold(1, 3, 0, 1, ""), Fold(5, 7, 0, 1, ""), Fold(6, 7, 0, 2, "")]
    )
    found = [regions.around(line) for line in range(11)]
    assert [None if fold is None else fold.line for fold in found] == [0, 1, 1, 1, 0, 5, 6, 6, 0, 0, None]
    assert regions.deeper(1) == {1, 5}
    assert regions.deeper(1, 2) == frozenset()


# Languages --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "mime", "title", "source", "expected"),
    [
        ("file_excerpt", None, "src/app.py", None, "python"),
        ("tool_result", None, "Read(/a/b.rs)", None, "rust"),
        ("tool_result", None, "read_file src/deep/main.go:10-20", None, "go"),
        ("tool_result", None, "Bash grep -n x app.py", None, ""),
        ("tool_result", None, "shell", None, ""),
        ("document_excerpt", None, None, "file:///x/Dockerfile", "docker"),
        ("user_message", None, "please fix app.py", None, "markdown"),
        ("external_resource", "text/x-python; charset=utf-8", "whatever", None, "python"),
        ("tool_result", None, None, None, ""),
    ],
)
def test_the_language_is_told_by_what_the_item_is_from(
    kind: str, mime: str | None, title: str | None, source: str | None, expected: str
) -> None:
    assert syntax.language("text", kind, mime, title, source) == expected


def test_a_patch_is_a_patch_wherever_it_comes_from() -> None:
    patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"
    assert syntax.language(patch, "tool_result", None, "Bash git diff", None) == "diff"
    spans, _ = syntax.coloured(patch, "diff")
    styles = [name for _, _, name in spans.within(0, len(patch))]
    assert styles == ["syntax-strong", "syntax-strong", "syntax-strong", "hunk", "del", "add"]


def test_code_has_colours_in_order() -> None:
    text = 'def f(x):\n    return "text"  # why\n'
    spans, remark = syntax.coloured(text, "python")
    found = [(text[a:b], name) for a, b, name in spans.within(0, len(text))]
    assert ("def", "syntax-keyword") in found
    assert ("f", "syntax-name") in found
    assert ("# why", "syntax-comment") in found
    assert remark == ""


def test_markdown_has_headings_fences_and_tags() -> None:
    text = "# Title\n- `code` and **strong**\n<system-reminder>\n```py\n# no heading\n```\n#hashtag"
    spans, _ = syntax.coloured(text, "markdown")
    found = {text[a:b]: name for a, b, name in spans.within(0, len(text))}
    assert found["# Title"] == "syntax-heading"
    assert found["`code`"] == "syntax-string"
    assert found["**strong**"] == "syntax-strong"
    assert found["<system-reminder>"] == "syntax-key"
    assert found["# no heading"] == "syntax-string"
    assert "#hashtag" not in found


def test_large_texts_and_long_lines_stay_plain_and_say_so() -> None:
    spans, remark = syntax.coloured("x = 1\n" * 100_000, "python")
    assert not len(spans)
    assert "too large" in remark
    spans, remark = syntax.coloured("x" * 10_000, "python")
    assert not len(spans)
    assert "lines too long" in remark


def test_what_takes_too_long_is_coloured_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax, "_TOKENS", 500)
    spans, remark = syntax.coloured("x = 1\n" * 1000, "python")
    assert len(spans)
    assert remark == "coloured in part"


@given(
    st.text(max_size=300), st.sampled_from(["python", "markdown", "diff", "html", "bash", "yaml", "no such"])
)
def test_any_text_gets_colours_within_itself(text: str, name: str) -> None:
    spans, _ = syntax.coloured(text, name)
    at = 0
    for start, end, _ in spans.within(0, len(text) + 10):
        assert at <= start < end <= len(text)
        at = end


# Changed words ----------------------------------------------------------------------------------------------


def test_the_changed_words_stand_out() -> None:
    lines = [("@", "@@ -1 +1 @@"), ("-", "Cursor: line 12 of 80"), ("+", "Cursor: line 40 of 80")]
    text = "\n".join(line for _, line in lines)
    found = item_text.emphasised(lines).within(0, len(text))
    assert [(text[a:b], name) for a, b, name in found] == [("12", "del-word"), ("40", "add-word")]


def test_nothing_stands_out_where_all_is_new() -> None:
    assert item_text.changed_words("The quick brown fox", "Completely other text here") == ([], [])


def test_very_long_lines_are_not_compared() -> None:
    assert item_text.changed_words("a b " * 1000, "a c " * 1000) == ([], [])


LINES = st.lists(
    st.tuples(st.sampled_from("+- @"), st.text(st.characters(exclude_characters="\n"), max_size=30)),
    max_size=12,
)


@given(LINES)
def test_emphasis_lies_on_changed_lines(lines: list[tuple[str, str]]) -> None:
    text = "\n".join(line for _, line in lines)
    at = 0
    for start, end, name in item_text.emphasised(lines).within(0, len(text)):
        assert at <= start < end <= len(text)
        line = text.count("\n", 0, start)
        assert lines[line][0] == ("+" if name == "add-word" else "-")
        assert "\n" not in text[start:end]
        at = end
