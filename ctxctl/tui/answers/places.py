"""Which step an address names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from ctxctl.errors import UsageError
from ctxctl.model.addresses import escaped
from ctxctl.tui.places import Placed, WantPlace

if TYPE_CHECKING:
    from ctxctl.inspector import Inspector
    from ctxctl.trace.index import Span
    from ctxctl.tui.answers.desk import Answer, Desk
    from ctxctl.tui.messages import Want


def _place(desk: Desk, want: WantPlace) -> Placed:
    desk.check()
    try:
        ordinal = _ordinal(desk.inspector, want.address)
    except UsageError as error:
        if error.slug != "ambiguous-session" or want.session is None:
            raise UsageError(error.slug, f"{error}{f'; {error.hint}' if error.hint else ''}") from None
        ordinal = _ordinal(desk.inspector, f"{escaped(want.session)}/{want.address}")
    return Placed(want.address, ordinal)


def _ordinal(inspector: Inspector, address: str) -> int:
    """The step, looked for among those that are known before the whole trace is asked.

    Only from the whole is it known what stands at its end.
    """
    from ctxctl.inspector.address import named, resolve

    known = cast("Sequence[Span]", list(inspector.known))
    whole = inspector.summary is not None
    if known and named(address, known) is None and (whole or "-" not in address):
        try:
            return resolve(address, known)
        except UsageError as error:
            if whole or error.slug == "ambiguous-session":
                raise
    return inspector.resolve(address)


ANSWERS: Final[dict[type[Want], Answer[Any]]] = {WantPlace: _place}
