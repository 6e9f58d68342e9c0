"""The calibration that is shipped: fitted to every capture of the corpus that was really billed.

    python -m tests.corpus.shipping CORPUS

writes `ctxctl/tokens/data/calibration.json` (`make calibration` calls it).  The same captures give the same
bytes.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ctxctl.tokens.calibrate import shipped
from ctxctl.tokens.calibrate.calibration import Calibration, Fit, blind_items, calibrate, gross
from ctxctl.tokens.calibrate.errors import distinct_segments as segments_of
from ctxctl.tokens.calibrate.errors import quantile
from ctxctl.tokens.calibrate.expect import EXACT_ITEMS, ONES
from ctxctl.tokens.calibrate.features import CLASSES, weighed_tokens
from ctxctl.tokens.calibrate.points import BlindRequest, Lane, Row, rows_of
from ctxctl.tokens.calibrate.relatives import nearest_fit
from ctxctl.tokens.calibrate.spread import SHARE, Common, ErrorSpread, SizeError, spread_of
from ctxctl.tokens.model_encodings import resolve_encoding
from tests.corpus.hidden_bills import (
    ENCODING,
    LEAST_BILL,
    Capture,
    Told,
    foretold_and_shown,
    unrepeated,
    weigher,
)

ITEM = 8.0
"""Tokens that an item of a model that nobody fitted is taken to cost: between OpenAI's and Anthropic's."""
LEAST_KIN = 1.5


def build(captures: Sequence[Capture]) -> Calibration:
    """Fits of all models, and what is measured on all together."""
    made = calibrate([lanes for one in captures for lanes in one.sessions], ENCODING).calibration
    by_model = _by_model(captures)
    exact = [
        m for m in by_model if resolve_encoding(m).known and resolve_encoding(m).encoding != "cl100k_base"
    ]
    weights = (*ONES, *EXACT_ITEMS)
    exact_rows = [row for m in exact for row in _rows(by_model[m])]
    exact_blind, wide = blind_items(weights, _blinds(by_model[m] for m in exact))
    others = [m for m in by_model if not resolve_encoding(m).known]
    plain = (*ONES, *(ITEM,) * len(CLASSES))
    _, nothing_known = blind_items(plain, _blinds(by_model[m] for m in others))
    estimate = spread_of([_off(plain, row) for m in others for row in _rows(by_model[m])], nothing_known)
    common = Common(
        exact=spread_of([_off(weights, row) for row in exact_rows], wide),
        exact_blind=exact_blind,
        estimate=estimate,
        item=ITEM,
        kin=kin(made.fits, by_model),
        broken=1.0,
    )
    whole = Calibration(made.fits, common=common)
    return Calibration(made.fits, common=_with_breaks(common, captures, whole))


def kin(fits: Sequence[Fit], by_model: dict[str, list[list[Lane]]]) -> float:
    """How many times further off a fit is on a relative: the worst of all that are fitted themselves."""
    worst = LEAST_KIN
    for fit in fits:
        other = nearest_fit(fit.model, fits)
        if other is None or other.spread is None:
            continue
        offs = [_off(other.weights, row) for row in _rows(by_model[fit.model])]
        times = sorted(abs(off.error) / other.spread.of(1, off.moved, 0) for off in offs)
        worst = max(worst, round(quantile(times, SHARE), 1))
    return worst


def _with_breaks(common: Common, captures: Sequence[Capture], made: Calibration) -> Common:
    """With the error after a break: of what is expected there, the share that holds nine of ten bills."""
    weigh = weigher(made)
    told: list[Told] = [
        one
        for trail in unrepeated(captures)
        for one in foretold_and_shown(trail, weigh)
        if one.broken and not one.switched and one.truth >= LEAST_BILL
    ]
    shares = sorted(abs(one.expected - one.truth) / max(1, one.expected) for one in told)
    broken = round(quantile(shares, SHARE), 2) if shares else common.broken
    return Common(
        exact=common.exact, exact_blind=common.exact_blind, estimate=common.estimate, item=common.item,
        kin=common.kin, broken=broken,
    )  # fmt: skip


def _by_model(captures: Iterable[Capture]) -> dict[str, list[list[Lane]]]:
    found: dict[str, list[list[Lane]]] = defaultdict(list)
    for session in (session for capture in captures for session in capture.sessions):
        lanes: dict[str, list[Lane]] = defaultdict(list)
        for lane in session:
            lanes[lane.model].append(lane)
        for model, own in lanes.items():
            found[model].append(own)
    return dict(sorted(found.items()))


def _rows(sessions: Sequence[Sequence[Lane]]) -> Iterator[Row]:
    for lanes in segments_of(sessions):
        for lane in lanes:
            for points in lane:
                yield from rows_of(points)


def _blinds(models: Iterable[Sequence[Sequence[Lane]]]) -> list[BlindRequest]:
    return sorted({one for m in models for lanes in m for lane in lanes for one in lane.blinds})


def _off(weights: Sequence[float], row: Row) -> SizeError:
    return SizeError(row.change - weighed_tokens(weights, row.moved), gross(tuple(weights), row.moved))


def table(made: Calibration) -> Iterator[str]:
    """Slopes and errors of what is shipped, in Markdown."""
    names = " | ".join(name.replace("_", " ") for name in CLASSES)
    assert made.common is not None
    yield f"Digest `{made.digest}`."
    yield ""
    yield f"| model | sessions | bills | {names} | stated error |"
    yield "|---|---:|---:|" + "---:|" * len(CLASSES) + "---|"
    for fit in made.fits:
        pairs = zip(fit.weights[: len(CLASSES)], fit.seen, strict=False)
        slopes = " | ".join(f"{weight:.2f}" if tokens else "-" for weight, tokens in pairs)
        yield f"| {fit.model} | {fit.sessions} | {fit.steps:,} | {slopes} | {_stated(fit.spread)} |"
    common = made.common
    ones = " | ".join(["1"] * len(CLASSES))
    yield f"| a public tokenizer | | | {ones} | {_stated(common.exact)} |"
    yield f"| nobody fitted it | | | {ones} | {_stated(common.estimate)} |"
    yield ""
    yield (
        f"By a relative's fit: {common.kin:g} times its error."
        f" After a compaction: {common.broken:.0%} of what is expected."
    )


def _stated(spread: ErrorSpread | None) -> str:
    assert spread is not None
    return f"{spread.request:,.0f} + {100 * spread.moved:.1f} % of what moved"


def main(corpus: Path) -> None:
    """Write the file and say what is in it."""
    from tests.corpus.calibrating import gather

    made = build(gather(corpus).captures)
    shipped.PATH.write_bytes(made.encode() + b"\n")
    print(f"{shipped.PATH}: {made.digest}, {', '.join(fit.model for fit in made.fits)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
