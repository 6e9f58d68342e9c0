"""Traces that are large in one dimension: each function gives the lines of one of size `n`.

A line costs the same however large `n` is, or there are few lines, so the file grows as `n` does.  Some are
odd; all are such that a runtime could have written them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from itertools import count
from typing import Any, Final

import orjson

Lines = Iterator[bytes]

TURN_OF: Final = 10
"""Steps a turn, where the dimension is the number of steps."""


class Log:
    """Writes events of one session: numbers them, and knows nothing of what is in them."""

    def __init__(self, session: str = "s") -> None:
        self.session = session
        self._numbers = count(1)

    def event(self, kind: str, data: Any, **envelope: Any) -> bytes:
        """One line; `envelope` says the turn, the step, the thread."""
        number = next(self._numbers)
        return orjson.dumps(
            {
                "schema_version": "0.1.1",
                "event_id": f"{self.session}-{number}",
                "event_type": kind,
                "source": "scaling/1",
                "time": "2026-03-04T16:02:16.200Z",
                "session_id": self.session,
                **envelope,
                "data": data,
            }
        )

    def item(self, item_id: str, content: Any, kind: str = "tool_result", **more: Any) -> bytes:
        """An item enters; `more` holds `record`, further fields of it, and the envelope's."""
        return self._item("context.item.added", item_id, content, kind, **more)

    def update(self, item_id: str, content: Any, kind: str = "tool_result", **more: Any) -> bytes:
        """Another version of an item."""
        return self._item("context.item.updated", item_id, content, kind, **more)

    def _item(self, event: str, item_id: str, content: Any, kind: str, **more: Any) -> bytes:
        record = {
            "schema_version": "0.1.1",
            "item_id": item_id,
            "context_kind": kind,
            "content_mode": "inline",
            "content": content,
            "visibility": ["model"],
            **more.pop("record", {}),
        }
        return self.event(event, record, **more)

    def whole(self, assembly_id: str, ids: list[str], *, mode: str = "window", **envelope: Any) -> bytes:
        """An assembly that lists all its blocks."""
        return self.assembly(assembly_id, ids, {"mode": mode}, **envelope)

    def splice(
        self, assembly_id: str, base: str, ids: list[str], splices: list[list[int]], **envelope: Any
    ) -> bytes:
        """An assembly as a change of `base`."""
        return self.assembly(
            assembly_id, ids, {"mode": "window", "base": base, "splices": splices}, **envelope
        )

    def assembly(self, assembly_id: str, ids: list[str], ours: dict[str, Any], **envelope: Any) -> bytes:
        """An assembly with what is ours of its metadata."""
        return self.event(
            "context.assembly.created",
            {
                "schema_version": "0.1.1",
                "assembly_id": assembly_id,
                "target": "model",
                "ordered_blocks": [{"block_id": f"b-{one}", "item_refs": [one]} for one in ids],
                "metadata": {"ctxctl": {"model": "gpt-5", **ours}},
            },
            **envelope,
        )

    def sent(self, assembly_id: str, **envelope: Any) -> bytes:
        """The request goes out."""
        return self.event(
            "context.injection.applied",
            {
                "schema_version": "0.1.1",
                "injection_id": f"i-{assembly_id}",
                "assembly_id": assembly_id,
                "target": "model",
                "injection_point": "messages",
            },
            **envelope,
        )

    def usage(self, tokens: int, /, cached: int = 0, **envelope: Any) -> bytes:
        """What the request was billed."""
        return self.event(
            "ctxctl.usage.reported",
            {"model": "gpt-5", "input_tokens": tokens, "cached_tokens": cached, "output_tokens": 20},
            **envelope,
        )


def at(turn: int, step: int = 1) -> dict[str, str]:
    """The envelope's place."""
    return {"turn_id": f"t{turn}", "step_id": f"t{turn}.{step}"}


