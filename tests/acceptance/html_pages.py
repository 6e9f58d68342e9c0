"""HTML reports in a real browser: made, opened, walked through, and what the browser has to say of it."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from browser import Browser, _call

ROOT = Path(__file__).resolve().parents[2]

READY = """
    for (let n = 0; n < 400 && document.documentElement.dataset.ready !== 'true'; n += 1) {
      await new Promise((done) => setTimeout(done, 25));
    }
    return [document.documentElement.dataset.ready === 'true', performance.now()];
"""
GO = """
    const [hash] = args;
    document.documentElement.dataset.shown = '';
    location.hash = hash;
    for (let n = 0; n < 400 && document.documentElement.dataset.shown === ''; n += 1) {
      await new Promise((done) => setTimeout(done, 10));
    }
    return document.querySelector('#detail').textContent;
"""
WALK = """
    const [most] = args;
    let seen = 0;
    for (const hash of ['#findings', '#costs', '#problems', '#about', '#no-such-place', '#turn-%zz']) {
      await go(hash); seen += 1;
    }
    const places = [...document.querySelectorAll('#scroll .row')].length;
    for (const n of [0, 1, 2, places - 1]) {
      document.querySelectorAll('#scroll .row')[n]?.click();
      await shown();
      const here = location.hash.replace(/\\/.*$/, '');
      for (const tab of ['/changes', '/items', '/text', '/record']) {
        await go(here + tab); seen += 1;
        for (const button of document.querySelectorAll('#detail button')) button.click();
        for (const part of document.querySelectorAll('.holder')) part.scrollIntoView();
      }
      await go(here + '/items');
      const links = [...document.querySelectorAll('#detail a')].map((a) => a.getAttribute('href'))
        .filter((href) => href.includes('/item/'));
      for (const href of links.slice(0, most)) { await go(href); seen += 1; }
    }
    const select = document.querySelector('#thread');
    if (select) { select.value = '-1'; select.dispatchEvent(new Event('change')); }
    document.querySelectorAll('details').forEach((one) => { one.open = true; });
    const query = document.querySelector('#query');
    for (const words of ['script', '<img', '__proto__']) {
      query.value = words;
      document.querySelector('#search').requestSubmit();
      await new Promise((done) => setTimeout(done, 500));
    }
    for (const key of ['?', 'Escape', 'j', 'k', 'n', 'p', 't', 't', 'G', 'g']) {
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    }
    document.querySelector('#keys').close();
    await new Promise((done) => setTimeout(done, 300));
    return seen;
"""
_HELPERS = """
    const shown = async () => {
      for (let n = 0; n < 400 && document.documentElement.dataset.shown === ''; n += 1) {
        await new Promise((done) => setTimeout(done, 10));
      }
      document.documentElement.dataset.shown = '';
    };
    const go = async (hash) => {
      if (location.hash === hash) return;
      document.documentElement.dataset.shown = '';
      location.hash = hash;
      await shown();
    };
"""


def export(trace: Path, out: Path, *options: str) -> Path:
    """Make a report by the command."""
    command = [sys.executable, "-m", "ctxctl", "export", str(trace), "--format", "html", "-o", str(out)]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


def careless(page: Path, out: Path, *, guarded: bool) -> Path:
    """Write a report whose script takes texts for markup; without its policy, or with one that fits it."""
    text = page.read_text(encoding="utf-8")
    safe = "child instanceof Node ? child : document.createTextNode(String(child))"
    assert safe in text
    text = text.replace(
        safe, "child instanceof Node ? child : document.createRange().createContextualFragment(String(child))"
    )
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    if guarded:
        text = re.sub(r"script-src &#x27;sha256-[^&]*&#x27;", f"script-src &#x27;sha256-{digest}&#x27;", text)
        assert digest in text
    else:
        text, count = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
        assert count == 1
    out.write_text(text, encoding="utf-8")
    return out


class _Anybody(BaseHTTPRequestHandler):
    seen: list[str]

    def do_GET(self) -> None:
        self.seen.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_GET  # noqa: N815 - the base class's name

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def somebody() -> Iterator[tuple[str, list[str]]]:
    """A server and what it was asked for."""
    seen: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (_Anybody,), {"seen": seen}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Told:
    """What a browser tells of a page after a walk through it."""

    def __init__(self, browser: Browser, page: Path, most: int) -> None:
        command(browser, "Emulation.setDeviceMetricsOverride",
                {"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False})  # fmt: skip
        console(browser)
        browser.go(page.as_uri())
        self.ready = browser.run(READY)[0]
        self.steps = browser.run(_HELPERS + WALK, most)
        self.executed = browser.run("return window.executed ?? 0;")
        self.resources = browser.run(
            "return performance.getEntriesByType('resource').map((one) => one.name);"
        )
        self.address = browser.run("return location.href.split('#')[0];")
        self.console = console(browser)


def ruined(browser: Browser, page: Path) -> list[str]:
    """Open a page that may be led away, or stop working, at any moment; what stands in the console."""
    console(browser)
    browser.go(page.as_uri())
    for place in ("#turn-1/items", "#turn-1/text", "#turn-2/record", "#about"):
        with suppress(HTTPError):
            browser.run(f"location.hash = '{place}'; await new Promise((done) => setTimeout(done, 250));")
    return console(browser)


def command(browser: Browser, name: str, parameters: dict[str, Any]) -> Any:
    """Send a command of the DevTools protocol."""
    return _call(f"{browser._base}/goog/cdp/execute", {"cmd": name, "params": parameters})


def console(browser: Browser) -> list[str]:
    """Take what stands in the console: warnings and errors."""
    return [entry["message"] for entry in _call(f"{browser._base}/se/log", {"type": "browser"})]
