"""The calibration that comes with ctxctl: `ctxctl/tokens/data/calibration.json`, made by `make calibration`.

It holds names of models, numbers and errors; nothing of the captures that it was fitted to.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ctxctl.tokens.calibrate.book import Calibration, decode
from ctxctl.tokens.encodings import DATA

PATH: Final = DATA / "calibration.json"


@lru_cache(maxsize=1)
def shipped() -> Calibration:
    """The calibration that is in force where none is named."""
    return decode(PATH.read_bytes())


@lru_cache(maxsize=8)
def over_shipped(own: Calibration) -> Calibration:
    """The user's fits in place of the shipped ones for the same models, beside the shipped ones for others."""
    return shipped().with_fits(own.fits)
