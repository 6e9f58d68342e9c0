"""Child programs of the benchmark: ``python -m tools.bench.probes NAME [ARGUMENT...]``.

Each does one thing and imports only what that needs; those that time themselves print seconds.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

WHY_PAIRS = 60
"""Answers of `why` that are timed, the first one included."""


def orjson_pass(path: str) -> None:
    """One orjson pass over a file, or over all files of a folder: the floor of reading it."""
    import orjson

    loads = orjson.loads
    for name in _files(path):
        with open(name, "rb", buffering=1 << 18) as file:
            for line in file:
                loads(line)


def _files(path: str) -> list[str]:
    """A file, or the files of a folder."""
    if not os.path.isdir(path):
        return [path]
    return [os.path.join(path, name) for name in sorted(os.listdir(path))]


def write(path: str) -> None:
    """Print seconds of CPU that writing a command's output takes, its values already made, and its bytes."""
    import orjson

    with open(path, "rb") as file:
        values = [orjson.loads(line) for line in file]
    size = 0
    with open(os.devnull, "wb") as out:
        begun = time.process_time()
        for value in values:
            size += out.write(orjson.dumps(value))
        out.flush()
        spent = time.process_time() - begun
    print(spent, size)


def importer(name: str, folder: str) -> None:
    """Print seconds of CPU (one orjson pass over a format's captures; an import of each), bytes and events.

    The importer's own work alone: its events are made and thrown away, nothing is written.
    """
    from pathlib import Path

    import orjson

    from ctxctl.importers import registry
    from ctxctl.trace.source import Source

    captures = []
    for path in sorted(p for p in Path(folder).rglob("*") if p.is_file()):
        data = path.read_bytes()
        found = registry.of_head(data[: registry.HEAD])
        if found is not None and found.name == name:
            captures.append((path, data))
    reader = registry.by_name(name)
    loads = orjson.loads
    floor, work, events = 0.0, 0.0, 0
    for path, data in captures:
        for _ in reader.events(Source.from_bytes(path.name, data), lambda problem: None):
            pass  # what an importer imports when it is first used is not its speed
    for path, data in captures:
        begun = time.process_time()
        for line in data.split(b"\n"):
            try:
                loads(line)
            except orjson.JSONDecodeError:
                continue
        floor += time.process_time() - begun
        begun = time.process_time()
        for _ in reader.events(Source.from_bytes(path.name, data), lambda problem: None):
            events += 1
        work += time.process_time() - begun
    print(floor, work, sum(len(data) for _, data in captures), events)


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


def extract_sessions(path: str, out: str) -> None:
    """Write the texts of Claude Code sessions, each once, one JSON string a line; not measured."""
    import orjson

    seen: set[bytes] = set()
    with open(out + ".partial", "wb") as texts:
        for name in _files(path):
            with open(name, "rb", buffering=1 << 18) as file:
                for line in file:
                    for found in _texts(orjson.loads(line)):
                        text = orjson.dumps(found)
                        if text not in seen:
                            seen.add(text)
                            texts.write(text + b"\n")
    os.replace(out + ".partial", out)


def _texts(record: dict[str, Any]) -> Iterator[str]:
    """What a record of a session adds to a window."""
    import orjson

    content = record.get("message", {}).get("content", ())
    for block in [{"text": content}] if isinstance(content, str) else content:
        if block.get("type") == "tool_use":
            yield orjson.dumps(block["input"]).decode()
        else:
            yield block["text"] if "text" in block else block["content"]


def tiktoken_pass(path: str) -> None:
    """Tokenise the unique contents, vocabulary included: the floor of counting them."""
    import orjson

    from ctxctl.tokens import ranks

    encode = ranks.get_encoding("o200k_base").encode_ordinary
    total = 0
    with open(path, "rb", buffering=1 << 18) as file:
        for line in file:
            total += len(encode(orjson.loads(line)))
    print(total)


def index(path: str) -> None:
    """Read the headers of a whole trace and save where each step begins."""
    from ctxctl.engine.replay.step_tracker import StepTracker
    from ctxctl.trace.index import StepIndex
    from ctxctl.trace.reader import Trace
    from ctxctl.trace.source import open_source

    with open_source(path) as source:
        trace = Trace(source)
        steps, tracker = StepIndex(), StepTracker()
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
    from ctxctl.session import Inspector

    with Inspector.open(path) as inspector:
        print(len(inspector.outline().rows))


