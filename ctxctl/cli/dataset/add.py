"""``ctxctl fleet add``: captures into a dataset."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Annotated, Final

from ctxctl.cli import options as opt
from ctxctl.cli.dataset import place as places
from ctxctl.cli.parameters import Argument, Done, Option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxctl.cli.run import Run
    from ctxctl.dataset.add import Added, Comparison, Found, Plan, Runner
    from ctxctl.dataset.known import KnownSources
    from ctxctl.dataset.log import Head, Snapshot
    from ctxctl.dataset.rows.words import DatasetWords
    from ctxctl.dataset.store import DatasetStore

_REDACTOR: Final = "ctxctl.record.redact:text_redactor"
_LABEL: Final = re.compile(r"[A-Za-z_][\w.-]{0,63}")
_MANY: Final = 20
"""Captures that could not be read which are told one by one."""

Dirs = Annotated[
    list[str],
    Argument(
        metavar="DIR...", help="Captures, or directories of them.", autocompletion=opt.complete_files,
        show_default=False,
    ),
]  # fmt: skip
To = Annotated[
    str | None,
    Option(
        "--to",
        "--dataset",
        metavar="DATASET",
        help="The dataset: a folder or URL, created if it does not exist. Default: CTXCTL_FLEET_DATASET, or"
        " the setting fleet.dataset.",
        autocompletion=opt.complete_files,
    ),
]
Texts = Annotated[
    bool, Option("--texts", help="When creating a dataset: keep texts too, with secrets removed.")
]
NoPaths = Annotated[
    bool, Option("--no-paths", help="When creating a dataset: keep no paths of files and captures.")
]
Labels = Annotated[
    list[str] | None,
    Option("--label", metavar="KEY=VALUE", help="Add this label to each session that is read. Repeatable."),
]
Host = Annotated[
    str | None,
    Option("--host", metavar="NAME", help="Name of this machine. Default: a digest of its host name."),
]
Jobs = Annotated[
    int | None,
    Option("--jobs", metavar="N", help="Number of processes. Default: one per core.", min=1, max=256),
]
On = Annotated[
    str | None,
    Option(
        "--on", metavar="ray[:ADDRESS]", help="Read on a Ray cluster. Default address: one on this machine."
    ),
]
Again = Annotated[bool, Option("--again", help="Read unchanged captures again.")]
KeyFile = Annotated[
    str | None,
    Option(
        "--key-file",
        metavar="FILE",
        help="The file that holds the dataset's key.",
        autocompletion=opt.complete_files,
    ),
]


@opt.takes(opt.PRINTED, "calibration no_learned read_as strict")
def add(
    options: opt.CommonOptions,
    dirs: Dirs,
    to: To = None,
    texts: Texts = False,
    no_paths: NoPaths = False,
    label: Labels = None,
    host: Host = None,
    jobs: Jobs = None,
    on: On = None,
    again: Again = False,
    key_file: KeyFile = None,
) -> None:
    """Read new and changed captures into a dataset; a changed one replaces its earlier rows.

    Unchanged captures are not read. You can stop the command at any time: a capture is in the dataset once
    and whole, or not at all.
    """
    from ctxctl.cli.run import begin
    from ctxctl.dataset.add import Comparison, planned
    from ctxctl.dataset.key_file import key_of
    from ctxctl.dataset.known import KnownSources
    from ctxctl.dataset.log import fold
    from ctxctl.dataset.store import DatasetStore

    run = begin(options)
    store = DatasetStore(places.place_of(to, run))
    head = _head(store, texts=texts, paths=not no_paths)
    words = _words(head, key_of(head, key_file), _labels(label), host, run)
    snapshot = fold(store, head)
    known = KnownSources()
    beside = Comparison(known.at(snapshot), words)
    with run.out.progress("looking for captures"):
        found, lost = _found(dirs, beside, run)
        plan = planned(found, beside, words, snapshot.forgotten, again=again)
    added, snapshot = _add(snapshot, plan, known, run, _runner(jobs, on))
    _tell(added, plan, snapshot, lost, run)
    run.out.flush()
    code = 1 if run.settings.strict and (added.unread or lost) else 0
    raise Done(3 if lost and not found else code)


def _head(store: DatasetStore, *, texts: bool, paths: bool) -> Head:
    """What the dataset is; a new one, with a key of its own, where there is none."""
    from ctxctl.dataset.key_file import keep_key, key_path, new_key
    from ctxctl.dataset.keys import KeyedDigests
    from ctxctl.dataset.log import Head, create_head, head_of
    from ctxctl.errors import UnreadableError, UsageError

    try:
        head = head_of(store)
    except UnreadableError as error:
        if error.slug != "no-dataset":
            raise
        key = new_key()
        head = Head(os.urandom(16).hex(), KeyedDigests(key).check, texts, paths)
        try:
            keep_key(head, key)  # first: a dataset without its key can be added to by nobody
        except OSError as failed:
            raise UnreadableError(
                "not-writable", f"cannot write the dataset's key, {key_path(head)}: {failed.strerror}"
            ) from None
        made = create_head(store, head)
        if made != head:
            key_path(head).unlink(missing_ok=True)
        head = made
    if texts and not head.texts:
        raise UsageError("dataset-differs", "this dataset keeps no texts", hint="--texts makes another one")
    return head


def _words(head: Head, key: bytes, labels: dict[str, str], host: str | None, run: Run) -> DatasetWords:
    """What captures are read under."""
    import socket

    from ctxctl import __version__
    from ctxctl.analysis.cost_groups import CostWords
    from ctxctl.dataset.keys import digests_of
    from ctxctl.dataset.rows.words import DatasetWords
    from ctxctl.errors import UsageError

    settings = run.settings
    if host is not None and not (host.isprintable() and 0 < len(host) <= 128):
        raise UsageError("bad-label", f"--host {host[:80]!r}", hint="a name in one line")
    named = host or digests_of(key).word("host", socket.gethostname().encode("utf-8", "replace"))
    asked = CostWords(
        "model", None, settings.encoding, None, settings.calibration, settings.learned, settings.models
    )
    return DatasetWords(asked, key, named, head.texts, head.paths, _REDACTOR, labels, __version__)


def _labels(said: Sequence[str] | None) -> dict[str, str]:
    from ctxctl.errors import UsageError

    found = {}
    for one in said or ():
        key, equals, value = one.partition("=")
        if not equals or not _LABEL.fullmatch(key) or not value.isprintable() or len(value) > 200:
            raise UsageError(
                "bad-label", f"--label {one[:80]!r}", hint="--label KEY=VALUE: --label team=search"
            )
        found[key] = value
    return found


def _found(dirs: Sequence[str], beside: Comparison, run: Run) -> tuple[list[Found], list[str]]:
    """The captures, and a line for each place that holds none."""
    from ctxctl.dataset.captures import captures_at
    from ctxctl.errors import CtxctlError

    lost: list[str] = []

    def failed(place: str, error: CtxctlError) -> None:
        lost.append(f"{place}: {error.message}")

    return list(captures_at(dirs, run.settings.read_as, failed, beside.of)), lost


def _runner(jobs: int | None, on: str | None) -> Runner:
    from ctxctl.dataset.add import in_processes
    from ctxctl.errors import UsageError
    from ctxctl.fleet.workers import usable_cores

    if on is None:
        return in_processes(jobs or usable_cores())
    name, _, address = on.partition(":")
    if name != "ray":
        raise UsageError("bad-runner", f"--on {on[:80]!r}", hint="--on ray, or --on ray:ADDRESS")
    from ctxctl.dataset.on_ray import on_ray

    return on_ray(address or None, jobs)


def _add(
    snapshot: Snapshot, plan: Plan, known: KnownSources, run: Run, runner: Runner
) -> tuple[Added, Snapshot]:
    """Read and commit; then join small files of which there are many."""
    from ctxctl.dataset.add import add as add_planned
    from ctxctl.dataset.log import fold
    from ctxctl.dataset.upkeep import MANY, compact

    with run.out.progress("reading captures"):
        added = add_planned(snapshot, plan, known, runner, run.out.progressed)
    after = fold(snapshot.store, snapshot.head)
    if plan.captures:
        with run.out.progress("joining small files"):
            after = compact(after, MANY, run.out.progressed).snapshot
    return added, after


def _tell(added: Added, plan: Plan, snapshot: Snapshot, lost: list[str], run: Run) -> None:
    from ctxctl.cli.output import note
    from ctxctl.wording import plural

    if run.json:
        run.out.json({
            "type": "fleet_added", "version": snapshot.version, "captures": added.captures,
            "sessions": added.sessions, "unchanged": plan.unchanged, "forgotten": plan.forgotten,
            "unread": [
                {"path": path, "slug": one.slug, "message": one.message} for path, one in added.unread
            ],
        })  # fmt: skip
    else:
        read = f"{plural(added.captures, 'capture')} read: {plural(added.sessions, 'session')}"
        same = f"; {plan.unchanged:,} unchanged" if plan.unchanged else ""
        gone = f"; {plan.forgotten:,} forgotten" if plan.forgotten else ""
        run.out.lines([f"{read}{same}{gone}; version {snapshot.version} of {snapshot.store.place}"])
    for line in [*lost, *(f"{path}: {one.message}" for path, one in added.unread)][:_MANY]:
        note(f"ctxctl: not read: {line}")
    more = len(lost) + len(added.unread) - _MANY
    if more > 0:
        note(f"ctxctl: and {more:,} more")