def placed(step: int) -> dict[str, str]:
    """Where the step of this number is, with `TURN_OF` steps a turn."""
    return at(step // TURN_OF + 1, step % TURN_OF + 1)


def _prompt(log: Log, **where: str) -> Lines:
    yield log.item("system", "You are a careful assistant.", "system_prompt", **where)
    yield log.item("prompt", "What does the timetable of the ferry say?", "user_message", **where)


def _two_steps(log: Log, ids: list[str]) -> Lines:
    """One step with all of `ids`, and one that adds the answer."""
    yield log.whole("a1", ["system", "prompt", *ids], **at(1))
    yield log.sent("a1", **at(1))
    yield log.usage(50)
    yield log.item("answer", "It leaves at nine.", "assistant_message", **at(2))
    yield log.splice("a2", "a1", ["answer"], [[len(ids) + 2, 0, 1]], **at(2))
    yield log.sent("a2", **at(2))


def content_blocks(n: int) -> Lines:
    """One message of `n` content blocks."""
    log = Log()
    yield from _prompt(log, **at(1))
    yield log.item("big", [{"type": "text", "text": "x"}] * n, "user_message", **at(1))
    yield from _two_steps(log, ["big"])


def items_in_frame(n: int) -> Lines:
    """`n` items in one frame."""
    log = Log()
    yield from _prompt(log, **at(1))
    for i in range(n):
        yield log.item(f"item{i}", f"line {i} of it", **at(1))
    yield from _two_steps(log, [f"item{i}" for i in range(n)])


def equal_items(n: int) -> Lines:
    """`n` items of the same text in one frame."""
    log = Log()
    yield from _prompt(log, **at(1))
    for i in range(n):
        yield log.item(f"item{i}", "the same text in each of them, word for word", **at(1))
    yield from _two_steps(log, [f"item{i}" for i in range(n)])


def copies(n: int) -> Lines:
    """One item `n` times in a frame."""
    log = Log()
    yield from _prompt(log, **at(1))
    yield log.item("item", "the text of it", **at(1))
    yield from _two_steps(log, ["item"] * n)


def shuffled_items(n: int) -> Lines:
    """Two frames of the same `n` items, the second in reverse."""
    log = Log()
    yield from _prompt(log, **at(1))
    ids = [f"item{i}" for i in range(n)]
    for one in ids:
        yield log.item(one, f"text of {one}", **at(1))
    yield log.whole("a1", ids, **at(1))
    yield log.sent("a1", **at(1))
    yield log.whole("a2", ids[::-1], **at(2))
    yield log.sent("a2", **at(2))


def exchanged_items(n: int) -> Lines:
    """Two frames of `n` items each that have nothing in common."""
    log = Log()
    yield from _prompt(log, **at(1))
    for step in (1, 2):
        ids = [f"item{step}-{i}" for i in range(n)]
        for one in ids:
            yield log.item(one, f"text of {one}", **at(step))
        yield log.whole(f"a{step}", ids, **at(step))
        yield log.sent(f"a{step}", **at(step))


def versions(n: int) -> Lines:
    """One item updated `n` times before a request."""
    log = Log()
    yield from _prompt(log, **at(1))
    yield log.item("item", "version 0", **at(1))
    for i in range(n):
        yield log.update("item", f"version {i + 1}", **at(1))
    yield from _two_steps(log, ["item"])


def versions_by_step(n: int) -> Lines:
    """`n` steps, each with another version of one item."""
    log = Log()
    yield from _prompt(log, **placed(0))
    yield log.item("item", "version 0", **placed(0))
    yield log.whole("a0", ["system", "prompt", "item"], **placed(0))
    yield log.sent("a0", **placed(0))
    for i in range(1, n):
        yield log.update("item", f"version {i} of the text", **placed(i))
        yield log.splice(f"a{i}", f"a{i - 1}", ["item"], [[2, 1, 1]], **placed(i))
        yield log.sent(f"a{i}", **placed(i))


def appended_versions(n: int) -> Lines:
    """`n` steps of a history that grows, each with another version of one item: all old ones are stale."""
    log = Log()
    yield from _prompt(log, **placed(0))
    for i in range(n):
        yield log.update("item", f"version {i} of the text", **placed(i))
        yield log.whole(f"a{i}", ["item"], mode="append", **placed(i))
        yield log.sent(f"a{i}", **placed(i))


def appended_items(n: int) -> Lines:
    """`n` steps of a history that grows by one item."""
    log = Log()
    yield from _prompt(log, **placed(0))
    for i in range(n):
        yield log.item(f"item{i}", f"text {i} of it", **placed(i))
        yield log.whole(f"a{i}", [f"item{i}"], mode="append", **placed(i))
        yield log.sent(f"a{i}", **placed(i))


def growing_window(n: int) -> Lines:
    """`n` steps, each a splice on the one before that adds an item: n²/2 items, if all are written whole."""
    log = Log()
    yield from _prompt(log, **placed(0))
    yield log.whole("a0", ["system", "prompt"], **placed(0))
    yield log.sent("a0", **placed(0))
    for i in range(1, n):
        yield log.item(f"item{i}", f"text {i} of it", **placed(i))
        yield log.splice(f"a{i}", f"a{i - 1}", [f"item{i}"], [[i + 1, 0, 1]], **placed(i))
        yield log.sent(f"a{i}", **placed(i))
        yield log.usage(40 + 6 * i, 40 + 6 * (i - 1))


def growing_at_the_front(n: int) -> Lines:
    """As `growing_window`, but each item comes before all others: nothing of the prefix stays."""
    log = Log()
    yield from _prompt(log, **placed(0))
    yield log.whole("a0", ["system", "prompt"], **placed(0))
    yield log.sent("a0", **placed(0))
    for i in range(1, n):
        yield log.item(f"item{i}", f"text {i} of it", **placed(i))
        yield log.splice(f"a{i}", f"a{i - 1}", [f"item{i}"], [[0, 0, 1]], **placed(i))
        yield log.sent(f"a{i}", **placed(i))
        yield log.usage(40 + 6 * i)


def wide_window(n: int) -> Lines:
    """A window that holds an item `n` times, and `n / 6` steps that each put another in its middle."""
    log = Log()
    yield from _one_item_often(log, n)
    for i in range(1, n // 6):
        yield log.item(f"item{i}", f"text {i} of it", **placed(i))
        yield log.splice(f"a{i}", f"a{i - 1}", [f"item{i}"], [[n // 2, 0, 1]], **placed(i))
        yield log.sent(f"a{i}", **placed(i))


def unchanged_window(n: int) -> Lines:
    """As `wide_window`, and each step's window is that of the one before."""
    log = Log()
    yield from _one_item_often(log, n)
    for i in range(1, n // 6):
        yield log.splice(f"a{i}", f"a{i - 1}", [], [], **placed(i))
        yield log.sent(f"a{i}", **placed(i))


def _one_item_often(log: Log, n: int) -> Lines:
    """The first step, whose window holds an item `n` times."""
    yield from _prompt(log, **placed(0))
    yield log.item("item", "text of it", **placed(0))
    yield log.whole("a0", ["system", "prompt"] + ["item"] * n, **placed(0))
    yield log.sent("a0", **placed(0))


def splices_on_splices(n: int) -> Lines:
    """A chain of `n` assemblies of one step, each a splice on the one before."""
    log = Log()
    yield from _prompt(log, **at(1))
    yield log.item("a", "one", **at(1))
    yield log.whole("a0", ["system", "prompt", "a"], **at(1))
    for i in range(1, n):
        yield log.splice(f"a{i}", f"a{i - 1}", ["a"], [[2, 1, 1]], **at(1))
    yield log.sent(f"a{n - 1}", **at(1))


def splices_on_the_first(n: int) -> Lines:
    """`n` steps, each a splice on the very first assembly."""
    log = Log()
    yield from _prompt(log, **placed(0))
    yield log.whole("a0", ["system", "prompt"], **placed(0))
    yield log.sent("a0", **placed(0))
    for i in range(1, n):
        yield log.item(f"item{i}", f"text {i} of it", **placed(i))
        yield log.splice(f"a{i}", "a0", [f"item{i}"], [[2, 0, 1]], **placed(i))
        yield log.sent(f"a{i}", **placed(i))


def splices_in_one(n: int) -> Lines:
    """One assembly of `n` splices on one of `2n` blocks."""
    log = Log()
    yield from _prompt(log, **at(1))
    ids = [f"item{i}" for i in range(2 * n)]
    for one in ids:
        yield log.item(one, f"text of {one}", **at(1))
    yield log.whole("a1", ids, **at(1))
    yield log.sent("a1", **at(1))
    yield log.splice("a2", "a1", ["prompt"] * n, [[2 * i, 1, 1] for i in range(n)], **at(2))
    yield log.sent("a2", **at(2))


def threads(n: int) -> Lines:
    """`n` threads of one step each."""
    log = Log()
    for i in range(n):
        where = {**at(1), "thread_id": f"helper-{i}"}
        yield log.item(f"task{i}", f"Task {i}: look it up.", "user_message", **where)
        yield log.whole(f"a{i}", [f"task{i}"], **where)
        yield log.sent(f"a{i}", **where)
        yield log.usage(10, 0, **where)


def sessions(n: int) -> Lines:
    """`n` sessions of one step each."""
    for i in range(n):
        log = Log(f"s{i}")
        yield log.item("task", f"Task {i}: look it up.", "user_message", **at(1))
        yield log.whole("a", ["task"], **at(1))
        yield log.sent("a", **at(1))
        yield log.usage(10, 0, **at(1))


def turns(n: int) -> Lines:
    """`n` turns of one step, in a window of constant size."""
    log = Log()
    yield from _prompt(log, **at(1))
    yield log.whole("a0", ["system", "prompt"], **at(1))
    yield log.sent("a0", **at(1))
    for i in range(1, n):
        yield log.item(f"item{i}", f"question {i} of it", "user_message", **at(i + 1))
        yield log.whole(f"a{i}", ["system", f"item{i}"], **at(i + 1))
        yield log.sent(f"a{i}", **at(i + 1))
        yield log.usage(30, 0, **at(i + 1))


def steps_in_turn(n: int) -> Lines:
    """One turn of `n` steps, in a window of constant size."""
    log = Log()
    yield from _prompt(log, **at(1, 0))
    for i in range(n):
        yield log.item(f"item{i}", f"result {i} of it", **at(1, i))
        yield log.whole(f"a{i}", ["system", "prompt", f"item{i}"], **at(1, i))
        yield log.sent(f"a{i}", **at(1, i))
        yield log.usage(30, 0, **at(1, i))


def compactions(n: int) -> Lines:
    """`n` compactions, each of ten items."""
    log = Log()
    yield from _prompt(log, **at(1))
    for i in range(n):
        where = at(i + 1)
        ids = [f"item{i}-{k}" for k in range(10)]
        for one in ids:
            yield log.item(one, f"Look at src/{one}.py, and run `make {one}`.", **where)
        yield log.whole(f"a{i}", ["system", "prompt", *ids], **where)
        yield log.sent(f"a{i}", **where)
        yield from _compacted(log, i, ids, where)
    yield log.whole("end", ["system", "prompt", f"sum{n - 1}"], **at(n + 1))
    yield log.sent("end", **at(n + 1))


def _compacted(log: Log, i: int, ids: list[str], where: dict[str, str]) -> Lines:
    yield log.item(f"sum{i}", f"What was done in part {i}.", "thread_summary", **where)
    yield log.event(
        "context.compaction.completed",
        {
            "schema_version": "0.1.1",
            "compaction_id": f"c{i}",
            "trigger": "auto",
            "source_item_refs": ids,
            "summary_ref": f"sum{i}",
        },
        **where,
    )


def compacted_items(n: int) -> Lines:
    """One compaction of `n` items."""
    log = Log()
    yield from _prompt(log, **at(1))
    ids = [f"item{k}" for k in range(n)]
    for one in ids:
        yield log.item(one, f"Look at src/{one}.py, and run `make {one}`.", **at(1))
    yield log.whole("a1", ["system", "prompt", *ids], **at(1))
    yield log.sent("a1", **at(1))
    yield from _compacted(log, 0, ids, at(1))
    yield log.whole("a2", ["system", "prompt", "sum0"], **at(2))
    yield log.sent("a2", **at(2))


def redactions(n: int) -> Lines:
    """`n` items, each of them redacted after the request that had it."""
    log = Log()
    yield from _prompt(log, **at(1))
    ids = [f"item{i}" for i in range(n)]
    for i, one in enumerate(ids):
        yield log.item(one, f"The word of door {i} is {i * 7919:x}-{i * 104729:x} today.", **at(1))
    yield from _two_steps(log, ids)
    for one in ids:
        yield _redacted(log, one, **at(2))


def repeated_redactions(n: int) -> Lines:
    """One item that is redacted `n` times."""
    log = Log()
    yield from _prompt(log, **at(1))
    yield log.item("item", "The word of the door is swordfish-4711 today.", **at(1))
    yield from _two_steps(log, ["item"])
    for _ in range(n):
        yield _redacted(log, "item", **at(2))


def removals(n: int) -> Lines:
    """`n` items that come and go, and as many removals of what is not there."""
    log = Log()
    yield from _prompt(log, **at(1))
    for i in range(n):
        yield log.item(f"item{i}", f"text {i}", **at(1))
        yield log.event("context.item.removed", {"item_id": f"item{i}"}, **at(1))
        yield log.event("context.item.removed", {"item_id": f"nothing{i}"}, **at(1))
    yield from _two_steps(log, [])


def unknown_refs(n: int) -> Lines:
    """A frame of `n` blocks that name no item."""
    log = Log()
    yield from _prompt(log, **at(1))
    yield from _two_steps(log, [f"nothing{i}" for i in range(n)])


def refs_in_block(n: int) -> Lines:
    """One block that names `n` items."""
    log = Log()
    yield from _prompt(log, **at(1))
    ids = [f"item{i}" for i in range(n)]
    for one in ids:
        yield log.item(one, f"text of {one}", **at(1))
    yield log.event(
        "context.assembly.created",
        {
            "schema_version": "0.1.1",
            "assembly_id": "a1",
            "target": "model",
            "ordered_blocks": [{"block_id": "b", "item_refs": ids}],
        },
        **at(1),
    )
    yield log.sent("a1", **at(1))


def positions(n: int) -> Lines:
    """`n` blocks whose positions are against their order."""
    log = Log()
    yield from _prompt(log, **at(1))
    ids = [f"item{i}" for i in range(n)]
    for one in ids:
        yield log.item(one, f"text of {one}", **at(1))
    for step in (1, 2):
        yield log.event(
            "context.assembly.created",
            {
                "schema_version": "0.1.1",
                "assembly_id": f"a{step}",
                "target": "model",
                "ordered_blocks": [
                    {"block_id": f"b{i}", "item_refs": [one], "position": n - i} for i, one in enumerate(ids)
                ],
            },
            **at(step),
        )
        yield log.sent(f"a{step}", **at(step))


def candidates(n: int) -> Lines:
    """A selection of `n` candidates, half of them left out with reasons; a budget that cuts the rest."""
    log = Log()
    yield from _prompt(log, **at(1))
    ids = [f"item{i}" for i in range(n)]
    for one in ids:
        yield log.item(one, f"text of {one}", "retrieval_result", **at(1))
    half = n // 2
    yield log.event(
        "context.selection.completed",
        {
            "schema_version": "0.1.1",
            "selection_id": "sel",
            "candidate_item_refs": ids,
            "selected_item_refs": ids[:half],
            "omitted_item_refs": [{"item_ref": one, "reason": f"rank {one}"} for one in ids[half:]],
            "ranking_signals": {one: {"relevance": 0.5} for one in ids},
        },
        **at(1),
    )
    yield log.event(
        "context.budget.applied",
        {
            "schema_version": "0.1.1",
            "budget_id": "bud",
            "target": "model",
            "max_tokens": 1000,
            "truncation_records": [
                {"item_ref": one, "action": "truncated", "tokens_after": 2} for one in ids[:half]
            ],
        },
        **at(1),
    )
    yield from _two_steps(log, ids[:half])


def missing(n: int) -> Lines:
    """`n` things that should have been there and were not."""
    log = Log()
    yield from _prompt(log, **at(1))
    for i in range(n):
        yield log.event(
            "context.missing.detected",
            {
                "schema_version": "0.1.1",
                "missing_id": f"m{i}",
                "missing_kind": "file",
                "description": f"File {i} is not there.",
            },
            **at(1),
        )
    yield from _two_steps(log, [])


def labels(n: int) -> Lines:
    """One item with `n` kinds of visibility, of policy references and of sources."""
    log = Log()
    yield from _prompt(log, **at(1))
    names = [f"name{i}" for i in range(n)]
    record = {
        "visibility": ["model", *names],
        "policy_refs": names,
        "source_refs": [{"source_id": one, "digest": f"sha256:{i:064x}"} for i, one in enumerate(names)],
        "metadata": {one: one for one in names},
    }
    yield log.item("item", "text", record=record, **at(1))
    yield from _two_steps(log, ["item"])


def kinds(n: int) -> Lines:
    """`n` items, each of a kind of its own."""
    log = Log()
    yield from _prompt(log, **at(1))
    for i in range(n):
        yield log.item(f"item{i}", f"text {i}", f"kind_{i}", **at(1))
    yield from _two_steps(log, [f"item{i}" for i in range(n)])


def long_line(n: int) -> Lines:
    """One text of `8n` words on one line."""
    log = Log()
    yield from _prompt(log, **at(1))
    yield log.item("item", " ".join(f"word{i} of this long line, and so on" for i in range(n)), **at(1))
    yield from _two_steps(log, ["item"])


def many_lines(n: int) -> Lines:
    """A text of `n` lines, and an update that changes every other one."""
    log = Log()
    yield from _prompt(log, **at(1))
    yield log.item("item", "\n".join(f"line {i}" for i in range(n)), **at(1))
    yield log.whole("a1", ["system", "prompt", "item"], **at(1))
    yield log.sent("a1", **at(1))
    changed = "\n".join(f"line {i}" if i % 2 else f"other {i}" for i in range(n))
    yield log.update("item", changed, **at(2))
    yield log.whole("a2", ["system", "prompt", "item"], **at(2))
    yield log.sent("a2", **at(2))


def one_letter(n: int) -> Lines:
    """A text of `8n` times the same letter."""
    log = Log()
    yield from _prompt(log, **at(1))
    yield log.item("item", "a" * (8 * n), **at(1))
    yield from _two_steps(log, ["item"])


def wide_text(n: int) -> Lines:
    """A text of `4n` wide, combining and joined characters."""
    log = Log()
    yield from _prompt(log, **at(1))
    yield log.item("item", "漢e\u0301\u200d👩\u200d" * n, **at(1))
    yield from _two_steps(log, ["item"])


def long_name(n: int) -> Lines:
    """Names of `8n` characters: of an item, its title, its kind, the turn, the step."""
    log = Log()
    where = {"turn_id": "turn-" * n, "step_id": "step-" * n}
    yield log.item("item-no-" * n, "text", record={"title": "a title " * n}, **where)
    yield log.whole("a1", ["item-no-" * n], **where)
    yield log.sent("a1", **where)
    yield from _two_steps(log, ["item-no-" * n])


def nested(n: int) -> Lines:
    """Contents nested `n` deep, up to what the format reads."""
    log = Log()
    yield from _prompt(log, **at(1))
    deep = b'{"a":[' * (n // 2) + b"1" + b"]}" * (n // 2)
    line = log.item("item", "HOLE", **at(1))
    yield line.replace(b'"HOLE"', deep)
    yield from _two_steps(log, ["item"])


def unknown_events(n: int) -> Lines:
    """`n` events of types that nobody knows."""
    log = Log()
    yield from _prompt(log, **at(1))
    for i in range(n):
        yield log.event(f"their.event.number{i}", {"n": i}, **at(1))
    yield from _two_steps(log, [])


def repeated_events(n: int) -> Lines:
    """`n` times the same event id."""
    log = Log()
    yield from _prompt(log, **at(1))
    line = log.item("item", "text", **at(1))
    for _ in range(n):
        yield line
    yield from _two_steps(log, ["item"])


def damaged_lines(n: int) -> Lines:
    """`n` lines that are no JSON."""
    log = Log()
    yield from _prompt(log, **at(1))
    line = log.item("item", "text", **at(1))
    for i in range(n):
        yield line[: 30 + i % 60]
    yield from _two_steps(log, [])


def misses(n: int) -> Lines:
    """`n` steps of the same window, each billed without the cache that the one before would have left."""
    log = Log()
    text = " ".join(f"word{i}" for i in range(1200))
    yield log.item("system", text, "system_prompt", **placed(0))
    for i in range(n):
        if i:
            yield log.splice(f"a{i}", f"a{i - 1}", [], [], **placed(i))
        else:
            yield log.whole("a0", ["system"], **placed(0))
        yield log.sent(f"a{i}", **placed(i))
        yield log.usage(3600, 0, **placed(i))


def failures(n: int) -> Lines:
    """`n` steps without an answer, and as many without a place in the window."""
    log = Log()
    yield from _prompt(log, **placed(0))
    for i in range(n):
        yield log.whole(f"a{i}", ["system", "prompt"], **placed(i))
        yield log.sent(f"a{i}", **placed(i))
        yield log.event("ctxctl.step.failed", {"error": f"overloaded {i}", "status": 529}, **placed(i))


def late_events(n: int) -> Lines:
    """`n` usages of a step that is over, told long after it."""
    log = Log()
    yield from _prompt(log, **at(1))
    yield from _two_steps(log, [])
    for _ in range(n):
        yield log.usage(50, 0, **at(1))


def returning_items(n: int) -> Lines:
    """`n` steps in which one item comes and goes, in a window of constant size."""
    log = Log()
    yield from _prompt(log, **placed(0))
    yield log.item("item", "the text that comes and goes", **placed(0))
    for i in range(n):
        yield log.whole(f"a{i}", ["system", "prompt", "item"][: 2 + i % 2], **placed(i))
        yield log.sent(f"a{i}", **placed(i))


def copies_in_growing_window(n: int) -> Lines:
    """As `growing_window`, with one item that stands in it twice, in two versions."""
    log = Log()
    yield from _prompt(log, **placed(0))
    yield log.item("state", "the state of it", **placed(0))
    yield log.whole("first", ["system", "prompt", "state"], **placed(0))
    yield log.update("state", "another state of it", **placed(0))
    yield log.splice("a0", "first", ["state"], [[3, 0, 1]], **placed(0))
    yield log.sent("a0", **placed(0))
    for i in range(1, n):
        yield log.item(f"item{i}", f"text {i} of it", **placed(i))
        yield log.splice(f"a{i}", f"a{i - 1}", [f"item{i}"], [[i + 3, 0, 1]], **placed(i))
        yield log.sent(f"a{i}", **placed(i))


def redaction_in_growing_window(n: int) -> Lines:
    """As `growing_window`, with one item that was redacted at the beginning."""
    log = Log()
    yield from _prompt(log, **placed(0))
    yield log.item("secret", "The word of the door is swordfish-4711 today.", **placed(0))
    yield log.whole("a0", ["system", "prompt", "secret"], **placed(0))
    yield log.sent("a0", **placed(0))
    yield _redacted(log, "secret", **placed(0))
    for i in range(1, n):
        yield log.item(f"item{i}", f"text {i} of it", **placed(i))
        yield log.splice(f"a{i}", f"a{i - 1}", [f"item{i}"], [[i + 2, 0, 1]], **placed(i))
        yield log.sent(f"a{i}", **placed(i))


def steps_after_redactions(n: int) -> Lines:
    """`n` items that are redacted, and `n` steps after that in a window of constant size."""
    log = Log()
    yield from _prompt(log, **placed(0))
    for i in range(n):
        yield log.item(f"item{i}", f"The word of door {i} is {i * 7919:x}-{i * 104729:x} today.", **placed(0))
        yield _redacted(log, f"item{i}", **placed(0))
    for i in range(n):
        yield log.whole(f"a{i}", ["system", "prompt", "item0"][: 2 + i % 2], **placed(i))
        yield log.sent(f"a{i}", **placed(i))


def redacted_versions(n: int) -> Lines:
    """One item of `n` versions, redacted after each of them."""
    log = Log()
    yield from _prompt(log, **at(1))
    for i in range(n):
        yield log.update("item", f"The word of door {i} is {i * 7919:x}-{i * 104729:x} today.", **at(1))
        yield _redacted(log, "item", **at(1))
    yield from _two_steps(log, ["item"])


def _redacted(log: Log, item: str, **where: str) -> bytes:
    record = {"schema_version": "0.1.1", "item_id": item, "redaction_state": "redacted", "policy_refs": []}
    return log.event("context.redaction.applied", record, **where)


def versions_by_digest(n: int) -> Lines:
    """`n` versions of an item, each named by the beginning of its text's digest."""
    log = Log()
    yield from _prompt(log, **at(1))
    named = []
    for i in range(n):
        text = f"version {i}"
        digest = sha256(text.encode()).hexdigest()
        yield log.update("item", text, record={"metadata": {"version": f"v{i}"}}, **at(1))
        named.append(f"item@{digest[:12]}")
    yield from _two_steps(log, named)


def interleaved_threads(n: int) -> Lines:
    """`n` threads side by side: all begin before the first ends."""
    log = Log()
    for i in range(n):
        where = {**at(1), "thread_id": f"helper-{i}"}
        yield log.item(f"task{i}", f"Task {i}: look it up.", "user_message", **where)
    for i in range(n):
        where = {**at(1), "thread_id": f"helper-{i}"}
        yield log.whole(f"a{i}", [f"task{i}"], **where)
        yield log.sent(f"a{i}", **where)


def interleaved_steps(n: int) -> Lines:
    """Two threads side by side, one of which has `n` steps while the other has one."""
    log = Log()
    yield log.item("task", "Look it up.", "user_message", **at(1), thread_id="slow")
    for i in range(n):
        where = {**placed(i), "thread_id": "quick"}
        yield log.item(f"item{i}", f"text {i} of it", **where)
        yield log.whole(f"a{i}", [f"item{i}"], **where)
        yield log.sent(f"a{i}", **where)
    yield log.whole("end", ["task"], **at(1), thread_id="slow")
    yield log.sent("end", **at(1), thread_id="slow")


def records_in_step(n: int) -> Lines:
    """One step with `n` of each record that a step has once, such as a budget."""
    log = Log()
    yield from _prompt(log, **at(1))
    for i in range(n):
        yield log.event(
            "context.surface.updated",
            {"schema_version": "0.1.1", "surface_id": f"sf{i}", "available_item_refs": ["prompt"]},
            **at(1),
        )
        yield log.event(
            "context.selection.completed",
            {"schema_version": "0.1.1", "selection_id": f"sl{i}", "selected_item_refs": ["prompt"]},
            **at(1),
        )
        yield log.event(
            "context.budget.applied",
            {"schema_version": "0.1.1", "budget_id": f"bd{i}", "target": "model", "max_tokens": 1000 + i},
            **at(1),
        )
        yield log.event(
            "context.exported",
            {"schema_version": "0.1.1", "context_id": f"c{i}", "item_refs": ["prompt"]},
            **at(1),
        )
        yield log.event("ctxctl.step.failed", {"error": f"overloaded {i}", "status": 529}, **at(1))
        if i % 2:
            yield log.event("ctxctl.step.answered", {"attempts": 2}, **at(1))
    yield from _two_steps(log, [])


def injections_in_step(n: int) -> Lines:
    """One step with `n` injections, half of them for other targets."""
    log = Log()
    yield from _prompt(log, **at(1))
    yield log.whole("a", ["system", "prompt"], **at(1))
    for i in range(n):
        yield log.event(
            "context.injection.applied",
            {
                "schema_version": "0.1.1",
                "injection_id": f"i{i}",
                "assembly_id": "a",
                "target": "model" if i % 2 else f"peer_agent_{i}",
                "injection_point": "messages",
            },
            **at(1),
        )


def dropped_items(n: int) -> Lines:
    """`n` items that leave at once, and as many names of a budget that left them out."""
    log = Log()
    yield from _prompt(log, **at(1))
    ids = [f"item{i}" for i in range(n)]
    for one in ids:
        yield log.item(one, f"text of {one}", **at(1))
    yield log.whole("a1", ["system", "prompt", *ids], **at(1))
    yield log.sent("a1", **at(1))
    yield log.event(
        "context.budget.applied",
        {
            "schema_version": "0.1.1",
            "budget_id": "bud",
            "target": "model",
            "max_tokens": 100,
            "truncation_records": [{"item_ref": one, "action": "dropped", "reason": "old"} for one in ids],
        },
        **at(2),
    )
    yield log.whole("a2", ["system", "prompt"], **at(2))
    yield log.sent("a2", **at(2))


def blocks_with_texts(n: int) -> Lines:
    """`n` blocks with wrappers and texts of their own, of which every other one has two items."""
    log = Log()
    yield from _prompt(log, **at(1))
    for i in range(n):
        yield log.item(f"item{i}", f"text {i} of it", **at(1))
    blocks = [
        {
            "block_id": f"b{i}",
            "item_refs": [f"item{i}"] if i % 2 else [f"item{i}", f"item{i + 1}"],
            "wrapper": {"before": f"[{i}] ", "after": ""},
            "content": f"own text {i}",
        }
        for i in range(n)
    ]
    yield log.event(
        "context.assembly.created",
        {"schema_version": "0.1.1", "assembly_id": "a1", "target": "model", "ordered_blocks": blocks},
        **at(1),
    )
    yield log.sent("a1", **at(1))
    yield log.splice("a2", "a1", ["prompt"] * (n // 2), [[2 * i, 1, 1] for i in range(n // 2)], **at(2))
    yield log.sent("a2", **at(2))


def tool_definitions(n: int) -> Lines:
    """`n` tools, none of which is called, and `n` calls of one that is not defined."""
    log = Log()
    yield from _prompt(log, **at(1))
    ids = []
    for i in range(n):
        tool = {"name": f"tool_{i}", "description": f"Does {i}.", "input_schema": {"type": "object"}}
        yield log.item(f"tool{i}", tool, "tool_definition", **at(1))
        yield log.item(f"call{i}", {"name": "other", "arguments": {"path": f"a{i}.py"}}, "tool_call", **at(1))
        ids += [f"tool{i}", f"call{i}"]
    yield from _two_steps(log, ids)


def redacted_words(n: int) -> Lines:
    """One item of `20n` words that repeat themselves, and a version of it in which every third is masked."""
    log = Log()
    yield from _prompt(log, **at(1))
    words = [f"word{i % 7}" for i in range(20 * n)]
    yield log.item("item", " ".join(words), **at(1))
    yield from _two_steps(log, ["item"])
    masked = [word if i % 3 else "[redacted]" for i, word in enumerate(words)]
    redacted = {"redaction_state": "redacted"}
    yield log.update("item", " ".join(masked), record=redacted, **at(2))


DIMENSIONS: Final[Mapping[str, Callable[[int], Lines]]] = {
    made.__name__: made
    for made in (
        content_blocks,
        items_in_frame,
        equal_items,
        copies,
        shuffled_items,
        exchanged_items,
        versions,
        versions_by_step,
        appended_versions,
        appended_items,
        growing_window,
        growing_at_the_front,
        wide_window,
        unchanged_window,
        splices_on_splices,
        splices_on_the_first,
        splices_in_one,
        threads,
        sessions,
        turns,
        steps_in_turn,
        compactions,
        compacted_items,
        redactions,
        repeated_redactions,
        removals,
        unknown_refs,
        refs_in_block,
        positions,
        candidates,
        missing,
        labels,
        kinds,
        long_line,
        many_lines,
        one_letter,
        wide_text,
        long_name,
        nested,
        unknown_events,
        repeated_events,
        damaged_lines,
        misses,
        failures,
        late_events,
        returning_items,
        copies_in_growing_window,
        redaction_in_growing_window,
        steps_after_redactions,
        redacted_versions,
        versions_by_digest,
        interleaved_threads,
        interleaved_steps,
        records_in_step,
        injections_in_step,
        dropped_items,
        blocks_with_texts,
        tool_definitions,
        redacted_words,
    )
}
"""By name."""


def many_captures(n: int) -> Iterator[tuple[str, Lines]]:
    """`n` traces of one session each, of three steps, half of them in another month."""
    for i in range(n):
        lines = _session(f"s{i}")
        yield f"trace{i}.jsonl", (line.replace(b"-03-04T", b"-04-04T") for line in lines) if i % 2 else lines


def _session(name: str) -> Lines:
    log = Log(name)
    yield from _prompt(log, **at(1))
    yield log.item("answer", f"The answer of {name}.", "assistant_message", **at(1))
    for step in range(1, 4):
        yield log.whole(f"a{step}", ["system", "prompt", "answer"][:step], **at(step))
        yield log.sent(f"a{step}", **at(step))
        yield log.usage(20 * step, 0, **at(step))


def plan_of_turns(n: int) -> Iterator[tuple[str, Lines]]:
    """The plan of a conversation of `n` turns, in a window that is full after a few."""
    yield "plan.toml", _planned(n, 2)


def plan_of_parts(n: int) -> Iterator[tuple[str, Lines]]:
    """A plan of `n` parts."""
    yield "plan.toml", _planned(3, n)


def _planned(turns: int, parts: int) -> Lines:
    yield b'version = 1\npolicy = "fifo"\nruns = 4\n[model]\nname = "gpt-5"\nwindow = %d' % (500 + 20 * parts)
    yield b"[conversation]\nturns = %d\nuser = { p50 = 20, p95 = 60 }\nanswer = 30" % turns
    yield b"calls = 1\nresult = 40"
    for i in range(parts):
        yield b'[[part]]\nname = "part %d"\nsegment = "system"\ntext = "part %d of it"' % (i, i)


FOLDERS: Final[Mapping[str, Callable[[int], Iterator[tuple[str, Lines]]]]] = {
    "many_captures": many_captures,
    "plan_of_turns": plan_of_turns,
    "plan_of_parts": plan_of_parts,
}
"""Folders and other files that are large in one dimension, by name: names of files, and their lines."""
