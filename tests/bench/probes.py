"""Child programs of the benchmark: ``python -m tests.bench.probes NAME [ARGUMENT...]``.

Each does one thing and imports only what that needs; those that time themselves print seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


def orjson_pass(path: str) -> None:
    """One orjson pass over a file: the floor of reading it."""
    import orjson

    loads = orjson.loads
    with open(path, "rb", buffering=1 << 18) as file:
        for line in file:
            loads(line)


def extract(path: str, out: str) -> None:
    """Write the unique contents of a trace, one JSON string a line; not measured."""
    import orjson

    seen: set[bytes] = set()
    with open(path, "rb", buffering=1 << 18) as file, open(out, "wb") as texts:
        for line in file:
            content = orjson.loads(line)["data"].get("content")
            if content is not None:
                text = orjson.dumps(content)
                if text not in seen:
                    seen.add(text)
                    texts.write(text + b"\n")


def tiktoken_pass(path: str) -> None:
    """Tokenise the unique contents, vocabulary included: the floor of counting them."""
    import orjson

    from ctxctl.tokens import encodings

    encode = encodings.get("o200k_base").encode_ordinary
    total = 0
    with open(path, "rb", buffering=1 << 18) as file:
        for line in file:
            total += len(encode(orjson.loads(line)))
    print(total)


def index(path: str) -> None:
    """Read the headers of a whole trace and save where each step begins."""
    from ctxctl.engine.track import Tracker
    from ctxctl.trace.index import StepIndex
    from ctxctl.trace.reader import Trace
    from ctxctl.trace.source import open_source

    with open_source(path) as source:
        trace = Trace(source)
        steps, tracker = StepIndex(), Tracker()
        row = -1
        for event in trace.headers():
            place = tracker.place(event)
            end = event.offset + event.length + 1
            if place.opened or row < 0:
                at = place.cursor
                row = steps.append(
                    at.key.session, at.key.thread, at.turn, at.step, event.offset, end, event.line
                )
            else:
                steps.extend_row(row, end)
            steps.covered, steps.lines = end, event.line
        if not steps.save(source):
            sys.exit("the index could not be saved")


def reload_index(path: str) -> None:
    """Print the seconds that loading a saved index takes."""
    from ctxctl.trace.index import StepIndex
    from ctxctl.trace.source import open_source

    with open_source(path) as source:
        start = time.process_time()
        steps = StepIndex.load(source)
        spent = time.process_time() - start
    if steps is None:
        sys.exit("there is no saved index")
    print(spent)


def outline(path: str) -> None:
    """What the UI does to fill its list of turns."""
    from ctxctl.inspector import Inspector

    with Inspector.open(path) as inspector:
        print(len(inspector.outline().rows))


def _versions(share: float) -> tuple[str, str]:
    """Two versions of a 1 MB text of code; `share` of the lines differ."""
    import random

    from tests.bench import words

    rng = random.Random(5)
    old = words.code(rng, 1_000_000).split("\n")
    new = [words.code(rng, 1).split("\n")[0] if rng.random() < share else line for line in old]
    return "\n".join(old), "\n".join(new)


def diff_ours(share: str) -> None:
    """Print the seconds of our diff of two versions of a 1 MB item."""
    from ctxctl.engine.textdiff import unified

    old, new = _versions(float(share))
    start = time.process_time()
    result = unified(old, new)
    print(time.process_time() - start, len(result.lines))


def diff_difflib(share: str) -> None:
    """Print the seconds of difflib's unified diff of the same."""
    import difflib

    old, new = _versions(float(share))
    start = time.process_time()
    lines = list(difflib.unified_diff(old.split("\n"), new.split("\n"), lineterm=""))
    print(time.process_time() - start, len(lines))


def turns(path: str, presses: str) -> None:
    """Press next and previous turn in a headless UI; print milliseconds of work on the event loop, p50, p95.

    Work is the CPU time of the loop's own thread in its callbacks from one key to the time when nothing is
    under way any more: key, messages from the loader, layout and painting.
    """
    import asyncio
    import random

    from ctxctl.inspector import Inspector
    from ctxctl.tui.app import CtxApp

    spent = 0.0
    plain: Callable[[asyncio.Handle], None] = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        nonlocal spent
        start = time.thread_time()
        plain(handle)
        spent += time.thread_time() - start

    async def press() -> list[float]:
        nonlocal spent
        app = CtxApp(lambda: Inspector.open(path), path)
        rng = random.Random(3)
        took: list[float] = []
        async with app.run_test(size=(120, 40)) as pilot:
            await _settle(app, pilot)
            for _ in range(40):
                await pilot.press("right_square_bracket")
            await _settle(app, pilot)
            for _ in range(int(presses)):
                spent = 0.0
                await pilot.press(rng.choice(("left_square_bracket", "right_square_bracket")))
                await _settle(app, pilot)
                took.append(spent * 1000)
        return took

    asyncio.Handle._run = timed  # type: ignore[method-assign, assignment]
    took = sorted(asyncio.run(press()))
    print(took[len(took) // 2], took[int(len(took) * 0.95)])


async def _settle(app: object, pilot: object) -> None:
    """Wait until the loader has nothing to do and the screen is painted."""
    import asyncio

    idle = app.loader.idle  # type: ignore[attr-defined]
    for _ in range(6000):
        await pilot.pause()  # type: ignore[attr-defined]
        if idle.is_set():
            break
        await asyncio.sleep(0.01)
    await pilot.pause()  # type: ignore[attr-defined]


PROBES: dict[str, Callable[..., None]] = {
    "orjson": orjson_pass,
    "extract": extract,
    "tiktoken": tiktoken_pass,
    "index": index,
    "reload-index": reload_index,
    "outline": outline,
    "diff-ours": diff_ours,
    "diff-difflib": diff_difflib,
    "turns": turns,
}

if __name__ == "__main__":
    PROBES[sys.argv[1]](*sys.argv[2:])
