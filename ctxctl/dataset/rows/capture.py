"""The rows of one capture, in one pass over its replay."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from ctxctl.analysis.request_cost import cost_of
from ctxctl.dataset.keys import digests_of
from ctxctl.dataset.rows.clear import ClearTexts
from ctxctl.dataset.rows.session import Held, SessionPlace, SessionRows
from ctxctl.dataset.schema import UNKNOWN_MONTH
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.entry_points import loaded
from ctxctl.importers.whereabouts import whereabouts
from ctxctl.model.vocab import MAIN_THREAD
from ctxctl.prompt_words import title_of
from ctxctl.session.facade import Inspector
from ctxctl.session.item_words import directory_of
from ctxctl.tokens.catalogue.rates import RateBook

if TYPE_CHECKING:
    from ctxctl.dataset.rows.facts import Row
    from ctxctl.dataset.rows.words import DatasetWords

_CLIENTS: Final = {
    "aider": "aider", "claude-bodies": "Claude Code", "claude-code": "Claude Code",
    "claude-stream-json": "Claude Code", "cline": "Cline", "codex": "Codex", "codex-exec": "Codex",
    "copilot-cli": "Copilot CLI", "cursor": "Cursor", "droid": "Droid", "gemini-cli": "Gemini CLI",
    "goose": "Goose", "iflow": "iFlow CLI", "kimi": "Kimi CLI", "opencode": "opencode",
    "openhands": "OpenHands", "pi": "pi", "pi-rpc": "pi", "qwen-code": "Qwen Code",
}  # fmt: skip
"""By format, the one program that writes it of itself; of other captures nobody knows who wrote them."""


class CaptureRows(NamedTuple):
    """What a capture comes to."""

    month: str
    """Of its first session."""
    sessions: int
    problems: int
    rows: dict[str, list[Row]]
    """By table, all but `sources`, in the order of the schema's columns."""


def read_rows(path: str, format_name: str, source: int, words: DatasetWords) -> CaptureRows:
    """The rows of a capture.

    Args:
        path: The capture.
        format_name: Its format.
        source: Its key.
        words: What it is read under.

    Raises what `Inspector.open` raises.
    """
    asked, clear, book = _tools(msgspec.msgpack.encode(words))
    with Inspector.open(
        path, target=asked.target, model=asked.model, encoding=asked.encoding, policy=asked.policy,
        format=format_name, calibration=asked.calibration, learned=asked.learned, own_models=asked.models,
    ) as inspector:  # fmt: skip
        where = whereabouts(path, format_name)
        directory = directory_of(inspector) or where.directory
        runtime = inspector.params.runtime or format_name
        place = SessionPlace(
            digests_of(words.key), clear, source, format_name, runtime, directory, words.paths
        )
        contents: dict[str, Held] = {}
        sessions = _sessions(inspector, place, book, contents)
        rows = _all_rows(sessions)
        project = clear.name(os.path.basename(_unslashed(directory))) if directory else None
        month = sessions[0].month if sessions else UNKNOWN_MONTH
        titles: dict[str | None, str | None] = {one.title: None for one in sessions if words.texts}
        rows["contents"] = _contents(
            contents, inspector, place, month, clear if words.texts else None, titles
        )
        for one in sessions:
            title = one.title if words.texts else None
            more = {
                "title": None if title is None else titles[title] or clear.redacted(title),
                "project": project,
                "labels": words.labels,
                "problems": inspector.problem_count,
            }
            branch = where.branch(one.sums.first_time) if where.branches else None
            rows["sessions"].append(one.row(words.host, _CLIENTS.get(format_name), branch, more))
        return CaptureRows(month, len(sessions), inspector.problem_count, rows)


@lru_cache(maxsize=2)
def _tools(words: bytes) -> tuple[Any, ClearTexts, RateBook]:
    """What captures are read by, once for many: the settings, what may be shown, and prices."""
    from ctxctl.dataset.rows.words import DatasetWords

    told = msgspec.msgpack.decode(words, type=DatasetWords)
    asked = told.asked
    clear = ClearTexts(loaded(told.redactor)(told.key))
    return asked, clear, RateBook(asked.models, asked.provider, asked.as_of)


def clear_texts(words: DatasetWords) -> ClearTexts:
    """What of captures may be shown."""
    return _tools(msgspec.msgpack.encode(words))[1]


def _sessions(
    inspector: Inspector, place: SessionPlace, book: RateBook, contents: dict[str, Held]
) -> list[SessionRows]:
    found: dict[str | None, SessionRows] = {}
    for at, engine in inspector.walk(settle=True):
        step = at.step
        session = found.get(step.session)
        if session is None:
            session = found[step.session] = SessionRows(place, step.session, len(found), contents)
        session.step(cost_of(step, book), at.placements, engine.delta())
        if session.client_version is None:
            session.client_version = engine.threads[ThreadKey(step.session, step.thread)].client
        if at.turn is not None and step.thread == MAIN_THREAD:
            session.prompt(at.turn.title)
    return list(found.values())


def _all_rows(sessions: list[SessionRows]) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = {"sessions": [], "steps": [], "stays": [], "misses": [], "compactions": []}
    for one in sessions:
        for table, found in one.rows().items():
            rows[table] += found
    return rows


def _contents(
    held: dict[str, Held],
    inspector: Inspector,
    place: SessionPlace,
    month: str,
    shown: ClearTexts | None,
    titles: dict[str | None, str | None],
) -> list[Row]:
    """The rows of the texts; fills in `titles`, the first words of some of them, without secrets."""
    rows: list[Row] = []
    for digest, one in held.items():
        told = None
        if shown is not None:
            text = inspector.text(one.content)
            told = shown.redacted(text)
            # Of the whole: a rule does not know a key of which the words of a title have a part.
            # Of several that begin alike, one without its secrets counts.
            if titles.get(title := title_of(text), "") in (None, title):
                titles[title] = title_of(told)
        rows.append([
            place.source,
            month,
            place.format,
            place.digests.number("content", bytes.fromhex(digest)),
            place.clear.name(one.kind) or "custom",
            one.content.size,
            one.tokens,
            told,
        ])  # fmt: skip
    return rows


def _unslashed(directory: str) -> str:
    """A directory's path with `/` between its parts, and none at its end."""
    return directory.replace("\\", "/").rstrip("/")
