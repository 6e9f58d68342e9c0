"""What ctxctl says of a capture, held against what the raw bodies say: one sentence for each disagreement."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from tools.independent import frames
from tools.independent.bills import Bill
from tools.independent.counting import tokens
from tools.independent.raw import Object, at
from tools.independent.wire import Block, Request, blocks, chained, dialect


class Disagreement(NamedTuple):
    """One thing that two readers say differently."""

    what: str
    """`bill`, `window`, `further`, `believed`, `thread`, `items`, `status`, `new`, `freed`, `prefix`,
    `tokens`, `sum`, `cost`, `cleared`, `stated`, `bound`."""
    where: str
    raw: Any
    """What the raw file says."""
    said: Any
    """What ctxctl says."""

    def __str__(self) -> str:
        return f"{self.what} at {self.where}: raw {self.raw}, ctxctl {self.said}"


HERE = ("added", "updated", "skipped")


def place(step: Object) -> str:
    return f"{step['thread']}:{step['turn']}.{step['step']}"


def billed(step: Object) -> tuple[int, int, int, int] | None:
    """A step's bill as four numbers; what is not told counts as nothing, and an input of 0 is no bill."""
    usage = step["usage"]
    if usage is None or not usage["reported_input"]:
        return None
    written = step["cache"]["reported_cache_write"]
    return usage["reported_input"], usage["reported_cached"] or 0, written or 0, usage["reported_output"] or 0


def flat(bill: Bill | None) -> tuple[int, int, int, int] | None:
    if bill is None or not bill.sent:
        return None
    return bill.sent, bill.cached or 0, bill.written or 0, bill.output or 0


def bills(found: list[Bill], steps: list[Object]) -> list[Disagreement]:
    """Each bill of the raw file is one step's, and each step's bill is one of these; windows say it too."""
    wrong = []
    left = [(told, step) for step in steps if (told := billed(step)) is not None]
    for bill in sorted(found, key=lambda bill: bill.output is None):
        key = flat(bill)
        if key is None:
            continue
        # An output that is not told is any: it came with another line.
        place_ = next(
            (i for i, (told, _) in enumerate(left) if told[:3] == key[:3] and bill.output in (None, told[3])),
            None,
        )
        if place_ is None:
            wrong.append(Disagreement("bill", bill.ident or "?", key, None))
        else:
            wrong += passes(bill, left.pop(place_)[1])
    wrong += [Disagreement("bill", place(step), None, told) for told, step in left]
    return wrong + [one for step in steps for one in window(step)]


def passes(bill: Bill, step: Object) -> list[Disagreement]:
    """What the last pass read is what was sent; passes of other models, and outputs that are no bill's."""
    wrong = []
    held, usage = step["window"], step["usage"]
    size = bill.sent if bill.size is None else bill.size
    if (held["used"], held["used_method"]) != (size, "reported"):
        wrong.append(Disagreement("window", place(step), size, (held["used"], held["used_method"])))
    told = at(usage, "terms", "further") or ()
    further = [(one["model"], one["input_tokens"], one["output_tokens"]) for one in told]
    if further != list(bill.further):
        wrong.append(Disagreement("further", place(step), bill.further, further))
    if usage["believed_output"] is not None and not bill.is_partial:
        wrong.append(Disagreement("believed", place(step), None, usage["believed_output"]))
    return wrong


def cleared(gone: dict[str, set[str]], steps: list[Object]) -> list[Disagreement]:
    """No result that a transcript says was cleared is in the window of that request."""
    wrong = []
    for step in steps:
        kept = {item["item"] for item in items(step) if item["kind"] == "tool_result"}
        kept &= {f"{use}/result" for use in gone.get(step["step_id"], ())}
        wrong += [Disagreement("cleared", place(step), "cleared", sorted(kept))] if kept else []
    return wrong


def window(step: Object) -> list[Disagreement]:
    """The sums of a step hold."""
    wrong = []
    held = step["window"]
    ledger = step["ledger"]
    after = ledger["window_before"] + ledger["new"] - ledger["freed"] + (ledger.get("reweighed") or 0)
    if after != ledger["window_after"] or held["recorded"] != ledger["window_after"]:
        wrong.append(Disagreement("sum", place(step), after, ledger["window_after"]))
    if held["unrecorded"] is not None and held["used"] != held["recorded"] + held["unrecorded"]:
        wrong.append(Disagreement("sum", place(step), held["used"], held["recorded"] + held["unrecorded"]))
    return wrong


