"""`blame` and `why` of single steps, held against the raw bodies of the whole conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from tools.independent.compare import Disagreement, Pair, items, pairs, place, whole
from tools.independent.raw import Object, at
from tools.independent.wire import Block, Request

Ask = Callable[[list[str]], list[Object]]
"""Runs ctxctl with the arguments and gives the objects that it prints."""

MOST = 4
"""Items of a step that are asked about, of each sort."""


def check(
    file: str, requests: list[Request], steps: list[Object], ask: Ask, most: int = MOST
) -> list[Disagreement]:
    """`blame` of each thread's last step and of those behind a removal, and `why` of some items there."""
    made, _ = pairs(requests, steps)
    many = len({step["session"] for step in steps}) > 1
    wrong: list[Disagreement] = []
    for number in _chosen(made, most):
        pair = made[number]
        if len(items(pair.step)) != len(pair.blocks):
            continue
        address = f"{file}@{address_of(pair.step, session=many)}"
        told = ask(["blame", address, "--json"])
        wrong += blame(number, made, whole([line for line in told if line.get("type") == "block"]))
        wrong += _why(number, made, address, ask, most)
    return wrong


def _chosen(made: list[Pair], most: int) -> list[int]:
    last = {(pair.step["session"], pair.step["thread"]): number for number, pair in enumerate(made)}
    removals = [
        n for n, pair in enumerate(made) if pair.step["counts"]["removed"] and pair.before is not None
    ]
    return sorted({*list(last.values())[-most:], *removals[-most:]})


def address_of(step: Object, *, session: bool) -> str:
    def doubled(name: str) -> str:
        return name.replace("/", "//").replace(":", "::")

    front = f"{doubled(str(step['session']))}/" if session else ""
    return f"{front}{doubled(step['thread'])}:{step['turn']}.{step['step']}"


def _back(number: int, made: list[Pair]) -> Iterator[int]:
    """The request and those before it in its thread, the latest first."""
    at_: int | None = number
    while at_ is not None:
        yield at_
        at_ = made[at_].before


def _at(pair: Pair) -> tuple[int, int]:
    return pair.step["turn"], pair.step["step"]


def blame(number: int, made: list[Pair], told: list[Object]) -> list[Disagreement]:
    """Each block in its order with its text, and the request since which it has stood there."""
    pair = made[number]
    where = f"blame {place(pair.step)}"
    wrong = []
    if len(told) != len(pair.blocks):
        return [Disagreement("items", where, len(pair.blocks), len(told))]
    for block, line in zip(pair.blocks, told, strict=True):
        if block.text is not None and line["text"] is not None and _bare(line["text"]) != _bare(block.text):
            wrong.append(Disagreement("text", f"{where} {line['item']}", block.text[:60], line["text"][:60]))
        since = _since(number, made, block)
        said = (at(line, "since", "turn"), at(line, "since", "step"))
        if since is not None and said != since:
            wrong.append(Disagreement("since", f"{where} {line['item']}", since, said))
    return wrong


def _bare(text: str) -> str:
    """A text without the space that parts of it are put together with."""
    return "".join(text.split())


def _since(number: int, made: list[Pair], block: Block) -> tuple[int, int] | None:
    """The first request of the unbroken stretch that holds the block; None where it has copies."""
    first = number
    for earlier in _back(number, made):
        copies = made[earlier].blocks.count(block)
        if copies > 1:
            return None
        if not copies:
            break
        first = earlier
    return _at(made[first])


def _why(number: int, made: list[Pair], address: str, ask: Ask, most: int) -> Iterator[Disagreement]:
    pair = made[number]
    here = items(pair.step)
    there = {line["item"] for line in here}
    step_ = max(1, len(here) // most)
    for position in range(0, len(here), step_):
        said = _said(ask(["why", address, here[position]["item"], "--json", "--no-what-if"]))
        where = f"why {place(pair.step)} {here[position]['item']}"
        if said is None or not said["present"]:
            yield Disagreement("why", where, "present", said and said["state"])
            continue
        first, entered = _entered(number, made, pair.blocks[position]), _link(said, "entered")
        if first is not None and entered not in (None, first):
            yield Disagreement("why", where, f"entered {first}", f"entered {entered}")
    if pair.before is None:
        return
    before = made[pair.before]
    gone = [line["item"] for line in pair.step["changes"] if line["status"] == "removed"]
    held = {line["item"]: block for line, block in zip(items(before.step), before.blocks, strict=False)}
    for name in [name for name in gone if name not in there][:most]:
        said = _said(ask(["why", address, name, "--json", "--no-what-if"]))
        where = f"why {place(pair.step)} {name}"
        block = held.get(name)
        if block is None or pair.blocks.count(block):
            raw = "was not in the request before" if block is None else "stands verbatim in this request"
            yield Disagreement("why", where, raw, said and said["state"])
        elif said is None or said["present"]:
            yield Disagreement("why", where, "out", said and said["state"])
        elif (left := [link for link in said["chain"] if link["stage"] not in {"cost", "room"}]) and not any(
            (link["turn"], link["step"]) == _at(pair) for link in left
        ):
            yield Disagreement("why", where, f"left at {_at(pair)}", [(x["turn"], x["step"]) for x in left])


def _entered(number: int, made: list[Pair], block: Block) -> tuple[int, int] | None:
    """The first request of the thread that holds the item, in whatever version."""
    held = [
        n
        for n in _back(number, made)
        if any(
            b == block or (b.ident and (b.part, b.ident) == (block.part, block.ident)) for b in made[n].blocks
        )
    ]
    if any(made[n].blocks.count(block) > 1 for n in held) or not _unbroken(held, made):
        return None
    return _at(made[held[-1]])


def _unbroken(held: list[int], made: list[Pair]) -> bool:
    return all(made[one].before == other for one, other in pairwise(held))


def _said(told: list[Object]) -> Object | None:
    return next((line for line in told if line.get("type") == "why"), None)


def _link(said: Object, verdict: str) -> tuple[int, int] | None:
    """Where the first link with a verdict is."""
    for link in said["chain"]:
        if link["verdict"] == verdict:
            return link["turn"], link["step"]
    return None
