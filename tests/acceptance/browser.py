"""A real Chromium, driven through chromedriver; to it, all names under `test` lead to this machine."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-default-apps",
    "--disable-domain-reliability", "--no-proxy-server",
    "--host-resolver-rules=MAP *.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)  # fmt: skip


class Browser:
    """One window."""

    def __init__(self, driver: str, session: str) -> None:
        self._base = f"{driver}/session/{session}"

    def go(self, url: str) -> None:
        _call(f"{self._base}/url", {"url": url})

    def run(self, code: str, *arguments: Any) -> Any:
        """Run an async function's body in the page; what it returns."""
        script = (
            f"const done = arguments[arguments.length - 1]; (async (...args) => {{ {code} }})(...arguments)"
        )
        script += ".then(done, (error) => done('failed: ' + error));"
        return _call(f"{self._base}/execute/async", {"script": script, "args": list(arguments)})


@contextmanager
def browsing(profile: Path) -> Iterator[Browser]:
    """A browser for as long as the `with` runs."""
    assert CHROMIUM is not None
    assert DRIVER is not None
    process = subprocess.Popen(
        [DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        found = None
        while found is None:
            line = process.stdout.readline()
            assert line, "chromedriver did not start"
            found = re.search(r"started successfully on port (\d+)", line)
        driver = f"http://127.0.0.1:{found[1]}"
        options = {"binary": CHROMIUM, "args": [*_FLAGS, f"--user-data-dir={profile}"]}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "timeouts": {"script": 60_000}}
        session = _call(f"{driver}/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        try:
            yield Browser(driver, session)
        finally:
            _call(f"{driver}/session/{session}", None, "DELETE")
    finally:
        process.terminate()
        process.wait(30)


def _call(url: str, body: Any, method: str = "POST") -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=120) as response:
        return json.loads(response.read())["value"]
