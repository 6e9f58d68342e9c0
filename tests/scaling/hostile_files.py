"""Small files that took minutes: by name, what makes each, and how large it is where it is measured.

A hostile, or merely broken, program could write any number of such.  `make(n)` gives the bytes of one with
about `n` of what there are many of.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from tests.formats import growing, multiplied
from tests.scaling import native_inputs
from tests.scaling.native_inputs import Lines, Log, at

_FIXTURES: Final = Path(__file__).resolve().parents[2] / "fixtures"


class HostileFile(NamedTuple):
    """One file."""

    name: str
    count: int
    """Of what there are many, in the file that is measured."""
    ending: str
    make: Callable[[int], bytes]
    item: str
    """An item that commands which need one are asked for."""


def _native(name: str, count: int, make: Callable[[int], Lines], item: str = "prompt") -> HostileFile:
    return HostileFile(name, count, ".jsonl", lambda n: b"".join(line + b"\n" for line in make(n)), item)


def _capture(name: str, count: int, make: Callable[[int], bytes], ending: str = ".jsonl") -> HostileFile:
    return HostileFile(name, count, ending, make, "kind:user_message")


def _blocks_with_texts(n: int) -> Lines:
    """One message of `n` content blocks, each with a text of its own."""
    log = Log()
    yield log.item("system", "You are a careful assistant.", "system_prompt", **at(1))
    yield log.item(
        "prompt", [{"type": "text", "text": f"word {i}"} for i in range(n)], "user_message", **at(1)
    )
    yield log.whole("a1", ["system", "prompt"], **at(1))
    yield log.sent("a1", **at(1))


def _versions_and_redactions(n: int) -> Lines:
    """A 16th of `n` items, each of 16 versions of which the last one is redacted."""
    log = Log()
    yield log.item("prompt", "What are the words of the doors?", "user_message", **at(1))
    ids = [f"item{i}" for i in range(n // 16)]
    for i, one in enumerate(ids):
        yield log.item(one, f"The word of door {i} is {i * 7919:x}.", **at(1))
    yield log.whole("a1", ["prompt", *ids], **at(1))
    yield log.sent("a1", **at(1))
    for version in range(15):
        for i, one in enumerate(ids):
            yield log.update(one, f"The word of door {i} is {i * 7919:x}-{version * 104729:x}.", **at(2))
    for one in ids:
        yield native_inputs._redacted(log, one, **at(2))
    yield log.whole("a2", ["prompt", *ids], **at(2))
    yield log.sent("a2", **at(2))


def _times(fixture: str, what: str) -> Callable[[int], bytes]:
    """A fixture with one of its places, or all of its records, `n` times."""

    def make(n: int) -> bytes:
        cell = next(cell for cell in multiplied.cells(_FIXTURES / fixture) if cell.what == what)
        return cell.make(n)

    return make


FILES: Final = (
    _native("million-blocks", 1_000_000, native_inputs.content_blocks),
    _native("million-texts", 1_000_000, _blocks_with_texts),
    _native("redactions", 4000, native_inputs.redactions),
    _native("versions-redacted", 4000, _versions_and_redactions),
    _native("splices-on-splices", 20_000, native_inputs.splices_on_splices),
    _native("growing-window", 20_000, native_inputs.growing_window),
    _native("growing-at-the-front", 20_000, native_inputs.growing_at_the_front),
    *(
        _capture(f"claude-{make.__name__}", 20_000, make)
        for make in (
            growing.of_itself, growing.one_cycle, growing.pairs, growing.star, growing.two_ends,
            growing.from_the_beginning, growing.same_uuid,
        )
    ),
    *(
        _capture(f"otel-{make.__name__}", 20_000, make)
        for make in (growing.spans_of_themselves, growing.spans_in_a_circle, growing.spans_in_a_chain)
    ),
    _capture("cline-again", 1000, _times("cline/typed.messages.json", ".messages again"), ".json"),
    _capture("cline-afresh", 1000, _times("cline/typed.messages.json", ".messages afresh"), ".json"),
    _capture("roo-again", 2000, _times("roo/task/api_conversation_history.json", " again"), ".json"),
    _capture("roo-afresh", 2000, _times("roo/condensed/api_conversation_history.json", " afresh"), ".json"),
    _capture("mcp-again", 3000, _times("mcp_session/exchanges.jsonl", "records again")),
    _capture("mcp-afresh", 3000, _times("mcp_session/exchanges.jsonl", "records afresh")),
)  # fmt: skip
