"""How large the next request of a thread will be billed, and how sure that is.

Pure functions over plain values, one `BillsLearned` for each thread.  It knows only bills that came before,
so a session that is watched and one that is replayed say the same.  The numbers in it are fitted and
measured on captures: docs/calibration.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.tokens.calibrate.features import CLASSES
from ctxctl.tokens.calibrate.points import family
from ctxctl.tokens.calibrate.relatives import nearest_fit
from ctxctl.tokens.calibrate.spread import COMMON, ErrorSpread
from ctxctl.tokens.model_encodings import resolve_encoding
from ctxctl.tokens.overhead import CALL, MESSAGE, ROLE
from ctxctl.tokens.ranks import RANKS_OF

if TYPE_CHECKING:
    from ctxctl.tokens.calibrate.calibration import Calibration

_ITEM: Final = {"tool_call": CALL, "reasoning": 0, "tool_definition": 0}
EXACT_ITEMS: Final = tuple(float(_ITEM.get(name, MESSAGE + ROLE)) for name in CLASSES)
"""Tokens beside its text that an item costs in OpenAI's formats."""
ONES: Final = (1.0,) * len(CLASSES)

FITTED, KIN, ESTIMATED, EXACT = "fitted", "kin", "estimated", "exact"

TRUST: Final = {FITTED: 0.03, KIN: 0.06, ESTIMATED: 0.3, EXACT: 0.0}
"""How far (one standard deviation, as a share) a thread's own scale is expected to be from 1."""
SCALES: Final = {FITTED: (0.85, 1.2), KIN: (0.75, 1.35), ESTIMATED: (0.5, 2.5), EXACT: (1.0, 1.0)}
"""Bounds of that scale."""
ENOUGH: Final = 10
"""Informative bills after which a thread of a model that nobody fitted is calibrated by itself."""
INFORMATIVE: Final = 3.0
"""A bill tells of the scale if what moved since the last one is this many times the noise of a request."""
OWN: Final = 0.9
"""Of a thread's last bills, those that its error is to hold."""
RECENT: Final = 40
"""Bills of a thread that its error follows."""
USUAL: Final = (0.05, 0.14, 0.23, 0.32, 0.41, 0.5, 0.59, 0.68, 0.77, 0.86, 0.95, 3.0)
"""What stands beside them: how far a dozen bills of other threads are off, in shares of the stated error."""
WIDTHS: Final = (0.3, 100.0)
"""Bounds of a thread's own factor of the error."""
FRESH: Final = {FITTED: 1.0, KIN: 2.0, ESTIMATED: 1.0, EXACT: 3.2}
"""That factor before a thread has shown any: a runtime may add to the second request what no other gets."""
_FAR: Final = 2.0
"""Half widths; a change that is off by more says nothing of the scale: it is of something else."""


class ModelWeights(NamedTuple):
    """How a model's tokens are made of counted ones."""

    method: str
    """`exact:ENCODING`, `calibrated:ENCODING` or `estimate:ENCODING`; of a thread see `method`."""
    slopes: tuple[float, ...]
    """Its tokens for one counted, by class of `features.CLASSES`."""
    per_item: tuple[float, ...]
    """Tokens that an item costs beside its text, by class: in no placement, only in what is expected."""
    blind: float
    """Tokens that an item without text or count is expected to have."""
    spread: ErrorSpread
    broken: float
    """Error after a break, as a share of what is expected."""
    basis: str
    """`fitted`, `kin` (a relative's fit), `estimated` or `exact`."""
    how: str
    """One sentence: whose numbers these are."""
    fit: str | None = None
    """The fitted model whose numbers these are; None: nobody's."""


class BillsLearned(NamedTuple):
    """What a thread's bills so far say."""

    bills: int = 0
    informative: int = 0
    """Bills that say something of the scale."""
    scale: float = 1.0
    """On the slopes."""
    square: float = 0.0
    product: float = 0.0
    """Sums of the regression of what was billed on what moved, each row by its noise."""
    width: float = 1.0
    """Factor of the error."""
    scores: tuple[float, ...] = ()
    """How far the last bills were off, as shares of the error that the model's spread states."""
    base: int | None = None
    """What the first bill of the thread had beyond its recorded content."""
    blind: float = 0.0
    """Tokens that items without a size were billed, in sum, as far as they can be told apart."""
    blinds: int = 0


