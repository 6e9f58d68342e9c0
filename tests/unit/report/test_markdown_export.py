"""The markdown report: small enough for GitHub, and no text of a trace is markup in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ctxctl.cli.main import run
from ctxctl.report.markdown import code, table
from tests.unit.report.page_help import exported
from tests.unit.testing.sessions_help import events, item, written_trace

ROOT = Path(__file__).parents[3]
DEMOS = sorted((ROOT / "traces").glob("*.jsonl"))
HOSTILE = ROOT / "tests" / "golden" / "traces" / "hostile.jsonl"
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
OWN = re.compile(r"</?details>\s*|<summary>[\w\s+~=∅:,.;\u2212-]*</summary>\s*")
ATTACKS = [
    "@octocat", "#1", "owner/repo#2", "https://evil.example/x", "www.evil.example", "me@evil.example",
    "**bold**", "`tick`", "``", "`" * 100, "a|b", "|", "\\", "a\\|b", "[x](javascript:alert(1))", "![x](//e)",
    "<img src=x>", "</details>", "\n\n# head\n", "- [ ] task", "~~gone~~", "&lt;b&gt;", ":+1:", "$x$",
    "> quote", "\u202eevil", "\x00\x1b[31m", "", " ", "`a", "a`", "1" * 5000,
]  # fmt: skip


def flat(tokens: list[Token]) -> list[Token]:
    return [one for token in tokens for one in (token, *flat(token.children or []))]


def nothing_is_markup(text: str) -> None:
    """Fail if anything but our own words stands outside of code."""
    for token in flat(MARKDOWN.parse(text)):
        assert token.type not in (
            "html_inline",
            "image",
            "link_open",
            "fence",
            "code_block",
            "blockquote_open",
        )
        if token.type == "html_block":
            assert OWN.sub("", token.content) == "", token.content
        if token.type == "text":
            assert not re.search(r"@|#\d|https?:|www\.|://", token.content), token.content


@pytest.mark.parametrize("path", [*DEMOS, HOSTILE], ids=lambda path: path.stem)
def test_only_our_own_words_are_markup(path: Path) -> None:
    text = exported(path, "markdown").decode()
    nothing_is_markup(text)
    assert len(text) <= 65_536
    assert exported(path, "markdown").decode() == text


def test_every_field_may_be_hostile(tmp_path: Path) -> None:
    for first in range(0, len(ATTACKS), 8):
        lines = []
        for n, attack in enumerate(ATTACKS[first : first + 8]):
            items = [item(f"{n}{attack}", f"words {attack}", kind=attack or "x", title=attack)]
            lines += events(items, f"t{n}{attack}")
            lines[-1]["thread_id"] = lines[-2]["thread_id"] = f"{n}{attack}"
        text = exported(written_trace(tmp_path, lines, "a`b|c@d#1.jsonl"), "markdown").decode()
        nothing_is_markup(text)
        assert text.count("<details>") > 8
        assert first or "octocat" in text


@given(
    st.one_of(st.sampled_from(ATTACKS), st.text(alphabet="`|\\ a\n<@#", max_size=30), st.text(max_size=40))
)
def test_a_text_in_a_cell_is_one_code_span(text: str) -> None:
    shown = "\n".join(table(["a", "b"], [[code(text), code("next")]]))
    cells = [token for token in MARKDOWN.parse(shown) if token.type == "inline"][2:]
    assert len(cells) == 2
    assert [[child.type for child in cell.children or []] for cell in cells] == [["code_inline"]] * 2


def test_a_long_report_says_what_it_left_out(tmp_path: Path) -> None:
    lines = []
    for n in range(12):
        lines += events(
            [item(f"{n}-{k}-{'x' * 70}", "words", title=f"{k} {'y' * 115}") for k in range(60)], f"t{n}"
        )
    text = exported(written_trace(tmp_path, lines), "markdown").decode()
    assert 55_000 < len(text) <= 65_536
    assert "Left out, for GitHub takes 65,536 characters: turns" in text
    assert text.count("<details>") == text.count("</details>")


def test_turns_narrow_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(DEMOS[0])
    assert run(["export", path, "--format", "markdown", "--turn", "3..4"]) == 0
    text = capsys.readouterr().out
    assert "| steps | 5 in 2 turns |" in text
    assert "Compactions" not in text
    assert re.findall(r"<summary>Turn (\d+)", text) == ["4", "3"]
    assert run(["export", path, "--format", "markdown", "--turn", "99"]) == 2
    assert "no turn 99" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--format", "html", "--turn", "3"], "--turn means nothing to --format html"),
        (["--format", "markdown", "--max-content", "1M"], "--max-content means nothing"),
        (["--policy", "recorded"], "--policy means nothing to --format events"),
        (["--format", "html", "--max-content", "many"], "not a size"),
        (["--format", "pdf"], "there is no export called 'pdf'"),
    ],
)
def test_an_option_that_means_nothing_is_refused(
    options: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", str(DEMOS[0]), "-o", str(tmp_path / "x"), *options]) == 2
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
