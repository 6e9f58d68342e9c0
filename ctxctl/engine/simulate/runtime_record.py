"""Compare a fitting policy with its own runtime's record: level, counts, sizes, and the view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Any, Final, NamedTuple

from ctxctl.model.fitting import Candidate, Fit, Fitter, Follower
from ctxctl.model.records import Compaction
from ctxctl.model.results import Placement, StageView
from ctxctl.model.vocab import Verdict

_NO_VIEW: Final = "which messages the compaction left is not in the log"
LISTED: Final = 20
"""Most differing placements of a view that are listed."""


class RecordComparison(NamedTuple):
    """What a policy would have recorded of a step, and what is recorded."""

    expected: Mapping[str, int]
    """Empty if the policy had nothing to do."""
    recorded: Mapping[str, Any]
    """Empty if the trace records no action."""
    differing: tuple[str, ...]
    """Names of the differing fields."""
    inputs: Mapping[str, Any]
    """The policy's parameters in force."""
    view: tuple[tuple[str | None, str | None], ...] | None
    """Places where the windows differ, each as expected and as recorded; None if no view is recorded."""
    doubt: str | None = None
    """Why a differing record may be right; None if it is wrong."""


class RuntimeFollower:
    """Runs a policy that follows a runtime, on one thread of that runtime's trace."""

    def __init__(self, policy: Fitter) -> None:
        self._policy = policy if isinstance(policy, Follower) else None
        self.early: bool = getattr(policy, "early", False)
        """Whether the policy decides by its own measure."""
        self.follows = self._policy is not None
        """Whether the policy is a runtime's own, which on that runtime's traces decides by its measure."""
        self._between: Fitter | None = None
        """The policy between records; None before the first record of this runtime."""

    def copy(self) -> RuntimeFollower:
        """Return an independent copy."""
        twin = RuntimeFollower.__new__(RuntimeFollower)
        twin.__dict__.update(self.__dict__)
        return twin

    def record(
        self, compactions: Sequence[Compaction], view: Callable[[], Sequence[Candidate]]
    ) -> tuple[Fitter | None, Mapping[str, Any]]:
        """Return the policy with the parameters of the step's last record, and that record.

        The policy is None if the trace is not, or not yet, this runtime's. `view` returns what was sent.
        """
        if self._policy is None:
            return None, {}
        for one in reversed(compactions):
            native = one.metadata.get("native")
            policy = self._between if isinstance(self._between, Follower) else self._policy
            worked_out = policy.as_told(native, view()) if isinstance(native, dict) else None
            if worked_out is not None and native is not None:
                self._between = self._policy.between(worked_out)
                return worked_out, native
        return self._between, {}

    def held(
        self,
        policy: Fitter,
        fit: Fit,
        native: Mapping[str, Any],
        ours: Sequence[Placement],
        theirs: Sequence[Placement],
    ) -> RecordComparison | None:
        """Return the comparison; None if there is nothing to compare."""
        assert self._policy is not None
        inputs = {name: getattr(policy, name) for name in getattr(self._policy, "__struct_fields__", ())}
        if any(p.kind == "session_history" and p.content is None for p in theirs):
            return RecordComparison({}, native, ("view",), inputs, None, _NO_VIEW) if native else None
        worked_out = fit.told or {}
        differing: tuple[str, ...]
        if bool(worked_out) != bool(native):
            differing = ("acted",)
        else:
            differing = tuple(self._policy.differing(worked_out, native)) if worked_out else ()
        recorded = (
            {name: native[name] for name in worked_out if name in native} if worked_out else dict(native)
        )
        return RecordComparison(worked_out, recorded, differing, inputs, _view(ours, theirs), fit.doubt)


def _view(
    ours: Sequence[Placement], theirs: Sequence[Placement]
) -> tuple[tuple[str | None, str | None], ...]:
    pairs = ((_named(a), _named(b)) for a, b in zip_longest(ours, theirs) if not _same(a, b))
    return tuple(islice(pairs, LISTED))


def _same(ours: Placement | None, theirs: Placement | None) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return ours is theirs or (ours.item, ours.digest) == (theirs.item, theirs.digest)


def _named(p: Placement | None) -> str | None:
    return None if p is None else f"{p.item}@{(p.digest or '?')[:12]}"


def followed_stages(views: dict[str, StageView], held: RecordComparison) -> dict[str, StageView]:
    """Return the stages with the comparison: actions in the budget stage, the view in the assembly.

    The outcome is `matches`, `differs`, or `cannot_tell` with a `reason` if they differ and the trace lacks
    what would prove the record wrong.
    """
    out = dict(views)
    other: Verdict = "differs" if held.doubt is None else "cannot_tell"
    why = {} if held.doubt is None else {"reason": held.doubt}
    if held.expected or held.recorded:
        budget = views["budget"]
        if held.differing:
            facts = {
                **why,
                "differing": list(held.differing),
                "expected": dict(held.expected),
                "recorded": dict(held.recorded),
                "inputs": dict(held.inputs),
            }
            out["budget"] = StageView(other, {**budget.facts, **facts})
        else:
            worked_out = {"expected": dict(held.expected), "recorded": dict(held.recorded)}
            out["budget"] = StageView("matches", {**budget.facts, **worked_out})
    if held.view is not None and views["assembly"].verdict != "not_recorded":
        assembly = views["assembly"]
        if held.view:
            sides = {**why, "expected": [a for a, _ in held.view], "recorded": [b for _, b in held.view]}
            out["assembly"] = StageView(other, {**assembly.facts, **sides})
        else:
            out["assembly"] = StageView("matches", assembly.facts)
    return out
