"""The small language in which steps and changes are asked for (``docs/search.md``).

A query is a value: parsed once, compared and printed as text, and asked of as many steps as there are.
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
