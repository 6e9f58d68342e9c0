"""Runs the command line as a user does, in a process of its own, and holds every run to the same manners."""

from __future__ import annotations

import json
import os
import re
import resource
import select
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.acceptance import forking

Json = dict[str, Any]
ROOT = Path(__file__).resolve().parent.parent.parent
COMMAND = [sys.executable, "-m", "ctxctl"]
LIMIT = 60
"""Seconds after which a run counts as hung; none of them should need two."""

PROBLEM = re.compile(
    r"^(?P<file>.+?):(?:(?P<line>\d+): byte (?P<byte>\d+):)? (?P<slug>[a-z0-9-]+): (?P<text>\S.*)$"
)
MORE = re.compile(r"^.+: [\d,]+ more problems? not shown \([\d,]+ in all\)$")
BIDI = set(range(0x202A, 0x202F)) | set(range(0x2066, 0x206A)) | {0x061C, 0x200E, 0x200F}


@dataclass(frozen=True)
class Place:
    """A problem as a run told it."""

    line: int
    byte: int
    slug: str


@dataclass(frozen=True)
class Done:
    """One finished run."""

    arguments: tuple[str, ...]
    code: int
    stdout: bytes
    stderr: bytes

    @property
    def out(self) -> str:
        return self.stdout.decode()

    @property
    def err(self) -> str:
        return self.stderr.decode()

    @property
    def lines(self) -> list[Json]:
        """Standard output as lines of JSON."""
        return [json.loads(line) for line in self.stdout.splitlines()]

    def of_type(self, kind: str) -> list[Json]:
        return [line for line in self.lines if line["type"] == kind]

    @property
    def told(self) -> list[Place]:
        """The problems that standard error tells."""
        found = [PROBLEM.match(line) for line in self.err.splitlines()]
        return [Place(int(m["line"] or 0), int(m["byte"] or 0), m["slug"]) for m in found if m]

    @property
    def reported(self) -> list[Place]:
        """The problem lines of ``--json``."""
        return [Place(p["line"], p["byte"], p["slug"]) for p in self.of_type("problem")]


@cache
def _counts() -> tempfile.TemporaryDirectory[str]:
    """One cache of counts for all runs: loading an encoding takes longer than all the rest."""
    return tempfile.TemporaryDirectory(prefix="ctxctl-acceptance-")


def environment(**changes: str | None) -> dict[str, str]:
    """The isolated environment of the suite with some variables changed, or (None) taken out."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "CTXCTL_CACHE_DIR": os.path.join(_counts().name, "ctxctl")}
    env.pop("PYTHONUNBUFFERED", None)
    for name, value in changes.items():
        env.pop(name, None)
        if value is not None:
            env[name] = value
    return env


def ctxctl(
    *arguments: str | Path,
    data: bytes | None = None,
    env: dict[str, str | None] | None = None,
    cwd: Path | None = None,
    memory: int | None = None,
    mannered: bool = True,
    stdin: Any = subprocess.DEVNULL,
    stdout: Any = subprocess.PIPE,
) -> Done:
    """Run ``ctxctl ARGUMENTS``; `data` is its standard input, `memory` its address space in bytes."""

    def bounded() -> None:
        assert memory is not None
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    piped = data is not None or stdin != subprocess.DEVNULL or stdout != subprocess.PIPE
    python_s = any(name.startswith(("PYTHON", "LC_", "LANG")) for name in env or ())
    if forking.HERE and not piped and not python_s and memory is None:
        done = _forked(tuple(map(str, arguments)), environment(**(env or {})), cwd or ROOT)
        if mannered:
            assert_mannered(done)
        return done
    given: Json = {"input": data} if data is not None else {"stdin": stdin}
    if memory is not None:
        given["preexec_fn"] = bounded
    finished = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        env=environment(**(env or {})),
        cwd=cwd or ROOT,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=LIMIT,
        check=False,
        **given,
    )
    done = Done(tuple(map(str, arguments)), finished.returncode, finished.stdout or b"", finished.stderr)
    if mannered:
        assert_mannered(done)
    return done


def _forked(arguments: tuple[str, ...], env: dict[str, str], cwd: Path) -> Done:
    """Run it as a fork of a process that has imported it: most of a short run is importing."""
    with open(os.devnull, "rb") as nothing, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        code = forking.forks().run(list(arguments), env, cwd, [nothing, out, err], LIMIT)
        out.seek(0)
        err.seek(0)
        return Done(arguments, code, out.read(), err.read())


def shell(script: str, *values: str | Path, **env: str | None) -> Done:
    """Run a line of shell in which ``ctxctl`` is the program and ``$1``, ``$2`` … are the values."""
    prelude = 'set -o pipefail; ctxctl() { "$PYTHON" -m ctxctl "$@"; }; '
    command = ["bash", "-c", prelude + script, "bash", *map(str, values)]
    finished = subprocess.run(
        command,
        env=environment(PYTHON=sys.executable, **env),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )
    done = Done((script,), finished.returncode, finished.stdout, finished.stderr)
    assert_mannered(done)
    return done


def on_terminal(*arguments: str | Path, env: dict[str, str | None] | None = None) -> Done:
    """Run with a pseudo-terminal of 80 columns as all three streams; all output counts as stdout."""
    import fcntl
    import pty
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        env=environment(COLUMNS=None, LINES=None, **(env or {})),
        cwd=ROOT,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    seen = b""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        if not select.select([master], [], [], 0.2)[0]:
            if process.poll() is not None:
                break
            continue
        try:
            data = os.read(master, 1 << 16)
        except OSError:
            break
        if not data:
            break
        seen += data
    os.close(master)
    if process.poll() is None and time.monotonic() >= deadline:
        process.kill()
    code = process.wait(timeout=LIMIT)
    return Done(tuple(map(str, arguments)), code, seen.replace(b"\r\n", b"\n"), b"")


def assert_mannered(done: Done) -> None:
    """What holds for every run whatever it was given: no traceback, nothing that drives a terminal."""
    everything = done.stdout + b"\n" + done.stderr
    context = (done.arguments, done.code, done.stderr[-2000:])
    assert b"Traceback" not in everything, context
    assert b"bug in ctxctl" not in everything, context
    assert b"panicked" not in everything, context
    assert done.code in (0, 1, 2, 3, 4, 130), context
    assert_printable(done.stdout, done.arguments)
    assert_printable(done.stderr, done.arguments)


def assert_printable(data: bytes, context: object) -> None:
    """UTF-8 without a control character but the line end, without C1 and without bidi controls."""
    text = data.decode()  # raises on a lone surrogate or stray byte
    bad = {
        f"U+{ord(c):04X}" for c in text if (c < " " and c != "\n") or "\x7f" <= c <= "\x9f" or ord(c) in BIDI
    }
    assert not bad, (context, sorted(bad))


def assert_error(done: Done, code: int, *says: str) -> None:
    """One line that says what is wrong, perhaps one that says what to do, the exit code, and no data."""
    assert done.code == code, (done.arguments, done.code, done.err)
    first, *rest = done.err.splitlines()
    assert first.startswith("ctxctl: error: "), done.err
    assert len(rest) <= 1, done.err
    assert all(line.startswith("hint: ") for line in rest), done.err
    for word in says:
        assert word in done.err, (word, done.err)
    assert done.stdout == b"", (done.arguments, done.stdout[:500])
