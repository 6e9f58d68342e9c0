"""Cache misses of Claude Code's own transcripts, found with nothing but the json module.

A second reading of DESIGN section 3, *Cache misses*, that shares no line with ctxctl: it knows the transcript
format and Anthropic's price list, and counts no tokens (a recorded change is sized by its characters).  The
corpus test holds the two against each other.

    python tools/independent/misses.py FILE...
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

SMALLEST = 1024
"""Tokens: Anthropic caches no prompt below it, and what lies behind the last breakpoint is noise."""
DENSE = 2.6
"""Characters that a token holds at least, where recorded text sizes a change: the doubt is in its favour."""

PRICES = (
    ("opus-4-5", 5), ("opus-4-6", 5), ("opus-4-7", 5), ("opus-4-8", 5), ("opus", 15),
    ("haiku-4-5", 1), ("3-5-haiku", Decimal("0.8")), ("haiku", Decimal("0.25")), ("sonnet", 3),
)  # fmt: skip
"""US dollars for a million tokens of plain input, by the first part of a model's name that fits."""
LARGE = ("sonnet-4-5", "sonnet-4-2")
"""Twice that above 200,000 tokens of input."""
WRITE, WRITE_HOUR, READ = Decimal("1.25"), Decimal(2), Decimal("0.1")


class Call(NamedTuple):
    """One request, by its first line that bills it."""

    ident: str
    model: str
    time: float | None
    plain: int
    read: int
    written: int
    hour: int
    path: tuple[str, ...]
    """The conversation that it carried: a key for each message, in order."""

    @property
    def sent(self) -> int:
        return self.plain + self.read + self.written


class Found(NamedTuple):
    """One miss."""

    ident: str
    tokens: int
    money: Decimal
    idle: float | None
    before: Call
    now: Call


class Line(NamedTuple):
    """A line of the conversation."""

    key: str
    """Of the message that it is a part of."""
    parent: str | None
    raw: dict[str, Any]


def lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a file; what is none is left out."""
    found = []
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            made = json.loads(text)
        except ValueError:
            continue
        if isinstance(made, dict):
            found.append(made)
    return found


def misses(path: Path) -> list[Found]:
    """All misses of a transcript, in order."""
    found = []
    helpers = sorted((path.with_suffix("") / "subagents").glob("*.jsonl"))
    for part in (path, *helpers):
        talk = Talk(lines(part))
        last: dict[str, Call] = {}
        for thread, call in talk.calls():
            before = last.get(thread)
            if before is not None:
                miss = talk.miss(before, call)
                if miss is not None:
                    found.append(miss)
            last[thread] = call
    return found


class Talk:
    """A transcript's lines by their ids."""

    def __init__(self, raw: list[dict[str, Any]]) -> None:
        self.raw = raw
        self.by_id: dict[str, Line] = {}
        self.sizes: dict[str, int] = {}
        self.results: dict[str, list[str]] = {}
        """By message, the keys of the results of its tool calls."""
        self.holders: dict[str, str] = {}
        """By tool call, the message that holds its result."""
        self.cleared: dict[str, list[str]] = {}
        """By a message, the tool calls whose results were blanked since the one before (microcompaction)."""
        self.neighbour: dict[str, str] = {}
        """By line, the one before it of the same thread."""
        latest: dict[str, str] = {}
        blanked: list[str] = []
        uses: dict[str, str] = {}
        seen: set[str] = set()
        for line in raw:
            ident = line.get("uuid")
            if not isinstance(ident, str) or ident in self.by_id:
                continue
            message = line.get("message")
            message = message if isinstance(message, dict) else {}
            key = message.get("id") if line.get("type") == "assistant" else None
            key = key if isinstance(key, str) else ident
            thread = str(line.get("agentId") or bool(line.get("isSidechain")))
            if thread in latest:
                self.neighbour[ident] = latest[thread]
            latest[thread] = ident
            if line.get("subtype") == "microcompact_boundary":
                blanked += (line.get("microcompactMetadata") or {}).get("compactedToolIds") or []
            if line.get("type") == "assistant" and blanked:
                self.cleared[key], blanked = blanked, []
            if isinstance(attached := line.get("attachment"), dict):
                self.sizes[key] = len(json.dumps(attached, ensure_ascii=False))
            self.by_id[ident] = Line(key, line.get("parentUuid"), line)
            for block in blocks(message):
                text = json.dumps(block, ensure_ascii=False, sort_keys=True)
                if (mark := f"{key} {text}") not in seen:
                    seen.add(mark)
                    self.sizes[key] = self.sizes.get(key, 0) + weight(block)
                if block.get("type") == "tool_use":
                    uses[str(block.get("id"))] = key
                if block.get("type") == "tool_result":
                    self.holders[str(block.get("tool_use_id"))] = key
                if block.get("type") == "tool_result" and str(block.get("tool_use_id")) in uses:
                    self.results.setdefault(uses[str(block.get("tool_use_id"))], []).append(key)

    def calls(self) -> Iterator[tuple[str, Call]]:
        """Each request once, with its thread."""
        told: set[tuple[str, str]] = set()
        for line in self.raw:
            message = line.get("message")
            if line.get("type") != "assistant" or not isinstance(message, dict):
                continue
            usage, ident = message.get("usage"), message.get("id")
            if (
                not isinstance(usage, dict)
                or not isinstance(ident, str)
                or not isinstance(line.get("uuid"), str)
            ):
                continue
            thread, path = self.way(line)
            read, written = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
            plain = usage.get("input_tokens")
            if (thread, ident) in told or plain is None or read is None or written is None:
                continue
            told.add((thread, ident))
            kinds = usage.get("cache_creation")
            hour = kinds.get("ephemeral_1h_input_tokens") if isinstance(kinds, dict) else 0
            call = Call(
                ident, str(message.get("model")), clock(line.get("timestamp")), plain, read, written,
                hour or 0, path,
            )  # fmt: skip
            if call.sent > 0:
                yield thread, call

    def way(self, line: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
        """The thread of a line, and the messages that stand before its own."""
        own = self.by_id[line["uuid"]].key
        keys: list[str] = []
        at, seen = line.get("parentUuid"), set()
        root = line["uuid"]
        while isinstance(at, str) and at not in seen:
            seen.add(at)
            if at not in self.by_id:  # a line that the file lacks: what precedes it is the best guess
                at = self.neighbour.get(root)
                continue
            root, known = at, self.by_id[at]
            if known.key != own and (not keys or keys[-1] != known.key):
                keys.append(known.key)
            at = known.parent
        thread = "main"
        if line.get("isSidechain"):
            thread = str(line.get("agentId") or root)
        return thread, tuple(reversed(keys))

    def miss(self, before: Call, now: Call) -> Found | None:
        """What `now` could have read of `before` and did not; None where that is nothing, or noise."""
        could = min(before.read + before.written, before.sent, now.sent)
        was = (*before.path, before.ident)
        here = set(now.path)
        for key in now.path:
            here.update(self.results.get(key, ()))
        blank = {self.holders.get(tool) for tool in self.cleared.get(now.ident, ())}
        if blank or not all(self.empty(key) or key in here for key in was[:-1]):
            shared = 0
            while (
                shared < min(len(was), len(now.path))
                and was[shared] == now.path[shared]
                and was[shared] not in blank
            ):
                shared += 1
            gone = sum(self.sizes.get(key, 0) for key in was[shared:-1])
            same = sum(self.sizes.get(key, 0) for key in was[:shared])
            if gone * 10 > gone + same:  # further in front than Anthropic looks for what it has: explained
                return None
            new = sum(self.sizes.get(key, 0) for key in now.path[shared:])
            could = min(could, int(before.sent - gone / DENSE), int(now.sent - new / DENSE))
        tokens = could - now.read
        if tokens < SMALLEST:
            return None
        idle = None if before.time is None or now.time is None else now.time - before.time
        return Found(now.ident, tokens, price(now, tokens), idle, before, now)

    def empty(self, key: str) -> bool:
        """Whether a line says nothing to the model."""
        return not self.sizes.get(key, 0)


def blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The blocks of a message's content."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def weight(block: dict[str, Any]) -> int:
    """Characters of a block that the model reads."""
    kind = block.get("type")
    if kind == "image":
        return 4000
    for name in ("text", "thinking", "content", "input"):
        if name in block:
            value = block[name]
            return len(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return 0


def clock(text: Any) -> float | None:
    """Seconds of a timestamp."""
    try:
        return datetime.fromisoformat(str(text).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def price(call: Call, tokens: int) -> Decimal:
    """What so many tokens behind the read ones were billed at, less what reading them would have been."""
    rate = Decimal(next((usd for name, usd in PRICES if name in call.model), 0))
    if call.sent > 200_000 and any(name in call.model for name in LARGE):
        rate *= 2
    left, money = tokens, Decimal(0)
    for held, times in ((call.hour, WRITE_HOUR), (call.written - call.hour, WRITE), (call.plain, Decimal(1))):
        taken = min(left, held)
        money += rate * times * taken
        left -= taken
    return (money - rate * READ * (tokens - left)) / 1_000_000


def main(paths: list[str]) -> None:
    """Print each miss, and the sums."""
    whole, count = Decimal(0), 0
    for path in paths:
        for found in misses(Path(path)):
            idle = "-" if found.idle is None else f"{found.idle:.0f} s"
            print(f"{path} {found.ident} {found.tokens:,} tokens ${found.money:.4f} after {idle}")
            whole, count = whole + found.money, count + 1
    print(f"{count} misses, ${whole:.4f}")


if __name__ == "__main__":
    main(sys.argv[1:])
