"""What-ifs: another window, model, encoding or policy, replayed beside the recorded session.

A what-if is a replay under other rules. Both replays take the same events in one pass, and their steps end at
the same events, so they are aligned by ordinal. No model and no network is used; the same trace and
supposition give the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from ctxctl.analysis.comparison import Comparison, Supposed, recorded_limits, whatif_side
from ctxctl.engine.replay.placements import Count
from ctxctl.engine.replay.rules import Trim
from ctxctl.errors import UsageError
from ctxctl.model.results import Step, Turn
from ctxctl.model.whatif import AS_RECORDED, Limits, Supposition
from ctxctl.policies.registry import RECORDED, Strategy, policy_by_name
from ctxctl.session.counting import Recount
from ctxctl.session.edits import Resolved
from ctxctl.session.facade import Inspector
from ctxctl.session.params import Params, fitter_of, planner_of, recomputer_of, same_ranks
from ctxctl.session.scales import scales_of
from ctxctl.tokens.catalogue.find import KnownModel, find_model
from ctxctl.tokens.catalogue.rates import RateBook
from ctxctl.tokens.model_encodings import is_known, near_models, resolve_encoding
from ctxctl.tokens.ranks import NAMES

__all__ = ["Comparison", "FieldError", "Supposition", "WhatIfs", "recorded_limits", "whatif_side"]


class FieldError(UsageError):
    """A field of a supposition names something that does not exist."""

    def __init__(self, field: str, slug: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(slug, message, hint=hint)
        self.field = field


class WhatIfs:
    """All what-ifs of one inspector. A content is counted once per supposed encoding.

    Used by one thread at a time; other threads may use the inspector meanwhile.
    """

    def __init__(self, inspector: Inspector) -> None:
        self.inspector = inspector
        self._counts: dict[str, Recount] = {}

    def resolve(self, supposition: Supposition) -> Supposed:
        """Resolve a what-if.

        Raises FieldError: `unknown-model` (with near names), `unknown-encoding`, `unknown-policy`, and what
        `resolve_edits` raises.
        """
        base = self.inspector.params
        model, encoding, assumed = supposition.model, base.encoding, base.assumed
        if model is not None:
            self._known(model)
            found = resolve_encoding(model)
            encoding, assumed = found.encoding, found.assumed
        if supposition.encoding is not None:
            if supposition.encoding not in NAMES:
                raise FieldError(
                    "encoding", "unknown-encoding", f"no encoding is called {_quoted(supposition.encoding)}",
                    hint=f"there are: {', '.join(NAMES)}",
                )  # fmt: skip
            encoding, assumed = supposition.encoding, ""
        policy, changed = self._policy(supposition.policy)
        limits, known = supposition.limits, None
        if model is not None and supposition.window is None and supposition.max_input is None:
            known = find_model(model, own=base.own_models)
            limits = Limits(known.window, supposition.reserve, known.max_input)
        edits, edited = self._edits(supposition)
        changed = changed or (fitter_of(policy) is not None and limits.given) or edits is not None
        params = msgspec.structs.replace(
            base,
            policy=base.policy if supposition.policy is None else supposition.policy,
            model=base.model if model is None else model,
            encoding=encoding,
            encoding_from=base.encoding_from if supposition.encoding is None else "flag",
            assumed=assumed,
            limits=limits,
            fitting=fitter_of(policy) is not None,
            edited=edited,
        )
        only = not changed and model is None and same_ranks(encoding, base.encoding)
        notes = tuple(_notes(base, params, supposition, known))
        return Supposed(params, policy, limits, only, notes, edits, model)

    def compare(
        self,
        supposed: Supposed,
        *,
        book: RateBook | None = None,
        wanted: Callable[[Step | Turn], bool] | None = None,
        settle: bool = False,
    ) -> Comparison:
        """Return both replays side by side, ready to run.

        Args:
            supposed: The result of `resolve`.
            book: Prices; without them no side has a cost.
            wanted: Returns which steps and turns are read; None for all.
            settle: Whether the inspector's problems are those of the recorded side.
        """
        rules = msgspec.structs.replace(self.inspector.rules(), limits=AS_RECORDED, edits=None)
        if supposed.only_limits:
            return Comparison(self.inspector, rules, None, supposed, book=book, wanted=wanted, settle=settle)
        encoding = supposed.params.encoding
        count: Count = rules.count
        trim: Trim = rules.trim
        if not same_ranks(encoding, rules.encoding):
            if encoding not in self._counts:
                self._counts[encoding] = Recount(self.inspector.trace.contents, encoding)
            recount = self._counts[encoding]
            count, trim = recount.count, recount.trim
        other = msgspec.structs.replace(
            rules,
            count=count,
            encoding=encoding,
            known=supposed.params.uses_encoding,
            encodings=None if supposed.params.one_encoding else rules.encodings,
            model=supposed.params.model,
            policy=planner_of(supposed.policy),
            fitter=fitter_of(supposed.policy),
            recomputer=recomputer_of(supposed.policy),
            trim=trim,
            limits=supposed.limits,
            edits=supposed.edits,
            scales=scales_of(supposed.params, self.inspector.written),
        )
        return Comparison(self.inspector, rules, other, supposed, book=book, wanted=wanted, settle=settle)

    def close(self) -> None:
        """Write new counts to disk. The counters can still be used."""
        for counts in self._counts.values():
            counts.close()

    def _policy(self, name: str | None) -> tuple[Strategy | None, bool]:
        """Return the strategy, and whether it differs from the trace's."""
        current = self.inspector.params.policy
        if name is None or name == current:
            return self.inspector.strategy, False
        try:
            return policy_by_name(name), True
        except UsageError as error:
            raise FieldError("policy", error.slug, error.message, hint=error.hint) from None

    def _edits(self, supposition: Supposition) -> Resolved:
        try:
            return self.inspector.edits_of(supposition.drop, supposition.set)
        except UsageError as error:
            field = "set" if error.slug in ("bad-set", "unknown-item") or not supposition.drop else "drop"
            raise FieldError(field, error.slug, error.message, hint=error.hint) from None

    def _known(self, model: str) -> None:
        named = {row.model for row in self.inspector.known}
        named.add(self.inspector.params.first_model)
        if model in named or is_known(model):
            return
        like = near_models(model, (name for name in named if name))
        hint = f"near: {', '.join(like)}; " if like else ""
        raise FieldError(
            "model", "unknown-model", f"no model called {_quoted(model)} is known",
            hint=f"{hint}for another model suppose its encoding and its window",
        )  # fmt: skip


