"""From HTTP calls as captures hold them to exchanges with a model; what is no such exchange is counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ctxctl.ingest.build import Json, canonical
from ctxctl.ingest.parts import count, moment, string
from ctxctl.ingest.run import Run
from ctxctl.providers.calls import answers, encodings
from ctxctl.providers.calls.purpose import MODEL, path_of, purpose, unread_dialect, without_query
from ctxctl.providers.calls.recognise import answer_of, as_sent, request_of
from ctxctl.providers.dialects import of_body, of_response
from ctxctl.providers.dialects.base import Dialect
from ctxctl.providers.dialects.exchanges import Exchange, Exchanges

_SESSION: Final = re.compile(r"session_([0-9a-fA-F-]{36})\Z")
_REQUEST_IDS: Final = ("request-id", "x-request-id", "x-amzn-requestid")
_SHOWN = 120
_PLAIN = 60
"""How sure a dialect is of a body that has a model and messages of plain text, and nothing else."""


class Call(NamedTuple):
    """One HTTP call; bodies are as the capture keeps them (JSON, text, bytes), headers are the response's."""

    url: Any
    request: Any
    response: Any = None
    method: Any = "POST"
    status: Any = None
    headers: Any = None
    """Of the response; only the request id is taken.  A request's headers hold keys and are never read."""
    line: int = 0
    time: Any = None
    """When it was sent: RFC 3339, or seconds since 1970."""
    native_id: str | None = None
    session: str | None = None
    thread: str | None = None
    turn: str | None = None
    error: str | None = None
    answer_line: int = 0
    """Line of the response, where it has one of its own."""
    answer_file: str | None = None
    """File of a directory that the response is from, where it has one of its own."""
    limit: Any = None
    """The model's window in tokens, where the capture tells it."""
    whole: bool = True
    """The request's body is the one that was sent; False: a log's account of the call."""