class Pair(NamedTuple):
    """A request and the step that is said to be it."""

    request: Request
    blocks: list[Block]
    step: Object
    before: int | None
    """Position of the pair that precedes it in its thread, as ctxctl has it."""


def pairs(requests: list[Request], steps: list[Object]) -> tuple[list[Pair], list[Disagreement]]:
    """Each request with its step: by its bill and the number of its items, in order among equals."""
    whole = chained(requests)
    waiting = list(range(len(steps)))
    chosen: dict[int, int] = {}
    for strict in (True, False):
        for number, (request, held) in enumerate(zip(requests, whole, strict=True)):
            if number in chosen:
                continue
            for position in waiting:
                step = steps[position]
                if billed(step) != flat(request.bill) or (strict and len(items(step)) != len(held)):
                    continue
                chosen[number] = position
                waiting.remove(position)
                break
    wrong = [
        Disagreement("bill", f"request {n + 1}", flat(r.bill), None)
        for n, r in enumerate(requests)
        if n not in chosen
    ]
    wrong += [
        Disagreement("bill", place(steps[position]), None, billed(steps[position])) for position in waiting
    ]
    owner = {position: number for number, position in chosen.items()}
    last: dict[tuple[Any, Any], int] = {}
    previous: dict[int, int | None] = {}
    for position, step in enumerate(steps):
        key = step["session"], step["thread"]
        previous[position] = last.get(key)
        last[key] = position
    order = sorted(chosen)
    index = {number: at_ for at_, number in enumerate(order)}
    made = []
    for number in order:
        earlier = previous[chosen[number]]
        before = index.get(owner[earlier]) if earlier is not None and earlier in owner else None
        made.append(Pair(requests[number], whole[number], steps[chosen[number]], before))
    late = [n for n, other in pairwise(order) if chosen[other] < chosen[n]]
    if late:
        first = place(steps[chosen[late[0]]])
        wrong.append(
            Disagreement("order", first, "in the order of the file", f"{len(late)} steps come too late")
        )
    return made, wrong


def items(step: Object) -> list[Object]:
    """The items that a step's frame holds, in its order (of `replay --json --all`).

    A runtime's section within the system prompt is an item of its own there (`system:0/2` goes on behind
    it); the provider reads it as one piece, and so does this.
    """
    return whole([change for change in step["changes"] if change["status"] in HERE])


def whole(items_: list[Object]) -> list[Object]:
    """The items or blocks with the parts of a piece put together."""
    found: list[Object] = []
    for item in items_:
        name, _, part = str(item["item"]).rpartition("/")
        first = next((i for i, one in enumerate(found) if one["item"] == name), None)
        behind = bool(found) and str(found[-1]["item"]).startswith("system:")
        if item["kind"] == "system_prompt" and part.isdigit() and first is not None:
            found[first:] = [_together([*found[first:], item])]
        elif item["kind"] == "external_resource" and behind:  # a file that the system prompt took in
            found[-1] = _together([found[-1], item])
        else:
            found.append(item)
    return found


def _together(parts: list[Object]) -> Object:
    """Several items as one."""
    made = dict(parts[0])
    for name in ("tokens", "in_window", "new", "freed"):
        if name in made:
            made[name] = sum(part[name] for part in parts)
    if "text" in made:
        made["text"] = "".join(str(part["text"]) for part in parts)
    if "status" in made and len({part["status"] for part in parts}) > 1:
        made["status"] = "updated"
    return made


