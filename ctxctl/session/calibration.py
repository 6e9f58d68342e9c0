"""The calibration that a trace is shown under, and the fitting of one to a trace.

The fitting is imported only on use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ctxctl.model.vocab import MODEL
from ctxctl.tokens.ranks import RANKS_OF

if TYPE_CHECKING:
    from ctxctl.model.results import Step, Turn
    from ctxctl.tokens.calibrate.calibration import Calibration, RefusedModel
    from ctxctl.tokens.calibrate.points import Lane

NONE: Final = "none"
SAVED: Final = "saved"
SHIPPED: Final = "shipped"
SESSION: Final = "session"


class Chosen(NamedTuple):
    """A calibration and its origin."""

    calibration: Calibration | None
    """None if nothing is calibrated, or not yet."""
    origin: str
    """`none`, `shipped`, `saved`, `session`, or `named` (a digest or a file)."""
    refused: tuple[RefusedModel, ...] = ()
    """Models of the session that could not be calibrated, if it was to be fitted."""
    own: tuple[str, ...] = ()
    """Models whose fits are not the shipped ones."""


NOTHING: Final = Chosen(None, NONE)


def chosen_calibration(name: str | None) -> Chosen:
    """Return the requested calibration.

    `saved` (or None) is the user's saved fits over the shipped ones, or alone; `shipped` ignores saved ones;
    a digest or a file uses that one's fits over the shipped ones. `none` leaves counts as they are and
    expects nothing. `session` is empty: it is fitted once the trace is open. Raises
    UsageError("no-calibration") or UnreadableError("bad-calibration").
    """
    if name == NONE:
        return NOTHING
    if name == SESSION:
        return Chosen(None, SESSION)
    from ctxctl.tokens.calibrate import store
    from ctxctl.tokens.calibrate.shipped import named_calibration, shipped_calibration

    own = None
    if name is None or name == SAVED:
        own = store.saved()
    elif name != SHIPPED:
        return _over_shipped(named_calibration(name), "named")
    return Chosen(shipped_calibration(), SHIPPED) if own is None else _over_shipped(own, SAVED)


def _over_shipped(own: Calibration, origin: str, refused: tuple[RefusedModel, ...] = ()) -> Chosen:
    from ctxctl.tokens.calibrate.shipped import over_shipped, shipped_calibration

    theirs = set(shipped_calibration().fits)
    models = tuple(fit.model for fit in own.fits if fit not in theirs)
    return Chosen(over_shipped(own), origin, refused, models)


def sessions_of(results: Iterable[Step | Turn]) -> list[list[Lane]]:
    """Return what the steps of a replay show of their models' tokenizers, by session."""
    from ctxctl.model.results import Step
    from ctxctl.tokens.calibrate.points import Gatherer

    gatherer = Gatherer()
    for result in results:
        if isinstance(result, Step):
            gatherer.add(result)
    return gatherer.sessions()


def fitted_to(steps: Iterable[Step], encoding: str, encoding_of: Callable[[str | None], str]) -> Chosen:
    """Return a calibration fitted to the steps of one replay, whose encoding is `encoding`.

    Steps of models with another encoding are left out: a fit is to one encoding.
    """
    from ctxctl.tokens.calibrate.calibration import calibrate

    sessions = sessions_of(step for step in steps if encoding_of(step.model) == encoding)
    outcome = calibrate(sessions, encoding)
    return _over_shipped(outcome.calibration, SESSION, outcome.refused)


def calibration_note(found: Chosen, encoding: str, model: str | None, target: str) -> dict[str, Any] | None:
    """Return a header's note on the calibration in force and on the trace's first model; None without a
    calibration, or for another target than the model."""
    if found.calibration is None or target != MODEL:
        return None
    from ctxctl.tokens.calibrate.expect import model_weights

    how = model_weights(found.calibration, model, encoding)
    fits = [
        fit
        for fit in found.calibration.fits
        if RANKS_OF[fit.encoding] == RANKS_OF[encoding] and (fit.model in found.own or fit.model == how.fit)
    ]
    return {
        "digest": found.calibration.digest or None,
        "from": found.origin,
        "encoding": encoding,
        "model": model,
        "method": how.method,
        "how": how.how,
        "fit": how.fit,
        "models": [
            {
                "model": fit.model,
                "steps": fit.steps,
                "sessions": fit.sessions,
                "held_out": fit.by,
                "error_p50": round(100 * fit.next_size.p50, 2),
                "error_p95": round(100 * fit.next_size.p95, 2),
            }
            for fit in sorted(fits, key=lambda fit: fit.model not in found.own)
        ],
        "refused": [{"model": one.model, "steps": one.steps, "why": one.why} for one in found.refused],
    }
