"""Records the JSON-RPC messages between a client and a server, in a thread of its own.

The importer's rules make the records; unlike in a log, it is known here which side spoke.
"""

from __future__ import annotations

import signal
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import orjson

from ctxctl.ingest.build import Json
from ctxctl.ingest.lines import Line
from ctxctl.ingest.parts import Part, string
from ctxctl.model import vocab
from ctxctl.providers.mcp.parts import scoped_id
from ctxctl.providers.mcp.session import McpSession
from ctxctl.record.place import Place
from ctxctl.record.redact import FoundSecrets
from ctxctl.record.seams import Follower
from ctxctl.wording import plural

if TYPE_CHECKING:
    from ctxctl.model.problem import Problem
    from ctxctl.record.mcp.process import Side
    from ctxctl.record.recorder import Recorder


ENCODING: Final = "o200k_base"
_TEXT: Final = 1 << 20
"""Characters of the longest text that is counted, as counting takes the server's processor time."""
_SHOWN: Final = 5
_WORDS: Final = {
    "tools": ("tool definition", "tool definitions"),
    "initialize": ("instructions", "instructions"),
}
_LISTS: Final = {
    "resources": ("resource", "resources"),
    "resourceTemplates": ("template of resources", "templates of resources"),
    "prompts": ("prompt", "prompts"),
}
_USES: Final = {
    "tool_result": ("tool result", "tool results"),
    "external_resource": ("resource", "resources"),
    "user_message": ("prompt message", "prompt messages"),
    "assistant_message": ("prompt message", "prompt messages"),
    "image": ("image", "images"),
}


class TokenCounts:
    """Counts in tokens what a server offered and what was used of it.

    Counts are exact for `ENCODING`; other providers' models count otherwise.
    """

    def __init__(self) -> None:
        self.chatter = self.errors = self.progress = self.unanswered = 0
        self._definitions: dict[str, dict[str, str]] = {}
        self._lists: dict[str, int] = {}
        self._uses: dict[str, list[int]] = {}
        """By kind: the number of uses, their tokens, and the number that was not counted."""

    def definition(self, offered: str, name: str, text: str) -> None:
        """Note the text of one definition that a list offers."""
        self._definitions.setdefault(offered, {})[name] = text

    def offered(self, name: str, count: int) -> None:
        """Note the length of a list without definitions."""
        self._lists[name] = count

    def used(self, parts: list[Part]) -> None:
        """Count the results of a call, or what was read."""
        for part in parts:
            if part.kind == "tool_call":
                continue
            counts = self._uses.setdefault(_USES.get(part.kind, (part.kind, part.kind))[1], [0, 0, 0])
            counts[0] += 1
            tokens = _tokens(part.text)
            if tokens is None:
                counts[2] += 1
            else:
                counts[1] += tokens

    def summary_lines(self, name: str) -> list[str]:
        """Return the lines of the summary; `name`: the server's."""
        lines = [self._offer(name, offered, texts) for offered, texts in self._definitions.items() if texts]
        if self._lists:
            lists = ", ".join(
                plural(count, *_LISTS.get(what, (what, what))) for what, count in self._lists.items()
            )
            lines.append(f"{name} lists {lists}")
        for what, (count, tokens, uncounted) in self._uses.items():
            less = f"; {uncounted:,} not counted" if uncounted else ""
            uses = plural(count, _single(what), what)
            lines.append(f"{uses}: {plural(tokens, 'token', 'tokens')} ({ENCODING}){less}")
        odd = [
            plural(count, one, many)
            for count, one, many in (
                (self.errors, "error", "errors"),
                (self.unanswered, "call never answered", "calls never answered"),
                (self.progress, "note of progress", "notes of progress"),
                (self.chatter, "line that is no message", "lines that are no messages"),
            )
            if count
        ]
        return [*lines, ", ".join(odd)] if odd else lines

    def _offer(self, name: str, offered: str, texts: dict[str, str]) -> str:
        counts = {one: _tokens(text) for one, text in texts.items()}
        known = {one: count for one, count in counts.items() if count is not None}
        one, many = _WORDS.get(offered, (offered, offered))
        head = f"{name} offers {plural(len(texts), one, many)}: "
        if offered == "initialize":
            head = f"{name} has instructions: "
        ranked = sorted(known.items(), key=lambda pair: (-pair[1], pair[0]))
        shown = ", ".join(f"{title} {count:,}" for title, count in ranked[:_SHOWN])
        rest = f", {len(ranked) - _SHOWN} more" if len(ranked) > _SHOWN else ""
        detail = f": {shown}{rest}" if len(ranked) > 1 else ""
        return f"{head}{plural(sum(known.values()), 'token', 'tokens')} ({ENCODING}){detail}"


