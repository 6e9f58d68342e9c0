"""The calibration that comes with ctxctl: `ctxctl/tokens/data/calibration.json`, made by `make calibration`.

It holds names of models, numbers and errors; nothing of the captures that it was fitted to.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import Final

from ctxctl.errors import UnreadableError
from ctxctl.tokens.calibrate import store
from ctxctl.tokens.calibrate.calibration import Calibration, decode
from ctxctl.tokens.ranks import DATA

PATH: Final = DATA / "calibration.json"


@lru_cache(maxsize=1)
def shipped_calibration() -> Calibration:
    """The calibration that is in force where none is named."""
    return decode(PATH.read_bytes())


@lru_cache(maxsize=8)
def over_shipped(own: Calibration) -> Calibration:
    """The user's fits in place of the shipped ones of the same models, and the shipped ones of others."""
    return shipped_calibration().with_fits(own.fits)


def named_calibration(name: str) -> Calibration:
    """The calibration of a digest, or of the first four digits or more of one, or of a file.

    A digest is the shipped one's, a saved one's, or, as headers name it, that of a saved one over
    the shipped one.
    Raises UsageError("no-calibration") or UnreadableError("bad-calibration").
    """
    if store.is_digest(name):
        if shipped_calibration().digest.startswith(name):
            return shipped_calibration()
        for digest, path in store.all_saved():
            with suppress(UnreadableError):
                if not digest.startswith(name) and over_shipped(store.read(path)).digest.startswith(name):
                    return store.read(path)
    return store.named(name)
