"""The page on a dataset: what it holds, the questions that have an answer, and the sessions with the command
that opens each.

Tables and a style of our own and nothing else: no script, and a policy that lets nothing be run or fetched.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Final, NamedTuple

from ctxctl.dataset.duck import Answer, values_of
from ctxctl.dataset.questions import AnswerColumn, Question
from ctxctl.dataset.session_groups import By, Group
from ctxctl.dataset.session_values import SessionRow
from ctxctl.report.answers import head_line, row_cells, title
from ctxctl.report.html.writer import asset, hashed
from ctxctl.report.session_figures import COLUMNS, GROUPED, NOT_RECORDED, figure_value, figure_words
from ctxctl.text import visible
from ctxctl.wording import NOT_KNOWN, number, plural

MOST_GROUPS: Final = 25
"""Lines of the overview by one thing."""
_WORDS: Final = ("text", "digest")
"""Types of columns that are no figures."""
BY: Final[tuple[By, ...]] = ("project", "client", "week")


class Asked(NamedTuple):
    """A question and what came of it."""

    question: Question
    answer: Answer | None
    """None: it was not asked."""
    why_not: str = ""


class DatasetPage(NamedTuple):
    """What a page says."""

    dataset: str
    """Where it is, as it was named."""
    version: int
    release: str
    """ctxctl's own version."""
    filters: str
    """What was left out, in words; empty: nothing."""
    whole: Group
    groups: Mapping[By, Sequence[Group]]
    asked: Sequence[Asked]
    sessions: Sequence[SessionRow]
    """Those that are listed."""
    all_sessions: int
    """Rows that the filters leave."""
    unread: bool
    """Whether the dataset holds older sessions than were read."""


def write(page: DatasetPage) -> Iterator[bytes]:
    """The page, piece by piece."""
    style = asset("style.css") + asset("dataset.css")
    policy = f"default-src 'none'; style-src '{hashed(style)}'; base-uri 'none'; form-action 'none'"
    name = escape(visible(page.dataset))
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>{name} - ctxctl fleet</title>\n<style>{style}</style>\n</head>\n<body>\n"
    ).encode()
    answered = [one for one in page.asked if one.answer is not None and one.answer.rows]
    yield _head(page, name, answered).encode()
    yield b"<main>\n"
    for by in BY:
        yield "".join(_overview(by, page.groups[by])).encode()
    yield _signs().encode()
    listed = {row.key for row in page.sessions}
    for one in answered:
        yield "".join(_question(one, listed)).encode()
    yield "".join(_unanswered(page.asked)).encode()
    yield from ("".join(part).encode() for part in _sessions(page))
    yield b"</main>\n</body>\n</html>\n"


def shown(text: str) -> str:
    """A stranger's text as the page has it: made visible, escaped, its direction kept to itself."""
    return f"<bdi>{escape(visible(text))}</bdi>"


def _head(page: DatasetPage, name: str, answered: Sequence[Asked]) -> str:
    whole, words = page.whole, figure_words(page.whole.figures)
    said = [plural(whole.sessions, "session"), plural(whole.figures.requests, "request")]
    if whole.figures.requests:
        said.append(f"{words['sent']} tokens sent")
    said.append(f"cost {words['cost']}" if whole.figures.usd is not None else f"cost {NOT_RECORDED}")
    told = [f"<p>{escape(', '.join(said))}.</p>"]
    if page.filters:
        told.append(f"<p>Only {escape(page.filters)}.</p>")
    if page.unread:
        told.append(
            '<p class="notice">The overview and the list of sessions are of the newest sessions alone; the'
            " questions are of all.</p>"
        )
    if whole.copies:
        told.append(
            f"<p>{escape(plural(whole.copies, 'request'))} that a second capture holds too"
            f" {'is' if whole.copies == 1 else 'are'} counted once.</p>"
        )
    links = [("by-project", "Overview"), *((_anchor(one.question), one.question.name) for one in answered)]
    links.append(("sessions", "Sessions"))
    nav = "\n".join(f'<a href="#{escape(to)}">{escape(text)}</a>' for to, text in links)
    return (
        f'<header id="top">\n<h1><bdi>{name}</bdi></h1>\n'
        f'<p class="facts">ctxctl {escape(page.release)}, version {number(page.version)} of the dataset</p>\n'
        + "\n".join(told)
        + f'\n<nav aria-label="Sections">\n{nav}\n</nav>\n</header>\n'
    )


def _overview(by: By, groups: Sequence[Group]) -> Iterator[str]:
    yield f'<section id="by-{by}">\n<h2>By {by}</h2>\n<div class="wide"><table>\n<thead><tr>'
    yield f"<th>{escape(GROUPED[by])}</th>" + _th("sessions", "sessions of it")
    yield "".join(_th(one.title, one.says) for one in COLUMNS) + "</tr></thead>\n<tbody>\n"
    for group in groups[:MOST_GROUPS]:
        words = figure_words(group.figures)
        named = f'<span class="quiet">{NOT_RECORDED}</span>' if group.key is None else shown(group.key)
        yield f"<tr><td>{named}</td>" + _right(number(group.sessions))
        yield "".join(_right(words[one.name]) for one in COLUMNS) + "</tr>\n"
    yield "</tbody></table></div>\n"
    if len(groups) > MOST_GROUPS:
        rest = sum(one.sessions for one in groups[MOST_GROUPS:])
        yield (
            f"<p>{number(len(groups) - MOST_GROUPS)} more, with {plural(rest, 'session')}:"
            f" <code>ctxctl fleet --by {by}</code> lists all.</p>\n"
        )
    yield "</section>\n"


