"""Assertions on contexts: what is sent still fits, and is still what it was (``docs/testing.md``).

They raise `AssertionError` with a report, under any test runner; with pytest there is a plugin besides.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxctl.testing.fits import Fits, assert_fits
    from ctxctl.testing.golden import assert_context_diff

__all__ = ["Fits", "assert_context_diff", "assert_fits"]


def __getattr__(name: str) -> object:
    """Import a name when it is first asked for: pytest loads the plugin in every project."""
    if name in ("Fits", "assert_fits"):
        from ctxctl.testing import fits

        return getattr(fits, name)
    if name == "assert_context_diff":
        from ctxctl.testing.golden import assert_context_diff

        return assert_context_diff
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
