"""Random traces for the laws: what a trace may hold, less what DESIGN leaves open.

Left out on purpose, because two readings of DESIGN are possible: one item twice in a window, the same version
sent again into a growing history, an item touched twice in one step, a selection in the step of a compaction,
a selection of what the target cannot see (so visibility changes only where nothing is selected).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.oracle import build
from tests.oracle.build import Event

BASES = (build.ALPHA, build.HELLO, build.ONE_TWO, build.RED, build.ABC, build.CAT)
NAMES = ("A", "B", "C", "D", "E", "F")
KINDS = {"A": "system_prompt", "B": "tool_definition", "C": "user_message"}
CAUSES = (None, "detached", "expired", "cleared")
REASONS = ("low_relevance", "stale", "too_large")
LARGE = 700
"""An estimate that exceeds the bills of these traces."""
MODES = ("assemblies", "unselected", "mixed", "append", "appendix")
LEAVES: tuple[dict[str, str], ...] = ({}, {"signature": "one"}, {"signature": "two"}, {"id": "x"})
BRANCHED = ("r1", "r1", "r1", "r2")


@dataclass
class Writer:
    """One thread that is being written."""

    draw: Any
    style: str
    session: str
    thread: str | None
    events: list[Event]
    named: bool = True
    """Whether turns and steps have ids."""
    tardy: bool = True
    """Whether events may come for a step that is already sealed."""
    injected: bool = False
    turn: int = 1
    step: int = 0
    serial: int = 0
    known: dict[str, str] = field(default_factory=dict)
    """Version of every item ever added."""
    visible: set[str] = field(default_factory=set)
    live: set[str] = field(default_factory=set)
    blocks: list[dict[str, Any]] | None = None
    """The last assembly, versions named, in order."""
    last: int = 0
    """The step of the last assembly."""

    def chance(self, of: int) -> bool:
        return bool(self.draw(st.integers(1, of)) == 1)

    def some(self, names: set[str] | list[str], most: int = 6) -> list[str]:
        if not names:
            return []
        picked: list[str] = self.draw(st.lists(st.sampled_from(sorted(names)), unique=True, max_size=most))
        return picked

    def fresh(self) -> str:
        self.serial += 1
        return f"{self.draw(st.sampled_from(BASES))} {self.serial}"

    def put(self, event: Event, *, late: bool = False) -> None:
        step = self.step - 1 if late else self.step
        ids = {"session_id": self.session, "turn_id": f"t{self.turn}", "step_id": f"s{step}"}
        if not self.named:
            del ids["turn_id"], ids["step_id"]
        if self.thread:
            ids["thread_id"] = self.thread
        self.events.append({**event, **ids})

    def write_step(self) -> None:
        """One step: what happens to items, what is recorded of the request, its injection and its bill."""
        new_turn = self.step > 0 and self.chance(3)
        self.turn += new_turn
        self.step += 1
        late = self.tardy and self.injected and not new_turn and self.chance(4)
        self.injected = False
        if late and self.chance(2):
            # The next step has begun, so what is late comes in the middle of it.
            self.put(build.budget(20, 2))
        touched = self._touch(late=late)
        compacts = self.chance(4) and self._compact(touched)
        if self.style in ("append", "appendix"):
            self._grow(touched, first=self.step == 1)
        else:
            self._resend(compacts)
        if self.chance(2):
            self.put(build.usage(self._bill(), cached=self.draw(st.integers(0, 9))))

    def _bill(self) -> int:
        """More than before, so that no cut is in it; or nothing, which no provider can mean."""
        return 0 if self.chance(8) else 50 + self.step

    def _touch(self, *, late: bool) -> list[str]:
        touched = []
        for name in self.some(list(NAMES), 3):
            if name in self.live and self.chance(3):
                self.put(build.remove(name, self.draw(st.sampled_from(CAUSES))), late=late)
                self.live.discard(name)
                continue
            touched.append(name)
            self._say(name, late=late)
        if self.live and self.chance(6):
            self.put(build.redact(self.draw(st.sampled_from(sorted(self.live)))))
        return touched

    def _say(self, name: str, *, late: bool) -> None:
        self.serial += 1
        visibility = ("tool",) if self.chance(5) else ("model",)
        if name in self.known and self.style not in ("assemblies", "unselected"):
            visibility = ("model",) if name in self.visible else ("tool",)
        version = str(self.serial)
        content = None if self.chance(6) else self.fresh()
        estimate = self.draw(st.sampled_from((None, None, 7, 7, 7, LARGE)))
        made = build.item(
            name,
            content,
            kind=KINDS.get(name, "durable_memory"),
            visibility=visibility,
            estimate=estimate,
            version=version,
            updated=name in self.known,
        )
        self.put(made, late=late)
        self.known[name] = version
        self.live.add(name)
        (self.visible.add if visibility == ("model",) else self.visible.discard)(name)

    def _compact(self, touched: list[str]) -> bool:
        sources = self.some(self.live - set(touched), 2)
        if not sources:
            return False
        self.serial += 1
        name = f"S{self.serial}"
        self.put(build.summary(name, self.fresh()))
        self.put(build.compact(sources, name))
        self.live -= set(sources)
        self.live.add(name)
        self.visible.add(name)
        return True

    def _inject(self, point: str) -> None:
        self.put(build.inject(point=point))
        self.injected = True

    def _resend(self, compacted: bool) -> None:
        basis = self.draw(st.sampled_from(("assembly", "splices", "items", "selection")))
        if basis == "selection" and (compacted or self.style == "unselected"):
            basis = "items"
        if self.style == "assemblies" or basis == "assembly":
            self._assemble(splice=basis == "splices" and self.blocks is not None)
        elif basis == "splices" and self.blocks is not None:
            self._assemble(splice=True)
        elif basis == "selection":
            self._select({})
        if not self.chance(4) or self.step == 1:
            self._inject("message_history")

    def _block(self, name: str) -> dict[str, Any]:
        version = self.known.get(name)
        ref = f"{name}@{version}" if version else name
        wrapper = "<x>\n{content}\n</x>" if self.chance(5) else None
        more: dict[str, Any] = {}
        if self.chance(4):
            leaf = {"type": "text", "text": {"$": "text"}, **self.draw(st.sampled_from(LEAVES))}
            more["metadata"] = {"ctxctl": {"wire": {"in": "messages", "leaf": leaf}}}
        return build.block(ref, wrapper=wrapper, **more)

    def _assemble(self, *, splice: bool) -> None:
        """A whole assembly, its blocks shuffled and numbered, or splices of the last one."""
        name = f"m{self.thread}{self.step}"
        ctxctl: dict[str, Any] = {"root": self.draw(st.sampled_from(BRANCHED))} if self.chance(2) else {}
        if self.chance(3):
            asked = {name: self.draw(st.sampled_from("ab")) for name in ("speed", "tool_choice", "thinking")}
            ctxctl["request"] = {"api": self.draw(st.sampled_from(("anthropic", "gemini"))), **asked}
        if self.chance(6):
            ctxctl["model"] = self.draw(st.sampled_from(("claude-a", "claude-b")))
        base = f"m{self.thread}{self.last}"
        if self.named and self.chance(5):
            self.put(build.assembly(f"draft{self.step}", self._blocks(False)))
        if not splice or self.blocks is None:
            bare = self.chance(4)
            blocks = self._blocks(bare)
            numbered = [{**b, "position": i} for i, b in enumerate(blocks)]
            shuffled = self.draw(st.permutations(numbered))
            self.put(build.assembly(name, shuffled, ctxctl=ctxctl))
            if bare:
                # What a bare ref of a base means in a later line is open, so nothing splices this one.
                self.blocks = None
                return
        else:
            size = len(self.blocks)
            at = self.draw(st.integers(0, size))
            gone = self.draw(st.integers(0, size - at))
            kept = self.blocks[:at] + self.blocks[at + gone :]
            there = {b["item_refs"][0].partition("@")[0] for b in kept}
            added = [self._block(n) for n in self.some([n for n in self.known if n not in there], 2)]
            ctxctl |= {"base": base, "splices": [[at, gone, len(added)]]}
            self.put(build.assembly(name, added, ctxctl=ctxctl))
            blocks = self.blocks[:at] + added + self.blocks[at + gone :]
        self.blocks = blocks
        self.last = self.step

    def _blocks(self, bare: bool) -> list[dict[str, Any]]:
        """The last assembly in another order, all items, or some of them, one perhaps twice."""
        if self.blocks and not bare and self.chance(2):
            again: list[dict[str, Any]] = self.draw(st.permutations(self.blocks))
            return again
        everything = sorted({*self.known, *self.live})
        names = self.draw(st.permutations(everything)) if self.chance(2) else self.some(everything)
        names = names or ["ghost"]
        names += names[:1] if self.chance(5) else []
        return [build.block(n) if bare else self._block(n) for n in names]

    def _select(self, omitted: dict[str, str], names: list[str] | None = None) -> None:
        chosen = names if names is not None else self.some(self.visible) or ["ghost"]
        rest = [n for n in self.known if n not in chosen]
        left = {n: self.draw(st.sampled_from(REASONS)) for n in self.some(rest, 2)}
        candidates = self.some(list(self.known), 3) if self.chance(3) else None
        self.put(build.select(chosen, {**left, **omitted}, candidates))
        if names is None and self.chance(2):
            drops = dict.fromkeys(self.some(chosen, 2), "budget_limit")
            self.put(build.budget(self.draw(st.integers(5, 30)), 2, dropped=drops))

    def _grow(self, touched: list[str], *, first: bool) -> None:
        shown = [n for n in touched if n in self.visible]
        basis = self.draw(st.sampled_from(("assembly", "selection", "items")))
        shown += (
            self.some((self.live & self.visible & self.known.keys()) - set(shown), 1)
            if self.chance(4)
            else []
        )
        point = "user_message_appendix"
        if self.style == "append" and (first or basis == "assembly"):
            self.put(build.append(f"m{self.thread}{self.step}", [f"{n}@{self.known[n]}" for n in shown]))
        elif basis == "selection" and shown:
            same = dict.fromkeys(self.some((self.live & self.visible) - set(shown), 2), "duplicate")
            if self.chance(5):
                same[f"old{self.step}"] = "duplicate"
            self._select(same, shown)
        if first or not self.chance(4):
            self._inject(point)


@st.composite
def traces(
    draw: Any,
    styles: tuple[str, ...] = MODES,
    threads: int = 3,
    steps: int = 9,
    named: bool = True,
    tardy: bool = True,
) -> list[Event]:
    """A trace of a few interleaved threads, each in one of the styles."""
    events: list[Event] = []
    names = [("s", None), ("s", "explorer"), ("other", None)][:threads]
    count = draw(st.integers(1, len(names)))
    writers = [
        Writer(draw, draw(st.sampled_from(styles)), session, thread, events, named, tardy and named)
        for session, thread in names[:count]
    ]
    for _ in range(draw(st.integers(1, steps))):
        draw(st.sampled_from(writers)).write_step()
    return events
