"""Pages in a real browser against every port that a recording opens: nothing is written, nothing is read.

The same pages reach a server that lets everybody in, or the test would prove nothing.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from browser import CHROMIUM, DRIVER, Browser, browsing

ROOT = Path(__file__).resolve().parents[2]
CANARY = "canary-" + "5d81c2"
BODY = '{"call":"item","item_id":"planted","content":"planted"}'

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None, reason="chromium or chromedriver is not installed"
    ),
]

ATTACK = """
    const [url, body, tag] = args;
    const at = (name) => url + "?" + tag + "-" + name;
    const told = {};
    const read = async (name, options) => {
      try {
        const response = await fetch(at(name), options);
        told[name] = [response.status, await response.text()];
      } catch (error) { told[name] = [0, String(error)]; }
    };
    const type = (kind) => ({ "Content-Type": kind });
    await read("get", {});
    await read("get-no-cors", { mode: "no-cors" });
    await read("post-text", { method: "POST", mode: "no-cors", headers: type("text/plain"), body });
    const urlencoded = type("application/x-www-form-urlencoded");
    await read("post-form", { method: "POST", mode: "no-cors", headers: urlencoded, body });
    const fields = new FormData();
    fields.set("x", body);
    await read("post-multipart", { method: "POST", mode: "no-cors", body: fields });
    await read("post-json", { method: "POST", headers: type("application/json"), body });
    await read("post-ndjson", { method: "POST", headers: type("application/x-ndjson"), body });
    await read("post-protobuf", { method: "POST", headers: type("application/x-protobuf"), body });
    await read("post-untyped", { method: "POST", mode: "no-cors", body: new Blob([body]) });
    await read("put", { method: "PUT", headers: type("application/json"), body });
    told["beacon-text"] = navigator.sendBeacon(at("beacon-text"), body);
    const json = new Blob([body], { type: "application/json" });
    told["beacon-json"] = navigator.sendBeacon(at("beacon-json"), json);
    const shown = (element, name) => new Promise((resolve) => {
      element.onload = () => { told[name] = ["loaded"]; resolve(); };
      element.onerror = () => { told[name] = ["error"]; resolve(); };
      element.src = at(name);
      document.body.append(element);
    });
    await shown(new Image(), "image");
    await shown(document.createElement("script"), "script");
    const frame = document.createElement("iframe");
    frame.name = "target";
    document.body.append(frame);
    const form = document.createElement("form");
    Object.assign(form, { method: "POST", enctype: "text/plain", action: at("form"), target: "target" });
    const field = document.createElement("input");
    Object.assign(field, { name: body.slice(0, -2) + ',"x":"', value: '"}' });
    form.append(field);
    document.body.append(form);
    await new Promise((resolve) => { frame.onload = resolve; form.submit(); setTimeout(resolve, 2000); });
    await new Promise((resolve) => {
      const socket = new WebSocket(at("socket").replace("http", "ws"));
      socket.onopen = () => { told.socket = ["open"]; resolve(); };
      socket.onerror = () => { told.socket = ["error"]; resolve(); };
    });
    await new Promise((resolve) => setTimeout(resolve, 300));
    return told;
"""


class Anybody(BaseHTTPRequestHandler):
    """Lets everybody in: the attacker's own pages, and the control that shows that an attack arrives."""

    seen: list[tuple[str, str, bytes]]

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.seen.append((self.command, self.path, body))
        text = f"<!doctype html><title>x</title><body>{CANARY}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = _answer  # noqa: N815 - the base class's names

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def anybody() -> Iterator[tuple[int, list[tuple[str, str, bytes]]]]:
    seen: list[tuple[str, str, bytes]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Anybody,), {"seen": seen}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port, seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def recording(out: Path, *options: str, **environment: str) -> Iterator[tuple[int, Path]]:
    """A recording; the port it listens on, and the file of what it says."""
    said = out.with_suffix(".said")
    command = [sys.executable, "-m", "ctxctl", "record", *options, "--port", "0", "-o", str(out)]
    with said.open("w") as errors:
        child = subprocess.Popen(command, stderr=errors, cwd=ROOT, env={**os.environ, **environment})
    try:
        found = None
        end = time.monotonic() + 60
        while found is None:
            assert time.monotonic() < end
            assert child.poll() is None, said.read_text()
            found = re.search(r"http://(?:127\.0\.0\.1|localhost):(\d+)", said.read_text())
            time.sleep(0.05)
        yield int(found[1]), said
    finally:
        child.terminate()
        child.wait(60)


