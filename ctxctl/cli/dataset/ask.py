"""``ctxctl fleet ask``: a question to a dataset, by name or as SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from ctxctl.cli import options as opt
from ctxctl.cli.dataset import place
from ctxctl.cli.parameters import Argument, Done, Option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxctl.cli.run import Run
    from ctxctl.dataset.duck import Answer
    from ctxctl.dataset.opening import OpenDataset
    from ctxctl.dataset.questions import AnswerColumn, Question


def complete_questions(incomplete: str) -> list[str]:
    """Names of the questions."""
    from ctxctl.dataset.questions import LISTS, ORDER

    return [name for name in (*LISTS, *ORDER) if name.startswith(incomplete)]


Name = Annotated[
    str | None,
    Argument(
        metavar="[QUESTION]",
        help="Name of a question. Default: list them.",
        autocompletion=complete_questions,
        show_default=False,
    ),
]
Sql = Annotated[
    str | None,
    Option(
        "--sql", metavar="FILE",
        help="Run the SELECT in this file instead (- is stdin); docs/fleet.md lists tables and views.",
        autocompletion=opt.complete_files,
    ),
]  # fmt: skip
AsCsv = Annotated[bool, Option("--csv", help="Print the rows as CSV.")]
Show = Annotated[
    str | None,
    Option("--show", metavar="ENGINE", help="Only print the question's SQL, for duckdb or clickhouse."),
]
_MOST_SQL = 1 << 20


@opt.takes("dataset since until project client label limit params sql csv show", opt.PAGED, "color")
def ask(
    options: opt.CommonOptions,
    name: Name = None,
    dataset: place.Dataset = None,
    since: place.Since = None,
    until: place.Until = None,
    project: place.Project = None,
    client: place.Client = None,
    label: place.Label = None,
    limit: place.Limit = None,
    params: place.Params = None,
    sql: Sql = None,
    csv: AsCsv = False,
    show: Show = None,
) -> None:
    """Ask a dataset a question, by its name or in your own SQL. Without a name: list the questions.

    Each answer says how many sessions it covers, and how much of the data is missing.
    """
    from ctxctl.cli.run import begin
    from ctxctl.errors import UsageError

    if csv and options.json:
        raise UsageError("csv-and-json", "--csv and --json do not go together", hint="give one of them")
    if name is not None and sql is not None:
        raise UsageError(
            "name-and-sql", f"--sql and the question {name!r} do not go together", hint="give one"
        )
    run = begin(options)
    flags = {
        "since": since, "until": until, "project": project, "client": client, "label": label, "limit": limit,
    }  # fmt: skip
    if sql is not None:
        _by_sql(sql, flags, params, dataset, run, csv=csv)
    elif name is None:
        _list(run)
    else:
        _by_name(name, flags, params, dataset, run, csv=csv, show=show)
    run.out.flush()
    raise Done(0)


def question_named(name: str) -> Question:
    """The question of a name.  Raises UsageError (`no-such-question`)."""
    from difflib import get_close_matches

    from ctxctl.dataset import questions
    from ctxctl.errors import UsageError

    try:
        return questions.question(name)
    except KeyError:
        near = get_close_matches(name[:80], questions.ORDER, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(questions.ORDER)}"
        raise UsageError("no-such-question", f"no question is called {name[:80]!r}", hint=hint) from None


def need_texts(question: Question, snapshot: OpenDataset) -> None:
    """Raises UnavailableError (`no-texts`) where a question reads texts that a dataset does not keep."""
    from ctxctl.errors import UnavailableError

    if question.texts and not snapshot.texts:
        raise UnavailableError(
            "no-texts", f"{question.name}: this dataset keeps no texts",
            hint="ctxctl find DIR 'has:WORDS' searches the captures; fleet add --texts keeps them",
        )  # fmt: skip


def _list(run: Run) -> None:
    from ctxctl.dataset.questions import questions
    from ctxctl.report import answers

    if run.json:
        for one in questions():
            run.out.json(answers.question_object(one))
    else:
        run.out.lines(answers.question_lines(questions(), run.out.width, run.out.paint))


def _by_name(
    name: str, flags: dict[str, str | None], params: Sequence[str] | None, dataset: str | None, run: Run, *,
    csv: bool, show: str | None,
) -> None:  # fmt: skip
    from ctxctl.dataset.duck import Asked
    from ctxctl.dataset.questions import question_tables

    question = question_named(name)
    if show is not None:
        _show(question, show, run)
        return
    given = place.given_values(flags, params, question.all_parameters)
    snapshot = place.opened(dataset, run, question_tables(name))
    need_texts(question, snapshot)
    with run.out.progress("asking"), Asked(snapshot.files) as asked:
        answer = asked.ask(name, given)
    put_answer(question, answer, given, snapshot, run, csv=csv)


def put_answer(
    question: Question, answer: Answer, given: dict[str, Any], snapshot: OpenDataset, run: Run, *,
    csv: bool = False,
) -> None:  # fmt: skip
    """Print the answer to a question in the form that is asked for."""
    from ctxctl.report import answers

    if csv or run.json:
        _put(question, question.columns, answer, given, snapshot, run, csv=csv)
        return
    run.out.lines(answers.answer_lines(question, answer, given, run.out.width, run.out.paint))


def _by_sql(
    file: str, flags: dict[str, str | None], params: Sequence[str] | None, dataset: str | None, run: Run, *,
    csv: bool,
) -> None:  # fmt: skip
    from ctxctl.dataset.duck import Asked
    from ctxctl.dataset.questions import tables_of
    from ctxctl.report import answers

    sql = _read(file)
    given = place.given_values(flags, params, None)
    most = given.pop("limit", None)
    snapshot = place.opened(dataset, run, tables_of(sql))
    with run.out.progress("asking"), Asked(snapshot.files) as asked:
        answer = asked.select(sql, given, most if isinstance(most, int) else None)
    columns = answers.columns_of(answer)
    if csv or run.json:
        _put(None, columns, answer, given, snapshot, run, csv=csv)
        return
    run.out.lines(answers.rows_table(columns, answer, run.out.width, run.out.paint))


def _put(
    question: Question | None, columns: Sequence[AnswerColumn], answer: Answer, given: dict[str, Any],
    snapshot: OpenDataset, run: Run, *, csv: bool,
) -> None:  # fmt: skip
    from ctxctl import __version__
    from ctxctl.report import answers

    if csv:
        run.out.write(answers.answer_csv(columns, answer))
        return
    for one in answers.answer_objects(question, columns, answer, given, snapshot, __version__):
        run.out.json(one)


def _show(question: Question, engine: str, run: Run) -> None:
    from ctxctl.dataset import questions
    from ctxctl.errors import UsageError

    if engine not in ("duckdb", "clickhouse"):
        raise UsageError(
            "no-such-engine", f"--show {engine[:80]}: not an engine", hint="duckdb or clickhouse"
        )
    sql = questions.composed(question.body)
    if engine == "clickhouse":
        sql = questions.for_clickhouse(sql, question.all_parameters)
    run.out.text(f"{';'.join([*questions.views(), ''])}\n\n{sql};")


def _read(file: str) -> str:
    import sys

    from ctxctl.errors import UnreadableError, UsageError

    try:
        if file == "-":
            data = sys.stdin.buffer.read(_MOST_SQL + 1)
        else:
            with open(file, "rb") as opened:
                data = opened.read(_MOST_SQL + 1)
        text = data.decode()
    except OSError as error:
        raise UnreadableError("not-readable", f"{file}: {error.strerror or 'cannot be read'}") from None
    except UnicodeDecodeError:
        raise UsageError("bad-sql", f"{file} is not UTF-8") from None
    if len(data) > _MOST_SQL:
        raise UsageError("bad-sql", f"{file} is longer than 1 MiB")
    return text
