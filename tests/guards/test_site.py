"""The documentation as a site: each page has its place, and no page makes a browser ask another host.

`make site` builds it, and checks anchors as well; here nothing is built.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts import docs_site
from scripts.docs_site import POLICY, SiteError, assemble, foreign, forgotten, loads_of, pages, rewritten

SAFE = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
IN_A_LIST = re.compile(r"^ {1,3}(?:\||```|\S)")


def test_each_page_has_a_place_in_the_navigation(monkeypatch: pytest.MonkeyPatch) -> None:
    assert forgotten() == []
    monkeypatch.delitem(docs_site.SECTIONS["Checks"], "Lint")
    assert forgotten() == ["docs/lint.md"]


def test_every_link_of_a_page_leads_to_a_file_of_the_site(tmp_path: Path) -> None:
    assemble(tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")} == set(pages().values())
    count = 0
    for path in tmp_path.rglob("*.md"):
        for _, _, address in docs_site._LINK.findall(path.read_text(encoding="utf-8")):
            if "://" not in address and not address.startswith("#"):
                assert (path.parent / address.partition("#")[0]).is_file(), f"{path.name}: {address}"
                count += 1
    assert count > 300


def test_links_are_rewritten_outside_of_code_only() -> None:
    text = "See [the *tour*](docs/ui.md#keys), ![a](docs/screenshots/diff.svg), [traces](traces), [x](https://e.org).\n"
    said = rewritten(text, "README.md")
    assert said == "See [the *tour*](ui.md#keys), ![a](screenshots/diff.svg), traces, [x](https://e.org).\n"
    fenced = "```sh\n[a](docs/ui.md)\n```\n"
    assert rewritten(fenced, "README.md") == fenced
    assert rewritten("[a](../README.md)\n", "docs/ui.md") == "[a](index.md)\n"
    assert rewritten("[a](../lint.md)\n", "docs/formats/README.md") == "[a](../lint.md)\n"
    with pytest.raises(SiteError, match=r"docs/nowhere\.md, which is not there"):
        rewritten("[a](docs/nowhere.md)\n", "README.md")


def test_tables_and_lists_read_as_on_github() -> None:
    assert rewritten("| `A\\|B` | x \\| y |\n", "README.md") == "| `A|B` | x \\| y |\n"
    assert rewritten("What:\n- a\n- b\n", "README.md") == "What:\n\n- a\n- b\n"


def test_blocks_in_lists_are_as_far_in_as_the_site_wants_them() -> None:
    """Four blanks: with fewer a block ends the list there, and on GitHub it does not."""
    for path in pages():
        fenced, before = False, "x"
        for number, line in enumerate((docs_site.ROOT / path).read_text(encoding="utf-8").splitlines(), 1):
            outside = not fenced
            if line.lstrip().startswith("```"):
                fenced = not fenced
            if outside and not before.strip():
                assert not IN_A_LIST.match(line), f"{path}:{number}"
            before = line


@pytest.mark.parametrize(
    "loads",
    [
        '<img src="https://e.org/a.png">',
        '<script src="//e.org/a.js"></script>',
        '<link rel="stylesheet" href="https://e.org/a.css">',
        '<link rel="preconnect" href="https://e.org">',
        '<iframe src="HTTP://e.org"></iframe>',
        '<p style="background: url(https://e.org/a.png)">',
        '<style>@import "https://e.org/a.css";</style>',
        "<style>@font-face { src: url('//e.org/a.woff2') }</style>",
    ],
)
def test_what_a_page_loads_from_elsewhere_is_found(loads: str) -> None:
    (found,) = foreign("a.html", SAFE + loads)
    assert "e.org" in found


def test_what_a_page_holds_itself_or_links_to_is_fine(tmp_path: Path) -> None:
    page = SAFE + '<img src="a.png"><a href="https://e.org">there</a><link rel="stylesheet" href="../a.css">'
    assert list(foreign("a.html", page)) == []
    assert list(foreign("a.html", page.replace("default-src", "x"))) == [
        "a.html: does not forbid other hosts"
    ]
    (tmp_path / "a.css").write_text("p { background: url(https://e.org/a.png) }")
    (tmp_path / "a.svg").write_text(
        '<svg><image href="a.png"/><style>@import url(//e.org/b.css)</style></svg>'
    )
    assert loads_of(tmp_path) == ["a.css: loads https://e.org/a.png", "a.svg: loads //e.org/b.css"]
