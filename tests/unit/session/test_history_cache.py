"""The walk that is kept between runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ctxctl.model.whatif import Limits
from ctxctl.session import Inspector, kept_replays

TRACE = Path(__file__).parents[3] / "traces" / "notes-assistant.jsonl"


def made_under(limits: Limits) -> str | None:
    with Inspector.open(TRACE, limits=limits) as inspector:
        return kept_replays.made_under(inspector.params, inspector.strategy, inspector.edits)


def test_limits_that_say_nothing_are_the_recorded_ones() -> None:
    with Inspector.open(TRACE) as inspector:
        assert made_under(Limits()) == kept_replays.made_under(
            inspector.params, inspector.strategy, inspector.edits
        )


@pytest.mark.parametrize("limits", [Limits(window=20_000), Limits(reserve=0), Limits(max_input=9)], ids=str)
def test_limits_that_are_supposed_are_told_apart(limits: Limits) -> None:
    assert made_under(limits) != made_under(Limits())


@pytest.mark.skipif(sys.platform != "linux", reason="address space is bounded as Linux does it")
def test_what_is_kept_is_read_into_no_more_memory_than_it_has(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_bytes(b"twelve bytes")
    code = (
        "import resource, sys; from pathlib import Path; from ctxctl.trace.cache_files import read_own; "
        "from ctxctl.trace.source import open_source; "
        "resource.setrlimit(resource.RLIMIT_AS, (512 << 20,) * 2); "
        "print(read_own(Path(sys.argv[1]), 1 << 30), read_own(Path(sys.argv[1]), 6)); "
        "print(open_source(sys.argv[1]).read(7, 1 << 30))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(kept)], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("b'twelve bytes' b'twelve'\nb'bytes'\n", "")
