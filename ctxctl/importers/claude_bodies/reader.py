"""Reads a dump's exchanges in order, session by session.

The dump's index says which files are one exchange, of which session, and in which order.  Where no index
names them, order and pairs are told by what later requests repeat.  A transcript of the session beside the
bodies tells which prompt set each request off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from ctxctl.errors import CtxctlError
from ctxctl.importers.claude_bodies import INDEX, REQUEST, RESPONSE, is_export
from ctxctl.importers.claude_code import detect as is_transcript
from ctxctl.ingest.build import Json, canonical, digest_of
from ctxctl.ingest.document import document
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.lines import WHOLE_FILE, Report, ignore_problem, values
from ctxctl.ingest.parts import string
from ctxctl.ingest.run import Run
from ctxctl.model.problem import Problem
from ctxctl.providers.calls.http import Call, Calls
from ctxctl.trace.source import Source, open_source

NAME: Final = "claude-bodies"
_HEAD: Final = 1 << 16
_ADDRESS: Final = "/v1/messages"


def read_index(source: Source, report: Report) -> Iterator[Json]:
    """The events of the directory that an index stands in; a stream has nothing beside it."""
    path = None if source.spooled else source.path
    if path is None or not Path(path).is_file():
        run = Run(NAME, report)
        for record in run.records(source):
            if "request_file" not in record:
                run.problem("unknown-record", "names no body of a request; skipped")
        run.problem("bodies-not-found", "an index by itself: open the directory that it stands in")
        yield from run.finish()
        return
    yield from read_folder(Folder(source.name, Path(path).parent), report)


def read_folder(folder: Folder, report: Report) -> Iterator[Json]:
    """The directory's events; problems and events name the file they are from."""
    run = Run(NAME, report)
    files = exchanges_of_indexes(folder, run)
    run.make.file = None
    asked = turns_of_transcript(folder)
    entries = _placed(folder, files, run) if files.requests or files.responses else files.entries
    sessions: dict[str | None, list[DumpedExchange]] = {}
    for entry in entries:
        sessions.setdefault(entry.session, []).append(entry)
    calls: Calls | None = None
    for session, own in sessions.items():
        run.session = session
        # Each session has a main thread of its own: side questions often come before it.
        calls = Calls(run)
        for entry in own:
            _take(folder, entry, calls, asked)
            yield from run.drain()
        calls.exchanges.finish()
        run.make.file = None
        yield from run.end_session()
    if calls is None:
        run.problem("no-model-calls", "no body of a request in it")
    yield from run.finish()


def _take(folder: Folder, entry: DumpedExchange, calls: Calls, asked: dict[str, str]) -> None:
    run = calls.run
    response = _body(folder, entry.response, run) if entry.response is not None else None
    request = _body(folder, entry.request, run) if entry.request is not None else None
    if not isinstance(request, dict):
        run.make.file = None
        run.problem("no-request", f"{entry.request}: no body of a request; skipped", WHOLE_FILE)
        return
    run.line = WHOLE_FILE
    calls.take(
        Call(
            url=_ADDRESS,
            request=request,
            response=response,
            line=1,
            time=entry.time,
            native_id=entry.request_id,
            session=entry.session,
            turn=asked.get(entry.request_id or "") or asked.get(entry.message_id or ""),
            error=None if response is not None else "no answer recorded",
        )
    )


def _body(folder: Folder, name: str, run: Run) -> Any:
    """A file's value; None, and a problem, where there is none to read."""
    run.make.file = name
    try:
        source = folder.open(name)
    except CtxctlError as error:
        run.report(Problem(0, 0, error.slug, str(error)))
        return None
    with source:
        return document(source, run.report)


# -- without an index -------------------------------------------------------------------------------------


def _placed(folder: Folder, files: DumpFiles, run: Run) -> list[DumpedExchange]:
    """All exchanges: those of the index, and each that it does not name at the place that its messages
    tell."""
    naming = Calls(run)
    strays: list[RequestSigns] = []
    for name in files.requests:
        body = _body(folder, name, run)
        if isinstance(body, dict):
            strays.append(signs_of_request(name, body, naming.session_of(body)))
    answers = [(name, body) for name in files.responses if isinstance(body := _body(folder, name, run), dict)]
    run.make.file = None
    paired, alone = paired_answers(strays, answers)
    if alone:
        message = f"{len(alone)} answers ({alone[0]} …) belong to no request that is known; left out"
        run.problem("unpaired-answers", message, WHOLE_FILE)
    made = [_stray(one, paired) for one in ordered_requests(strays)]
    if not files.entries:
        return made
    return _merged(folder, files.entries, made, {one.file: one for one in strays}, run)


def _stray(one: RequestSigns, paired: dict[str, str]) -> DumpedExchange:
    response = paired.get(one.file)
    name = response.rpartition("/")[2].partition(".")[0] if response is not None else None
    return DumpedExchange(one.file, response, one.session, request_id=name)


def _merged(
    folder: Folder,
    indexed: list[DumpedExchange],
    strays: list[DumpedExchange],
    asked: dict[str, RequestSigns],
    run: Run,
) -> list[DumpedExchange]:
    """Put each stray in front of the first indexed request of its conversation that is as long or longer."""
    naming = Calls(run)
    places: dict[tuple[str | None, str], list[tuple[int, int]]] = {}
    """By session and head, the number of messages and the index of each request."""
    for n, entry in enumerate(indexed):
        body = _body(folder, entry.request, run) if entry.request is not None else None
        if isinstance(body, dict):
            one = signs_of_request(entry.request or "", body, naming.session_of(body))
            places.setdefault((one.session, one.head), []).append((one.messages, n))
    run.make.file = None
    at: dict[int, list[DumpedExchange]] = {}
    for stray in strays:
        own = asked[stray.request or ""]
        known = places.get((own.session, own.head), [])
        later = (n for messages, n in known if messages >= own.messages)
        at.setdefault(next(later, len(indexed)), []).append(stray)
    made: list[DumpedExchange] = []
    for n, entry in enumerate(indexed):
        made += [*at.get(n, ()), entry]
    return made + at.get(len(indexed), [])


class DumpedExchange(NamedTuple):
    """One exchange; file names are relative to the folder."""

    request: str | None
    response: str | None
    session: str | None = None
    time: str | None = None
    """RFC 3339, of the answer."""
    request_id: str | None = None
    message_id: str | None = None


class DumpFiles(NamedTuple):
    """What a folder holds of dumps."""

    entries: list[DumpedExchange]
    """As the indexes say, in their order."""
    requests: list[str]
    """Requests that no index names, because no answer came or the client is too old to write an index."""
    responses: list[str]


def exchanges_of_indexes(folder: Folder, run: Run) -> DumpFiles:
    """The exchanges that the folder's indexes name, and what is left over."""
    entries: list[DumpedExchange] = []
    for name in folder.files:
        if name.rpartition("/")[2] == INDEX:
            entries += _indexed(folder, name, run)
    named = {name for entry in entries for name in (entry.request, entry.response)}
    rest = [name for name in folder.files if name not in named]
    return DumpFiles(
        entries,
        [name for name in rest if name.endswith(REQUEST)],
        [name for name in rest if name.endswith(RESPONSE)],
    )


def _indexed(folder: Folder, index: str, run: Run) -> Iterator[DumpedExchange]:
    prefix = index.removesuffix(INDEX)
    run.make.file = index
    try:
        source = folder.open(index)
    except CtxctlError as error:
        run.report(Problem(0, 0, error.slug, str(error)))
        return
    seen: set[str] = set()
    with source:
        for record in run.records(source):
            made = exchange_of_line(record, prefix)
            if made is None:
                run.problem("unknown-record", "names no body of a request; skipped")
            elif made.request is not None and made.request in seen:
                run.problem("duplicate-entry", f"{made.request} was named before; skipped")
            else:
                seen.add(made.request or "")
                yield made


def exchange_of_line(record: Json, prefix: str = "") -> DumpedExchange | None:
    """The exchange of an index's line; None if it names no file. A name never leads out of the directory."""
    request, response = _file(record, "request_file", prefix), _file(record, "response_file", prefix)
    if request is None:
        return None
    return DumpedExchange(
        request,
        response,
        string(record.get("session_id")),
        string(record.get("timestamp")),
        string(record.get("request_id")),
        string(record.get("message_id")),
    )


def _file(record: Json, field: str, prefix: str) -> str | None:
    name = string(record.get(field))
    if name is None:
        return None
    base = name.replace("\\", "/").rpartition("/")[2]
    return f"{prefix}{base}" if base else None


def turns_of_transcript(folder: Folder) -> dict[str, str]:
    """The prompt id of the transcript's turn, by request id and by message id.

    Damage of a transcript is not reported here: it is read for its ids only.
    """
    found: dict[str, str] = {}
    for name in folder.files:
        if not name.endswith(".jsonl") or name.rpartition("/")[2] == INDEX:
            continue
        if is_transcript(folder.head(name, _HEAD)):
            found |= _of_file(folder.path / name)
    for path in folder.beside:
        found |= _of_file(path)
    return found