class Calls:
    """Sorts the calls of a capture; those that ask a model become steps.

    Problems: `unread-dialect`, `no-model-calls`, `bodies-too-large`.

    Args:
        run: The import.
        addresses: Whether a call's address tells its dialect; golden files give all of theirs the same.
    """

    def __init__(self, run: Run, *, addresses: bool = True) -> None:
        self.run = run
        self._addresses = addresses
        self.exchanges = Exchanges(run)
        self.asked = 0
        """Requests to models so far."""
        self.others: Counter[str] = Counter()
        """What other calls were for, and how many."""
        self.unpacker = encodings.Unpacker()
        self._told_cut = False
        self._last: tuple[Any, Any] = None, None
        """The request that was opened last, as the capture holds it and as it is."""
        self._unread: Counter[str] = Counter()
        self._session: str | None = None

    def take(self, call: Call) -> None:
        """The next call, in the order in which the capture has them."""
        self._take(call)
        self._tell_cut()

    def _take(self, call: Call) -> None:
        body = self._opened(call.request)
        what = purpose(call.method, call.url, body)
        if what != MODEL or not isinstance(body, dict):
            self.others[what if what != MODEL else "other requests"] += 1
            return
        said = _unwrapped(body)
        body = as_sent(said)
        name = unread_dialect(call.url, body)
        if name is not None:
            self._refuse(name)
            return
        address = without_query(call.url)
        dialect = of_body(body, address if self._addresses else None) or of_body(body, address)
        if dialect is None:
            self._strange(call, body)
            return
        self.asked += 1
        status = _status(call.status)
        given = answer_of(call.response, self.unpacker)
        dialect = _told_by(given, body, dialect)
        answer = answers.final_response(given, dialect)
        error = call.error
        if status is not None and status >= 400:
            error, answer = error or _reason(answer, call.response, status, self.unpacker), None
        self.exchanges.add(
            Exchange(
                request=body,
                response=answer,
                line=call.line,
                url=address,
                time=moment(call.time),
                status=status,
                native_id=call.native_id or _request_id(call.headers),
                session=call.session,
                thread=call.thread,
                turn=call.turn,
                error=error,
                dialect=dialect.name,
                answer_line=call.answer_line,
                answer_file=call.answer_file,
                limit=count(call.limit) or None,
                whole=call.whole and body is said,
            )
        )

    def _opened(self, request: Any) -> Any:
        """A request's body; of one that is asked for twice in a row, it is unpacked once."""
        if self._last[0] is not request or request is None:
            self._last = request, request_of(request, self.unpacker)
        return self._last[1]

    def session_of(self, request: Any) -> str | None:
        """The session that a Claude Code request names in its metadata; else that of the request before."""
        body = self._opened(request)
        metadata = body.get("metadata") if isinstance(body, dict) else None
        user = metadata.get("user_id") if isinstance(metadata, dict) else None
        if isinstance(user, str):
            found = _SESSION.search(user)
            if found is not None:
                self._session = found.group(1)
            elif user.startswith("{"):
                named = encodings.decoded_body(user)
                self._session = (string(named.get("session_id")) if isinstance(named, dict) else None) or (
                    self._session
                )
        return self._session

    def finish(self) -> Iterator[Json]:
        """Close the threads, say what was not read, and hand on the rest."""
        self._tell_cut()
        self.exchanges.finish()
        total = sum(self.others.values())
        if not self.asked and not self._unread:
            held = _listed(self.others) if total else "no HTTP call"
            self.run.problem("no-model-calls", f"no request to a model in it: {held}")
        if total:
            self.run.opened(requests=self.asked, others=dict(self.others))
        yield from self.run.finish()

    def _tell_cut(self) -> None:
        """Say once that something was not unpacked whole."""
        if self.unpacker.cut and not self._told_cut:
            self._told_cut = True
            self.run.problem("bodies-too-large", encodings.UNPACKED)

    def _strange(self, call: Call, body: Json) -> None:
        """A body that no dialect claims: another service's, unless its address says that it asks a model."""
        path = path_of(call.url)
        if any(mark in path for mark in ("/chat", "/messages", "/responses", ":generateContent", "/invoke")):
            self._refuse(f"{path[:_SHOWN]} with {', '.join(list(body)[:5]) or 'an empty body'}"[:_SHOWN])
        else:
            self.others["other requests"] += 1

    def _refuse(self, name: str) -> None:
        self._unread[name] += 1
        if self._unread[name] == 1:
            self.run.problem("unread-dialect", f"{name}: not a dialect that is read; skipped")


def _told_by(answer: Any, body: Json, dialect: Dialect) -> Dialect:
    """A body of a model and plain messages may be of several dialects: its answer says which one it is."""
    told = of_response(answer) if isinstance(answer, dict) else None
    if told is None or told is dialect or dialect.detect(body) > _PLAIN:
        return dialect
    return told if isinstance(body.get(told.section), list) else dialect


def _unwrapped(body: Json) -> Json:
    """The request inside the envelope of Google's Code Assist."""
    inner = body.get("request")
    if isinstance(inner, dict) and "contents" in inner and "contents" not in body:
        model = body.get("model")
        return {**inner, "model": model} if isinstance(model, str) else inner
    return body


def _status(value: Any) -> int | None:
    if isinstance(value, dict):
        value = value.get("code")
    if isinstance(value, str):
        value = int(value[:3]) if value[:3].isdigit() else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1000 else None


def _request_id(headers: Any) -> str | None:
    for name in _REQUEST_IDS:
        value = encodings.header(headers, name)
        if value is not None:
            return value
    return None


def _reason(answer: Json | None, raw: Any, status: int, unpacker: encodings.Unpacker) -> str:
    """One line of why a request was refused."""
    found: Any = answer if answer is not None else encodings.decoded_body(raw, unpacker=unpacker)
    for key in ("error", "message", "detail"):
        if isinstance(found, dict) and key in found:
            found = found[key]
    if isinstance(found, dict | list):
        found = canonical(found)
    text = str(found).strip().partition("\n")[0][:_SHOWN] if found else ""
    return f"HTTP {status}: {text}" if text else f"HTTP {status}"


def _listed(found: Counter[str]) -> str:
    return ", ".join(f"{name} ({number})" for name, number in sorted(found.items()))