def _attacked(browser: Browser, page: int, target: int, path: str, tag: str) -> tuple[Any, Any]:
    """What a page of another site was told, and what a page whose name was rebound to the target was."""
    browser.go(f"http://evil.test:{page}/")
    cross = browser.run(ATTACK, f"http://127.0.0.1:{target}{path}", BODY, f"{tag}-cross")
    # A rebound page has the target's own port in its origin: its address now leads to the target.
    browser.go(f"http://rebind.test:{target}{path}")
    assert browser.run("return location.origin") == f"http://rebind.test:{target}"
    rebound = browser.run(ATTACK, f"http://rebind.test:{target}{path}", BODY, f"{tag}-rebound")
    assert isinstance(cross, dict), cross
    assert isinstance(rebound, dict), rebound
    return cross, rebound


def test_pages_reach_whoever_lets_everybody_in(tmp_path: Path) -> None:
    with anybody() as (page, _), anybody() as (control, seen), browsing(tmp_path / "profile") as browser:
        cross, rebound = _attacked(browser, page, control, "/v1/events", "x")
    arrived = {path.partition("?")[2]: (method, body) for method, path, body in seen}
    for name in ("post-text", "post-form", "beacon-text", "form", "post-untyped"):
        method, body = arrived[f"x-cross-{name}"]
        assert method == "POST"
        assert b"planted" in body
    for name in ("get", "image", "script", "socket"):
        assert f"x-cross-{name}" in arrived
    assert cross["get"][0] == 0  # sent, but a browser keeps the answer from the page
    for name in ("get", "post-text", "post-json", "post-ndjson", "put"):
        assert rebound[name][0] == 200
        assert CANARY in rebound[name][1]
        assert f"x-rebound-{name}" in arrived


def _own(port: int, path: str, body: Any) -> int:
    """What a program of this machine sends, and the answer's status."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        return int(response.status)


def test_a_receiver_lets_no_page_write_or_read(tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    with anybody() as (page, _), recording(out, "--otlp", "--events") as (port, said):
        assert _own(port, "/v1/events", {"call": "item", "item_id": "own", "content": CANARY}) == 200
        kept = out.read_bytes()
        assert CANARY.encode() in kept
        with browsing(tmp_path / "profile") as browser:
            for path in ("/v1/events", "/v1/traces", "/"):
                _nothing_gained(*_attacked(browser, page, port, path, "x"))
        assert out.read_bytes() == kept
        told = said.read_text()
    # They did arrive, and were sent away.
    assert "Origin header" in told or "Sec-Fetch-Site" in told
    assert "Host header" in told
    assert b"planted" not in out.read_bytes()


def test_the_proxy_lets_no_page_ask_record_or_read(tmp_path: Path) -> None:
    out, path = tmp_path / "t.jsonl", "/v1/chat/completions"
    with anybody() as (page, _), anybody() as (upstream, asked):
        there = f"http://127.0.0.1:{upstream}/v1"
        with recording(out, "--proxy", OPENAI_BASE_URL=there) as (port, _):
            assert _own(port, path, {"model": "m", "messages": [{"role": "user", "content": "own"}]}) == 200
            assert [one[1] for one in asked] == [path]
            with browsing(tmp_path / "profile") as browser:
                _nothing_gained(*_attacked(browser, page, port, path, "x"))
        assert len(asked) == 1
    assert b"own" in out.read_bytes()
    assert b"planted" not in out.read_bytes()


def _nothing_gained(cross: Any, rebound: Any) -> None:
    for told in (cross, rebound):
        assert CANARY not in json.dumps(told)
        for name in ("image", "script", "socket"):
            assert told[name] == ["error"], (name, told[name])
    for name, answer in cross.items():
        if not isinstance(answer, bool):
            assert answer[0] in (0, "error"), (name, answer)
    for name, answer in rebound.items():
        if not isinstance(answer, bool) and answer[0] != "error":
            assert answer[0] in (0, 400, 403, 421), (name, answer)
