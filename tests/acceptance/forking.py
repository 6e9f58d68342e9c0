"""Starts processes of ``ctxctl`` that need not import it: forks of one that has.

Each is a process of its own all the same, with its arguments, environment, folder and streams, and ends as
an interpreter ends.  What a fork cannot have (a limit of memory, another seed of hashes) is for `subprocess`.

Run as a program, this is the server: it reads requests from a socket, with the streams of each.
"""

from __future__ import annotations

import array
import atexit
import gc
import importlib
import json
import os
import select
import socket
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = sys.platform == "linux"
"""Whether this is done: libraries of macOS do not stand a fork that goes on without another program."""

LENGTH = 8
"""Bytes that say how long a request is."""

USUAL = (
    ("replay", "--json", "traces/notes-assistant.jsonl"),
    ("replay", "--plain", "fixtures/claude_code/session.jsonl"),
    ("validate", "traces/notes-assistant.jsonl"),
    ("show", "traces/notes-assistant.jsonl@2", "--text"),
    ("diff", "traces/notes-assistant.jsonl@1", "@2"),
    ("import", "fixtures/claude_code/session.jsonl", "-o", os.devnull, "--force"),
)
"""Commands whose modules the server imports."""


class Forks:
    """The server, from outside: one for all tests of a run."""

    def __init__(self, env: dict[str, str]) -> None:
        self._socket, there = socket.socketpair()
        with there:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.acceptance.forking", str(there.fileno())],
                cwd=ROOT, env=env, stdin=subprocess.DEVNULL, pass_fds=[there.fileno()],
            )  # fmt: skip
        atexit.register(self.close)

    def close(self) -> None:
        """End it: it ends when nobody can ask it any more."""
        self._socket.close()
        self._process.wait(10)

    def run(
        self, arguments: list[str], env: dict[str, str], cwd: Path, streams: list[IO[Any] | int], limit: float
    ) -> int:
        """Run a command and give its exit code; an error if it takes more than `limit` seconds."""
        answers, answering = os.pipe()
        try:
            request = json.dumps({"arguments": arguments, "env": env, "cwd": str(cwd)}).encode()
            fds = [one if isinstance(one, int) else one.fileno() for one in streams]
            kind, given = socket.SCM_RIGHTS, array.array("i", [*fds, answering])
            head = len(request).to_bytes(LENGTH, "big")
            self._socket.sendmsg([head], [(socket.SOL_SOCKET, kind, given)])
            self._socket.sendall(request)
        finally:
            os.close(answering)
        try:
            told = b""
            end = time.monotonic() + limit
            while select.select([answers], [], [], max(end - time.monotonic(), 0))[0]:
                part = os.read(answers, 100)
                if not part:
                    return int(told.split()[1])
                told += part
            os.kill(int(told.split()[0]), 9)
            raise subprocess.TimeoutExpired(arguments, limit)
        finally:
            os.close(answers)


@cache
def forks() -> Forks:
    """The server of this run."""
    return Forks({**os.environ, "PYTHONPATH": str(ROOT)})


def _received(control: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    head, fds, _, _ = socket.recv_fds(control, LENGTH, 4)
    if not head:
        return None
    size, data = int.from_bytes(head, "big"), b""
    while len(data) < size:
        data += control.recv(size - len(data))
    return json.loads(data), fds


def _modules_of(arguments: tuple[str, ...]) -> list[str]:
    """The modules that a command has imported at its end, in their order."""
    readable, writable = os.pipe()
    if os.fork() == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        from ctxctl.cli.main import run

        run(list(arguments))
        with os.fdopen(writable, "w") as out:
            out.write("\n".join(sys.modules))
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as told:
        names = told.read().split("\n")
    os.wait()
    return names


def _become(request: dict[str, Any], fds: list[int]) -> None:
    """Be the process that was asked for."""
    for number, fd in enumerate(fds[:3]):
        os.dup2(fd, number)
    for fd in fds:
        os.close(fd)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    sys.argv = [str(ROOT / "ctxctl" / "__main__.py"), *request["arguments"]]
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)


def main() -> int:
    """Serve until nobody asks any more; in a fork, be the command."""
    for arguments in USUAL:
        for name in _modules_of(arguments):
            if name.startswith("ctxctl"):
                importlib.import_module(name)
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as control:
        while asked := _received(control):
            request, fds = asked
            pid = os.fork()
            if pid == 0:
                control.close()
                _become(request, fds)
                from ctxctl.__main__ import main as command

                return command()
            os.write(fds[3], b"%d " % pid)
            _, status = os.waitpid(pid, 0)  # one after the other, as the tests of a run are
            os.write(fds[3], b"%d" % os.waitstatus_to_exitcode(status))
            for fd in fds:
                os.close(fd)
    return 0


if __name__ == "__main__":
    sys.exit(main())