def model_weights(calibration: Calibration | None, model: str | None, encoding: str) -> ModelWeights:
    """How a model's tokens are made of those counted with an encoding; there is always a way."""
    common = COMMON if calibration is None or calibration.common is None else calibration.common
    found = resolve_encoding(model)
    if found.known and RANKS_OF[found.encoding] == RANKS_OF[encoding]:
        how = f"{found.encoding} is the encoding of {family(model or '')}"
        return ModelWeights(
            f"exact:{encoding}",
            ONES,
            EXACT_ITEMS,
            common.exact_blind,
            common.exact,
            common.broken,
            EXACT,
            how,
        )
    name = family(model) if model else "the model"
    fit, basis, wider = None, FITTED, 1.0
    if calibration is not None and model and not found.known:
        fit = calibration.of(model, encoding)
        if fit is None:
            ranks = RANKS_OF[encoding]
            fit = nearest_fit(name, (f for f in calibration.fits if RANKS_OF.get(f.encoding) == ranks))
            basis, wider = KIN, common.kin
    if fit is None:
        how = f"{name} has no fit: counted with {encoding}, not corrected"
        if found.known:
            how = f"counted with {encoding}, but {name} uses {found.encoding}"
        return ModelWeights(
            f"estimate:{encoding}", ONES, (common.item,) * len(CLASSES), 0.0, common.estimate, common.broken,
            ESTIMATED, how,
        )  # fmt: skip
    spread, blind = fit.spread or common.estimate, fit.blind_item
    if fit.blinds < ENOUGH:
        spread, blind = ErrorSpread(spread.request, spread.moved, common.estimate.blind), 0.0
    how = f"fitted to {fit.sessions:,} sessions of {fit.model}"
    if basis == KIN:
        spread = ErrorSpread(*(round(wider * x, 4) for x in (spread.request, spread.moved, spread.blind)))
        how = f"{name} has no fit of its own; uses that of {fit.model}, the nearest in its family"
    width = len(CLASSES)
    return ModelWeights(
        f"calibrated:{encoding}", fit.weights[:width], fit.weights[width:], blind, spread,
        common.broken, basis, how, fit.model,
    )  # fmt: skip


def slopes(how: ModelWeights, learned: BillsLearned | None) -> tuple[float, ...]:
    """What content that comes now is multiplied by, by class."""
    if learned is None or learned.scale == 1.0:
        return how.slopes
    scale = learned.scale
    return tuple([round(slope * scale, 4) for slope in how.slopes])


def slope(how: ModelWeights, learned: BillsLearned | None, at: int) -> float:
    """The one of `slopes` that is at a place."""
    if learned is None or learned.scale == 1.0:
        return how.slopes[at]
    return round(how.slopes[at] * learned.scale, 4)


def method(how: ModelWeights, learned: BillsLearned | None) -> str:
    """The method of content that comes now: a thread's own bills may calibrate what nobody fitted."""
    if how.basis == ESTIMATED and learned is not None and learned.informative >= ENOUGH:
        return how.method.replace("estimate:", "calibrated:", 1)
    return how.method


def growth(
    how: ModelWeights,
    learned: BillsLearned | None,
    moved: Sequence[float],
    items: Sequence[int],
    blind: int = 0,
) -> float:
    """How much more than the last bill the next one should be, in tokens.

    Args:
        how: Of the thread's model.
        learned: From the thread's earlier bills.
        moved: What came less what went since the last bill, by class, in the tokens of their placements.
        items: Items that came less those that went, by class.
        blind: Items without text or count that came less those that went.
    """
    return (
        sum(moved)
        + sum(w * n for w, n in zip(how.per_item, items, strict=True))
        + _blind(how, learned) * blind
    )


def expected(
    how: ModelWeights,
    learned: BillsLearned | None,
    last: int,
    moved: Sequence[float],
    items: Sequence[int],
    *,
    blind: int = 0,
    broken: bool = False,
    recorded: int | None = None,
) -> int:
    """The size that the next bill should say, in tokens.

    Args:
        last: The last bill of the same model in the thread.
        broken: The history was compacted, cleared or left since: what was billed beyond the recorded content
            may be gone with it.
        recorded: The content of the frame; needed where `broken`.
        how: As `growth` takes it, like `learned`, `moved`, `items` and `blind`.
    """
    size = last + growth(how, learned, moved, items, blind)
    if broken and recorded is not None and learned is not None and learned.base is not None:
        size = (size + learned.base + recorded) / 2
    return max(0, round(size))