def wire(requests: list[Request], steps: list[Object]) -> list[Disagreement]:
    """Windows, statuses, new, freed and prefix of every request."""
    made, wrong = pairs(requests, steps)
    kinds = [dialect(pair.request.body) for pair in made]
    sent = [
        blocks(pair.request.body) if kind == "anthropic" else pair.blocks
        for pair, kind in zip(made, kinds, strict=True)
    ]
    talks = frames.conversation(sent, kinds)
    for number, pair in enumerate(made):
        wrong += window(pair.step)
        bill = pair.request.bill
        wrong += [] if bill is None or not bill.sent else passes(bill, pair.step)
        wrong += [Disagreement("thread", place(pair.step), *held) for held in _thread(number, made, talks)]
        if len(items(pair.step)) != len(pair.blocks):
            wrong.append(Disagreement("items", place(pair.step), len(pair.blocks), len(items(pair.step))))
            continue
        wrong += sizes(pair)
        if pair.before is None:
            if {item["status"] for item in items(pair.step)} - {"added"}:
                wrong.append(
                    Disagreement("status", place(pair.step), {"added": len(pair.blocks)}, pair.step["counts"])
                )
        elif len(items(made[pair.before].step)) == len(made[pair.before].blocks):
            wrong += step(made[pair.before], pair)
    return wrong


def sizes(pair: Pair) -> list[Disagreement]:
    """Texts whose model's encoding is public are as long as tiktoken says."""
    methods = [name for name in pair.step["window"]["by_method"] if name != "declared"]
    if len(methods) != 1 or not methods[0].startswith("exact:"):
        return []
    wrong = []
    for block, item in zip(pair.blocks, items(pair.step), strict=True):
        count = None if block.text is None else tokens(block.text, methods[0].removeprefix("exact:"))
        if count is not None and count != item["in_window"]:
            wrong.append(
                Disagreement("tokens", f"{place(pair.step)} {item['item']}", count, item["in_window"])
            )
    return wrong


def _thread(number: int, made: list[Pair], talks: list[int | None]) -> list[tuple[Any, Any]]:
    """Where the messages go on with one request and ctxctl says another."""
    pair, mine = made[number], talks[number]
    if mine is None or mine == pair.before:
        return []
    theirs = pair.before
    if theirs is not None and _shared(made[theirs], pair) >= _shared(made[mine], pair):
        return []  # the bodies do not tell which of two equal ones it goes on with
    said = None if theirs is None else place(made[theirs].step)
    return [(place(made[mine].step), said)]


def _shared(one: Pair, other: Pair) -> int:
    mine, theirs = (
        [b for b in pair.blocks if b.part not in {"tools", "schema", "system"}] for pair in (one, other)
    )
    count = 0
    while count < min(len(mine), len(theirs)) and mine[count] == theirs[count]:
        count += 1
    return count


def step(before: Pair, now: Pair) -> list[Disagreement]:
    """One request against the one before it."""
    wrong = []
    where, here, there = place(now.step), items(now.step), items(before.step)
    change = frames.change(before.blocks, now.blocks, before.request.read, now.request.read)
    said = [item["status"] for item in here]
    for position, (mine, theirs) in enumerate(zip(change.status, said, strict=True)):
        if mine != theirs:
            wrong.append(Disagreement("status", f"{where} {here[position]['item']}", mine, theirs))
    if now.step["counts"]["removed"] != len(change.removed):
        gone = [there[position]["item"] for position in change.removed]
        told = [item["item"] for item in now.step["changes"] if item["status"] == "removed"]
        wrong.append(Disagreement("status", f"{where} removed", gone[:4], told[:4]))
    ledger = now.step["ledger"]
    new = sum(here[position]["in_window"] for position in change.new)
    freed = sum(there[position]["in_window"] for position in change.freed)
    if (ledger["new"], ledger["freed"]) != (new, freed):
        wrong.append(Disagreement("new", where, (new, freed), (ledger["new"], ledger["freed"])))
    prefix = sum(there[position]["in_window"] for position in range(change.cached))
    if now.step["cache"]["possible_prefix"] != prefix:
        broken = now.step["cache"]["broken_by"]
        told = now.step["cache"]["possible_prefix"], at(broken, "position"), at(broken, "item")
        wrong.append(Disagreement("prefix", where, (prefix, change.cached, change.why), told))
    elif change.why == "content":
        # What could not be kept, or what stands in its place.
        either = {there[change.cached]["item"], *(line["item"] for line in here[change.cached :][:1])}
        told = at(now.step["cache"]["broken_by"], "item")
        if told not in either:
            wrong.append(Disagreement("prefix", where, sorted(either), told))
    return wrong