def _tokens(text: str | None) -> int | None:
    if text is None or len(text) > _TEXT:
        return None
    from ctxctl.tokens.counter import Counter

    return Counter(ENCODING).count(text)[0]


def _single(many: str) -> str:
    return next((one for one, several in _USES.values() if several == many), many)


ERROR: Final = "ctxctl.mcp.error"
"""The event of an error in answer to a request: `method`, `code`, `message`."""
CHANGED: Final = "ctxctl.mcp.list_changed"
"""The event of a server's notice that one of its lists has changed: `list`."""
_OTHER: Final[dict[Side, Side]] = {"client": "server", "server": "client"}
_RUNTIME: Final = "runtime"
_ITEMS: Final = (vocab.ITEM_ADDED, vocab.ITEM_UPDATED)


class MessageRecorder:
    """Records the lines of both sides, given in the order in which they were passed on."""

    def __init__(self, recorder: Recorder, session: str | None, counts: TokenCounts) -> None:
        self._recorder = recorder
        self._counts = counts
        self._session = session or recorder.session
        self._live = _LiveSession(counts)
        self._number = 0

    @property
    def server(self) -> str | None:
        """The name that the server gave itself."""
        return self._live.server

    def line(self, side: Side, line: bytes) -> None:
        """Record a line of one side; it may hold anything."""
        self._number += 1
        if not line.strip():
            return
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            self._counts.chatter += 1
            return
        self._live.line = Line(self._number, 0, b"")
        value = self._without_secrets(value, line)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                self._live.hear(side, one)
            else:
                self._counts.chatter += 1
        self._write()

    def _without_secrets(self, value: Any, line: bytes) -> Any:
        """The message without secrets, of which a title would else show the half that fits in."""
        core, found = self._recorder._core, FoundSecrets()
        if core.redactor is None:
            return value
        made = core.redactor.value(Follower(core.redactor).value(value, found), line, found)
        core.count(found)
        return made

    def end(self) -> None:
        """Record the end of the session, and calls that were never answered."""
        self._live.unanswered()
        self._write()
        self._recorder._core.record(vocab.SESSION_ENDED, {}, Place(self._session))

    def _write(self) -> None:
        core = self._recorder._core
        # The same file may hold another server's run under the same session.
        mark = self._recorder._name_suffix(Place(self._session))
        for event in self._live.drain():
            turn, step = (f"{name}{mark}" if (name := event.get(f)) else None for f in ("turn_id", "step_id"))
            place = Place(self._session, event.get("thread_id"), turn, step)
            kind, data = event["event_type"], event["data"]
            if kind in _ITEMS:
                content = data.pop("content", None)
                if content is not None:
                    data.pop("version", None)  # the digest of the text with its secrets
                core.item(data, content, None, place)
            elif kind == vocab.ITEM_REMOVED:
                core.remove_item(data, place)
            else:
                core.record(kind, data, place)


