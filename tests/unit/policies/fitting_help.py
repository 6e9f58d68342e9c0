"""Made-up windows, and what is left of one when a policy's decisions are carried out."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from ctxctl.model.fitting import Candidate, Fit

KINDS = ("user_message", "assistant_message", "tool_call", "tool_result", "retrieval_result", "file")


def candidate(name: str, tokens: int, kind: str = "assistant_message", **more: object) -> Candidate:
    segment = {"system_prompt": "system", "tool_definition": "tools"}.get(kind, "history")
    return Candidate(name, name, kind, segment, None, tokens, **more)  # type: ignore[arg-type]


@st.composite
def windows(draw: st.DrawFn) -> list[Candidate]:
    """A head, then messages with tool calls and their results somewhere behind them."""
    made = [candidate("tools", draw(st.integers(0, 40)), "tool_definition")] if draw(st.booleans()) else []
    made += [candidate("system", draw(st.integers(0, 40)), "system_prompt")] if draw(st.booleans()) else []
    open_calls: list[str] = []
    for number in range(draw(st.integers(0, 14))):
        kind = draw(st.sampled_from(KINDS))
        pairs: tuple[str, ...] = ()
        if kind == "tool_call":
            open_calls.append(f"c{number}")
            pairs = (f"c{number}",)
        elif kind == "tool_result" and open_calls:
            pairs = (open_calls.pop(0),)
        made.append(
            candidate(
                f"m{number}",
                draw(st.integers(0, 120)),
                kind,
                pairs=pairs,
                priority=draw(st.none() | st.integers(0, 3).map(float)),
                score=draw(st.none() | st.floats(0, 1)),
            )
        )
    return made


def carried_out(candidates: Sequence[Candidate], fit: Fit) -> list[Candidate]:
    """The window after a fit; a text that takes another's place is as large as it can be."""
    dropped = {drop.at for drop in fit.drops}
    cuts = {cut.at: cut for cut in fit.cuts}
    swaps = {swap.at: swap for swap in fit.swaps}
    notes: dict[int, list[Candidate]] = {}
    for number, note in enumerate(fit.notes):
        tokens = note.tokens if note.tokens is not None else len((note.text or "").encode())
        made = candidate(f"note{number}", tokens, note.kind)
        notes.setdefault(note.before, []).append(made)
    after: list[Candidate] = []
    for at, one in enumerate(candidates):
        after += notes.get(at, [])
        if at in dropped:
            continue
        if at in cuts:
            one = one._replace(tokens=min(one.tokens, cuts[at].tokens))
        elif at in swaps:
            one = one._replace(tokens=len(swaps[at].text.encode()))
        after.append(one)
    return after + notes.get(len(candidates), [])
