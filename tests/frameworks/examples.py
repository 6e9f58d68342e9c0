"""Runs the programs of docs/examples against the fake server, as somebody with a key would run them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.frameworks.fake import Fake
from tests.frameworks.session import SECRET

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


def run(name: str, fake: Fake, where: Path, *before: str) -> str:
    """What an example prints; it runs in `where`, and leaves `run.jsonl` there.

    `before`: lines of Python that run first, for what is not installed here.
    """
    program = "\n".join(
        [*before, "import runpy", f"runpy.run_path({str(EXAMPLES / name)!r}, run_name='__main__')"]
    )
    told = {
        "OPENAI_API_KEY": SECRET, "ANTHROPIC_API_KEY": SECRET, "OPENAI_BASE_URL": fake.v1,
        "ANTHROPIC_BASE_URL": fake.url, "OPENAI_AGENTS_DISABLE_TRACING": "0", "HOME": str(where),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=where,
        env={**os.environ, **told},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout
