"""``ctxctl learn``: what recordings of the wire hold that a client's own log lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Argument, Done, Option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxctl.cli.run import Run
    from ctxctl.model.problem import Problem
    from ctxctl.session.learned.book import LearnedSet
    from ctxctl.session.learned.gather import LearnedGatherer

Recordings = Annotated[
    list[str] | None,
    Argument(
        metavar="[RECORDING]...",
        help="Complete requests: a recording by ctxctl, a body dump, HAR, request JSON. Default:"
        " list what has been learned.",
        autocompletion=opt.complete_files,
    ),
]
Client = Annotated[
    str | None,
    Option(
        "--client",
        metavar="NAME",
        help="The client that sent the requests: claude-code, codex, opencode, ...",
    ),
]
Version = Annotated[
    str | None,
    Option("--version", metavar="VERSION", help="The client's version, if the requests do not name it."),
]
Forget = Annotated[
    str | None,
    Option("--forget", metavar="CLIENT[@VERSION]", help="Remove what was learned about a client."),
]


@opt.takes(opt.PRINTED, "everything read_as color", everything=opt.EveryProblem)
def learn(
    options: opt.CommonOptions,
    recordings: Recordings = None,
    client: Client = None,
    version: Version = None,
    forget: Forget = None,
) -> None:
    """Take the system prompt, tools and reminders from a client's requests, to show them with its logs."""
    from ctxctl.cli.run import begin
    from ctxctl.cli.selection import whole_trace
    from ctxctl.errors import Exit, UsageError

    run = begin(options)
    if forget is not None:
        if recordings:
            raise UsageError("learn-or-forget", "--forget takes no recordings")
        _forget(forget)
    elif recordings:
        hint = "leave the turn out: ctxctl learns only content that all requests have"
        _learn([whole_trace(one, hint) for one in recordings], client, version, run)
    else:
        _list_sets(run)
    raise Done(Exit.OK)


def _learn(recordings: list[str], client: str | None, version: str | None, run: Run) -> None:
    """Learn from each recording; those of one client and version are joined with what is known."""
    from ctxctl.cli.output import narrate
    from ctxctl.cli.run import note_problems
    from ctxctl.session.learned import store
    from ctxctl.session.learned.book import joined_sets
    from ctxctl.text import visible

    for recording in recordings:
        gathered, problems = _gathered(recording, run)
        note_problems(recording, sorted(problems), len(problems), run)
        made = _named_set(recording, gathered, client, version)
        known = (made.client, made.version) in store.set_names()
        if known:
            made = joined_sets(store.read_set(made.client, made.version), made)
        store.save_set(made)
        if run.json:
            run.out.json(_set_object(made))
        else:
            more = f" with {made.recordings} recordings" if known else ""
            narrate(f"ctxctl: learned from {visible(recording)}: {_set_line(made)}{more}")
    run.out.flush()


def _gathered(recording: str, run: Run) -> tuple[LearnedGatherer, list[Problem]]:
    from ctxctl.record.redact import FoundSecrets, SecretRedactor
    from ctxctl.record.rules import user_key
    from ctxctl.session.learned.gather import LearnedGatherer

    redactor = SecretRedactor(user_key())
    gathered = LearnedGatherer(lambda text: redactor.text(text, FoundSecrets()))
    problems: list[Problem] = []
    with run.out.progress("learning"):
        gathered.take(_events(recording, run, problems))
    if gathered.is_cut:
        from ctxctl.model.problem import Problem

        message = f"windows change so often that only the first {gathered.requests} requests are compared"
        problems.append(Problem(0, 0, "windows-too-large", message))
    return gathered, problems


def _events(recording: str, run: Run, problems: list[Problem]) -> Iterator[dict[str, Any]]:
    """The events of a capture, or those that a native trace holds; none of a client's own log."""
    from ctxctl.importers import registry
    from ctxctl.importers.capture import open_capture
    from ctxctl.ingest.lines import values
    from ctxctl.session.learned.store import CLIENTS
    from ctxctl.trace.source import Source

    with open_capture(recording, run.settings.read_as) as (opened, importer):
        if importer is not None and importer.name not in CLIENTS:
            yield from registry.capture_events(importer, opened, problems.append)
        elif importer is None and isinstance(opened, Source):
            # A trace that was made of a client's log holds no more than the log.
            found = (value for _, value in values(opened, problems.append) if isinstance(value, dict))
            yield from (value for value in found if value.get("source") not in CLIENTS)


def _named_set(
    recording: str, gathered: LearnedGatherer, client: str | None, version: str | None
) -> LearnedSet:
    """The set under its name; raises UsageError or UnreadableError where there is none, or no name for it."""
    from ctxctl.errors import UnreadableError, UsageError
    from ctxctl.text import visible

    client, version = client or gathered.client, version or gathered.version
    if not gathered.requests:
        raise UnreadableError(
            "no-requests", f"{visible(recording)} holds no complete request",
            hint="a client's log is not enough; record its requests (`ctxctl record -- COMMAND`)",
        )  # fmt: skip
    if client is None or version is None:
        raise UsageError(
            "unknown-client", f"the requests in {visible(recording)} do not name their client and version",
            hint="name them: --client opencode --version 1.18.33",
        )  # fmt: skip
    made = gathered.learned(client, version)
    if made is None:
        raise UnreadableError(
            "nothing-learned",
            f"the requests in {visible(recording)} share no system prompt, tool or reminder",
        )
    return made


def _forget(name: str) -> None:
    from ctxctl.cli.output import narrate
    from ctxctl.session.learned import store
    from ctxctl.text import visible

    for gone in store.forget_sets(name):
        narrate(f"ctxctl: removed {visible(gone)}")


def _list_sets(run: Run) -> None:
    """What is known, a line each; a damaged set is named and does not stop the rest."""
    from ctxctl.cli.output import note
    from ctxctl.errors import UnreadableError
    from ctxctl.session.learned import store

    names = store.set_names()
    for client, version in names:
        try:
            found = store.read_set(client, version)
        except UnreadableError as error:
            note(f"ctxctl: {error.message}")
            continue
        if run.json:
            run.out.json(_set_object(found))
        else:
            run.out.lines([_set_line(found)])
    if not names and not run.json:
        run.out.lines(["nothing has been learned; `ctxctl learn RECORDING` does it (docs/learn.md)"])
    run.out.flush()


def _set_line(found: LearnedSet) -> str:
    from ctxctl.text import visible
    from ctxctl.wording import plural

    kinds = ", ".join(f"{visible(kind)} {len(items)}" for kind, items in sorted(found.threads.items()))
    size = sum(len(text.encode("utf-8", "replace")) for text in found.contents.values())
    text = f"{visible(found.name)}  {plural(found.items, 'item')} ({kinds}), {size:,} bytes"
    text += f", from {plural(found.requests, 'request')}, digest {found.digest}"
    return text + (f", {plural(found.redacted, 'secret')} redacted" if found.redacted else "")


def _set_object(found: LearnedSet) -> dict[str, Any]:
    return {
        "type": "learned",
        "client": found.client,
        "version": found.version,
        "digest": found.digest,
        "recordings": found.recordings,
        "requests": found.requests,
        "redacted": found.redacted,
        "threads": {
            kind: [
                {
                    "kind": item.kind,
                    "role": item.role,
                    "title": item.title,
                    "digest": item.digest,
                    "bytes": len(found.contents[item.digest].encode("utf-8", "replace")),
                    "varies": item.varies,
                }
                for item in items
            ]
            for kind, items in sorted(found.threads.items())
        },
    }
