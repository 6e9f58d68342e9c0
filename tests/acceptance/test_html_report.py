"""The HTML report of hostile traces in a real browser: nothing is executed, fetched or complained of.

The same pages with their guards taken away do execute and fetch, or the test would prove nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import CHROMIUM, DRIVER, Browser, browsing
from html_hostile import listed, spoilt, strings
from html_pages import GO, READY, ROOT, Told, careless, command, console, export, ruined, somebody

from ctxctl.text import visible
from tools.bench.generate import deep

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None, reason="chromium or chromedriver is not installed"
    ),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def test_a_hostile_trace_executes_and_fetches_nothing(browser: Browser, tmp_path: Path) -> None:
    with somebody() as (there, asked):
        trace = spoilt(
            ROOT / "traces" / "retrieval-agent.jsonl", strings(there), tmp_path / "t<img src=x>.jsonl"
        )
        page = export(trace, tmp_path / "report.html")

        told = Told(browser, page, most=8)
        assert (told.ready, told.executed, told.resources, told.console) == (True, 0, [], [])
        assert told.address == page.as_uri()
        assert isinstance(told.steps, int), told.steps
        assert told.steps > 20
        assert asked == []

        # The attacks do arrive where nothing stops them ...
        ruined(browser, careless(page, tmp_path / "careless.html", guarded=False))
        assert "/ran" in asked
        assert len(set(asked) - {"/ran", "/meta", "/favicon.ico"}) > 1

        # ... and the policy alone stops them too, and says so.
        asked.clear()
        said = ruined(browser, careless(page, tmp_path / "guarded.html", guarded=True))
        assert set(asked) <= {"/meta", "/favicon.ico"}  # going elsewhere is no fetch to a policy
        assert any("Content Security Policy" in line for line in said)


def test_texts_are_shown_as_they_stand(browser: Browser, tmp_path: Path) -> None:
    attacks = strings("http://127.0.0.1:9")
    page = export(listed(attacks, tmp_path / "t.jsonl"), tmp_path / "report.html")
    browser.go(page.as_uri())
    assert browser.run(READY)[0]
    for n, attack in enumerate(attacks):
        browser.run(GO, f"#turn-1/item/{n}")
        shown = browser.run("return document.querySelector('#detail pre.text').textContent;")
        expected = visible(attack.replace("\ud800", "\ufffd"), newline=True)
        assert shown.replace("\t", "    ") == expected.replace("\t", "    ")
    assert console(browser) == []


def test_every_code_point_is_shown_as_on_a_terminal(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "visible.html"
    code = (ROOT / "ctxctl" / "report" / "html" / "assets" / "text.js").read_text(encoding="utf-8")
    path.write_text("<!doctype html><title>x</title>", encoding="utf-8")
    browser.go(path.as_uri())
    changed = browser.run(
        code
        + """
        const changed = [];
        for (let code = 0; code < 0x110000; code += 1) {
          const one = String.fromCodePoint(code);
          if (visible(one) !== one) changed.push([code, code >= 0xd800 && code < 0xe000 ? '' : visible(one)]);
        }
        return changed;
        """
    )
    assert [code for code, _ in changed] == [n for n in range(0x110000) if visible(chr(n)) != chr(n)]
    for point, shown in changed:
        assert not shown or shown == visible(chr(point))


def test_it_is_used_by_keys_alone(browser: Browser, tmp_path: Path) -> None:
    page = export(ROOT / "traces" / "coding-agent.jsonl", tmp_path / "report.html")
    browser.go(page.as_uri())
    assert browser.run(READY)[0]

    def press(key: str) -> str:
        script = """
            const event = new KeyboardEvent('keydown', { key: args[0], bubbles: true });
            document.activeElement.dispatchEvent(event);
            await new Promise((done) => setTimeout(done, 250));
            return location.hash;
        """
        return str(browser.run(script, key))

    assert press("j") == "#turn-1.2"
    assert press("k") == "#turn-1.1"
    assert press("n") == "#turn-4.1"
    assert press("G") == "#turn-15.2"
    assert press("2") == "#turn-15.2/items"
    press("?")
    assert browser.run("return document.querySelector('#keys').open;") is True
    browser.run("document.querySelector('#keys').close();")
    press("/")
    assert browser.run("return document.activeElement.id;") == "query"
    found = browser.run(
        """
        document.querySelector('#query').value = 'gauge';
        document.querySelector('#search').requestSubmit();
        await new Promise((done) => setTimeout(done, 800));
        return document.querySelectorAll('.hits li').length;
        """
    )
    assert found > 3
    assert console(browser) == []


@pytest.mark.parametrize("size", [(1280, 800), (400, 800)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_window(
    browser: Browser, tmp_path: Path, size: tuple[int, int], scheme: str
) -> None:
    trace = spoilt(
        ROOT / "traces" / "notes-assistant.jsonl", strings("http://127.0.0.1:9"), tmp_path / "t.jsonl"
    )
    page = export(trace, tmp_path / "report.html")
    width, height = size
    command(browser, "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})  # fmt: skip
    command(
        browser,
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )
    browser.go(page.as_uri())
    assert browser.run(READY)[0]
    for place in ("#turn-2/changes", "#turn-2/items", "#turn-2/text", "#turn-2/item/3", "#costs", "#about"):
        browser.run(GO, place)
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth;"), place
    dark = browser.run("return getComputedStyle(document.body).backgroundColor;")
    assert (dark == "rgb(255, 255, 255)") == (scheme == "light")
    command(browser, "Emulation.setEmulatedMedia", {"media": "print"})
    assert browser.run("return getComputedStyle(document.body).backgroundColor;") == "rgb(255, 255, 255)"
    command(browser, "Emulation.setEmulatedMedia", {"media": "", "features": []})


def test_an_old_browser_is_told(browser: Browser, tmp_path: Path) -> None:
    page = export(ROOT / "traces" / "notes-assistant.jsonl", tmp_path / "report.html")
    made = command(
        browser, "Page.addScriptToEvaluateOnNewDocument", {"source": "delete window.DecompressionStream;"}
    )
    browser.go(page.as_uri())
    assert "DecompressionStream" in browser.run("return document.querySelector('#notice').textContent;")
    command(browser, "Page.removeScriptToEvaluateOnNewDocument", made)


def test_a_long_session_is_opened_piece_by_piece(browser: Browser, tmp_path: Path) -> None:
    trace = tmp_path / "long.jsonl"
    trace.write_bytes(b"".join(deep(1000, 60)))
    page = export(trace, tmp_path / "report.html")
    count = """
        window.unpacked = 0;
        const Own = window.DecompressionStream;
        window.DecompressionStream = class extends Own { constructor(f) { super(f); window.unpacked += 1; } };
    """
    made = command(browser, "Page.addScriptToEvaluateOnNewDocument", {"source": count})
    browser.go(page.as_uri())
    assert browser.run(READY)[0]
    blocks = len(re.findall(rb'type="application/octet-stream"', page.read_bytes()))
    assert blocks > 8
    assert browser.run("return window.unpacked;") == 3  # the index, the rows, the run of the first step
    assert browser.run("return document.querySelectorAll('#scroll .row').length;") < 60
    assert "Turn 990, step 1" in browser.run(GO, "#turn-990/items")
    assert browser.run("return window.unpacked;") == 4
    browser.run(GO, "#turn-990/item/20")
    assert browser.run("return window.unpacked;") == 5
    assert console(browser) == []
    command(browser, "Page.removeScriptToEvaluateOnNewDocument", made)


@pytest.mark.corpus
def test_published_attacks(corpus: Path, browser: Browser, tmp_path: Path) -> None:
    suites = corpus / "suites"
    attacks = json.loads((suites / "big-list-of-naughty-strings" / "blns.json").read_text(encoding="utf-8"))
    for path in sorted((suites / "xss-payload-list" / "Intruder").iterdir()):
        attacks += path.read_text(encoding="utf-8", errors="replace").splitlines()[::7]
    page = export(listed(attacks, tmp_path / "t.jsonl"), tmp_path / "report.html")
    told = Told(browser, page, most=1)
    assert (told.ready, told.resources, told.console) == (True, [], [])
    assert told.address == page.as_uri()