def _signs() -> str:
    lines = [f"<dt>{escape(one.title)}</dt><dd>{escape(one.says)}</dd>" for one in COLUMNS]
    lines.append(f"<dt>{NOT_KNOWN}</dt><dd>not recorded in anything that was read; not zero</dd>")
    listed = "\n".join(lines)
    return (
        f'<details><summary>What the columns say</summary>\n<dl class="pairs">\n{listed}\n</dl></details>\n'
    )


def _anchor(question: Question) -> str:
    return f"q-{question.name}"


def _question(one: Asked, listed: set[str]) -> Iterator[str]:
    question, answer = one.question, one.answer
    assert answer is not None
    yield f'<section id="{escape(_anchor(question))}">\n<h2>{escape(question.asks)}</h2>\n'
    yield f'<p class="facts">{escape(head_line(question, answer))}.</p>\n'
    rows = list(values_of(answer.rows))
    known = [n for n in range(len(question.columns)) if any(row[n] is not None for row in rows)]
    columns = [question.columns[n] for n in known]
    yield '<div class="wide"><table>\n<thead><tr>'
    yield "".join(_th(title(one.name), one.says, right=one.type not in _WORDS) for one in columns)
    yield "</tr></thead>\n<tbody>\n"
    for row in rows:
        words = row_cells(row, question.columns)
        cells = (_cell(None if row[n] is None else words[n], question.columns[n], listed) for n in known)
        yield "<tr>" + "".join(cells) + "</tr>\n"
    yield "</tbody></table></div>\n"
    silent = [title(one.name) for n, one in enumerate(question.columns) if n not in known]
    if silent:
        yield f"<p>Not known for any of these: {escape(', '.join(silent))}.</p>\n"
    if answer.more:
        yield f"<p>There are more: <code>ctxctl fleet ask {escape(question.name)}</code></p>\n"
    yield "</section>\n"


def _cell(text: str | None, column: AnswerColumn, listed: set[str]) -> str:
    if text is None:
        return f'<td class="{"right " if column.type not in _WORDS else ""}quiet">{NOT_KNOWN}</td>'
    if column.type == "digest" and text in listed:
        return f'<td><a href="#s-{escape(text)}">{escape(text)}</a></td>'
    return _right(text) if column.type not in _WORDS else f"<td>{shown(text)}</td>"


def _unanswered(asked: Sequence[Asked]) -> Iterator[str]:
    empty = [one.question for one in asked if one.answer is not None and not one.answer.rows]
    unasked = [one for one in asked if one.answer is None]
    if not (empty or unasked):
        return
    yield '<section id="nothing">\n<h2>Questions without rows</h2>\n<ul>\n'
    for question in empty:
        yield f'<li>{escape(question.asks)} <span class="quiet">Nothing of the kind.</span></li>\n'
    for one in unasked:
        why = escape(one.why_not)
        yield f'<li>{escape(one.question.asks)} <span class="quiet">Not asked: {why}.</span></li>\n'
    yield "</ul>\n</section>\n"


def _sessions(page: DatasetPage) -> Iterator[Iterable[str]]:
    """The list of sessions, a hundred a piece."""
    said = plural(page.all_sessions, "session")
    if len(page.sessions) < page.all_sessions:
        said = f"{number(len(page.sessions))} of {said}: the most expensive, and those named above"
    yield [f'<section id="sessions">\n<h2>Sessions</h2>\n<p class="facts">{escape(said)}.</p>\n']
    names = "".join(f"<th>{name}</th>" for name in ("session", "began (UTC)", "project", "client"))
    yield [f'<div class="wide"><table>\n<thead><tr>{names}']
    yield [*(_th(one.title, one.says) for one in COLUMNS), "<th>opens it</th></tr></thead>\n<tbody>\n"]
    rows = iter(page.sessions)
    seen: set[str] = set()
    while some := list(islice(rows, 100)):
        yield [_session(row, seen) for row in some]
    yield ["</tbody></table></div>\n</section>\n"]


def _session(row: SessionRow, seen: set[str]) -> str:
    words = figure_words(row.own)
    anchor = "" if row.key in seen else f' id="s-{row.key}"'
    seen.add(row.key)
    began = NOT_KNOWN if row.started is None else f"{row.started:%Y-%m-%d %H:%M}"
    client = " ".join(text for text in (row.client, row.client_version) if text)
    unknown = f'<span class="quiet">{NOT_RECORDED}</span>'
    project, client = (shown(text) if text else unknown for text in (row.project, client))
    figures = "".join(_right(words[one.name]) for one in COLUMNS)
    return (
        f'<tr{anchor}><td class="key">{row.key}</td><td class="right">{began}</td>'
        f"<td>{project}</td><td>{client}</td>{figures}<td>{_commands(row)}</td></tr>\n"
    )


def _commands(row: SessionRow) -> str:
    """What opens a session, and what shows its largest request."""
    if row.path is None:
        return '<span class="quiet">its path is not kept</span>'
    made = f"<code>ctxctl replay {shown(shlex.quote(row.path))}</code>"
    largest = row.address(row.places.largest)
    if largest is None:
        return made
    return f"{made}<br><code>ctxctl show {shown(shlex.quote(f'{row.path}@{largest}'))}</code>"


def _th(text: str, says: str, *, right: bool = True) -> str:
    return f'<th class="{"right" if right else "left"}" title="{escape(says)}">{escape(text)}</th>'


def _right(text: str) -> str:
    return f'<td class="right">{escape(text)}</td>'


def dearest(rows: Iterable[SessionRow]) -> list[SessionRow]:
    """Sessions by what they cost, those without a price last; equals keep their order."""
    return sorted(rows, key=lambda row: -(figure_value(row.own, "cost") or -1.0))
