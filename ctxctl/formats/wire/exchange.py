"""One request to a model and what came back, whatever container it was captured in."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ctxctl.formats.build import Json

if TYPE_CHECKING:
    from ctxctl.formats.wire.dialect import Dialect


class Exchange(NamedTuple):
    """A request body and the response to it; either may be lacking."""

    request: Json | None
    response: Json | None
    """The final response body; a streamed one as `stream.final` gives it."""
    line: int = 0
    """Line of the foreign file; 0: the one that the run is reading."""
    url: str | None = None
    time: str | None = None
    """RFC 3339, of the request."""
    status: int | None = None
    """HTTP status."""
    native_id: str | None = None
    """The provider's or the capture's id of the request."""
    session: str | None = None
    thread: str | None = None
    """None: told by the request itself (`exchanges`)."""
    turn: str | None = None
    """None: a turn begins where a prompt of the user is the last thing in the request."""
    error: str | None = None
    """Why there was no answer, in one line."""
    answer_line: int = 0
    """Line of the response, where it is another than the request's."""
    answer_file: str | None = None
    """File of a directory that the response is from, where it is another than the request's."""
    dialect: str | Dialect | None = None
    """The dialect, or the name of one; None: told by the address and the body."""
    limit: int | None = None
    """The model's window in tokens, where the capture tells it."""
    whole: bool = True
    """The request body is the one that was sent; False: a log's account of the call."""
    origin: Json | None = None
    """Where the thread comes from (`parent_thread` …), for a thread that is named; told at its beginning."""
    apart: bool = False
    """No conversation goes on with it, though its thread is named: it only warms a cache."""
    derived: bool = False
    """The request was put together from several messages: it named a history that was seen."""
