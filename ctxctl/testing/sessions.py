"""Opens recorded sessions by the names that tests give them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ctxctl.session import Inspector


class NamedSession(NamedTuple):
    """An open session and the frame that the test named in it."""

    inspector: Inspector
    address: str | None


@contextmanager
def open_session(name: str, *, weighed: bool = False) -> Iterator[NamedSession]:
    """Open ``TRACE[@ADDRESS]`` under the settings in force; raises what `Inspector.open` raises.

    With `weighed`, sizes are by the calibration in force, so that requests without a bill have their expected
    size; else texts have their token counts, which no later calibration changes.
    """
    from ctxctl import config
    from ctxctl.session import Inspector
    from ctxctl.session.calibration import NONE
    from ctxctl.session.naming import split_name

    now = config.load()
    trace, address = split_name(name)
    with Inspector.open(
        trace,
        target=now.target,
        model=now.model,
        encoding=now.encoding,
        format=now.read_as,
        calibration=now.calibration if weighed else NONE,
        own_models=now.models,
    ) as inspector:
        yield NamedSession(inspector, address)
