"""The page on a dataset: nothing in it runs or is fetched, and what it says is what was asked."""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from ctxctl.cli.main import run
from tests.unit.dataset.dataset_rows import by_chance, dataset

EVIL = "</td><script>alert(1)</script>\x1b[31m\u202e\"'&"


class Read(HTMLParser):
    """Tags, links and texts of a page; fails where a tag is closed that is not open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)


def page_of(folder: Path, rows: Any, *options: str, texts: bool = True) -> str:
    where = dataset(folder / "ds", rows, texts=texts)
    out = folder / "page.html"
    assert run(["fleet", "report", "--dataset", str(where), "-o", str(out), *options]) == 0
    return out.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_of(tmp_path_factory.mktemp("page"), by_chance(1))


def test_its_policy_lets_its_own_style_alone(page: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert policy is not None
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    rules = dict(rule.strip().split(" ", 1) for rule in policy[1].replace("&#x27;", "'").split(";"))
    assert rules == {
        "default-src": "'none'", "style-src": f"'sha256-{digest}'", "base-uri": "'none'",
        "form-action": "'none'",
    }  # fmt: skip


def test_it_names_no_host_and_runs_nothing(page: str) -> None:
    read = Read(page)
    assert {tag for tag, _ in read.tags}.isdisjoint(
        {"script", "img", "link", "iframe", "form", "base", "object"}
    )
    for tag, attributes in read.tags:
        assert not any(name.startswith("on") or name in ("src", "style") for name in attributes), tag
        assert (attributes.get("href") or "#").startswith("#")
    assert "http" not in page.replace("http-equiv", "")


def test_every_link_leads_to_a_place_of_the_page(page: str) -> None:
    read = Read(page)
    places = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    links = {(attributes.get("href") or "")[1:] for tag, attributes in read.tags if tag == "a"}
    assert len(places) == len(set(places))
    assert links <= set(places)
    assert any(link.startswith("s-") for link in links)  # from a question to a session
    assert any(link.startswith("q-") for link in links)


def test_each_question_is_there_with_what_could_not_say_it(page: str) -> None:
    from ctxctl.dataset.questions import ORDER, question

    text = Read(page).text
    for name in ORDER:
        assert question(name).asks in text
    assert "do not say:" in text
    assert "Not asked: it wants a word: ctxctl fleet ask sentence." in text


def test_a_session_has_the_command_that_opens_it(page: str) -> None:
    text = Read(page).text
    assert re.search(r"ctxctl replay /logs/\d+\.jsonl", text)
    assert re.search(r"ctxctl show (')?/logs/\d+\.jsonl@(explorer:)?\d+\.\d", text)
    assert "its path is not kept" in text


def test_only_so_many_sessions_are_listed_and_that_is_said(tmp_path: Path) -> None:
    text = Read(page_of(tmp_path, by_chance(1), "--sessions", "3")).text
    assert re.search(r"\d+ of 120 sessions: the most expensive, and those named above\.", text)


def test_filters_hold_for_all_of_it_and_are_said(tmp_path: Path) -> None:
    text = Read(page_of(tmp_path, by_chance(1), "--project", "shop")).text
    assert "Only project shop." in text
    assert "site" not in re.sub(r"website|besides", "", text)


def test_a_strangers_words_are_text_alone(tmp_path: Path) -> None:
    where = {"session": 1, "source": 2, "month": "2026-08", "format": "native"}
    fact = {**where, "project": EVIL, "client": EVIL, "model": EVIL, "host": "h",
            "started": datetime(2026, 8, 1, tzinfo=UTC)}  # fmt: skip
    step = {**where, "thread": EVIL, "turn": 1, "step": 1, "target": "model", "sent": 9,
            "sent_method": "reported", "limit": 5, "over": 4, "model": EVIL}  # fmt: skip
    stay = {**where, "tool": EVIL, "kind": "tool_result", "tokens": 5, "token_steps": 5, "requests": 1}
    source = {"source": 2, "month": "2026-08", "format": "native", "path": f"/logs/{EVIL}", "sessions": 1}
    page = page_of(tmp_path, {"sources": [source], "sessions": [fact], "steps": [step], "stays": [stay]})
    read = Read(page)
    assert "script" not in {tag for tag, _ in read.tags}
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert read.text.count("</td><script>alert(1)</script>") >= 5


def test_an_empty_dataset_has_a_page_too(tmp_path: Path) -> None:
    text = Read(page_of(tmp_path, {})).text
    assert "0 sessions, 0 requests, cost not recorded." in text
    assert "Nothing of the kind." in text


def test_a_file_that_is_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = dataset(tmp_path / "ds", {})
    out = tmp_path / "page.html"
    out.write_text("mine")
    assert run(["fleet", "report", "--dataset", str(where), "-o", str(out)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert out.read_text() == "mine"