class _LiveSession(McpSession):
    """The importer of MCP logs, fed with messages as they pass."""

    def __init__(self, counts: TokenCounts) -> None:
        super().__init__("mcp", _ignore_problem)
        self._counts = counts
        self._answers |= {
            "resources/list": self._resources,
            "resources/templates/list": self._templates,
            "prompts/list": self._prompts,
        }

    @property
    def server(self) -> str | None:
        """The name that the server gave itself."""
        return self._server

    def hear(self, side: Side, message: Json) -> None:
        """Take a message of one side; ids get the asker's name, as both sides count alike."""
        method, native = message.get("method"), message.get("id")
        if isinstance(method, str) and native is None:
            self._notified(method, message)
            return
        asker = side if isinstance(method, str) else _OTHER[side]
        named = {**message, "id": f"{asker}:{orjson.dumps(native).decode()}"}
        request, _ = self._open.get(named["id"], (None, 0)) if not isinstance(method, str) else (None, 0)
        error = message.get("error")
        if error is not None and not isinstance(method, str):
            self._failed(request, error)
        self._take(named)

    def _notified(self, method: str, message: Json) -> None:
        if method.startswith("notifications/") and method.endswith("/list_changed"):
            self.emit(CHANGED, {"list": method.split("/")[1]}, self._place())
        elif method == "notifications/progress":
            self._counts.progress += 1

    def _failed(self, request: Json | None, error: Any) -> None:
        method = string((request or {}).get("method"))
        self._counts.errors += 1
        fields = error if isinstance(error, dict) else {"message": str(error)[:1000]}
        data = {"method": method, "code": fields.get("code"), "message": fields.get("message")}
        self.emit(ERROR, {k: v for k, v in data.items() if v is not None}, self._place())

    def unanswered(self) -> None:
        """Record the calls that were never answered."""
        for request, asked in self._open.values():
            self._asked = asked
            if request.get("method") == "tools/call":
                self._called(request, {})
                self._counts.unanswered += 1
        self._open = {}
        for conversation in self.threads.values():
            conversation.finish()

    # -- lists that the importer passes over ----------------------------------------------------------------

    def _resources(self, request: Json, result: Json) -> None:
        self._listed("resources", request, result, self._resource)

    def _templates(self, request: Json, result: Json) -> None:
        self._listed("resourceTemplates", request, result, self._resource)

    def _prompts(self, request: Json, result: Json) -> None:
        self._listed("prompts", request, result, self._prompt_offer)

    def _resource(self, one: Json) -> Part:
        uri = string(one.get("uri")) or string(one.get("uriTemplate")) or "resource"
        size = one.get("size")
        fields: dict[str, Any] = {"byte_size": size} if isinstance(size, int) and 0 <= size < 2**53 else {}
        return Part(
            "external_resource", None, "user", key=scoped_id(self._server, uri), source=self._server,
            title=string(one.get("name")) or uri, mime_type=string(one.get("mimeType")), **fields,
        )  # fmt: skip

    def _prompt_offer(self, one: Json) -> Part:
        name = string(one.get("name")) or "prompt"
        return Part(
            "custom", None, "user", key=scoped_id(self._server, f"prompt:{name}"), source=self._server,
            title=string(one.get("title")) or name, native={"type": "prompt"},
        )  # fmt: skip

    def _listed(self, name: str, request: Json, result: Json, part: Any) -> None:
        found = result.get(name)
        params = request.get("params")
        first = not (isinstance(params, dict) and params.get("cursor"))
        page = self._page[name] = set() if first else self._page.get(name, set())
        for one in found if isinstance(found, list) else []:
            if isinstance(one, dict):
                made = part(one)
                page.add(made.item)
                if made.item not in self._offered:
                    # On a list only: no model sees it until somebody reads or uses it.
                    record = {**made.record(derived_identity=False), "visibility": [_RUNTIME]}
                    self.emit(vocab.ITEM_ADDED, record, self._place())
                self._offered[made.item] = name
        self._counts.offered(name, len(page))
        if not result.get("nextCursor"):
            for gone in [n for n, of in self._offered.items() if of == name and n not in page]:
                del self._offered[gone]
                record = Part("custom", None, "user", key=gone).record(derived_identity=False)
                self.emit(vocab.ITEM_REMOVED, {**record, "metadata": {"cause": "detached"}}, self._place())
            self._surface()

    # -- what it costs --------------------------------------------------------------------------------------

    def _announce(self, part: Part, offered: str) -> None:
        if part.text is not None:
            self._counts.definition(offered, part.title or part.item, part.text)
        super()._announce(part, offered)

    def _use(self, parts: list[Part]) -> None:
        self._counts.used(parts)
        super()._use(parts)


