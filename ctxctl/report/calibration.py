"""Calibrations for people and as JSON: errors first, then what was fitted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from ctxctl.report.tables import Column, labelled, table, wrap
from ctxctl.text import visible
from ctxctl.tokens.calibrate.calibration import Calibration, Fit, Outcome, RefusedModel
from ctxctl.tokens.calibrate.errors import Errors
from ctxctl.tokens.calibrate.features import CLASSES
from ctxctl.wording import error_share, number, plural

METHODS: Final = (
    ("next_size", "next size, from the last bill"),
    ("alternate", "every other step of a segment"),
    ("halves", "second half of a segment"),
    ("first", "any step, from the first bill"),
)
"""Fields of a fit with errors, and what was predicted."""
_REFUSED: Final = 12


def outcome_lines(outcome: Outcome, sessions: int, width: int, *, everything: bool) -> Iterator[str]:
    """What was fitted, what was not, and why."""
    calibration = outcome.calibration
    facts = [
        ("sessions", number(sessions)),
        (
            "calibrated",
            plural(len(calibration.fits), "model")
            + (f", digest {calibration.digest}" if calibration.fits else ""),
        ),
    ]
    for label, text in facts:
        yield from labelled(label, text, width, tab=12)
    yield from fits_lines(calibration.fits, width)
    yield from _refused_lines(outcome.refused, width, everything=everything)


def kept_lines(
    shipped: Calibration, own: Calibration | None, whole: Calibration, others: Sequence[str], width: int,
    *, everything: bool,
) -> Iterator[str]:  # fmt: skip
    """What is shipped and what is kept for later sessions.

    Args:
        shipped: What came with ctxctl.
        own: What the user saved last.
        whole: What is in force where none is named.
        others: Digests of what was saved before.
        width: Of the lines.
        everything: Every weight of the shipped one, too.
    """
    yield from labelled("shipped", f"{shipped.digest}, {plural(len(shipped.fits), 'model')}", width, tab=12)
    if own is None:
        yield from labelled(
            "saved", "nothing; `ctxctl calibrate TRACE… --save` keeps a calibration", width, tab=12
        )
    else:
        yield from labelled("saved", f"{own.digest}, {plural(len(own.fits), 'model')}", width, tab=12)
        yield from labelled("in force", f"{whole.digest}, the saved over the shipped one", width, tab=12)
    if others:
        shown = others if everything else others[:5]
        more = f" and {len(others) - len(shown)} more" if len(others) > len(shown) else ""
        yield from labelled("also kept", ", ".join(shown) + more, width, tab=12)
    if own is not None:
        yield from fits_lines(own.fits, width)
    if everything:
        yield from fits_lines(shipped.fits, width)
    else:
        yield ""
        yield from _shipped_table(shipped, width)


def _shipped_table(shipped: Calibration, width: int) -> Iterator[str]:
    """A line for each model."""
    columns = (
        Column("shipped: model", least=20), Column("steps", right=True), Column("sessions", right=True),
        Column("tool result", right=True), Column("next size off: p50", right=True),
        Column("p95", right=True),
    )  # fmt: skip
    rows = [
        (
            visible(fit.model), number(fit.steps), number(fit.sessions),
            f"{fit.weights[CLASSES.index('tool_result')]:.2f}",
            error_share(fit.next_size.p50), error_share(fit.next_size.p95),
        )
        for fit in shipped.fits
    ]  # fmt: skip
    yield from _lines(columns, rows, width)
    yield from wrap("tool result: its tokens for one counted; --all shows every weight", width)


def fits_lines(fits: Iterable[Fit], width: int) -> Iterator[str]:
    """Every fit: its errors, its weights and what was billed beyond what was recorded."""
    for fit in fits:
        yield ""
        yield from _fit_lines(fit, width)


def _fit_lines(fit: Fit, width: int) -> Iterator[str]:
    name = visible(fit.model)
    fitted_to = f"{number(fit.steps)} steps of {plural(fit.sessions, 'session')}, counted with {fit.encoding}"
    yield from labelled(name, fitted_to, width, tab=max(12, len(name) + 2))
    yield from _errors_table(fit, width)
    yield ""
    yield from _weights_table(fit, width)
    beyond = fit.beyond
    text = (
        f"{number(beyond.p10)} / {number(beyond.p50)} / {number(beyond.p90)} tokens (p10/p50/p90 of"
        f" {plural(beyond.segments, 'segment')}) billed beyond what the traces hold"
    )
    yield from labelled("beyond", text, width, tab=12)
    worst = f"{visible(fit.next_size.reason)} (next size; left out: {visible(fit.by)} in turn)"
    yield from labelled("worst", worst, width, tab=12)
    if fit.spread is not None:
        spread = f"{fit.spread.request:,.0f} tokens and {error_share(fit.spread.moved)} of what came or went"
        yield from labelled("error", f"{spread}: nine of ten next bills are no further off", width, tab=12)
    left = []
    if fit.contradicted:
        left.append(f"{plural(fit.contradicted, 'bill')} that cannot be of what was counted")
    if fit.blind:
        left.append(f"{plural(fit.blind, 'bill')} of content that is neither recorded nor counted")
    if left:
        yield from labelled("left out", "; ".join(left), width, tab=12)


def _errors_table(fit: Fit, width: int) -> Iterator[str]:
    columns = (
        Column("error on steps that were not fitted", least=20), Column("steps", right=True),
        Column("p50", right=True), Column("p95", right=True), Column("p99", right=True),
        Column("worst", right=True),
    )  # fmt: skip
    rows = [
        (
            title,
            number(e.steps),
            error_share(e.p50),
            error_share(e.p95),
            error_share(e.p99),
            error_share(e.worst),
        )
        for name, title in METHODS
        if (e := _errors(fit, name)) is not None
    ]
    yield from _lines(columns, rows, width)


def _weights_table(fit: Fit, width: int) -> Iterator[str]:
    """What nothing was seen of has no weight of its own, and no line."""
    columns = (
        Column("class", least=12), Column("billed for 1 counted", right=True),
        Column("for an item", right=True), Column("tokens seen", right=True), Column("items", right=True),
    )  # fmt: skip
    width_of = len(CLASSES)
    rows = [
        (
            name.replace("_", " "),
            f"{fit.weights[n]:.2f}" if fit.seen[n] else "",
            f"{fit.weights[n + width_of]:.0f}" if fit.seen[n + width_of] else "",
            number(fit.seen[n]),
            number(fit.seen[n + width_of]),
        )
        for n, name in enumerate(CLASSES)
        if fit.seen[n] or fit.seen[n + width_of]
    ]
    yield from _lines(columns, rows, width)


def _errors(fit: Fit, name: str) -> Errors | None:
    found = getattr(fit, name)
    return found if isinstance(found, Errors) else None


def _refused_lines(refused: Sequence[RefusedModel], width: int, *, everything: bool) -> Iterator[str]:
    if not refused:
        return
    known = [one for one in refused if "public" in one.why]
    others = sorted((one for one in refused if one not in known), key=lambda one: (-one.steps, one.model))
    shown = others if everything else others[:_REFUSED]
    if shown:
        yield ""
        yield "not calibrated"
        for one in shown:
            yield from wrap(f"  {visible(one.model)}, {plural(one.steps, 'step')}", width)
            yield from labelled("", visible(one.why), width, indent=4, tab=0)
    if len(shown) < len(others):
        yield f"and {len(others) - len(shown)} more; --all lists them"
    if known:
        yield ""
        names = ", ".join(visible(one.model) for one in known)
        yield from labelled("exact", f"{names}: the tokenizer is public, nothing is fitted", width, tab=12)


def _lines(columns: Sequence[Column], rows: Sequence[tuple[str, ...]], width: int) -> Iterator[str]:
    listed = table(columns, rows, width)
    yield from listed.head
    yield from (line for lines in listed.rows for line in lines)


def calibration_object(
    calibration: Calibration, sessions: int | None, origin: str | None = None
) -> dict[str, Any]:
    """The first line of JSON; `origin` is `shipped`, `saved`, or None of one that was fitted just now."""
    return {
        "type": "calibration",
        "version": calibration.version,
        "digest": calibration.digest or None,
        "from": origin,
        "sessions": sessions,
        "models": [fit.model for fit in calibration.fits],
    }


def fit_object(fit: Fit) -> dict[str, Any]:
    """One fit; errors are shares of what was billed."""
    slopes, items = fit.weights[: len(CLASSES)], fit.weights[len(CLASSES) :]
    classes = {
        name: {
            "slope": slopes[n],
            "per_item": items[n],
            "tokens_seen": fit.seen[n],
            "items_seen": fit.seen[n + len(CLASSES)],
        }
        for n, name in enumerate(CLASSES)
    }
    return {
        "type": "fit",
        "model": fit.model,
        "method": f"calibrated:{fit.encoding}",
        "steps": fit.steps,
        "sessions": fit.sessions,
        "contradicted": fit.contradicted,
        "blind": fit.blind,
        "classes": classes,
        "beyond": msgspec.structs.asdict(fit.beyond),
        "held_out": fit.by,
        "errors": {
            name: msgspec.structs.asdict(found) if (found := _errors(fit, name)) is not None else None
            for name, _ in METHODS
        },
        "error_90": msgspec.structs.asdict(fit.spread) if fit.spread is not None else None,
        "blind_item": fit.blind_item if fit.blinds else None,
    }


def refused_object(refused: RefusedModel) -> dict[str, Any]:
    """A model that is not calibrated."""
    errors = refused.next_size
    return {
        "type": "refused",
        "model": refused.model,
        "steps": refused.steps,
        "why": refused.why,
        "errors": {"next_size": msgspec.structs.asdict(errors) if errors is not None else None},
    }
