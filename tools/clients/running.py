"""Runs a client's two prompts against the stand-in, by itself and behind `ctxctl record`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tools.clients.held import Held, held
from tools.clients.install import path
from tools.clients.specs import FIRST, SECOND, Spec
from tools.clients.standin import StandIn

ROOT: Final = Path(__file__).resolve().parents[2]
LIMIT: Final = 150.0
_CHANGING: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{20,}|\d+(?:[.,]\d+)*|[0-9A-Za-z_-]{20,}")
"""In what a client prints: ids, times, counts."""
_NOWHERE: Final = "http://127.0.0.1:9"
"""In the place of a proxy of the network: a client that is not led to the stand-in reaches nobody."""


@dataclass
class Outcome:
    """What came of one way of running a client."""

    codes: list[int] = field(default_factory=list)
    output: list[str] = field(default_factory=list)
    errors: str = ""
    held: Held | None = None
    strays: list[str] = field(default_factory=list)
    requests: int = 0


def alone(folder: Path, spec: Spec, work: Path) -> Outcome:
    """Both prompts without `ctxctl`, with the stand-in in the client's own settings."""
    with_server = StandIn()
    try:
        env = {**_machine(folder, spec, work), **spec.own(work / "home", with_server.url)}
        made = _prompts(spec, env, work, [])
        made.requests, made.strays = len(with_server.calls), with_server.strays
        return made
    finally:
        with_server.close()


def recorded(folder: Path, spec: Spec, work: Path, *, own: bool) -> Outcome:
    """Both prompts behind `ctxctl record`, into one trace.

    Args:
        folder: Where the clients are.
        spec: The client.
        work: A directory that is made anew.
        own: The stand-in's address is in the client's own settings; else it is given as `--upstream`.
    """
    server = StandIn()
    trace = work / "run.jsonl"
    try:
        machine = _machine(folder, spec, work)
        env = {**machine, **(spec.own(work / "home", server.url) if own else spec.bare(work / "home"))}
        record = [sys.executable, "-m", "ctxctl", "record", "-q", "--no-redact", "-o", str(trace)]
        if not own:
            url = f"{server.url}/v1" if spec.family == "openai" else server.url
            record += ["--upstream", f"{spec.family}={url}"]
        made = _prompts(spec, env, work, [*record, "--"])
        made.requests, made.strays = len(server.calls), server.strays
        made.held = held(trace, server.calls)
        return made
    finally:
        server.close()


def _machine(folder: Path, spec: Spec, work: Path) -> dict[str, str]:
    """A home and a project of its own, and the environment."""
    shutil.rmtree(work, ignore_errors=True)
    for name in ("home", "project", "tmp"):
        (work / name).mkdir(parents=True)
    (work / "project/notes.txt").write_text("Bees dance.\nBees hum.\nBees sleep.\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q", str(work / "project")], check=True)
    modules = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {
        "HOME": str(work / "home"), "PATH": path(folder, spec), "PYTHONPATH": modules,
        "TERM": "xterm-256color", "LANG": "C.UTF-8", "TMPDIR": str(work / "tmp"),
        "HTTPS_PROXY": _NOWHERE, "HTTP_PROXY": _NOWHERE, "NO_PROXY": "127.0.0.1,localhost",
        "CTXCTL_STATE_DIR": str(work / "state"),
    }  # fmt: skip


def _prompts(spec: Spec, env: Mapping[str, str], work: Path, before: list[str]) -> Outcome:
    made = Outcome()
    for arguments, prompt in ((spec.first, FIRST), (spec.second, SECOND)):
        command = [*before, spec.command, *(one.replace("{prompt}", prompt) for one in arguments)]
        try:
            done = subprocess.run(
                command, cwd=work / "project", env=dict(env), stdin=subprocess.DEVNULL, capture_output=True,
                timeout=LIMIT, start_new_session=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            made.codes.append(-1)
            continue
        made.codes.append(done.returncode)
        made.output.append(plain(done.stdout.decode("utf-8", "replace")))
        made.errors += done.stderr.decode("utf-8", "replace")
    return made


def plain(output: str) -> str:
    """What is printed, without what changes from one run to the next."""
    return _CHANGING.sub("#", output)
