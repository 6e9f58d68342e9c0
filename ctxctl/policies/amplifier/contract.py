"""The policy `amplifier_contract`: the example of Amplifier's context contract."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ctxctl.model.fitting import Candidate, Fit, Room, Verdict
from ctxctl.policies.fitting.units import HEAD_SEGMENTS, drops, units

_SYSTEM = frozenset({"system_prompt", "developer_instruction"})


class AmplifierContract(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The example manager of Amplifier's context contract: the oldest messages leave for good.

    Rules of the contract's `SimpleContext` (first published version):

    - Size: a quarter of the characters of all contents; `max_tokens` is the cap.
    - Beyond `threshold` of it, all but system messages leave, oldest first, until no more than `target` is
      left; what left never comes back.
    - As printed, its loop measures the list that it does not shorten, so that it empties the conversation;
      `literal=true` does that. Here, as the comment beside it says, the last that fit are kept.
    - As printed, it may tear a tool call from its results, which providers refuse; `pairs=false` does that.

    The context manager that Amplifier comes with is policy `amplifier`.
    """

    name = "amplifier_contract"
    early = True
    threshold: Annotated[float, Meta(description="share of the cap beyond which it acts", gt=0, le=1)] = 0.9
    target: Annotated[float, Meta(description="share of the cap to go down to", gt=0, le=1)] = 0.7
    pairs: Annotated[bool, Meta(description="tool calls and their results leave together")] = True
    literal: Annotated[bool, Meta(description="as the example runs: everything but the system leaves")] = (
        False
    )

    def fit(self, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
        """Linear in the candidates."""
        gone: frozenset[str] = state or frozenset()
        messages = [at for at, c in enumerate(candidates) if c.segment != "tools"]
        left = {at for at in messages if candidates[at].name not in gone}
        chars = sum(_chars(candidates[at]) for at in left)
        if chars // 4 > room.cap * self.threshold:
            for unit in units(candidates) if self.pairs else [(at,) for at in messages]:
                if not self.literal and chars // 4 <= room.cap * self.target:
                    break
                if not any(_stays(candidates[at]) for at in unit):
                    chars -= sum(_chars(candidates[at]) for at in left.intersection(unit))
                    left.difference_update(unit)
        away = [at for at in messages if at not in left]
        verdict: Verdict = "fitted" if away else "fits"
        if chars // 4 > room.cap:
            verdict = "still_over"
        return Fit(verdict, drops(away, "budget_limit"), state=gone.union(candidates[at].name for at in away))


def _stays(candidate: Candidate) -> bool:
    return candidate.segment in HEAD_SEGMENTS or candidate.kind in _SYSTEM


def _chars(candidate: Candidate) -> int:
    return candidate.chars or 4 * candidate.tokens