def _notes(base: Params, params: Params, supposition: Supposition, known: KnownModel | None) -> Iterator[str]:
    """Yield notes on what the numbers mean."""
    limits, policy = params.limits.given, params.policy
    fitting = params.fitting
    if not supposition.given:
        yield "Nothing is supposed: both sides are the recorded one."
    if policy != base.policy:
        if policy == RECORDED:
            yield "Frames as recorded, and not as the trace's own policy sends them."
        else:
            what = "Policy {} decides what fits" if fitting else "Contexts are as policy {} sends them"
            yield f"{what.format(policy)}; everything else is as recorded, the model's answers included."
        if limits and not fitting:
            yield f"Policy {policy} looks at no limit: nothing is left out to fit."
    elif limits and not fitting:
        frames = "Frames as recorded" if policy == RECORDED else f"Frames of policy {policy}"
        if params.edited.given:
            yield f"{frames} but for what is dropped and set; what would be left out to fit is not simulated."
        else:
            yield f"{frames}, only the limits differ: what would be dropped is not simulated."
    if supposition.model is not None:
        yield "Bills are in the recorded model's tokens: what is not recorded is scaled as the record is."
    if supposition.model is not None and supposition.window is None:
        yield from _window_note(supposition.model, known)
    if supposition.reserve is not None and supposition.window is None:
        yield "The reserve counts only where the trace records a window."
    if params.encoding != base.encoding or params.model != base.model:
        if params.assumed:
            yield params.assumed
        else:
            yield f"Counted with {params.encoding}; the recorded side with {base.encoding}."


def _window_note(model: str, known: KnownModel | None) -> Iterator[str]:
    """Yield the source of a supposed model's limits."""
    if known is None:
        return
    if known.window is None and known.max_input is None:
        yield f"The window of {_quoted(model)} is not known here: limits as recorded. {known.note}"
        return
    sizes = [f"window {known.window:,}"] if known.window is not None else []
    sizes += [f"max input {known.max_input:,}"] if known.max_input is not None else []
    yield f"{_quoted(model)}: {', '.join(sizes)}. {known.note}"


def _quoted(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:79] + "…")