def _ignore_problem(problem: Problem) -> None:
    pass


_WAITING: Final = 64 << 20
"""Bytes that may wait to be recorded."""
_LINE: Final = 64 << 20
"""Bytes of the longest message that is recorded."""
_PATIENCE: Final = 10.0
"""Seconds that `close` waits for what is not recorded yet."""


class Listener:
    """Takes copies of the bytes that were passed on, and records their lines in a thread of its own."""

    def __init__(self, recorder: Recorder, session: str | None) -> None:
        self._recorder = recorder
        self._counts = TokenCounts()
        self._messages = MessageRecorder(recorder, session, self._counts)
        self._queue: deque[tuple[Side, bytes] | None] = deque()
        self._size = 0
        self._there = threading.Semaphore(0)
        self._lines: dict[Side, _Lines] = {"client": _Lines(), "server": _Lines()}
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def take(self, side: Side, data: bytes) -> None:
        """Take bytes that were passed on, without waiting."""
        if self._size > _WAITING:
            self._recorder._core.journal.count_lost("busy")
            # The bytes that follow begin in the middle of a message.
            data = b"\n" if b"\n" not in data else data[data.rfind(b"\n") :]
        self._size += len(data)
        self._queue.append((side, data))
        self._there.release()

    def close(self) -> None:
        """Record what still waits, and stop the thread."""
        self._queue.append(None)
        self._there.release()
        self._thread.join(_PATIENCE)
        if self._thread.is_alive():
            self._recorder._core.journal.count_lost("not recorded in time")

    def summary_lines(self, name: str) -> list[str]:
        """Return lines about what was offered and used, in tokens."""
        return self._counts.summary_lines(self._messages.server or name)

    def _work(self) -> None:
        # Signals are for the thread that passes them on.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while True:
            self._there.acquire()
            found = self._queue.popleft()
            if found is None:
                break
            side, data = found
            self._size -= len(data)
            try:
                for line in self._lines[side].add(data):
                    self._hear(side, line)
            except Exception as error:  # no caller could take it
                self._recorder._core.call_failed(error)
        try:
            for each, lines in self._lines.items():
                if rest := lines.rest():
                    self._hear(each, rest)
            self._messages.end()
        except Exception as error:
            self._recorder._core.call_failed(error)

    def _hear(self, side: Side, line: bytes | None) -> None:
        if line is None:
            self._recorder._core.journal.count_lost("message too long")
            return
        try:
            self._messages.line(side, line)
        except Exception as error:
            self._recorder._core.call_failed(error)


class _Lines:
    """Makes lines of bytes that come in any pieces."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._over = False
        """Whether the present line is too long."""

    def add(self, data: bytes) -> list[bytes | None]:
        """Add bytes, and return the lines that are whole now; None for one that was too long."""
        found: list[bytes | None] = []
        at = 0
        while (end := data.find(b"\n", at)) >= 0:
            self._take(data[at:end])
            found.append(None if self._over else b"".join(self._parts))
            self._parts, self._size, self._over = [], 0, False
            at = end + 1
        if at < len(data):
            self._take(data[at:] if at else data)
        return found

    def _take(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > _LINE:
            self._parts, self._over = [], True
        elif not self._over:
            self._parts.append(data)

    def rest(self) -> bytes:
        """Return the last line, which has no line end."""
        return b"".join(self._parts)