def half_width(
    how: ModelWeights,
    learned: BillsLearned | None,
    moved: Sequence[float],
    items: Sequence[int],
    size: int,
    *,
    requests: int = 1,
    blind: int = 0,
    broken: bool = False,
) -> int:
    """Tokens that nine of ten true sizes are no further off than.

    Args:
        size: As expected.
        requests: Since the last bill, this one included.
        how: As `expected` takes it, like the rest.
    """
    wide = how.spread.of(requests, sum(map(abs, moved)), blind)
    wide *= learned.width if learned is not None and learned.scores else FRESH[how.basis]
    if broken:
        wide = max(wide, how.broken * size)
    return max(1, round(wide))


def refine(
    learned: BillsLearned | None,
    how: ModelWeights,
    moved: Sequence[float],
    items: Sequence[int],
    change: int,
    size: int,
    *,
    requests: int = 1,
    blind: int = 0,
    broken: bool = False,
    recorded: int | None = None,
) -> BillsLearned:
    """What is known of a thread after another bill.

    Args:
        learned: Before it; None before the first bill of this model.
        change: The bill less the one before; of the first bill anything.
        size: The bill.
        broken: As `expected` takes it, and also where a bill is of another model's than the last: the change
            says nothing.
        recorded: The content of the frame, in its placements' tokens.
        how: As `half_width` takes it, like the rest.
    """
    if learned is None:
        return BillsLearned(1, base=None if recorded is None else size - recorded)
    if broken:
        base = None if recorded is None else size - recorded
        known = [one for one in (learned.base, base) if one is not None]
        return learned._replace(bills=learned.bills + 1, base=min(known, default=None))
    off = change - growth(how, learned, moved, items, blind)
    gross = sum(map(abs, moved))
    plain = how.spread.of(requests, gross, blind)
    score = round(min(abs(off) / plain, WIDTHS[1]), 4)
    scores = (*learned.scores, score)[-RECENT:]
    learned = learned._replace(bills=learned.bills + 1, scores=scores, width=_width(scores))
    if blind:
        return _blinds(learned, how, off, blind)
    return _scaled(learned, how, sum(moved), off, plain)


def _scaled(learned: BillsLearned, how: ModelWeights, moved: float, off: float, plain: float) -> BillsLearned:
    """With the scale that the bills suggest, drawn to 1 as far as they are few or noisy."""
    trust = TRUST[how.basis]
    noise = how.spread.request
    if not trust or abs(moved) < INFORMATIVE * noise or abs(off) > _FAR * max(plain, trust * abs(moved)):
        return learned
    x = moved / learned.scale
    weight = 1 / (noise + 0.1 * abs(x)) ** 2
    square = learned.square + weight * x * x
    product = learned.product + weight * x * (moved + off)
    pull = 1 / trust**2
    low, high = SCALES[how.basis]
    scale = round(min(max((product + pull) / (square + pull), low), high), 4)
    return learned._replace(informative=learned.informative + 1, square=square, product=product, scale=scale)


def _width(scores: Sequence[float]) -> float:
    """The share of the stated error that holds nine of ten, of a thread's own bills and others together."""
    ordered = sorted((*scores, *USUAL))
    low, high = WIDTHS
    return min(max(ordered[int(OWN * len(ordered))], low), high)


def _blind(how: ModelWeights, learned: BillsLearned | None) -> float:
    """Tokens of an item without a size: the family's, drawn to the mean of the thread's own."""
    if learned is None or not learned.blinds:
        return how.blind
    return (learned.blind + _USUAL_BLINDS * how.blind) / (learned.blinds + _USUAL_BLINDS)


_USUAL_BLINDS: Final = 10
_MOST_BLIND: Final = 5.0


def _blinds(learned: BillsLearned, how: ModelWeights, off: float, blind: int) -> BillsLearned:
    """With what the items that came without a size were billed; where some left, nobody knows which."""
    if blind < 0:
        return learned
    each = off / blind + _blind(how, learned)
    most = _MOST_BLIND * max(how.blind, how.spread.request)
    each = min(max(each, 0.0), most)
    return learned._replace(blind=learned.blind + each * blind, blinds=learned.blinds + blind)


__all__ = [
    "BillsLearned",
    "ModelWeights",
    "expected",
    "growth",
    "half_width",
    "method",
    "model_weights",
    "refine",
    "slopes",
]  # fmt: skip