def why(path: str) -> None:
    """Print CPU seconds: of loading what is indexed with the first answer, of the median, of the slowest."""
    from ctxctl.analysis.why.answer import explain_item
    from ctxctl.session import Inspector
    from ctxctl.session.store_rows import lives_of

    with Inspector.open(path) as inspector:
        inspector.places()
        known = lives_of(inspector)
        items = [(e.thread, e.item) for e in known.entries()]
        threads = [known.thread_of(ordinal) for ordinal in range(len(known))]
    rng = random.Random(5)
    spent = []
    start = time.process_time()
    with Inspector.open(path) as inspector:
        while len(spent) < WHY_PAIRS:
            thread, item = rng.choice(items)
            ordinal = rng.randrange(len(threads))
            if threads[ordinal] == thread:
                if spent:
                    start = time.process_time()
                explain_item(inspector, ordinal, item)
                spent.append(time.process_time() - start)
    rest = sorted(spent[1:])
    print(spent[0], rest[len(rest) // 2], rest[-1])


def _versions(sort: str, share: str) -> tuple[str, str]:
    """Two versions of 1 MB of text, `code` (the standard library's) or `log`; `share` of the lines differ."""
    rng = random.Random(5)
    lines = _code() if sort == "code" else _log(rng)
    new = [f"{line} # edit {rng.random()}" if rng.random() < float(share) else line for line in lines]
    return "\n".join(lines), "\n".join(new)


def _code() -> list[str]:
    import sysconfig
    from pathlib import Path

    lines: list[str] = []
    size = 0
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text = path.read_text(errors="replace")
        lines += text.split("\n")
        size += len(text)
        if size > 1_000_000:
            break
    return lines


def _log(rng: random.Random) -> list[str]:
    """24 000 lines, of which 300 are different."""
    from tools.bench import words

    levels = ("INFO", "WARN", "DEBUG")
    kinds = [f"{rng.choice(levels)} worker-{rng.randint(1, 8)} {words.phrase(rng, 5)}" for _ in range(300)]
    return rng.choices(kinds, k=24_000)


def diff_ours(sort: str, share: str) -> None:
    """Print the seconds of our diff of two versions of a 1 MB item, its lines, and whether it is minimal."""
    from ctxctl.engine.textdiff.unified import unified_diff

    old, new = _versions(sort, share)
    start = time.process_time()
    result = unified_diff(old, new)
    print(time.process_time() - start, len(result.lines), int(result.degraded))


def diff_difflib(sort: str, share: str) -> None:
    """Print the seconds of difflib's unified diff of the same, and its lines."""
    import difflib

    old, new = _versions(sort, share)
    start = time.process_time()
    lines = list(difflib.unified_diff(old.split("\n"), new.split("\n"), lineterm=""))
    print(time.process_time() - start, len(lines))


def watch(folder: str, seconds: str) -> None:
    """See `tools.bench.watching.watch`."""
    from tools.bench import watching

    watching.watch(folder, seconds)


def watch_write(path: str, seconds: str, out: str, work: str = "repeating") -> None:
    """See `tools.bench.watching.write`."""
    from tools.bench import watching

    watching.write(path, seconds, out, work)


def picker(home: str, directory: str) -> None:
    """See `tools.bench.picking.measure`."""
    from tools.bench import picking

    picking.measure(home, directory)


PROBES: dict[str, Callable[..., None]] = {
    "orjson": orjson_pass,
    "write": write,
    "extract": extract,
    "extract-sessions": extract_sessions,
    "tiktoken": tiktoken_pass,
    "index": index,
    "reload-index": reload_index,
    "outline": outline,
    "why": why,
    "diff-ours": diff_ours,
    "diff-difflib": diff_difflib,
    "importer": importer,
    "picker": picker,
    "watch": watch,
    "watch-write": watch_write,
}

if __name__ == "__main__":
    PROBES[sys.argv[1]](*sys.argv[2:])
