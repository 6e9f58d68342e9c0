"""The UI over a made-up trace, as a process of its own: `child.py WHAT`."""

from __future__ import annotations

import sys
import time
from typing import Any

from fake import FakeInspector, notes_agent, unreadable

from ctxctl.tui import app


class Slow(FakeInspector):
    """A trace that takes a minute to read and does not look up meanwhile."""

    def outline(self, progress: Any = None) -> Any:
        time.sleep(60)
        return super().outline(progress)


def main(what: str) -> int:
    if what == "crash":

        def crash(self: Any, by: int) -> None:
            secret = "SECRET of the trace"
            raise ValueError(secret)

        app.TurnsScreen.action_turn = crash  # type: ignore[method-assign]
    if what == "hostile":
        from test_tui_hostile import hostile

        return app.run(hostile, "hostile.jsonl")  # type: ignore[arg-type]
    if what == "unreadable":

        def fail() -> Any:
            raise unreadable("no readable event in \x1b]0;x\x07")

        return app.run(fail, "x.jsonl")
    kind = Slow if what == "slow" else FakeInspector
    return app.run(lambda: kind(notes_agent()), "made-up.jsonl")  # type: ignore[arg-type,return-value]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