def _of_file(path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    prompts: dict[str, str] = {}
    """The prompt that a line follows, by the line's uuid."""
    try:
        source = open_source(path)
    except CtxctlError:
        return found
    with source:
        for _, value in values(source, ignore_problem):
            if isinstance(value, dict):
                _take_beside(value, prompts, found)
    return found


def _take_beside(record: Json, prompts: dict[str, str], found: dict[str, str]) -> None:
    own, parent = string(record.get("uuid")), string(record.get("parentUuid"))
    prompt = string(record.get("promptId")) or prompts.get(parent or "")
    if own is None or prompt is None:
        return
    prompts[own] = prompt
    message = record.get("message")
    name = string(message.get("id")) if isinstance(message, dict) else None
    for key in (string(record.get("requestId")), name):
        if key is not None:
            found.setdefault(key, prompt)


class RequestSigns(NamedTuple):
    """What a request tells of its place among the others."""

    file: str
    session: str | None
    head: str
    """The digest of its tools and its model, the same for all requests of one conversation."""
    tools: int
    messages: int
    first: str
    """The digest of its first message."""
    said: tuple[tuple[int, str], ...]
    """The index and the mark of each answer of the model that it holds."""
    model: str | None


def signs_of_request(file: str, body: Json, session: str | None) -> RequestSigns:
    """The signs in a request's body."""
    tools = body.get("tools")
    tools = tools if isinstance(tools, list) else []
    found = body.get("messages")
    messages: list[Any] = found if isinstance(found, list) else []
    said = []
    for at, message in enumerate(messages):
        if isinstance(message, dict) and message.get("role") == "assistant":
            made = mark_of_answer(message)
            if made is not None:
                said.append((at, made))
    names = [tool.get("name") if isinstance(tool, dict) else None for tool in tools]
    return RequestSigns(
        file,
        session,
        digest_of(canonical([names, body.get("model")])),
        len(tools),
        len(messages),
        digest_of(canonical(messages[:1])),
        tuple(said),
        string(body.get("model")),
    )


def mark_of_answer(message: Json) -> str | None:
    """The mark of an answer: the ids of its calls, else its text; None where it has neither."""
    content = message.get("content")
    if isinstance(content, str):
        return content or None
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    ids = [block["id"] for block in blocks if isinstance(block.get("id"), str)]
    if ids:
        return "\n".join(ids)
    texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
    return "\n".join(texts) or None


def ordered_requests(found: Iterable[RequestSigns]) -> list[RequestSigns]:
    """Conversations one after the other, those with the most tools first; each by its length.

    The order between conversations is not recorded: a sub-agent's requests stand behind those of its parent.
    """
    return sorted(found, key=lambda a: (a.session or "", -a.tools, a.head, a.first, a.messages, a.file))


def paired_answers(
    found: Iterable[RequestSigns], answers: Iterable[tuple[str, Json]]
) -> tuple[dict[str, str], list[str]]:
    """The answer's file by the request's, and the answers that cannot be paired.

    An answer belongs to the longest request that is a beginning of one that repeats the answer.
    """
    requests = list(found)
    repeated: dict[str, set[tuple[str | None, str, str, int]]] = {}
    for one in requests:
        for at, made in one.said:
            repeated.setdefault(made, set()).add((one.session, one.head, one.first, at))
    by_place = {(one.session, one.head, one.first, one.messages): one.file for one in requests}
    made_pairs: dict[str, str] = {}
    left: list[tuple[str, Json]] = []
    for file, body in answers:
        places = repeated.get(mark_of_answer(body) or "", set())
        asking = [by_place[place] for place in places if place in by_place]
        if len(asking) == 1 and asking[0] not in made_pairs:
            made_pairs[asking[0]] = file
        else:
            left.append((file, body))
    _last(requests, left, made_pairs)
    paired = set(made_pairs.values())
    return made_pairs, [file for file, _ in left if file not in paired]


def _last(requests: list[RequestSigns], left: list[tuple[str, Json]], made_pairs: dict[str, str]) -> None:
    """Pair what is left where one request and one answer of a model are left."""
    waiting: dict[str | None, list[str]] = {}
    for one in requests:
        if one.file not in made_pairs:
            waiting.setdefault(one.model, []).append(one.file)
    answers: dict[str | None, list[str]] = {}
    for file, body in left:
        answers.setdefault(string(body.get("model")), []).append(file)
    for model, files in answers.items():
        asking = waiting.get(model, [])
        if len(files) == len(asking) == 1:
            made_pairs[asking[0]] = files[0]


def read(source: Source, report: Report) -> Iterator[Json]:
    """The file's events: of the directory that an index stands in, or of an export of log records."""
    head = source.read(0, _HEAD)
    if is_export(head):
        from ctxctl.importers.claude_bodies import otlp_reader

        return otlp_reader.read(source, report)
    return read_index(source, report)
