"""Write docs/fleet-reference.md (run by ``make docs``): a dataset's tables, and the questions to it.

Tables are those of `ctxctl.dataset.schema`, questions those of `ctxctl.dataset.questions`; a test holds the
page to both.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ctxctl.dataset import comparing, questions, schema

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "fleet-reference.md"


def page() -> str:
    """The whole page."""
    return "\n".join([*_tables(), *_views(), *_questions(), *_measures()]) + "\n"


def _tables() -> Iterator[str]:
    yield "# Tables and questions of a dataset"
    yield ""
    yield "Written by `make docs` from the code. How a dataset is made and asked is in [fleet.md](fleet.md)."
    yield ""
    yield f"## Tables, version {schema.SCHEMA_VERSION}"
    yield ""
    yield (
        "The same for every format. Times are UTC, in microseconds. Where a column can be null, it says "
        "what null means; zero is a zero that was counted. A *keyed digest* is 64 bits that only the "
        "dataset's key could make: equal things have equal ones, and nobody can try a guess."
    )
    for table in schema.TABLES:
        yield from (
            "",
            f"### `{table.name}`",
            "",
            f"A row is {table.row}. Named by {_joined(table.order)}.",
            "",
        )
        yield from ("| column | type | |", "|---|---|---|")
        for column in table.columns:
            kind = column.type if column.null else f"{column.type}, never null"
            yield f"| `{column.name}` | {kind} | {_cell(column.says)} |"


def _views() -> Iterator[str]:
    yield from ("", "## Views", "")
    yield (
        "`requests`: the rows of `steps` that were sent to a model, each request once. Of several captures "
        "that hold one request it counts where it is earliest; what the others hold is in `copies` "
        "(`session`, `source`, `ordinal`)."
    )


def _questions() -> Iterator[str]:
    yield from ("", "## Questions", "")
    yield "Every question takes these parameters; without one, all sessions are meant."
    yield from ("", "| parameter | type | |", "|---|---|---|")
    for one in questions.COMMON:
        default = f"; {one.default} by default" if one.default is not None else ""
        yield f"| `{one.name}` | {one.type} | {_cell(one.says)}{default} |"
    for question in questions.questions():
        yield from ("", f"### `{question.name}`", "", question.asks, "")
        yield f"About {question.counted}; those that cannot say: {question.silent}."
        if question.texts:
            yield "It reads texts: a dataset has them if it was made with `--texts`."
        if question.parameters:
            yield from ("", "| parameter | type | |", "|---|---|---|")
            for one in question.parameters:
                default = "required" if one.required else f"{_plain(one.default)} by default"
                yield f"| `{one.name}` | {one.type} | {_cell(one.says)}; {default} |"
        yield from ("", "| column | unit | |", "|---|---|---|")
        for column in question.columns:
            yield f"| `{column.name}` | {column.type} | {_cell(column.says)} |"


def _measures() -> Iterator[str]:
    yield from ("", "## Measures", "")
    yield "What `ctxctl fleet diff` compares and `fleet check` can bound: a ratio of two sums over sessions."
    yield from ("", "| measure | unit | sum of | per | better |", "|---|---|---|---|---|")
    for one in comparing.MEASURES:
        yield f"| `{one.name}` | {one.type} | {one.says} | {one.over} | {one.better or 'neither'} |"


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _joined(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
