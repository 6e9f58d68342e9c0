"""Small files that took minutes: by name, what makes each, and how large it is where it is measured.

A hostile, or merely broken, program could write any number of such.  `make(n)` gives the bytes of one with
about `n` of what there are many of.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Final, NamedTuple

from tests.formats import growing
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
    least: int = 8
    """Of what there are many of, in the smallest file that tells how work grows."""
    each: int = 1
    """Records, or blocks, for each of them."""
    is_trace: bool = False
    """It is a trace of ctxctl's own: there is nothing to import."""
    requests: Fraction = Fraction(0)
    """Requests that it tells for each of them; 0 where they are few however large it is, or contradict each
    other, so that the import ends."""
    is_long: bool = False
    """It has so much text that counting its tokens alone takes more than a second."""

    def requests_of(self, n: int) -> int:
        """Requests that a file of `n` tells, but for a few."""
        return int(self.requests * n)


def _native(
    name: str,
    count: int,
    make: Callable[[int], Lines],
    least: int = 8,
    requests: Fraction = Fraction(0),
    *,
    is_long: bool = False,
) -> HostileFile:
    def made(n: int) -> bytes:
        return b"".join(line + b"\n" for line in make(n))

    return HostileFile(
        name, count, ".jsonl", made, "prompt", least, is_trace=True, requests=requests, is_long=is_long
    )


def _claude_code(
    make: Callable[[int], bytes], least: int = 8, item: str = "0", requests: Fraction = Fraction(0)
) -> HostileFile:
    name = f"claude-{make.__name__}".replace("_", "-")
    return HostileFile(name, 20_000, ".jsonl", make, item, least, requests=requests)


def _spans(make: Callable[[int], bytes]) -> HostileFile:
    name = f"otel-{make.__name__}".replace("_", "-")
    return HostileFile(name, 20_000, ".jsonl", make, "user_message-1")


def _multiplied(name: str, count: int, fixture: str, what: str, item: str, requests: int) -> HostileFile:
    """A fixture with one of its places, or all of its records, many times."""

    def make(n: int) -> bytes:
        from tests.formats import multiplied  # brings ctxctl with it, before there are counters

        cells = multiplied.cells(_FIXTURES / fixture)
        return next(cell for cell in cells if cell.what == what).make(n)

    return HostileFile(name, count, Path(fixture).suffix, make, item, each=14, requests=Fraction(requests))


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


_ROO: Final = "roo/task/api_conversation_history.json"
_ROO_CONDENSED: Final = "roo/condensed/api_conversation_history.json"
FILES: Final = (
    _native("million-blocks", 1_000_000, native_inputs.content_blocks),
    _native("million-texts", 1_000_000, _blocks_with_texts, is_long=True),
    _native("redactions", 4000, native_inputs.redactions),
    _native("versions-redacted", 4000, _versions_and_redactions, 16),
    _native("splices-on-splices", 20_000, native_inputs.splices_on_splices),
    _native("growing-window", 20_000, native_inputs.growing_window, requests=Fraction(1)),
    _native("growing-at-the-front", 20_000, native_inputs.growing_at_the_front, requests=Fraction(1)),
    _native("wide-window", 60_000, native_inputs.wide_window, 24, Fraction(1, 6)),
    _native("unchanged-window", 60_000, native_inputs.unchanged_window, 24, Fraction(1, 6)),
    _claude_code(growing.of_itself),
    _claude_code(growing.one_cycle),
    _claude_code(growing.pairs),
    _claude_code(growing.star, requests=Fraction(1, 2)),
    _claude_code(growing.two_ends, 40),
    _claude_code(growing.from_the_beginning, 32),
    _claude_code(growing.same_uuid, item="x"),
    _spans(growing.spans_of_themselves),
    _spans(growing.spans_in_a_circle),
    _spans(growing.spans_in_a_chain),
    _multiplied("cline-again", 1000, "cline/typed.messages.json", ".messages again", "read_files", 3),
    _multiplied("cline-afresh", 1000, "cline/typed.messages.json", ".messages afresh", "call_0010", 3),
    _multiplied("roo-again", 2000, _ROO, " again", "environment_details", 3),
    _multiplied("roo-afresh", 2000, _ROO_CONDENSED, " afresh", "environment_details", 4),
    _multiplied("mcp-again", 3000, "mcp_session/exchanges.jsonl", "records again", "search", 2),
    _multiplied("mcp-afresh", 3000, "mcp_session/exchanges.jsonl", "records afresh", "search", 2),
    HostileFile("atif-summaries", 8000, ".json", growing.atif_summaries, "step-1", 400),
    HostileFile("goose-summaries", 4000, ".json", growing.goose_summaries, "q/0", 192),
    HostileFile("mcp-batch", 20_000, ".jsonl", growing.mcp_batch, "t0", 96),
)
"""All of them."""
BY_NAME: Final = {file.name: file for file in FILES}
