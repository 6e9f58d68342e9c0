"""Draw pairs of a step and an item from real captures, to read `why` of them against the raw file.

`python -m tools.independent.drawing CORPUS` prints a pair a line.  The same corpus gives the same pairs as
long as ctxctl tells the same changes: it is asked for the steps and items that there are, and for nothing
that is to be judged.  What changed (removed, updated, omitted) is preferred to what stands.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from tools.independent.asking import Ask, address_of
from tools.independent.raw import Object

SEED = 15
PAIRS = 100
LOOKED = 60
"""Captures of a kind that are looked at, in a drawn order; those with most sorts of change are taken."""
SMALLEST, LARGEST = 1_000, 3_000_000
"""Bytes of a capture."""
QUOTA = {
    "data/claude-code": (3, 6), "data/codex": (2, 6), "data/pi": (2, 5), "data/api-captures": (3, 6),
    "data/clients": (1, 6), "data/cline-roo": (1, 6), "data/claude-stream-json": (1, 6),
    "data/amplifier": (1, 6), "data/langfuse": (1, 4), "data/cursor": (1, 4), "data/gemini-cli": (1, 2),
    "data/goose": (1, 2), "data/opencode": (1, 3), "data/openhands": (1, 2), "data/otel-genai": (1, 2),
    "data/inspect-ai": (1, 2), "data/copilot-sdk-events": (1, 2), "samples/amplifier": (2, 6),
    "samples/sibyl": (1, 5), "samples/sanqian": (1, 5),
}  # fmt: skip
"""Of each kind how many captures, and how many pairs of each at most."""
PLACEHOLDERS = 50
"""A file with more quotes of one bracketed phrase was trimmed: which text is which cannot be read in it."""
_PHRASE = re.compile(rb'"\[[A-Za-z][A-Za-z ]*\]"')
CHANGED = ("removed", "updated", "omitted")
STANDING = ("added", "kept", "later", "gone")
"""`added` in this very step; `kept` since an earlier one; `later`: not there yet; `gone` some steps ago."""


class Drawn(NamedTuple):
    """A question that `why` is asked."""

    capture: str
    """Its path in the corpus."""
    address: str
    item: str
    sort: str


def captures(folder: Path) -> list[Path]:
    """What can be drawn of a kind: files of a middle size, and folders that are one capture."""
    folders = [path for path in folder.rglob("wire") if path.is_dir()]
    folders += [path.parent for path in folder.rglob("ui_messages.json")]
    files = [
        path
        for path in folder.rglob("*")
        if path.suffix in {".json", ".jsonl", ".eval", ".yaml", ".log"}
        and SMALLEST < path.stat().st_size < LARGEST
        and not any(one in path.parents for one in folders)
    ]
    return sorted(folders + files)


def trimmed(path: Path) -> bool:
    """Whether texts of a file were replaced by one and the same phrase, such as `[trimmed for fixture]`."""
    phrases = Counter(_PHRASE.findall(path.read_bytes())) if path.is_file() else Counter[bytes]()
    return any(count > PLACEHOLDERS for count in phrases.values())


def draw(corpus: Path, ask: Ask) -> list[Drawn]:
    """The pairs, in the order of their captures."""
    found: list[Drawn] = []
    for kind, (quota, most) in QUOTA.items():
        some = Random(f"{SEED} {kind}")
        files = captures(corpus / kind)
        looked = [(path, _sorts(ask, path, some)) for path in some.sample(files, min(LOOKED, len(files)))]
        told = [
            (path, sorts)
            for path, sorts in looked
            if sum(map(len, sorts.values())) >= most and not trimmed(path)
        ]
        told.sort(key=lambda pair: -sum(bool(pair[1][sort]) for sort in CHANGED))
        for path, sorts in told[:quota]:
            name = path.relative_to(corpus).as_posix()
            found += [Drawn(name, *pair) for pair in _few(sorts, most, some)]
    return _cut(found)


def _sorts(ask: Ask, path: Path, some: Random) -> dict[str, list[tuple[str, str]]]:
    """Of each sort the pairs of an address and an item, in a drawn order."""
    found: dict[str, list[tuple[str, str]]] = {sort: [] for sort in (*CHANGED, *STANDING)}
    steps = [line for line in ask(["replay", str(path), "--json"]) if line.get("type") == "step"]
    many = len({step["session"] for step in steps}) > 1
    threads: dict[tuple[str, str], list[Object]] = {}
    for step in steps:
        threads.setdefault((step["session"], step["thread"]), []).append(step)
    for thread in threads.values():
        for number, step in enumerate(thread):
            where = address_of(step, session=many)
            for change in step["changes"]:
                if change["status"] in found:
                    found[change["status"]].append((where, change["item"]))
            if number and (pair := _elsewhere(thread, number, "added", some)):
                found["kept"].append((where, pair))
            if number + 1 < len(thread) and (pair := _new(thread, number, some)):
                found["later"].append((where, pair))
            if number and (pair := _elsewhere(thread, number, "removed", some)):
                found["gone"].append((where, pair))
    for pairs in found.values():
        some.shuffle(pairs)
    return found


def _elsewhere(thread: list[Object], number: int, status: str, some: Random) -> str | None:
    """An item that an earlier step has changed so and none between there and here has named again."""
    told: dict[str, str] = {}
    for step in thread[: number + 1]:
        for change in step["changes"]:
            told[change["item"]] = change["status"] if step is not thread[number] else ""
    items = [item for item, last in told.items() if last == status]
    return some.choice(items) if items else None


def _new(thread: list[Object], number: int, some: Random) -> str | None:
    """An item that a later step brings in and no earlier one has named."""
    before = {change["item"] for step in thread[: number + 1] for change in step["changes"]}
    items = [
        change["item"]
        for step in thread[number + 1 :]
        for change in step["changes"]
        if change["status"] == "added" and change["item"] not in before
    ]
    return some.choice(items) if items else None


def _few(sorts: dict[str, list[tuple[str, str]]], most: int, some: Random) -> Iterator[tuple[str, str, str]]:
    """Pairs of one capture, of each sort in turn: first changes, two thirds of them, then what stands."""
    taken: set[str] = set()
    for group, room in ((CHANGED, most - most // 3), (STANDING, most)):
        left = {sort: list(sorts[sort]) for sort in group}
        while any(left.values()) and len(taken) < room:
            for sort in some.sample(group, len(group)):
                where, item = left[sort].pop() if left[sort] else ("", "")
                if item and item not in taken and len(taken) < room:
                    taken.add(item)
                    yield where, item, sort


def _cut(found: list[Drawn]) -> list[Drawn]:
    """So many as are wanted: of what only stands the last of the captures with most go first."""
    while len(found) > PAIRS:
        standing = [n for n, pair in enumerate(found) if pair.sort not in CHANGED]
        full = max(standing, key=lambda n: (sum(p.capture == found[n].capture for p in found), n))
        del found[full]
    return found


def main(arguments: list[str], ask: Callable[[list[str]], list[Object]]) -> int:
    """Print the pairs."""
    for pair in draw(Path(arguments[0]), ask):
        print(json.dumps(pair._asdict()))
    return 0


if __name__ == "__main__":
    from tools.independent.__main__ import ask as run

    sys.exit(main(sys.argv[1:], run))
