"""The query language for steps and changes (``docs/search.md``).

A query is an immutable value: parsed once, comparable, printable, and matched against any number of steps.
"""

from ctxctl.engine.query.parsing import QueryError, parse_query
from ctxctl.engine.query.terms import (
    And,
    Field,
    Not,
    Number,
    Or,
    QueryContext,
    QuerySubject,
    Range,
    StepState,
    Term,
    Value,
    Word,
)
from ctxctl.engine.query.value import Contains, Query, contained_text

__all__ = [
    "And",
    "Contains",
    "Field",
    "Not",
    "Number",
    "Or",
    "Query",
    "QueryContext",
    "QueryError",
    "QuerySubject",
    "Range",
    "StepState",
    "Term",
    "Value",
    "Word",
    "contained_text",
    "parse_query",
]
