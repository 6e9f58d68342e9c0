"""What the main screen, the reader, the line of commands and the search are told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from ctxctl.errors import UsageError
from ctxctl.model.addresses import escaped
from ctxctl.tui import scheduling
from ctxctl.tui.answers import change_rows, trace_facts
from ctxctl.tui.answers.desk import Desk
from ctxctl.tui.requests import Placed, PlaceRequest
from ctxctl.tui.screens.search.requests import Hits, SearchRequest
from ctxctl.tui.screens.turns.requests import DetailRequest, Reading, ReadingRequest
from ctxctl.tui.screens.turns.state import Detail

if TYPE_CHECKING:
    from ctxctl.session import Inspector
    from ctxctl.trace.index import Span
    from ctxctl.tui.answers.desk import Answer
    from ctxctl.tui.requests import Request


def _detail(desk: Desk, request: DetailRequest) -> Detail | None:
    try:
        return _detailed(desk, request)
    except UsageError as error:
        if error.slug == "no-such-frame" and not getattr(desk.inspector, "over", True):
            return None  # a step that was being written is another one now: the next growth asks again
        raise


def _detailed(desk: Desk, request: DetailRequest) -> Detail:
    key, how = (request.target, request.with_skipped), request.how
    gathered = desk.kept(key, lambda: change_rows.facts(desk.inspector, *key))
    if how.only is not None:
        return change_rows.filtered(desk.inspector, gathered, how)
    detail: Detail = desk.kept((*key, how), lambda: change_rows.arranged_detail(gathered, how))
    return detail


def _reading(desk: Desk, request: ReadingRequest) -> Reading:
    inspector = desk.inspector
    if request.kind == "stages":
        document = trace_facts.stages(inspector, request.ordinal)
    elif request.kind == "problems":
        document = trace_facts.problems(inspector.problems, inspector.problem_count)
    else:
        document = trace_facts.about(inspector.format, inspector.summary)
    return Reading(request.title, document)


def _place(desk: Desk, request: PlaceRequest) -> Placed:
    desk.check()
    try:
        ordinal = _ordinal(desk.inspector, request.address)
    except UsageError as error:
        if error.slug != "ambiguous-session" or request.session is None:
            raise UsageError(error.slug, f"{error}{f'; {error.hint}' if error.hint else ''}") from None
        ordinal = _ordinal(desk.inspector, f"{escaped(request.session)}/{request.address}")
    return Placed(request.address, ordinal)


def _ordinal(inspector: Inspector, address: str) -> int:
    """The step, looked for among those that are known before the whole trace is asked.

    Only from the whole is it known what stands at its end.
    """
    from ctxctl.session.addresses import address_id, step_ordinal

    known = cast("Sequence[Span]", list(inspector.known))
    whole = inspector.summary is not None
    if known and address_id(address, known) is None and (whole or "-" not in address):
        try:
            return step_ordinal(address, known)
        except UsageError as error:
            if whole or error.slug == "ambiguous-session":
                raise
    return inspector.resolve(address)


def _search(desk: Desk, request: SearchRequest) -> Hits | None:
    from ctxctl.analysis.search import search_trace

    with scheduling.short():
        for found in search_trace(desk.inspector, request.query, desk.check):
            hits = Hits(request.serial, found)
            if found.done:
                return hits
            desk.tell(hits)
    return None


ANSWERS: Final[dict[type[Request], Answer[Any]]] = {
    DetailRequest: _detail,
    ReadingRequest: _reading,
    PlaceRequest: _place,
    SearchRequest: _search,
}
"""By kind of request, what computes the answer."""
