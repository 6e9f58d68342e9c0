"""The UI over a made-up trace, as a process of its own: `child.py WHAT [MORE...]`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Any
from weakref import WeakSet

from fake import FakeInspector, notes_agent, unreadable

from ctxctl.tui import app, literal


class Slow(FakeInspector):
    """A trace that takes a minute to read and does not look up meanwhile."""

    def outline(self, progress: Any = None) -> Any:
        time.sleep(60)
        return super().outline(progress)


def crash(self: Any, by: int) -> None:
    """What a bug does."""
    secret = "SECRET of the trace"
    raise ValueError(secret)


def panic(self: Any, by: int) -> None:
    """What a library written in Rust does before it raises, and one that warns."""
    os.write(2, b"thread '<unnamed>' panicked at src/lib.rs:7:5:\nSECRET of the trace\nnote: run with it\n")
    os.write(2, b"a library \x1b[2Jwarns\n")


def at_rest(note: Any) -> None:
    """Note, when Shift+F12 comes, that all that was pressed before it has had its effect and is painted."""
    from textual import events
    from textual.message_pump import MessagePump

    set_timer, on_event = MessagePump.set_timer, app.CtxApp.on_event
    timers: WeakSet[Any] = WeakSet()

    def counted(self: Any, *more: Any, **named: Any) -> Any:
        timer = set_timer(self, *more, **named)
        if type(self).__module__.startswith("ctxctl."):
            timers.add(timer)
        return timer

    def busy(self: Any) -> list[str]:
        pumps = [self, *self.screen_stack, *self.screen.walk_children()]
        found = [f"timer {t.name}" for t in timers if t._task is not None and not t._task.done()]
        found += [f"queue {pump!r}" for pump in pumps if pump.message_queue_size]
        return found + ["loader"] * (not self.loader.idle.is_set()) + ["held"] * bool(self._batch_count)

    async def tell(self: Any) -> None:
        quiet, since = 0, time.monotonic()
        while quiet < 3:
            await asyncio.sleep(0.002)
            found = busy(self)
            quiet = 0 if found else quiet + 1
            if found and time.monotonic() > since + 10.0:
                since += 1000.0
                note(busy=found)
        self.screen._on_timer_update()
        note(rest=True, turns=len(self.turns.state.list.turns.entries))

    async def asked(self: Any, event: Any) -> None:
        if isinstance(event, events.Key) and event.key == "shift+f12":
            going.add(asyncio.create_task(tell(self)))
        else:
            await on_event(self, event)

    going: set[Any] = set()
    MessagePump.set_timer = counted  # type: ignore[method-assign]
    app.CtxApp.on_event = asked  # type: ignore[method-assign]


def toured(log: str) -> None:
    """Write down which screens are opened, which commands they have, and whether anything is a link."""
    from textual.strip import Strip

    from ctxctl.tui.screens.palette import Palette

    def note(**said: Any) -> None:
        with open(log, "a", encoding="utf-8") as file:
            file.write(json.dumps(said) + "\n")

    at_rest(note)

    push, pop, made, render = app.CtxApp.push_screen, app.CtxApp.pop_screen, Palette.__init__, Strip.render

    def push_screen(self: Any, screen: Any, *more: Any, **named: Any) -> Any:
        note(screen=type(screen).__name__, depth=len(self.screen_stack) - 1)
        return push(self, screen, *more, **named)

    def pop_screen(self: Any) -> Any:
        note(depth=len(self.screen_stack) - 2)
        return pop(self)

    def palette(self: Any, ids: Any, *more: Any, turns: bool) -> None:
        note(ids=list(ids))
        made(self, ids, *more, turns=turns)

    def rendered(self: Any, console: Any) -> str:
        for segment in self:
            if segment.style is not None and (segment.style.link or "@click" in (segment.style.meta or {})):
                note(action=segment.text)
        return render(self, console)

    # A bell of our own could not be told from one of the trace.
    app.CtxApp.bell = lambda self: note(bell=True)  # type: ignore[method-assign]
    app.CtxApp.push_screen = push_screen  # type: ignore[assignment]
    app.CtxApp.pop_screen = pop_screen  # type: ignore[method-assign]
    Palette.__init__ = palette  # type: ignore[method-assign]
    Strip.render = rendered  # type: ignore[method-assign]


def main(what: str, *more: str) -> int:
    if what in ("crash", "panic"):
        app.TurnsScreen.action_turn = {"crash": crash, "panic": panic}[what]  # type: ignore[method-assign]
    if what in ("tour", "leaky-tour"):
        from ctxctl.cli.main import run

        log, *command = more
        toured(log)
        if what == "leaky-tour":
            literal.shown = lambda text: text.replace("\n", " ")
        return run(command)
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
    sys.exit(main(*sys.argv[1:]))
