"""The small language in which steps and changes are asked for (``docs/search.md``).

A query is a value: parsed once, compared and printed as text, and asked of as many steps as there are.
"""

from ctxctl.engine.query.parsing import QueryError, parse
from ctxctl.engine.query.terms import (
    And,
    Around,
    Field,
    Is,
    Not,
    Number,
    Or,
    Range,
    Subject,
    Term,
    Value,
    Word,
)
from ctxctl.engine.query.value import Contains, Query, contained

__all__ = [
    "And",
    "Around",
    "Contains",
    "Field",
    "Is",
    "Not",
    "Number",
    "Or",
    "Query",
    "QueryError",
    "Range",
    "Subject",
    "Term",
    "Value",
    "Word",
    "contained",
    "parse",
]
